//! The database's side of a cluster, or of a relay's source: events go to [`Clustered`], and the
//! actions that it returns are carried out, one after the other.
//!
//! Invariant: an action is carried out as a whole before the next one is asked for. No action takes
//! the next one itself: [`DatabaseService::follow_up`] is called between two inputs only.

use corvid_consensus::database::{
    Forward, ForwardMethod, ForwardOrigin, MemberEvent, MemberRequest,
};
use corvid_data::{Arc, Delta};
use corvid_engine::{TooLong, WorkBudget};
use corvid_log::cluster::{Eid, Index, Term};
use corvid_log::storage::StoreError;

use super::clustered::{
    Action, Clustered, Entry, Executed, InFlight, Part, Reply, Stage, Undone, event_of, is_behind,
    request_of,
};
use super::conversion::Conversion;
use super::executor::changed_sessions;
use super::replies::{Answer, Commit, Forwarded, Origin, Pending};
use super::{DatabaseService, Now};
use crate::job::{JobNumber, JobResult};
use crate::message::{Completion, Event, Request, ToDatabase};
use crate::upstream::SourceRequest;

impl DatabaseService {
    /// The last entry that a member's database has applied, if that is news.
    pub(crate) fn take_applied(&mut self) -> Option<Index> {
        self.model.cluster_mut()?.take_applied()
    }

    /// Takes the requests for the member of a clustered database, in order. No other database has any.
    pub(crate) fn take_member_requests(&mut self) -> impl Iterator<Item = MemberRequest> + use<> {
        let requests = self.model.cluster_mut().map(Clustered::take_requests);
        requests.into_iter().flatten()
    }

    /// Takes the requests for the source of a relay, in order. No other database has any.
    pub(crate) fn take_source_requests(&mut self) -> impl Iterator<Item = SourceRequest> + use<> {
        let cluster = self.model.cluster_mut();
        let requests = cluster.map(Clustered::take_source_requests);
        requests.into_iter().flatten()
    }

    /// Sets smaller limits of entries and results than members take, for tests.
    pub fn set_entry_limits(&mut self, entry_bytes_max: usize, result_bytes_max: usize) {
        if let Some(cluster) = self.model.cluster_mut() {
            cluster.lower_limits(entry_bytes_max, result_bytes_max);
        }
    }

    /// Sets whether conversions of a clustered database are proposed with their rows (`--disable-file-no-data-conversion`), for files that
    /// releases before 3.2 of the reference are to read. An entry with all rows is written in one piece.
    pub fn set_data_conversion(&mut self, has_data: bool) {
        if let Some(cluster) = self.model.cluster_mut() {
            cluster.set_data_conversion(has_data);
        }
    }

    /// Handles an event of the member, an installed snapshot, or news of a relay's source.
    pub(super) fn handle_upstream(&mut self, now: Now, input: ToDatabase) {
        if self.is_removed || self.model.cluster().is_none() {
            if let ToDatabase::Installed(installed) = input {
                self.free_database(Some(installed.database));
            }
            return;
        }
        self.observers.slow.set_now(now);
        if let Some((cluster, mut parts)) = self.following(now) {
            cluster.handle(input, &mut parts);
        }
        self.follow_up(now);
        self.release();
        self.advance_conversion(now);
    }

    /// Handles the result of a job.
    pub(super) fn handle_job_done(&mut self, now: Now, number: JobNumber, done: JobResult) {
        let left = match self.following(now) {
            Some((cluster, mut parts)) => cluster.finish_replacement(number, done, &mut parts),
            None => Some(done),
        };
        match left {
            Some(done) => self.take_job_result(now, number, done),
            None => {
                self.observers.slow.set_now(now);
                self.follow_up(now);
                self.release();
            }
        }
    }

    /// The lock table has claims for the source of a relay.
    pub(super) fn claim_locks(&mut self, now: Now) {
        if let Some((cluster, parts)) = self.following(now) {
            cluster.claim_locks(&parts);
        }
    }

    /// Continues the sessions that may be able to, then carries out everything that follows.
    pub(super) fn advance_sessions(&mut self, now: Now) {
        if let Some(cluster) = self.model.cluster_mut() {
            cluster.advance();
            self.follow_up(now);
        }
    }

    /// Carries out all actions that are due.
    pub(super) fn follow_up(&mut self, now: Now) {
        while self.model.cluster().is_some_and(Clustered::has_steps) {
            let next = self.following(now);
            if let Some(action) = next.and_then(|(cluster, mut parts)| cluster.next(&mut parts)) {
                self.carry_out(now, action);
            }
        }
    }

