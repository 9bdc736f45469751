//! Conversion of a clustered database (docs/spec/distribution.md 1.3: an entry `[S,null]`, or `[S,T]` for members that need the rows).
//!
//! The leader converts its contents beside the present ones, as a standalone database does, and carries later commits over. When nothing is
//! missing and nothing is pending, it proposes the entry, and all inputs wait until that is committed; then it swaps the contents. Every
//! other member has a job convert its own contents when it gets the entry (`replacing.rs`). Invariant: the entry is the
//! only one of its leader under way, so all members convert the same contents.

use bytes::Bytes;
use corvid_consensus::database::{Forward, ForwardOutcome, Proposal};
use corvid_data::{Schema, Tag, WireError};
use corvid_engine::Database;
use corvid_log::cluster::{Data, Eid};
use corvid_log::{Stamp, snapshot::append_rows};
use corvid_monitor::SessionId;
use std::sync::Arc as StdArc;

use super::super::Now;
use super::super::conversion::{Conversion, NewFile, Work};
use super::super::environment::Environment;
use super::super::replies::Forwarded;
use super::Clustered;
use crate::message::{DatabaseMethod, Request, SessionInfo};
use crate::schema_epoch::SchemaEpoch;

/// The session of a conversion that another member has forwarded.
const FORWARDED_SESSION: SessionId = SessionId(u64::MAX);

/// Checks that no column is ephemeral (docs/spec/protocol.md 3.3).
///
/// # Errors
/// The first one that is.
pub(in super::super) fn check_persistence(schema: &Schema) -> Result<(), WireError> {
    for (_, table) in schema.iter() {
        for column in table.columns() {
            if !column.persistent {
                let details = format!(
                    "Table {} column {} is ephemeral but clustered databases do not support ephemeral columns.",
                    table.name, column.name
                );
                return Err(WireError::new(Tag::SyntaxError, details));
            }
        }
    }
    Ok(())
}

/// The rows of converted contents, as an entry has them.
fn rows_of(database: &Database, now: Now) -> Vec<u8> {
    let stamp = Stamp {
        date_ms: now.wall_ms,
        comment: "converted by ovsdb-server",
        is_diff: true,
        with_defaults: false,
    };
    let mut rows = Vec::new();
    append_rows(&mut rows, database.schema(), &stamp, |table| {
        database.rows(table)
    });
    rows
}

/// A conversion that another member has forwarded, as a request of a session that began in this
/// epoch.
pub(in super::super) fn request_of(now: Now, forward: &Forward, epoch: SchemaEpoch) -> Request {
    let client = &forward.client;
    let mut info = SessionInfo::new(
        client.is_read_only,
        client.role.clone(),
        client.client_id.clone(),
    );
    info.epoch = epoch;
    Request {
        session: FORWARDED_SESSION,
        info: StdArc::new(info),
        arrived_ms: now.mono_ms,
        stamp: 0,
        id: Box::default(),
        method: DatabaseMethod::Convert,
        frame: forward.params.to_vec(),
        params: 0..forward.params.len(),
        seqno: None,
        blocked: false,
        foreign_monitors: Vec::new(),
        once: None,
        client: None,
    }
}

impl Clustered {
    /// The conversion that begins is for this member.
    pub(in super::super) fn convert_for(&mut self, forwarded: Forwarded) {
        self.converting_for = Some(forwarded);
    }

    /// Proposes the conversion, whose contents lack nothing.
    ///
    /// # Errors
    /// Members would refuse its entry; it is not proposed.
    pub(in super::super) fn propose_conversion(
        &mut self,
        now: Now,
        conversion: &mut Conversion,
        environment: &mut Environment,
    ) -> Result<(), WireError> {
        let rows = match (&conversion.work, self.has_data_conversion) {
            (Work::Ready(converted), true) => Some(rows_of(converted.database(), now)),
            _ => None,
        };
        let forwarded = self.converting_for;
        let id = forwarded.map(|forwarded| forwarded.id);
        let eid = id.unwrap_or_else(|| Eid(environment.fresh()));
        let schema = conversion.schema.to_json().to_bytes();
        let data = Data::of(Some(&schema), rows.as_deref());
        if data.json().len() > self.limits.entry_bytes_max {
            let details = format!(
                "conversion makes an entry of {} bytes, more than members of a cluster take",
                data.json().len()
            );
            return Err(WireError::new(Tag::ResourcesExhausted, details));
        }
        conversion.entry = Some(eid);
        conversion.file = NewFile::Swapping;
        self.proposals.push(Proposal {
            eid,
            data: Bytes::copy_from_slice(data.json()),
            result: None,
        });
        if let Some(forwarded) = forwarded {
            let outcome = ForwardOutcome::Proposed(Bytes::from_static(b"{}"));
            self.report_outcome(forwarded, outcome);
        }
        Ok(())
    }

    /// Whether the conversion that has just ended is another member's, which gets no reply.
    pub(in super::super) fn ends_forwarded_conversion(&mut self) -> bool {
        self.converting_for.take().is_some()
    }

    /// A conversion has failed with nothing changed. True if another member has asked for it, and is
    /// told.
    pub(in super::super) fn fail_conversion(&mut self, error: &WireError) -> bool {
        let Some(forwarded) = self.converting_for.take() else {
            return false;
        };
        let mut json = Vec::new();
        error.write_json(&mut json);
        let outcome = ForwardOutcome::Refused(self.applied, json.into());
        self.report_outcome(forwarded, outcome);
        true
    }
}
