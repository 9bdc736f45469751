//! A database of a cluster's member: the part that only a member has. [`Upstream`] has the part
//! that it shares with a relay: forwarding, doubt, outcomes, contents.
//!
//! `corvid_consensus::database` has the messages between a database and its member, and the rules
//! that make each transaction exactly once. In this folder:
//!
//! | File | Has |
//! |---|---|
//! | `entries.rs` | committed entries, applied to the rows |
//! | `leadership.rs` | the change between leading and following; what becomes of speculative commits that are undone |
//! | `proposing.rs` | commits and conversions as entries that are proposed |
//! | `entry_limit.rs` | transactions that other members would refuse |
//! | `executing.rs` | transactions that other members have forwarded |
//! | `seeking.rs` | transactions that an installed snapshot may contain |
//!
//! Like the upstream, it is given the [`Parts`] of the database that it uses, and returns the steps
//! of the database as [`Action`]s. `following.rs` carries them out. It knows no queue of pending
//! replies but that of a snapshot, no monitors and no file.
//!
//! Invariants: while the member leads, every request is executed, and waits in the pending queue
//! like those of a standalone database; only requests of a session that is blocked when the
//! leadership begins stay in flight. Proposals leave in the order of their commits.

mod entries;
mod entry_limit;
mod executing;
mod leadership;
mod proposing;
mod seeking;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use corvid_consensus::database::{
    Forward, ForwardOrigin, ForwardOutcome, MemberEvent, MemberRequest,
};
use corvid_data::{Arc, Delta, Schema, Uuid, WireError};
use corvid_engine::{Database, Outcome, TooLong, WorkBudget};
use corvid_log::cluster::{Eid, Index, Term};

use super::conversion::Conversion;
use crate::barrier::Activity;
use crate::environment::Environment;
use crate::executor::OnceState;
use crate::message::{Event, Now, Request, ToDatabase};
use crate::replies::{Answer, Forwarded, Outputs, Pending, PendingQueue};
use crate::upstream::{Action, MemberTask, Next, Parts, Role, Stage, Upstream};
use entries::Entries;
use proposing::Proposals;

pub(super) use entries::is_short;
pub(super) use executing::{Executed, event_of, is_short_forward};
pub(super) use leadership::{Undone, is_behind, keep_again};
pub(super) use proposing::request_of;

/// The state of a clustered database besides its rows.
pub(super) struct Clustered {
    pub(super) upstream: Upstream,
    entries: Entries,
    proposals: Proposals,
    /// The last entry that is applied, as [`Clustered::take_applied`] has told it.
    told: Index,
}

impl Clustered {
    /// Of a database whose contents are those after the entry `applied`; the last one with data is
    /// `eid`.
    pub(super) fn new(applied: Index, eid: Eid) -> Clustered {
        Clustered {
            upstream: Upstream::of_member(applied, eid),
            entries: Entries::default(),
            proposals: Proposals::default(),
            told: applied,
        }
    }

    /// Reports what is under way with the other members.
    pub(super) fn report_activity(&self, activity: &mut Activity) {
        let Clustered {
            upstream,
            entries: _,
            // They leave at the end of the batch; a conversion reports itself.
            proposals: _,
            told: _,
        } = self;
        upstream.report_activity(activity);
    }

    /// The term in which this database leads.
    pub(super) fn led_term(&self) -> Option<Term> {
        match self.upstream.forwarding.role() {
            Role::Leads(term) => Some(term),
            Role::Follows(..) => None,
        }
    }

    /// Sets whether conversions are proposed with their rows.
    pub(super) fn set_data_conversion(&mut self, has_data: bool) {
        self.proposals.set_data_conversion(has_data);
    }

    /// Sets smaller limits of entries and results than members take, for tests.
    pub(super) fn lower_limits(&mut self, entry_bytes_max: usize, result_bytes_max: usize) {
        let limits = self.proposals.limits_mut();
        limits.lower(entry_bytes_max, result_bytes_max);
    }

    /// Takes the requests for the member, in order: the commits of the batch come first, because
    /// outcomes that are reported may be based on them.
    pub(super) fn take_requests(&mut self) -> Vec<MemberRequest> {
        let mut requests = self.upstream.take_member_requests();
        let led = self.led_term();
        if let Some(proposed) = led.and_then(|term| self.proposals.take(term)) {
            requests.insert(0, proposed);
        }
        requests
    }