    fn carry_out(&mut self, now: Now, action: Action) {
        match action {
            Action::Answer(reply) => self.answer_followed(now, reply),
            Action::Execute(request) => self.execute_request(now, request),
            Action::Retry(request) if self.is_dismissed(&request.info) => {
                self.drop_request(&request);
            }
            Action::Retry(request) => {
                let committed = self.attempt(now, request);
                assert!(committed.is_none(), "a follower commits nothing");
                self.release();
            }
            Action::TryHere {
                entry,
                otherwise,
                before,
            } => {
                let turn = entry.turn();
                let has_ended = self.try_here(now, entry, otherwise);
                if let Some((cluster, mut parts)) = self.following(now).filter(|_| has_ended) {
                    cluster.end_trial(turn, before, &mut parts);
                }
            }
            Action::ExecuteForwards(origin, forwards) => {
                // Those that must wait for others are queued.
                let mut budget = WorkBudget::unlimited();
                let left = self.execute_forwards_within(now, origin, forwards, &mut budget);
                self.barrier_queue.push_first(left.map(ToDatabase::Member));
            }
            Action::ReleaseOwn(index, eid) => self.release_own(index, eid),
            Action::FinishConversion => self.finish_conversion(now, Ok(())),
            Action::Publish { eid, delta, reply } => self.publish(now, eid, delta, reply),
            Action::RetryAffected(delta) => {
                self.retry_affected(now, Some(&delta));
                self.release();
            }
            Action::Swap(database, eid) => {
                self.swap_contents(*database, eid.0);
            }
            Action::EndSwap => self.end_swap(),
            Action::RestartHistory(eid) => self.subscriptions.restart_history(true, eid.0),
            Action::GiveUpLeadership(led, part) => self.lose_leadership(now, led, part),
            // It was forwarded in a term that this member may lead by now.
            Action::Handle(input @ ToDatabase::Member(MemberEvent::Execute { .. })) => {
                self.barrier_queue.push(input);
            }
            Action::Handle(input) => {
                if let Some((cluster, mut parts)) = self.following(now) {
                    cluster.handle(input, &mut parts);
                }
            }
            Action::BreakOff(details) => self.break_off(details),
        }
    }

    /// Replies to a request, which is not in flight any more then.
    fn answer_followed(&mut self, now: Now, reply: Reply) {
        let Reply {
            request,
            answer,
            has_changed,
            turn,
        } = reply;
        self.send_answer(request, answer, has_changed);
        if let (Some(turn), Some((cluster, mut parts))) = (turn, self.following(now)) {
            cluster.forget(turn, &mut parts);
        }
    }

    /// Executes a transaction of a follower's session, of which no earlier request is in flight, unless it would change something: then it is
    /// put back in this stage, and the result is false.
    fn try_here(&mut self, now: Now, entry: Entry, otherwise: Stage) -> bool {
        let request = &entry.request;
        if request.info.is_closed() {
            self.outputs.end_request(request);
            return true;
        }
        if self.is_dismissed(&request.info) {
            self.drop_request(request);
            return true;
        }
        let mut budget = self
            .environment
            .limit_selections(self.executor.work_budget());
        let Ok(outcome) = self.execute(now, request, &mut budget) else {
            unreachable!("nothing limits it")
        };
        if let Some(cluster) = self.model.cluster_mut()
            && cluster.undo_for_leader(request, &outcome, &mut self.database)
        {
            cluster.put_back(entry, otherwise);
            return false;
        }
        let committed = self.queue_outcome(now, entry.request, outcome);
        assert!(committed.is_none(), "a follower commits nothing");
        self.release();
        true
    }

    /// The oldest commit of this leadership is committed.
    fn release_own(&mut self, index: Index, eid: Eid) {
        let oldest = self.pending.commits().next();
        let Some(oldest) = oldest else {
            unreachable!("a leader's entries are its pending commits");
        };
        assert_eq!(oldest.txn, eid.0, "entries are committed in their order");
        let Some(position) = oldest.position else {
            unreachable!("every proposal has a position");
        };
        if let Some(cluster) = self.model.cluster_mut() {
            cluster.mark_applied(index, eid);
        }
        self.release_through(position);
    }

