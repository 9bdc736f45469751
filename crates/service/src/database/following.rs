//! The routes of what others decide: events of a cluster's member and news of a relay's source go
//! to [`Upstream`] and [`Clustered`], and the actions that these return are carried out, one after
//! the other; changes of a backup's source are applied; commits are undone that could not be
//! stored, or whose leadership is lost; and inputs of a removed database are refused.
//!
//! Invariant: an action is carried out as a whole before the next one is asked for. No action takes
//! the next one itself: [`DatabaseService::follow_up`] is called between two inputs only.
//!
//! A request is executed again when commits that it may have seen could not be stored. The clients
//! of those commits get `I/O error`. All later requests are executed again in the same order. They
//! get new positions; replies of the storage about the old positions find no entry and are ignored.

use corvid_consensus::database::{Forward, ForwardMethod, ForwardOrigin, MemberEvent};
use corvid_data::{Arc, Delta, Tag, WireError};
use corvid_engine::{TooLong, WorkBudget};
use corvid_log::cluster::{Eid, Index, Term};
use corvid_log::storage::{LogPosition, StoreError};

use super::backup::{Backup, Change};
use super::clustered::{Clustered, Executed, Undone, event_of, is_behind, keep_again, request_of};
use super::conversion::conversion_not_allowed;
use super::{DatabaseService, Now};
use crate::executor::{changed_sessions, unstored_reply};
use crate::job::garbage::Garbage;
use crate::job::{JobNumber, JobResult};
use crate::message::{Completion, ControlAnswer, DatabaseMethod, Event, Request, ToDatabase};
use crate::replication::{Role as Replication, SourceEvent, SourceId};
use crate::replies::{Answer, Commit, Forwarded, Origin, Pending};
use crate::upstream::{Action, Entry, Forwarding, InFlight, Reply, Role, Stage, Upstream};

impl DatabaseService {
    /// Sets smaller limits of entries and results than members take, for tests.
    pub fn set_entry_limits(&mut self, entry_bytes_max: usize, result_bytes_max: usize) {
        if let Some(member) = self.model.member_mut() {
            member.lower_limits(entry_bytes_max, result_bytes_max);
        }
    }

    /// Sets whether conversions of a clustered database are proposed with their rows
    /// (`--disable-file-no-data-conversion`), for files that releases before 3.2 of the reference
    /// are to read. An entry with all rows is written in one piece.
    pub fn set_data_conversion(&mut self, has_data: bool) {
        if let Some(member) = self.model.member_mut() {
            member.set_data_conversion(has_data);
        }
    }

    /// Handles an event of the member, an installed snapshot, or news of a relay's source.
    pub(super) fn handle_upstream(&mut self, now: Now, input: ToDatabase) {
        if self.is_removed || self.model.upstream().is_none() {
            if let ToDatabase::Installed(installed) = input {
                self.outputs.free(Garbage::database(installed.database));
            }
            return;
        }
        self.observers.slow.set_now(now);
        let (model, mut parts) = self.model_and_parts(now);
        model.handle_upstream(input, &mut parts);
        self.follow_up(now);
        self.release();
        self.advance_conversion(now);
    }