    /// The last entry that is applied, if that is news.
    pub(super) fn take_applied(&mut self) -> Option<Index> {
        let applied = self.upstream.contents.applied();
        let before = std::mem::replace(&mut self.told, applied);
        (before != applied).then_some(applied)
    }
}

/// Events and steps.
impl Clustered {
    /// Handles an event of the member. [`Clustered::next`] has the steps that follow from it.
    /// Requests that another member has forwarded are executed by [`Clustered::execute_forward`].
    pub(super) fn handle(&mut self, input: ToDatabase, parts: &mut Parts<'_>) {
        match self.upstream.hold(input, parts) {
            Some(ToDatabase::Member(event)) => self.handle_event(event, parts),
            Some(ToDatabase::Installed(installed)) => {
                // Before the contents change: what they lack decides which requests are in doubt.
                if self.upstream.awaits(&installed) {
                    seeking::seek(&mut self.upstream, installed.term);
                }
                self.upstream.install(*installed, parts);
            }
            Some(_) | None => {}
        }
    }

    fn handle_event(&mut self, event: MemberEvent, parts: &mut Parts<'_>) {
        let upstream = &mut self.upstream;
        match event {
            MemberEvent::Leads { term } => leadership::lead(upstream, term),
            MemberEvent::ElectionTimer { timer_ms } => {
                self.proposals.limits_mut().set_election_timer(timer_ms);
            }
            MemberEvent::Follows { term, leader } => {
                upstream
                    .forwarding
                    .follow(term, leader, &mut upstream.steps);
            }
            MemberEvent::Committed {
                through,
                term,
                entries,
            } => entries::begin(upstream, through, term, entries),
            MemberEvent::Execute { origin, forwards } => {
                let action = Action::ExecuteForwards(origin, forwards);
                upstream.steps.push(action);
            }
            MemberEvent::Outcome { id, outcome } => {
                let Upstream {
                    forwarding, steps, ..
                } = upstream;
                forwarding.handle_outcome(id, outcome, steps, parts);
            }
            MemberEvent::Found { through, findings } => {
                seeking::judge_findings(upstream, through, findings);
            }
            // The holder loads the database from the file and sends it as `ToDatabase::Installed`.
            MemberEvent::Replaced { .. } => debug_assert!(false, "the holder loads the file"),
            MemberEvent::Compacted { token, result } => {
                parts.outputs.events.push(Event::compacted(token, result));
            }
        }
    }

    /// Takes steps up to the next one that is the database's, and returns that.
    pub(super) fn next(&mut self, parts: &mut Parts<'_>) -> Option<Action> {
        loop {
            match self.upstream.next(parts)? {
                Next::Action(action) => return Some(action),
                Next::Member(task) => self.carry_out(task, parts),
            }
        }
    }

    fn carry_out(&mut self, task: MemberTask, parts: &mut Parts<'_>) {
        let upstream = &mut self.upstream;
        match task {
            MemberTask::ApplyNext(batch) => entries::apply_next(upstream, batch),
            MemberTask::ApplyData { entry, rest } => {
                self.entries.apply(entry, rest, upstream, parts);
            }
            MemberTask::Lead(term) => leadership::begin(upstream, term),
            MemberTask::ExecuteInFlight => leadership::execute_in_flight(upstream, parts),
            MemberTask::AskForSought(through) => seeking::ask_for_sought(upstream, through),
            MemberTask::AnswerFound(eid) => seeking::answer_found(upstream, eid, parts),
            MemberTask::JudgeOthers(through, others) => {
                seeking::judge_others(upstream, through, others, parts);
            }
            MemberTask::EndSearch => seeking::end_search(upstream, parts),
        }
    }
}

