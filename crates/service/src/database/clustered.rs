//! A clustered database: one of the copies of a cluster, whose order of commits the member decides. A relay is one that always follows, and
//! its source stands where the leader does ([`crate::relay`]).
//!
//! `corvid_consensus::database` has the messages between a database and its member and the rules that make each transaction exactly once.
//! [`crate::upstream`] has those between a relay and its source, and the requests that depend on the other server. In this folder:
//!
//! | File | Has |
//! |---|---|
//! | `steps.rs` | the steps that an event makes necessary, in order: the database's and this part's own |
//! | `leadership.rs` | the change between leading and following; what becomes of speculative commits that are undone |
//! | `forwarding.rs` | transactions of a follower's sessions: answered here, blocked here, or forwarded |
//! | `seeking.rs` | those that an installed snapshot may contain |
//! | `answering.rs` | their order within a session: replies, and execution here |
//! | `executing.rs` | transactions that other members have forwarded |
//! | `entry_limit.rs` | transactions that other members would refuse |
//! | `applying.rs` | committed entries |
//! | `replacing.rs` | contents that replace the present ones: conversions of others, installed snapshots |
//! | `converting.rs` | conversions, from the request to the entry |
//! | `relaying.rs` | what a relay does otherwise |
//! | `relayed_locks.rs` | locks that a relay's sessions have at its source |
//!
//! It is given the [`Parts`] of the database that it uses, and returns what the database is to do as [`Action`]s: answer, execute, publish,
//! replace. `following.rs` carries them out. It knows no queue of pending replies, no monitors and no file.
//!
//! Invariants: while the member leads, every request is executed, and waits in the pending queue like those of a standalone database; only
//! requests of a session that is blocked when the leadership begins stay in flight. While it follows, no commit is pending, so the tables are those after the last applied entry.

mod answering;
mod applying;
mod converting;
mod entry_limit;
mod executing;
mod forwarding;
mod leadership;
mod relayed_locks;
mod relaying;
mod replacing;
mod seeking;
mod steps;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use corvid_consensus::database::{Forward, ForwardOutcome, MemberEvent, MemberRequest, Proposal};
use corvid_data::{Arc, Delta, Schema, Uuid};
use corvid_engine::{Database, Outcome};
use corvid_log::cluster::{Eid, Index, Sid, Term, TransactionReader, write_data};

use super::Now;
use super::barrier::{Activity, BarrierQueue, UnderWay};
use super::conversion::Conversions;
use super::environment::Environment;
use super::executor::OnceState;
use super::file::DatabaseFile;
use super::observers::AuditEntries;
use super::replies::{Answer, Forwarded, Outputs, PendingQueue};
use crate::message::{Event, SessionInfo, ToDatabase};
use crate::relay::TERM;
use crate::upstream::{self, SourceNews, SourceRequest};
use entry_limit::EntryLimits;
use replacing::Replacement;
use steps::Steps;

pub(super) use applying::{is_short, is_short_news};
pub(super) use converting::{check_persistence, request_of};
pub(super) use executing::{Executed, event_of, is_short_forward};
pub(super) use leadership::{Undone, is_behind};
pub(super) use steps::{Action, Reply};

/// Requests that depend on the rest of the cluster, with their replies.
pub(super) type InFlight = upstream::InFlight<Answer>;
/// One of them.
pub(super) type Entry = upstream::Entry<Answer>;
/// The knowledge about one of them.
pub(super) type Stage = upstream::Stage<Answer>;

/// Memory reserved for the data of a small entry, bytes: it need not grow.
const RESERVED_BYTES: usize = 1024;

/// The leader that a relay follows. It is never shown.
const SOURCE: Sid = Sid(Uuid::ZERO);

/// The part that the member has in its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// It leads in this term: the database executes and proposes.
    Leads(Term),
    /// It follows in this term: the database applies, and forwards to the leader if there is one.
    Follows(Term, Option<Sid>),
}

/// The requests of a batch for the server that decides the order of commits.
enum Requests {
    /// A member of a cluster.
    Member(Vec<MemberRequest>),
    /// The source of a relay.
    Relay(Vec<SourceRequest>),
}