    /// Handles the result of a job.
    pub(super) fn handle_job_done(&mut self, now: Now, number: JobNumber, done: JobResult) {
        let left = match self.following(now) {
            Some((upstream, mut parts)) => upstream.finish_replacement(number, done, &mut parts),
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
        if let Some((upstream, parts)) = self.following(now) {
            upstream.claim_locks(&parts);
        }
    }

    /// Continues the sessions that may be able to, then carries out everything that follows.
    pub(super) fn advance_sessions(&mut self, now: Now) {
        if let Some(upstream) = self.model.upstream_mut() {
            upstream.advance();
            self.follow_up(now);
        }
    }

    /// Carries out all actions that are due.
    pub(super) fn follow_up(&mut self, now: Now) {
        while self.model.upstream().is_some_and(Upstream::has_steps) {
            let (model, mut parts) = self.model_and_parts(now);
            if let Some(action) = model.next_action(&mut parts) {
                self.carry_out(now, action);
            }
        }
    }

    fn carry_out(&mut self, now: Now, action: Action) {
        match action {
            Action::Answer(reply) => self.answer_followed(now, reply),
            Action::Execute(request) => self.execute_request(now, request),
            Action::Retry(request) if self.is_dismissed(&request.info) => {
                self.outputs.drop_request(&request);
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
                if let Some((upstream, mut parts)) = self.following(now).filter(|_| has_ended) {
                    upstream.end_trial(turn, before, &mut parts);
                }
            }
            Action::ExecuteForwards(origin, forwards) => {
                // Those that must wait for others are queued.
                let mut budget = WorkBudget::unlimited();
                let left = self.execute_forwards_within(now, origin, forwards, &mut budget);
                self.barrier_queue.push_first(left.map(ToDatabase::Member));
            }
            Action::ReleaseOwn(index, eid) => self.release_own(now, index, eid),
            Action::Publish { eid, delta, reply } => self.publish(now, eid, delta, reply),
            Action::RetryAffected(delta) => {
                self.retry_affected(now, Some(&delta));
                self.release();
            }
            // A transaction that the leader would block, too, is blocked here again.
            Action::ForwardBlocked => {
                assert!(self.model.follows_leader(), "it has installed a snapshot");
                for trigger in self.executor.triggers.take_with_ids() {
                    self.forward(now, trigger.request);
                }
            }
            Action::Swap(database, eid) => {
                self.swap_contents(*database, eid.0);
            }
            Action::EndSwap => self.end_swap(),
            Action::RestartHistory(eid) => self.subscriptions.restart_history(true, eid.0),
            Action::GiveUpLeadership(led, role) => self.lose_leadership(now, led, role),
            // It was forwarded in a term that this member may lead by now.
            Action::Handle(input @ ToDatabase::Member(MemberEvent::Execute { .. })) => {
                self.barrier_queue.push(input);
            }
            Action::Handle(input) => {
                let (model, mut parts) = self.model_and_parts(now);
                model.handle_upstream(input, &mut parts);
            }
            Action::BreakOff(details) => self.break_off(details),
        }
    }

    /// Replies to a request, which is no longer in flight then.
    fn answer_followed(&mut self, now: Now, reply: Reply) {
        let Reply {
            request,
            answer,
            has_changed,
            turn,
        } = reply;
        self.send_answer(request, answer, has_changed);
        if let (Some(turn), Some((upstream, mut parts))) = (turn, self.following(now)) {
            upstream.forwarding.forget(turn, &mut parts);
        }
    }

    /// Executes a transaction of a follower's session, none of whose earlier requests is in flight.
    /// If it would change something, it is undone and put back in this stage, and the result is
    /// false.
    fn try_here(&mut self, now: Now, entry: Entry, otherwise: Stage) -> bool {
        let request = &entry.request;
        if request.info.is_closed() {
            self.outputs.end_request(request);
            return true;
        }
        if self.is_dismissed(&request.info) {
            self.outputs.drop_request(request);
            return true;
        }
        let mut budget = self
            .environment
            .limit_selections(self.executor.work_budget());
        let Ok(outcome) = self.execution(now).execute(request, &mut budget) else {
            unreachable!("nothing limits it")
        };
        if let Some(upstream) = self.model.upstream_mut()
            && Forwarding::undo_for_leader(request, &outcome, &mut self.database)
        {
            upstream.forwarding.put_back(entry, otherwise);
            return false;
        }
        let committed = self.queue_outcome(now, entry.request, outcome);
        assert!(committed.is_none(), "a follower commits nothing");
        self.release();
        true
    }

    /// The oldest commit of this leadership, or the conversion that it has proposed, is committed.
    fn release_own(&mut self, now: Now, index: Index, eid: Eid) {
        if let Some(upstream) = self.model.upstream_mut()
            && self.conversions.is_entry(eid)
        {
            upstream.contents.mark_applied(index, eid);
            self.finish_conversion(now, Ok(()));
            return;
        }
        let oldest = self.pending.commits().next();
        let Some(oldest) = oldest else {
            unreachable!("a leader's entries are its pending commits");
        };
        assert_eq!(oldest.txn, eid.0, "entries are committed in their order");
        let Some(position) = oldest.position else {
            unreachable!("every proposal has a position");
        };
        if let Some(upstream) = self.model.upstream_mut() {
            upstream.contents.mark_applied(index, eid);
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
        // Executed and released in one: a committed entry is never undone.
        if has_changed {
            self.subscriptions.execute(&delta, eid.0);
        }
        let (origin, answered) = match reply {
            Some((entry, answer)) => {
                let (slot, request) = entry.split();
                (Origin::Client(request), Some((slot, answer)))
            }
            None => match self.model.member() {
                Some(member) => (Origin::Member(member.upstream.forwarding.leader()), None),
                None => (Origin::Source, None),
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
        if let Some((upstream, mut parts)) = self.following(now) {
            upstream.answer_published(eid, reply, delta, &mut parts);
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

    /// Executes requests that another member has forwarded, unless this leadership is over, within
    /// a budget. Returns the event with the requests that are left: the first one exceeds the
    /// budget and has changed nothing, or it is a conversion or comes after one. A conversion and
    /// the requests after it need events of their own, because barriers are judged once for each
    /// event.
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
            let member = self.model.member_mut()?;
            if !member.executes_for(origin) {
                return None;
            }
            let forwarded = Forwarded {
                origin,
                id: forward.id,
                once: forward.once.map(|once| once.id.0),
            };
            match forward.method {
                ForwardMethod::Transact => {
                    match self.execute_forward(now, (origin, &forward), budget)? {
                        Ok(executed) => self.queue_forwarded(now, forwarded, executed),
                        Err(TooLong) => {
                            return event_of(origin, std::iter::once(forward).chain(forwards));
                        }
                    }
                }
                ForwardMethod::Convert if is_first => {
                    member.convert_for(forwarded);
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

    /// Executes a transaction that another member has forwarded. `None`: the database is no
    /// member's.
    fn execute_forward(
        &mut self,
        now: Now,
        (origin, forward): (ForwardOrigin, &Forward),
        budget: &mut WorkBudget,
    ) -> Option<Result<Executed, TooLong>> {
        let (model, mut parts) = self.model_and_parts(now);
        let member = model.member()?;
        Some(member.execute_forward(origin, forward, budget, &mut parts))
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
                self.execution(now)
                    .queue(Some(delta.clone()), durable, answer, origin);
                if let (Some(outcome), Some(member)) = (proposed, self.model.member_mut()) {
                    member.report_outcome(forwarded, outcome);
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
                self.conversions.begin(request, schema);
                self.advance_conversion(now);
            }
            Err(error) => self.fail_conversion(&request, &error),
        }
    }
}

/// The source of a backup.
impl DatabaseService {
    /// Changes roles while nothing is pending. Blocked transactions are tried in the new role.
    pub(super) fn set_role(&mut self, role: Replication, token: u64) {
        // The member decides the role of a clustered database.
        if self.model.upstream().is_none() {
            self.end_backup();
            if let Replication::Backup(following) = role {
                let name = self.database.schema().name.to_string();
                self.executor.once.begin_backup();
                self.model
                    .begin_backup(Box::new(Backup::new(&name, *following)));
                if self.conversions.current.is_some() {
                    self.give_up_conversion(Some(&conversion_not_allowed(&name)));
                }
            }
        }
        let done = Event::Answered(token, ControlAnswer::RoleSet);
        self.outputs.events.push(done);
    }

    /// Ends being a backup: from here on clients may write.
    pub(super) fn end_backup(&mut self) {
        if let Some(backup) = self.model.end_backup() {
            self.executor.once.end_backup();
            self.outputs.free(backup.into_garbage());
        }
    }

    /// Handles an event of the connection to a backup's source.
    pub(super) fn handle_source_event(&mut self, now: Now, id: SourceId, event: SourceEvent) {
        let Some(backup) = self.model.source_mut().filter(|backup| backup.id() == id) else {
            return;
        };
        match event {
            SourceEvent::Connected(number) => {
                backup.connect(number);
                self.advance_backup(now, false);
            }
            SourceEvent::Disconnected => backup.disconnect(&mut self.outputs),
            SourceEvent::Message(text) => {
                backup.queue(text);
                self.advance_backup(now, true);
            }
        }
    }

    /// Applies the changes of a backup's source that have come.
    pub(super) fn advance_backup(&mut self, now: Now, takes_messages: bool) {
        while let Some(backup) = self.model.source_mut()
            && let Some(change) = backup.advance(&self.database, &mut self.outputs, takes_messages)
        {
            let applied = change.and_then(|change| self.replicate(now, change));
            if let (Err(error), Some(backup)) = (applied, self.model.source_mut()) {
                backup.refuse_update(error);
            }
        }
    }

    /// Applies the difference between our contents and the source's, which the job has found.
    pub(super) fn apply_compared(&mut self, now: Now, number: JobNumber, found: Change) {
        let backup = self.model.source_mut();
        if !backup.is_some_and(|backup| backup.end_comparison(number)) {
            self.outputs
                .free(found.map_or_else(|error| Garbage::new(0, error), Garbage::recorded));
            return;
        }
        let applied = found.and_then(|recorded| self.replicate(now, recorded));
        if let Some(backup) = self.model.source_mut() {
            backup.take_contents(applied);
        }
        self.advance_backup(now, true);
    }
}

/// Commits that are undone, and requests that are not executed any more.
impl DatabaseService {
    /// The records up to `last`, which were written together, could not be stored.
    pub(super) fn undo_unstored(&mut self, now: Now, last: LogPosition, error: &StoreError) {
        let undone = self.pending.take_failed(last);
        if undone.is_empty() {
            return;
        }
        // First of all the rows: everything below reads them, or has requests executed on them.
        let affected = self.executor.undo(&undone, &mut self.database);
        // Entries before the failed ones no longer wait for a record.
        self.release();
        // Replies that are made from here on see the tables without the failed commits.
        assert!(self.pending.is_empty(), "nothing is pending across an undo");
        self.subscriptions.undo(&undone, &mut self.outputs);
        let commits = undone.iter().filter_map(|entry| entry.commit.as_ref());
        self.file
            .undo(commits.map(|commit| commit.record_bytes), error);
        self.observers
            .observe_undo(&self.database, &mut self.outputs);
        let sessions = changed_sessions(&undone);
        let mut requeued = Vec::new();
        // In their order, so replies keep it. For example, of A (its record has failed), B (a reply
        // that has seen A) and C (a later commit), A is answered with an error, then B and C are
        // executed again, without A.
        for entry in undone {
            if entry.is_recorded_by(last) {
                self.observers.counts.store_failures += 1;
                let schema = self.database.schema();
                let audited = self.observers.audit.of_unstored(schema, &entry, error);
                self.outputs.audit.extend(audited);
                if let (Origin::Source, Some(backup)) = (&entry.origin, self.model.source_mut()) {
                    backup.undo();
                } else if let Some(reply) = unstored_reply(entry, error) {
                    self.pending.push(reply);
                }
            } else {
                requeued.extend(self.execute_again(now, entry));
            }
        }
        // Before the later requests of their sessions.
        for request in requeued.into_iter().rev() {
            self.outputs.outboxes.put_back(request);
        }
        self.release();
        // Blocked transactions come last: the replies of the requests above were pending before.
        self.retry(now, affected);
        self.release();
        for session in sessions {
            self.replying().resume_if_unblocked(session);
        }
    }

    /// Executes the request of an undone entry again. Returns the request if it must wait for an
    /// earlier one of its session, whose reply may be deferred this time.
    fn execute_again(&mut self, now: Now, entry: Pending) -> Option<ToDatabase> {
        match (entry.origin, entry.answer) {
            // This reply does not depend on the state.
            (origin, Answer::Canceled) => {
                self.pending.push(Pending::answer(Answer::Canceled, origin));
            }
            // A closed session has no monitors, and must not get any. Its refused requests count
            // too: a duplicate of a monitor would be admitted now that the monitor is gone.
            (Origin::Client(request), _)
                if request.method.is_about_monitors()
                    && self.environment.is_closed(&request.info) => {}
            (Origin::Client(request), _) => {
                return self.execute_again_unless_blocked(now, ToDatabase::Request(request));
            }
            (Origin::Cancel(session, id), _) => self.cancel(now, session, id),
            (Origin::Server(params), _) => self.transact_as_server(now, &params),
            (Origin::Control(control), _) => self.take_snapshot(control),
            (Origin::Source, _) => {
                if let Some(backup) = self.model.source_mut() {
                    backup.undo();
                }
            }
            (Origin::Forwarded(_) | Origin::Member(_), _) => {
                unreachable!("no record of a clustered database fails here")
            }
        }
        None
    }

    /// Undoes all speculative commits of the leadership in this term.
    fn lose_leadership(&mut self, now: Now, led: Term, role: Role) {
        let Some(member) = self.model.member_mut() else {
            return;
        };
        let behind = member.give_up_leadership(role);
        let undone = self.pending.take_all();
        if undone.is_empty() {
            keep_again(&mut member.upstream.forwarding, behind);
            self.lose_conversion(now, led);
            return;
        }
        // The rows are those of the last applied entry from here on. Nobody was told of the others.
        let affected = self.executor.undo(&undone, &mut self.database);
        self.subscriptions.undo(&undone, &mut self.outputs);
        self.observers
            .observe_undo(&self.database, &mut self.outputs);
        // They came after everything that their sessions have pending, and before their requests in
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
        if let Some(upstream) = self.model.upstream_mut() {
            keep_again(&mut upstream.forwarding, behind);
        }
        for input in requeued.into_iter().rev() {
            self.outputs.outboxes.put_back(input);
        }
        self.lose_conversion(now, led);
        self.release();
        // Blocked transactions come last: requests that were executed before them are in flight
        // now.
        self.retry(now, affected);
        self.release();
        for session in sessions {
            self.replying().resume_if_unblocked(session);
        }
    }

    /// Settles an undone entry; `after` is the last commit up to it. Returns the input that is
    /// executed again, if there is one.
    fn doubt(&mut self, led: Term, after: Option<Eid>, entry: Pending) -> Option<ToDatabase> {
        let member = self.model.member_mut()?;
        match member.doubt(led, after, entry, &mut self.outputs) {
            Undone::Resolved => None,
            Undone::Answer(answer, origin) => {
                self.pending.push(Pending::answer(answer, origin));
                None
            }
            Undone::Again(input) => Some(input),
        }
    }

    fn keep(&mut self, request: Box<Request>, stage: Stage) {
        if let Some(upstream) = self.model.upstream_mut() {
            let forwarding = &mut upstream.forwarding;
            forwarding.keep(request, stage, &mut self.outputs);
        }
    }

    /// The leadership in this term is over: the conversion is in doubt if it was proposed;
    /// otherwise the next leader converts.
    fn lose_conversion(&mut self, now: Now, led: Term) {
        let Some((entry, request)) = self.take_conversion() else {
            return;
        };
        let member = self.model.member_mut();
        if member.is_some_and(Clustered::ends_forwarded_conversion) {
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

    /// The database is removed: answers everything in flight.
    pub(super) fn cancel_in_flight(&mut self, now: Now) {
        for request in self.executor.once.take_waiting() {
            match request.info.is_aware() {
                true => self.replying().cancel_request(&request, Completion::None),
                false => self.outputs.drop_request(&request),
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
                    self.replying()
                        .cancel_request(&request, Completion::of(&request));
                }
                _ => self.outputs.drop_request(&request),
            }
            if let Some((upstream, mut parts)) = self.following(now) {
                let forwarding = &mut upstream.forwarding;
                forwarding.end_forward(session, was_blocked, &mut parts);
            }
        }
        if let Some((upstream, mut parts)) = self.following(now) {
            upstream.give_up_replacement(&mut parts);
        }
    }

    /// Answers an input that was sent before its sender knew of the removal.
    pub(super) fn refuse_removed(&mut self, input: ToDatabase) {
        match input {
            ToDatabase::Request(request) if self.is_dismissed(&request.info) => {
                self.outputs.drop_request(&request);
            }
            ToDatabase::Request(request) => {
                let method = request.method.name();
                let name = &self.database.schema().name;
                let details = format!("{method} request specifies unknown database {name}");
                let error =
                    WireError::new(Tag::UnknownDatabase, details).with_fragment(request.params());
                match request.method {
                    // These name no database. Their monitors are gone, and the reply says so.
                    DatabaseMethod::MonitorCancel => {
                        self.replying().release_monitor_cancel(&request);
                    }
                    DatabaseMethod::MonitorCondChange => self.change_condition(request),
                    _ => self.replying().fail(&request, &error),
                }
            }
            ToDatabase::Fence(session, answer) => self.outputs.complete(session, answer),
            ToDatabase::Cancel(session, _) => self.outputs.complete(session, Completion::Request),
            ToDatabase::Control(control) => {
                let name = &self.database.schema().name;
                self.outputs.events.extend(control.refused(name));
            }
            ToDatabase::Source(..)
            | ToDatabase::Drained(_)
            | ToDatabase::Closed(_)
            | ToDatabase::LockClaims
            | ToDatabase::Storage(_)
            | ToDatabase::Member(_)
            | ToDatabase::Relay(_)
            | ToDatabase::Installed(_)
            | ToDatabase::JobDone(..) => {}
        }
    }
}
