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
use corvid_log::cluster::{Data, Eid, Term};
use corvid_log::{Stamp, snapshot::append_rows};
use corvid_monitor::SessionId;
use std::sync::Arc as StdArc;

use super::super::conversion::{Conversion, NewFile, Work};
use super::super::replies::{Answer, Forwarded};
use super::super::{DatabaseService, Now};
use super::request_stage::Stage;
use crate::message::{DatabaseMethod, Request, SessionInfo};

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

impl DatabaseService {
    /// Begins a conversion that another member has forwarded.
    ///
    /// # Panics
    /// If something is pending or another conversion is under way: its asker would wait for ever.
    pub(super) fn convert_forward(&mut self, now: Now, forwarded: Forwarded, forward: &Forward) {
        assert!(
            self.conversions.current.is_none() && self.pending.is_empty(),
            "a conversion waits for what is before it"
        );
        let client = &forward.client;
        let mut info = SessionInfo::new(
            client.is_read_only,
            client.role.clone(),
            client.client_id.clone(),
        );
        info.epoch = self.conversions.epoch;
        let request = Request {
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
        };
        if let Some(cluster) = self.model.cluster_mut() {
            cluster.converting_for = Some(forwarded);
        }
        match self.new_schema(&request) {
            Ok(schema) => {
                self.conversions.current = Some(Conversion::new(Box::new(request), schema));
                self.advance_conversion(now);
            }
            Err(error) => self.fail_conversion(&request, &error),
        }
    }

    /// Sets whether conversions of a clustered database are proposed with their rows (`--disable-file-no-data-conversion`), for files that
    /// releases before 3.2 of the reference are to read. An entry with all rows is written in one piece.
    pub fn set_data_conversion(&mut self, has_data: bool) {
        if let Some(cluster) = self.model.cluster_mut() {
            cluster.has_data_conversion = has_data;
        }
    }

    /// Proposes the conversion, whose contents lack nothing. False if the database is not clustered.
    pub(in super::super) fn propose_conversion(&mut self, now: Now) -> bool {
        let (Some(cluster), Some(conversion)) =
            (self.model.cluster_mut(), &mut self.conversions.current)
        else {
            return false;
        };
        let rows = match (&conversion.work, cluster.has_data_conversion) {
            (Work::Ready(converted), true) => Some(rows_of(converted.database(), now)),
            _ => None,
        };
        let forwarded = cluster.converting_for;
        let id = forwarded.map(|forwarded| forwarded.id);
        let eid = id.unwrap_or_else(|| Eid(self.environment.fresh()));
        let schema = conversion.schema.to_json().to_bytes();
        let data = Data::of(Some(&schema), rows.as_deref());
        if data.json().len() > cluster.limits.entry_bytes_max {
            let details = format!(
                "conversion makes an entry of {} bytes, more than members of a cluster take",
                data.json().len()
            );
            self.refuse_conversion(&WireError::new(Tag::ResourcesExhausted, details));
            return true;
        }
        conversion.entry = Some(eid);
        conversion.file = NewFile::Swapping;
        cluster.propose(Proposal {
            eid,
            data: Bytes::copy_from_slice(data.json()),
            result: None,
        });
        if let Some(forwarded) = forwarded {
            let outcome = ForwardOutcome::Proposed(Bytes::from_static(b"{}"));
            self.model.report_outcome(forwarded, outcome);
        }
        true
    }

    /// The conversion under way is not proposed, because members would refuse its entry.
    fn refuse_conversion(&mut self, error: &WireError) {
        let Some(mut conversion) = self.conversions.current.take() else {
            return;
        };
        let database = conversion.take_database();
        self.free_database(database);
        self.fail_conversion(&conversion.request, error);
        self.end_conversion(conversion);
    }

    /// Whether the conversion that has just ended is another member's, which gets no reply.
    pub(in super::super) fn ends_forwarded_conversion(&mut self) -> bool {
        let cluster = self.model.cluster_mut();
        cluster.is_some_and(|cluster| cluster.converting_for.take().is_some())
    }

    /// A conversion has failed with nothing changed.
    pub(in super::super) fn fail_conversion(&mut self, request: &Request, error: &WireError) {
        let cluster = self.model.cluster_mut();
        let forwarded = cluster.and_then(|cluster| cluster.converting_for.take());
        match (forwarded, self.model.cluster()) {
            (Some(forwarded), Some(cluster)) => {
                let mut json = Vec::new();
                error.write_json(&mut json);
                let outcome = ForwardOutcome::Refused(cluster.applied, json.into());
                self.model.report_outcome(forwarded, outcome);
            }
            _ => self.fail(request, error),
        }
    }

    /// The leadership in this term is over: the conversion is in doubt if it was proposed; otherwise the next leader converts.
    pub(super) fn lose_conversion(&mut self, now: Now, led: Term) {
        let Some(mut conversion) = self.conversions.current.take() else {
            return;
        };
        let database = conversion.take_database();
        self.free_database(database);
        let entry = conversion.entry;
        let request = self.end_conversion(conversion);
        if self.ends_forwarded_conversion() {
            return;
        }
        let Some(eid) = entry else {
            self.forward(now, request);
            return;
        };
        let reply = Answer::Result(b"{}".to_vec());
        let (term, id) = (led, eid);
        self.keep(request, Stage::Proposed { term, id, reply });
    }
}