    /// Publishes an applied change, then its reply.
    fn publish(&mut self, now: Now, eid: Eid, delta: Arc<Delta>, reply: Option<(Entry, Answer)>) {
        assert!(
            self.pending.is_empty(),
            "a follower releases everything at once"
        );
        let has_changed = !delta.is_empty();
        if has_changed {
            self.subscriptions.execute(&delta, eid.0);
        }
        let (origin, answered) = match reply {
            Some((entry, answer)) => {
                let (slot, request) = entry.split();
                (Origin::Client(request), Some((slot, answer)))
            }
            None => match self.model.cluster() {
                Some(member) if !member.is_relay() => (Origin::Member(member.leader()), None),
                _ => (Origin::Source, None),
            },
        };
        if has_changed {
            let commit = Commit {
                position: None,
                record_bytes: 0,
                txn: eid.0,
                delta: delta.clone(),
            };
            self.release_commit(&commit, now.wall_ms, &origin);
        }
        let reply = match (origin, answered) {
            (Origin::Client(request), Some((slot, answer))) => {
                Some((slot.with(request), answer, has_changed))
            }
            _ => None,
        };
        if let Some((cluster, mut parts)) = self.following(now) {
            cluster.answer_published(eid, reply, delta, &mut parts);
        }
    }

    /// The error of a clustered database that cannot continue, for operators.
    fn break_off(&mut self, details: String) {
        self.file.set_error(StoreError {
            details: details.clone(),
            io_error: String::new(),
        });
        self.outputs.events.push(Event::EntryRefused(details));
    }

    /// Undoes all speculative commits of the leadership in this term.
    fn lose_leadership(&mut self, now: Now, led: Term, part: Part) {
        let Some(cluster) = self.model.cluster_mut() else {
            return;
        };
        let behind = cluster.take_part(part);
        let undone = self.pending.take_all();
        if undone.is_empty() {
            cluster.keep_again(behind);
            self.lose_conversion(now, led);
            return;
        }
        let affected = self.executor.undo(&undone, &mut self.database);
        self.subscriptions.undo(&undone, &mut self.outputs);
        self.observers
            .observe_undo(&self.database, &mut self.outputs);
        // They came after everything that their sessions have pending, and before what those have in
        // flight.
        let mut waited = self
            .subscriptions
            .take_waiting_for_contents(&mut self.outputs);
        if let Some(in_flight) = self.model.in_flight_mut() {
            waited.extend(in_flight.take_all_anew());
        }
        let sessions = changed_sessions(&undone);
        let mut requeued = Vec::new();
        let mut after = None;
        for entry in undone {
            let txn = entry.commit.as_ref().map(|commit| Eid(commit.txn));
            after = txn.or(after);
            // Before a later transaction of its session is in doubt, and has a reply.
            let again = self.doubt(led, after, entry);
            requeued.extend(again.and_then(|input| self.execute_again_unless_blocked(now, input)));
        }
        for request in waited {
            let request = Box::new(request);
            if is_behind(&request, &self.outputs) {
                self.keep(request, Stage::Local);
            } else {
                let input = ToDatabase::Request(request);
                requeued.extend(self.execute_again_unless_blocked(now, input));
            }
        }
        if let Some(cluster) = self.model.cluster_mut() {
            cluster.keep_again(behind);
        }
        for input in requeued.into_iter().rev() {
            self.outputs.outboxes.put_back(input);
        }
        self.lose_conversion(now, led);
        self.release();
        self.retry(now, affected);
        self.release();
        for session in sessions {
            self.resume_if_unblocked(session);
        }
    }

    /// Settles an undone entry; `after` is the last commit up to it. Returns the input that is
    /// executed again, if there is one.
    fn doubt(&mut self, led: Term, after: Option<Eid>, entry: Pending) -> Option<ToDatabase> {
        let cluster = self.model.cluster_mut()?;
        match cluster.doubt(led, after, entry, &mut self.outputs) {
            Undone::Resolved => None,
            Undone::Answer(answer, origin) => {
                self.pending.push(Pending::answer(answer, origin));
                None
            }
            Undone::Again(input) => Some(input),
        }
    }

    fn keep(&mut self, request: Box<Request>, stage: Stage) {
        if let Some(cluster) = self.model.cluster_mut() {
            cluster.keep(request, stage, &mut self.outputs);
        }
    }

    /// The leadership in this term is over: the conversion is in doubt if it was proposed; otherwise the next leader converts.
    fn lose_conversion(&mut self, now: Now, led: Term) {
        let Some((entry, request)) = self.take_conversion() else {
            return;
        };
        let cluster = self.model.cluster_mut();
        if cluster.is_some_and(Clustered::ends_forwarded_conversion) {
            return;
        }
        let Some(id) = entry else {
            self.forward(now, request);
            return;
        };
        let reply = Answer::Result(b"{}".to_vec());
        let term = led;
        self.keep(request, Stage::Proposed { term, id, reply });
    }

