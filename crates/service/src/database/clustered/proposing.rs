//! Entries that the leader proposes: commits, and conversions (docs/spec/distribution.md 1.3: an
//! entry `[S,null]`, or `[S,T]` for members that need the rows).
//!
//! The leader converts its contents next to the present ones, as a standalone database does, and
//! carries later commits over. When nothing is missing and nothing is pending, it proposes the
//! entry, and all inputs wait until that is committed; then it swaps the contents. Every other
//! member has a job convert its own contents when it gets the entry (`upstream/contents.rs`).
//!
//! Invariants: the entry of a conversion is the only one of its leader under way, so all members
//! convert the same contents. No entry is proposed that a member would refuse.

use std::sync::Arc as StdArc;

use bytes::Bytes;
use corvid_consensus::database::{Forward, ForwardOutcome, MemberRequest, Proposal};
use corvid_data::{Arc, Delta, Schema, Tag, Uuid, WireError};
use corvid_engine::Database;
use corvid_log::cluster::{Data, Eid, Term, write_data};
use corvid_log::{Stamp, snapshot::append_rows};
use corvid_monitor::SessionId;

use super::super::conversion::{Conversion, NewFile, Work};
use super::entry_limit::EntryLimits;
use crate::environment::Environment;
use crate::message::{DatabaseMethod, Now, Request, SessionInfo};
use crate::replies::Forwarded;
use crate::schema_epoch::SchemaEpoch;

/// Memory reserved for the data of a small entry, bytes: it need not grow.
const RESERVED_BYTES: usize = 1024;

/// The session of a conversion that another member has forwarded.
const FORWARDED_SESSION: SessionId = SessionId(u64::MAX);

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

/// The entries of a batch that are proposed, and the rules for them.
#[derive(Default)]
pub(super) struct Proposals {
    /// In the order of their commits.
    proposals: Vec<Proposal>,
    limits: EntryLimits,
    /// The conversion under way is for this member.
    converting_for: Option<Forwarded>,
    /// Conversions are proposed with their rows.
    has_data_conversion: bool,
}

impl Proposals {
    /// The limits of entries and results.
    pub(super) fn limits(&self) -> &EntryLimits {
        &self.limits
    }

    /// The limits of entries and results, to be changed.
    pub(super) fn limits_mut(&mut self) -> &mut EntryLimits {
        &mut self.limits
    }

    /// Sets whether conversions are proposed with their rows.
    pub(super) fn set_data_conversion(&mut self, has_data: bool) {
        self.has_data_conversion = has_data;
    }

    /// Takes the entries of this batch, to be proposed in this term.
    pub(super) fn take(&mut self, term: Term) -> Option<MemberRequest> {
        let proposals = std::mem::take(&mut self.proposals);
        (!proposals.is_empty()).then_some(MemberRequest::Propose { term, proposals })
    }

    /// Drops the entries of this batch: they are not proposed.
    pub(super) fn clear(&mut self) {
        self.proposals.clear();
    }

    /// Adds a commit. Returns the length of its data.
    pub(super) fn propose(
        &mut self,
        now: Now,
        (schema, delta): (&Schema, &Arc<Delta>),
        txn: Uuid,
        result: Option<Bytes>,
        is_diff: bool,
    ) -> usize {
        let mut data = Vec::with_capacity(RESERVED_BYTES);
        write_data(&mut data, schema, delta, now.wall_ms, is_diff);
        let bytes = data.len();
        self.proposals.push(Proposal {
            eid: Eid(txn),
            data: Bytes::from(data),
            result,
        });
        bytes
    }

    /// The conversion that begins is for this member.
    pub(super) fn convert_for(&mut self, forwarded: Forwarded) {
        self.converting_for = Some(forwarded);
    }

    /// The conversion has ended. Returns the member's request that it was for.
    pub(super) fn end_conversion(&mut self) -> Option<Forwarded> {
        self.converting_for.take()
    }

    /// Adds a conversion, whose contents lack nothing. Returns the outcome that another member is
    /// told, if it has asked for the conversion.
    ///
    /// # Errors
    /// Members would refuse its entry; it is not proposed.
    pub(super) fn propose_conversion(
        &mut self,
        now: Now,
        conversion: &mut Conversion,
        environment: &mut Environment,
    ) -> Result<Option<(Forwarded, ForwardOutcome)>, WireError> {
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
        // From here on it cannot be given up: the entry may be committed.
        conversion.entry = Some(eid);
        conversion.file = NewFile::Swapping;
        self.proposals.push(Proposal {
            eid,
            data: Bytes::copy_from_slice(data.json()),
            result: None,
        });
        let outcome = ForwardOutcome::Proposed(Bytes::from_static(b"{}"));
        Ok(forwarded.map(|forwarded| (forwarded, outcome)))
    }
}