/// The parts of the database that following another server uses.
pub(super) struct Parts<'a> {
    pub(super) now: Now,
    pub(super) database: &'a mut Database,
    pub(super) environment: &'a mut Environment,
    pub(super) once: &'a mut OnceState,
    pub(super) outputs: &'a mut Outputs,
    pub(super) barrier_queue: &'a mut BarrierQueue,
    pub(super) audit: &'a AuditEntries,
    pub(super) conversions: &'a Conversions,
    pub(super) file: &'a DatabaseFile,
    pub(super) is_removed: bool,
}

impl Parts<'_> {
    /// Whether a session is about to be closed ([`Conversions::is_dismissed`]).
    fn is_dismissed(&self, info: &SessionInfo) -> bool {
        let Parts {
            conversions,
            environment,
            ..
        } = self;
        conversions.is_dismissed(self.is_removed, info, environment)
    }

    /// Whether all inputs wait for a conversion: its entry must be the only one under way.
    fn is_converting(&self) -> bool {
        self.conversions.is_waiting(self.file)
    }
}

/// The state of a clustered database besides its rows.
pub(super) struct Clustered {
    part: Part,
    /// The last entry that is applied.
    applied: Index,
    /// The last entry that is applied, as [`Clustered::take_applied`] has told it.
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
    steps: Steps,
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
            steps: Steps::default(),
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

    /// Whether it is a relay's.
    pub(super) fn is_relay(&self) -> bool {
        matches!(self.requests, Requests::Relay(_))
    }

    /// Whether transactions that change something are for another member.
    pub(super) fn follows(&self) -> bool {
        matches!(self.part, Part::Follows(..))
    }

    /// The term in which this database leads.
    pub(super) fn led_term(&self) -> Option<Term> {
        match self.part {
            Part::Leads(term) => Some(term),
            Part::Follows(..) => None,
        }
    }

    /// The member that leads, if this one follows it.
    pub(super) fn leader(&self) -> Option<Sid> {
        match self.part {
            Part::Follows(_, leader) => leader,
            Part::Leads(_) => None,
        }
    }

    /// The id of the last entry with data that is applied.
    pub(super) fn applied_eid(&self) -> Eid {
        self.applied_eid
    }

    /// How many requests depend on the rest of the cluster.
    pub(super) fn requests_in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Requests that depend on the rest of the cluster, to be changed.
    pub(super) fn in_flight_mut(&mut self) -> &mut InFlight {
        &mut self.in_flight
    }

    /// The entry `index` is applied; the last one with data is `eid`.
    pub(super) fn mark_applied(&mut self, index: Index, eid: Eid) {
        self.applied = index;
        self.applied_eid = eid;
    }

    /// Reports what is under way with the rest of the cluster.
    pub(super) fn report_activity(&self, activity: &mut Activity) {
        activity.report(UnderWay::InFlight, !self.in_flight.is_empty());
        activity.report(UnderWay::LocalRequests, self.in_flight.has_local());
        activity.report(UnderWay::Replacement, self.replacement.is_some());
    }

    /// Sets whether conversions are proposed with their rows.
    pub(super) fn set_data_conversion(&mut self, has_data: bool) {
        self.has_data_conversion = has_data;
    }

    /// Sets smaller limits of entries and results than members take, for tests.
    pub(super) fn lower_limits(&mut self, entry_bytes_max: usize, result_bytes_max: usize) {
        self.limits.lower(entry_bytes_max, result_bytes_max);
    }
}

/// Requests for the member, or for the source of a relay.
impl Clustered {
    /// Adds a request for the member, after the commits of this batch. A relay has no member.
    fn push_request(&mut self, request: MemberRequest) {
        match &mut self.requests {
            Requests::Member(requests) => requests.push(request),
            Requests::Relay(_) => unreachable!("a relay has no member to ask"),
        }
    }