    /// Executes requests that another member has forwarded, unless this leadership is over, within a
    /// budget. Returns the event with the requests that are left: the first one
    /// exceeds the budget and has changed nothing, or it is a conversion or comes after one. A
    /// conversion and the requests after it need events of their own, because barriers are judged
    /// once for each event.
    pub(super) fn execute_forwards_within(
        &mut self,
        now: Now,
        origin: ForwardOrigin,
        forwards: Vec<Forward>,
        budget: &mut WorkBudget,
    ) -> Option<MemberEvent> {
        let mut forwards = forwards.into_iter();
        let mut is_first = true;
        while let Some(forward) = forwards.next() {
            let (cluster, mut parts) = self.following(now)?;
            if !cluster.executes_for(origin) {
                return None;
            }
            let forwarded = Forwarded {
                origin,
                id: forward.id,
                once: forward.once.map(|once| once.id.0),
            };
            match forward.method {
                ForwardMethod::Transact => {
                    match cluster.execute_forward(&forward, budget, &mut parts) {
                        Ok(executed) => self.queue_forwarded(now, forwarded, executed),
                        Err(TooLong) => {
                            return event_of(origin, std::iter::once(forward).chain(forwards));
                        }
                    }
                }
                ForwardMethod::Convert if is_first => {
                    cluster.convert_for(forwarded);
                    self.convert_forward(now, &forward);
                    return event_of(origin, forwards);
                }
                ForwardMethod::Convert => {
                    return event_of(origin, std::iter::once(forward).chain(forwards));
                }
            }
            is_first = false;
        }
        None
    }

    /// Queues the answer to a forwarded transaction. Its commit is proposed.
    fn queue_forwarded(&mut self, now: Now, forwarded: Forwarded, executed: Executed) {
        let Executed {
            answer,
            commit,
            tally,
        } = executed;
        if let Some(tally) = tally {
            self.observers.counts.executed(&tally, commit.is_some());
        }
        let origin = Origin::Forwarded(forwarded);
        match commit {
            Some((delta, durable, proposed)) => {
                self.queue_executed(now, Some(delta.clone()), durable, answer, origin);
                if let (Some(outcome), Some(cluster)) = (proposed, self.model.cluster_mut()) {
                    cluster.report_outcome(forwarded, outcome);
                }
                self.retry_affected(now, Some(&delta));
            }
            None => self.pending.push(Pending::answer(answer, origin)),
        }
        self.release();
    }

    /// Begins a conversion that another member has forwarded.
    ///
    /// # Panics
    /// If something is pending or another conversion is under way: its asker would wait for ever.
    fn convert_forward(&mut self, now: Now, forward: &Forward) {
        assert!(
            self.conversions.current.is_none() && self.pending.is_empty(),
            "a conversion waits for what is before it"
        );
        let request = Box::new(request_of(now, forward, self.conversions.epoch));
        match self.new_schema(&request) {
            Ok(schema) => {
                self.conversions.current = Some(Conversion::new(request, schema));
                self.advance_conversion(now);
            }
            Err(error) => self.fail_conversion(&request, &error),
        }
    }

    /// The database is removed: answers everything in flight.
    pub(super) fn cancel_in_flight(&mut self, now: Now) {
        for request in self.executor.once.take_waiting() {
            match request.info.is_aware() {
                true => self.cancel_request(&request, Completion::None),
                false => self.drop_request(&request),
            }
        }
        let in_flight = self.model.in_flight_mut();
        let requests = in_flight.map(InFlight::take_all);
        for (request, stage) in requests.into_iter().flatten() {
            let (session, was_blocked) = (request.session, request.blocked);
            match stage {
                Stage::Answered { reply, has_changed } => {
                    self.send_answer(request, reply, has_changed);
                }
                // Refused like those that wait in the outbox.
                Stage::Local => self.refuse_removed(ToDatabase::Request(request)),
                _ if request.info.is_aware() => {
                    self.cancel_request(&request, Completion::of(&request));
                }
                _ => self.drop_request(&request),
            }
            if let Some((cluster, mut parts)) = self.following(now) {
                cluster.end_forward(session, was_blocked, &mut parts);
            }
        }
        if let Some((cluster, mut parts)) = self.following(now) {
            cluster.give_up_replacement(&mut parts);
        }
    }
}
