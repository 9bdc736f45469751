//! A clustered database: one of the copies of a cluster, whose order of commits the member decides. A relay is one that always follows, and
//! its source stands where the leader does ([`crate::relay`]).
//!
//! `corvid_consensus::database` has the messages between a database and its member and the rules that make each transaction exactly once.
//! In this folder:
//!
//! | File | Has |
//! |---|---|
//! | `leadership.rs` | the change between leading and following; the undo of speculative commits |
//! | `forwarding.rs` | transactions of a follower's sessions: answered here, blocked here, or forwarded |
//! | `identity.rs` | the client of a forwarded request, as access control sees it |
//! | `in_flight.rs` | the requests that depend on the rest of the cluster |
//! | `request_stage.rs` | one of them, and what is known of it |
//! | `seeking.rs` | those that an installed snapshot may contain |
//! | `answering.rs` | their order within a session: replies, and execution here |
//! | `executing.rs` | transactions that other members have forwarded |
//! | `entry_limit.rs` | transactions that other members would refuse |
//! | `applying.rs` | committed entries |
//! | `replacing.rs` | contents that replace the present ones: conversions of others, installed snapshots |
//! | `converting.rs` | conversions, from the request to the entry |
//! | `relaying.rs` | what a relay does otherwise |
//! | `relayed_locks.rs` | locks that a relay's sessions have at its source |
//! | `transaction_kind.rs` | whether a transaction may write, by its text |
//!
//! Invariants: while the member leads, every request is executed, and waits in the pending queue like those of a standalone database; only
//! requests of a session that is blocked when the leadership begins stay in flight. While it follows, no commit is pending, so the tables are those after the last applied entry.

mod answering;
mod applying;
mod converting;
mod entry_limit;
mod executing;
mod forwarding;
mod identity;
mod in_flight;
mod leadership;
mod relayed_locks;
mod relaying;
mod replacing;
mod request_stage;
mod seeking;
mod transaction_kind;

use bytes::Bytes;
use corvid_consensus::database::{Forward, MemberEvent, MemberRequest, Proposal};
use corvid_data::{Arc, Delta, Recorded, Schema, Uuid, WireError};
use corvid_engine::Outcome;
use corvid_log::cluster::{Eid, Index, Sid, Term, TransactionReader, write_data};
use corvid_log::storage::{LogPosition, StoreError};

use super::replies::Forwarded;
use super::{DatabaseService, Now};
use crate::message::{Event, ToDatabase};
use crate::relay::TERM;
use crate::upstream::{SourceNews, SourceRequest};
use entry_limit::EntryLimits;
use replacing::Replacement;

pub(super) use applying::{is_short, is_short_news};
pub(super) use converting::check_persistence;
pub(super) use executing::is_short_forward;
pub(super) use in_flight::InFlight;
pub(super) use transaction_kind::TransactionKind;

/// Memory reserved for the data of a small entry, bytes: it need not grow.
const RESERVED_BYTES: usize = 1024;

/// The part that the member has in its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// It leads in this term: the database executes and proposes.
    Leads(Term),
    /// It follows in this term: the database applies, and forwards to the leader if there is one.
    Follows(Term, Option<Sid>),
}

/// The leader that a relay follows. It is never shown.
const SOURCE: Sid = Sid(Uuid::ZERO);

/// The requests of a batch for the server that decides the order of commits.
enum Requests {
    /// A member of a cluster.
    Member(Vec<MemberRequest>),
    /// The source of a relay.
    Relay(Vec<SourceRequest>),
}

/// The state of a clustered database besides its rows.
pub(super) struct Clustered {
    part: Part,
    /// The last entry that is applied.
    applied: Index,
    /// The last entry that is applied, as [`DatabaseService::take_applied`] has told it.
    told: Index,
    /// The id of the last entry with data that is applied.
    applied_eid: Eid,
    /// The commits of this batch.
    proposals: Vec<Proposal>,
    /// Further requests of this batch, which come after the proposals.
    requests: Requests,
    in_flight: InFlight,
    reader: TransactionReader,
    /// The conversion under way is for this member.
    converting_for: Option<Forwarded>,
    /// Conversions are proposed with their rows.
    has_data_conversion: bool,
    /// The contents are being replaced.
    replacement: Option<Replacement>,
    /// An entry that could not be applied: nothing is applied any more.
    is_broken: bool,
    limits: EntryLimits,
}

impl Clustered {
    pub(super) fn new(applied: Index, applied_eid: Eid) -> Clustered {
        Clustered {
            part: Part::Follows(Term(0), None),
            applied,
            told: applied,
            applied_eid,
            proposals: Vec::new(),
            requests: Requests::Member(Vec::new()),
            in_flight: InFlight::default(),
            reader: TransactionReader::default(),
            converting_for: None,
            has_data_conversion: false,
            replacement: None,
            is_broken: false,
            limits: EntryLimits::default(),
        }
    }