    /// Adds a request for the source of a relay. A member has no source.
    fn push_source_request(&mut self, request: SourceRequest) {
        match &mut self.requests {
            Requests::Relay(requests) => requests.push(request),
            Requests::Member(_) => unreachable!("a member has no source to ask"),
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
    fn report_applied(&mut self, through: Index) {
        match &mut self.requests {
            Requests::Member(requests) => requests.push(MemberRequest::Applied(through)),
            Requests::Relay(requests) => requests.push(SourceRequest::Applied(through)),
        }
    }

    /// Tells the member that has forwarded a transaction about its outcome.
    pub(super) fn report_outcome(&mut self, forwarded: Forwarded, outcome: ForwardOutcome) {
        self.push_request(MemberRequest::Outcome {
            origin: forwarded.origin,
            id: forwarded.id,
            outcome,
        });
    }

    /// Takes the requests for the member, in order.
    pub(super) fn take_requests(&mut self) -> Vec<MemberRequest> {
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
    pub(super) fn take_source_requests(&mut self) -> Vec<SourceRequest> {
        match &mut self.requests {
            Requests::Relay(requests) => std::mem::take(requests),
            Requests::Member(_) => Vec::new(),
        }
    }

    /// The last entry that a member's database has applied, if that is news. A relay shows no
    /// index.
    pub(super) fn take_applied(&mut self) -> Option<Index> {
        if self.is_relay() {
            return None;
        }
        let before = std::mem::replace(&mut self.told, self.applied);
        (before != self.applied).then_some(self.applied)
    }
}

/// The leader's commits.
impl Clustered {
    /// The outcome of a transaction that was just executed. If this database leads and may not
    /// propose its commit, the commit is undone, and the transaction has failed at it.
    pub(super) fn limit_entry(
        &self,
        outcome: Outcome,
        database: &mut Database,
        is_diff: bool,
    ) -> Outcome {
        match self.part {
            Part::Leads(_) => self.limits.limit_entry(outcome, database, is_diff),
            Part::Follows(..) => outcome,
        }
    }

    /// Proposes a commit as an entry of the cluster's log. Returns the length of its data.
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

    /// Hands a snapshot of the applied state to the member. Speculative commits do not belong in it: they are undone for the moment of the
    /// snapshot, which costs as much as they changed. So no commit waits for it.
    pub(super) fn compact(
        &mut self,
        token: Option<u64>,
        database: &mut Database,
        pending: &PendingQueue,
    ) {
        for commit in pending.commits().rev() {
            database.undo(&commit.delta);
        }
        let snapshot = database.snapshot();
        for commit in pending.commits() {
            database.redo(&commit.delta);
        }
        let (index, eid) = (self.applied, self.applied_eid);
        self.push_request(MemberRequest::Snapshot {
            token,
            index,
            eid,
            snapshot,
        });
    }
}

/// Events.
impl Clustered {
    /// Handles an event of the member, or news of a relay's source. [`Clustered::next`] has what
    /// follows from it. Requests that another member has forwarded are executed by
    /// [`Clustered::execute_forward`].
    pub(super) fn handle(&mut self, input: ToDatabase, parts: &mut Parts<'_>) {
        match self.hold(input, parts) {
            Some(ToDatabase::Member(event)) => self.handle_member_event(event, parts),
            Some(ToDatabase::Relay(news)) => self.handle_news(news, parts),
            Some(ToDatabase::Installed(installed)) => self.install(*installed, parts),
            Some(_) | None => {}
        }
    }

    fn handle_news(&mut self, news: SourceNews, parts: &mut Parts<'_>) {
        match news {
            SourceNews::Reachable(is_reachable) => {
                self.follow(TERM, is_reachable.then_some(SOURCE));
            }
            SourceNews::Changes { through, changes } => self.apply_changes(through, changes),
            SourceNews::Outcome { id, outcome } => self.handle_outcome(id, outcome, parts),
            SourceNews::Lock { name, number, news } => {
                self.hear_of_lock(&name, number, news, parts);
            }
        }
    }

    fn handle_member_event(&mut self, event: MemberEvent, parts: &mut Parts<'_>) {
        match event {
            MemberEvent::Leads { term } => self.lead(term),
            MemberEvent::ElectionTimer { timer_ms } => self.limits.set_election_timer(timer_ms),
            MemberEvent::Follows { term, leader } => self.follow(term, leader),
            MemberEvent::Committed {
                through,
                term,
                entries,
            } => self.apply_committed(through, term, entries),
            MemberEvent::Execute { origin, forwards } => {
                self.steps.push(Action::ExecuteForwards(origin, forwards));
            }
            MemberEvent::Outcome { id, outcome } => self.handle_outcome(id, outcome, parts),
            MemberEvent::Found { through, findings } => self.judge_findings(through, findings),
            // The holder loads the database from the file and sends it as `ToDatabase::Installed`.
            MemberEvent::Replaced { .. } => debug_assert!(false, "the holder loads the file"),
            MemberEvent::Compacted { token, result } => {
                parts.outputs.events.push(Event::compacted(token, result));
            }
        }
    }
}