/// Leading.
impl Clustered {
    /// The outcome of a transaction that was just executed. If this database leads and may not
    /// propose its commit, the commit is undone, and the transaction has failed at it.
    pub(super) fn limit_entry(
        &self,
        outcome: Outcome,
        database: &mut Database,
        is_diff: bool,
    ) -> Outcome {
        match self.led_term() {
            Some(_) => {
                let limits = self.proposals.limits();
                limits.limit_entry(outcome, database, is_diff)
            }
            None => outcome,
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
        self.proposals
            .propose(now, (schema, delta), txn, result, is_diff)
    }

    /// Hands a snapshot of the applied state to the member. Speculative commits do not belong in
    /// it: they are undone for the moment of the snapshot, which costs as much as they changed. So
    /// no commit waits for it.
    pub(super) fn compact(
        &mut self,
        token: Option<u64>,
        database: &mut Database,
        pending: &PendingQueue,
        once: &OnceState,
    ) {
        for commit in pending.commits().rev() {
            database.undo(&commit.delta);
        }
        let snapshot = database.snapshot();
        for commit in pending.commits() {
            database.redo(&commit.delta);
        }
        let contents = &self.upstream.contents;
        let (index, eid) = (contents.applied(), contents.applied_eid());
        let commits = once.ids_through(eid.0);
        self.upstream
            .forwarding
            .ask_member(MemberRequest::Snapshot {
                token,
                index,
                eid,
                snapshot,
                commits: commits.into_iter().map(Eid).collect(),
            });
    }

    /// The leadership is over. Returns the requests in flight here, which come after the pending
    /// ones of their sessions.
    pub(super) fn give_up_leadership(&mut self, role: Role) -> Vec<(Box<Request>, Stage)> {
        let forwarding = &mut self.upstream.forwarding;
        forwarding.begin_role(role);
        // The member would drop them. Their transactions are in doubt all the same, and never
        // happened.
        self.proposals.clear();
        forwarding.in_flight_mut().take_ordered()
    }

    /// Keeps an undone entry if it is in doubt, or follows one of its session; `after` is the last
    /// commit up to it. The requests of a closed session are dropped.
    pub(super) fn doubt(
        &mut self,
        led: Term,
        after: Option<Eid>,
        entry: Pending,
        outputs: &mut Outputs,
    ) -> Undone {
        leadership::doubt(&mut self.upstream.forwarding, (led, after), entry, outputs)
    }
}

/// Requests of other members.
impl Clustered {
    /// Whether a forwarded transaction may be executed: this leadership is the one that it was
    /// forwarded to. One of an earlier term is in doubt where it came from.
    pub(super) fn executes_for(&self, origin: ForwardOrigin) -> bool {
        self.led_term() == Some(origin.term)
    }

    /// Executes a transaction that another member has forwarded.
    ///
    /// # Errors
    /// It exceeds the budget, and has changed nothing.
    pub(super) fn execute_forward(
        &self,
        origin: ForwardOrigin,
        forward: &Forward,
        budget: &mut WorkBudget,
        parts: &mut Parts<'_>,
    ) -> Result<Executed, TooLong> {
        // A follower's commit would be in no log.
        assert!(self.led_term().is_some(), "a leader executes for others");
        executing::execute(origin, forward, budget, self.proposals.limits(), parts)
    }

    /// Tells the member that has forwarded a transaction about its outcome.
    pub(super) fn report_outcome(&mut self, forwarded: Forwarded, outcome: ForwardOutcome) {
        self.upstream.forwarding.ask_member(MemberRequest::Outcome {
            origin: forwarded.origin,
            id: forwarded.id,
            outcome,
        });
    }

    /// A forwarded transaction is released: its commit and everything that it has seen is
    /// committed.
    pub(super) fn release_forwarded(&mut self, forwarded: Forwarded, answer: Answer) {
        let applied = self.upstream.contents.applied();
        if let Some(outcome) = executing::outcome_of(answer, applied) {
            self.report_outcome(forwarded, outcome);
        }
    }
}

/// Conversions.
impl Clustered {
    /// The conversion that begins is for this member.
    pub(super) fn convert_for(&mut self, forwarded: Forwarded) {
        self.proposals.convert_for(forwarded);
    }

    /// Proposes the conversion, whose contents lack nothing.
    ///
    /// # Errors
    /// Members would refuse its entry; it is not proposed.
    pub(super) fn propose_conversion(
        &mut self,
        now: Now,
        conversion: &mut Conversion,
        environment: &mut Environment,
    ) -> Result<(), WireError> {
        let proposed = self
            .proposals
            .propose_conversion(now, conversion, environment);
        if let Some((forwarded, outcome)) = proposed? {
            self.report_outcome(forwarded, outcome);
        }
        Ok(())
    }

    /// Whether the conversion that has just ended is another member's, which gets no reply.
    pub(super) fn ends_forwarded_conversion(&mut self) -> bool {
        self.proposals.end_conversion().is_some()
    }

    /// A conversion has failed with nothing changed. True if another member has asked for it, and
    /// is told.
    pub(super) fn fail_conversion(&mut self, error: &WireError) -> bool {
        let Some(forwarded) = self.proposals.end_conversion() else {
            return false;
        };
        let mut json = Vec::new();
        error.write_json(&mut json);
        let outcome = ForwardOutcome::Refused(self.upstream.contents.applied(), json.into());
        self.report_outcome(forwarded, outcome);
        true
    }
}