    /// Of a relay, whose contents are those after this change of its source.
    pub(super) fn of_relay(applied: Index, applied_eid: Eid) -> Clustered {
        let mut relay = Clustered::new(applied, applied_eid);
        relay.part = Part::Follows(TERM, None);
        relay.requests = Requests::Relay(Vec::new());
        relay.in_flight.begin_term(TERM);
        relay
    }

    /// Whether transactions that change something are for another member.
    pub(super) fn follows(&self) -> bool {
        matches!(self.part, Part::Follows(..))
    }

    /// The id of the last entry with data that is applied.
    pub(super) fn applied_eid(&self) -> Eid {
        self.applied_eid
    }

    /// Whether its contents are being replaced.
    pub(super) fn is_replacing(&self) -> bool {
        self.replacement.is_some()
    }

    /// Requests that depend on the rest of the cluster.
    pub(super) fn in_flight(&self) -> &InFlight {
        &self.in_flight
    }

    /// The same, to be changed.
    pub(super) fn in_flight_mut(&mut self) -> &mut InFlight {
        &mut self.in_flight
    }

    /// The part that the member has in its cluster.
    pub(super) fn part(&self) -> Part {
        self.part
    }

    /// The entry `index` is applied; the last one with data is `eid`.
    pub(super) fn mark_applied(&mut self, index: Index, eid: Eid) {
        self.applied = index;
        self.applied_eid = eid;
    }

    /// Reads the rows of an entry.
    ///
    /// # Errors
    /// They do not fit the schema.
    pub(super) fn read_transaction(
        &mut self,
        text: &[u8],
        schema: &Schema,
    ) -> Result<Recorded, WireError> {
        self.reader.read(text, schema)
    }

    /// Adds a request for the member, after the commits of this batch. A relay has no member.
    pub(super) fn push_request(&mut self, request: MemberRequest) {
        match &mut self.requests {
            Requests::Member(requests) => requests.push(request),
            Requests::Relay(_) => debug_assert!(false, "a relay asks for no such thing"),
        }
    }

    /// Adds a request for the source of a relay. A member has no source.
    fn push_source_request(&mut self, request: SourceRequest) {
        match &mut self.requests {
            Requests::Relay(requests) => requests.push(request),
            Requests::Member(_) => debug_assert!(false, "a member has no source"),
        }
    }

    /// Has the leader of this term, or the source, execute a transaction.
    fn push_forward(&mut self, term: Term, forward: Box<Forward>) {
        match &mut self.requests {
            Requests::Member(requests) => requests.push(MemberRequest::Forward { term, forward }),
            Requests::Relay(requests) => requests.push(SourceRequest::Forward(forward)),
        }
    }

    /// Reports that all entries, or changes, through this one are applied.
    pub(super) fn report_applied(&mut self, through: Index) {
        match &mut self.requests {
            Requests::Member(requests) => requests.push(MemberRequest::Applied(through)),
            Requests::Relay(requests) => requests.push(SourceRequest::Applied(through)),
        }
    }

    /// Adds a commit of this batch.
    pub(super) fn propose(&mut self, proposal: Proposal) {
        self.proposals.push(proposal);
    }

    /// Takes the requests for the member, in order.
    fn take_requests(&mut self) -> Vec<MemberRequest> {
        let Requests::Member(requests) = &mut self.requests else {
            return Vec::new();
        };
        let proposals = std::mem::take(&mut self.proposals);
        let mut requests = std::mem::take(requests);
        if let (Part::Leads(term), false) = (self.part, proposals.is_empty()) {
            requests.insert(0, MemberRequest::Propose { term, proposals });
        }
        requests
    }

    /// Takes the requests for the source of a relay, in order.
    fn take_source_requests(&mut self) -> Vec<SourceRequest> {
        match &mut self.requests {
            Requests::Relay(requests) => std::mem::take(requests),
            Requests::Member(_) => Vec::new(),
        }
    }
}

impl DatabaseService {
    /// The last entry that a member's database has applied, if that is news. A relay shows no
    /// index.
    pub(crate) fn take_applied(&mut self) -> Option<Index> {
        if self.model.is_relay() {
            return None;
        }
        let cluster = self.model.cluster_mut()?;
        let before = std::mem::replace(&mut cluster.told, cluster.applied);
        (before != cluster.applied).then_some(cluster.applied)
    }

    /// Takes the requests for the member of a clustered database, in order. No other database has any.
    pub(crate) fn take_member_requests(&mut self) -> impl Iterator<Item = MemberRequest> + use<> {
        let requests = self.model.cluster_mut().map(Clustered::take_requests);
        requests.into_iter().flatten()
    }

    /// Takes the requests for the source of a relay, in order. No other database has any.
    pub(crate) fn take_source_requests(&mut self) -> impl Iterator<Item = SourceRequest> + use<> {
        let requests = self
            .model
            .cluster_mut()
            .map(Clustered::take_source_requests);
        requests.into_iter().flatten()
    }

    /// Sets smaller limits of entries and results than members take, for tests.
    pub fn set_entry_limits(&mut self, entry_bytes_max: usize, result_bytes_max: usize) {
        if let Some(cluster) = self.model.cluster_mut() {
            cluster.limits.lower(entry_bytes_max, result_bytes_max);
        }
    }

    /// The outcome of a transaction that was just executed. If this database leads and may not
    /// propose its commit, the commit is undone, and the transaction has failed at it.
    pub(super) fn limit_entry(&mut self, outcome: Outcome) -> Outcome {
        let (database, is_diff) = (&mut self.database, self.file.is_diff());
        match self.model.cluster().filter(|cluster| !cluster.follows()) {
            Some(cluster) => cluster.limits.limit_entry(outcome, database, is_diff),
            None => outcome,
        }
    }

    /// Handles an event of the member, or news of a relay's source.
    pub(super) fn handle_upstream(&mut self, now: Now, input: ToDatabase) {
        if self.model.cluster().is_none() || self.is_removed {
            return;
        }
        self.observers.slow.set_now(now);
        match self.hold(now, input) {
            Some(ToDatabase::Member(event)) => self.handle_member_event(now, event),
            Some(ToDatabase::Relay(news)) => match news {
                SourceNews::Reachable(is_reachable) => {
                    self.follow(now, TERM, is_reachable.then_some(SOURCE));
                }
                SourceNews::Changes { through, changes } => {
                    self.apply_changes(now, through, changes);
                }
                SourceNews::Outcome { id, outcome } => self.handle_outcome(now, id, outcome),
                SourceNews::Lock { name, number, news } => self.hear_of_lock(&name, number, news),
            },
            _ => return,
        }
        self.release();
        self.advance_conversion(now);
        self.resume(now);
    }

    fn handle_member_event(&mut self, now: Now, event: MemberEvent) {
        match event {
            MemberEvent::Leads { term } => self.lead(now, term),
            MemberEvent::ElectionTimer { timer_ms } => {
                if let Some(cluster) = self.model.cluster_mut() {
                    cluster.limits.set_election_timer(timer_ms);
                }
            }
            MemberEvent::Follows { term, leader } => self.follow(now, term, leader),
            MemberEvent::Committed {
                through,
                term,
                entries,
            } => self.apply_committed(now, through, term, entries),
            MemberEvent::Execute { origin, forwards } => {
                self.execute_forwards(now, origin, forwards);
            }
            MemberEvent::Outcome { id, outcome } => self.handle_outcome(now, id, outcome),
            MemberEvent::Found { through, findings } => {
                self.judge_findings(now, through, &findings);
            }
            // The holder loads the database from the file and sends it as `ToDatabase::Installed`.
            MemberEvent::Replaced { .. } => debug_assert!(false, "the holder loads the file"),
            MemberEvent::Compacted { token, result } => {
                self.outputs.events.push(Event::compacted(token, result));
            }
        }
    }

    /// Proposes a commit as an entry of the cluster's log. Returns its position, with the length of
    /// its data.
    pub(super) fn propose(
        &mut self,
        now: Now,
        delta: &Arc<Delta>,
        txn: Uuid,
        result: Option<Bytes>,
    ) -> (LogPosition, usize) {
        let mut data = Vec::with_capacity(RESERVED_BYTES);
        let schema = self.database.schema();
        write_data(&mut data, schema, delta, now.wall_ms, self.file.is_diff());
        let bytes = data.len();
        self.observers.counts.recorded(bytes);
        let position = self.file.take_position();
        if let Some(cluster) = self.model.cluster_mut() {
            cluster.propose(Proposal {
                eid: Eid(txn),
                data: Bytes::from(data),
                result,
            });
        }
        (position, bytes)
    }

    /// Hands a snapshot of the applied state to the member. Speculative commits do not belong in it: they are undone for the moment of the
    /// snapshot, which costs as much as they changed. So no commit waits for it.
    pub(super) fn compact_cluster(&mut self, token: Option<u64>) {
        for commit in self.pending.commits().rev() {
            self.database.undo(&commit.delta);
        }
        let snapshot = self.database.snapshot();
        for commit in self.pending.commits() {
            self.database.redo(&commit.delta);
        }
        if let Some(cluster) = self.model.cluster_mut() {
            let (index, eid) = (cluster.applied, cluster.applied_eid);
            cluster.push_request(MemberRequest::Snapshot {
                token,
                index,
                eid,
                snapshot,
            });
        }
    }

    /// The error of a clustered database that cannot continue, for operators.
    fn break_off(&mut self, details: String) {
        if let Some(cluster) = self.model.cluster_mut() {
            cluster.is_broken = true;
        }
        self.file.set_error(StoreError {
            details: details.clone(),
            io_error: String::new(),
        });
        self.outputs.events.push(Event::EntryRefused(details));
    }
}
