//! Requests of clients: the route of each method, the execution of transactions with their blocking
//! and retries, `cancel`, `convert` (docs/spec/protocol.md 4.15) from its checks to the swap of the
//! database, and the moment at which each reply leaves. `execution` executes a request, `replying`
//! sends its reply, `conversion` has the steps of a conversion.
//!
//! Replies leave in the order of their execution, each when the commits that it could have seen are
//! stored. Each is preceded by its session's updates up to the commits before it. Sessions without
//! a reply get all updates at the end of the batch.
//!
//! These functions execute a transaction. A transaction that exceeds its budget changes nothing and
//! is returned.
//!
//! | Function | Called | Budget |
//! |---|---|---|
//! | `try_inline` (`inputs.rs`) | by the pump, on a shard | one for all inputs of the batch |
//! | `handle_unless_long` (`inputs.rs`) | by the pump on the database thread, but for the first input of a batch | the steps after which a transaction is long |
//! | `transact` | for the first input of a batch, or one that has waited | none |
//! | `transact_within` | by those three: numbers the request, executes it, queues its reply, retries blocked transactions | theirs |
//! | `attempt` | to retry a blocked transaction | none |
//! | [`Execution::execute`] | by the last two: calls `execute_within` of the engine | theirs |
//!
//! No budget still limits long selections (`Executor::work_budget`).
//!
//! [`Execution::execute`]: super::execution::Execution::execute

use std::collections::BTreeSet;

use corvid_data::{Arc, Delta, Recorded, Schema, Uuid, WireError};
use corvid_engine::{Context, Database, LockOwner, Outcome, TooLong, WorkBudget};
use corvid_log::cluster::Eid;
use corvid_log::storage::{LogPosition, StoreError};
use corvid_monitor::{SessionId, Version};

use super::clustered::Clustered;
use super::conversion::{Step, is_conversion_of, schema_of};
use super::file::DatabaseFile;
use super::model::Model;
use super::subscriptions::{Begun, PastSource, Subscriptions};
use super::{DatabaseService, Now};
use crate::client_memory;
use crate::executor::{OnceState, Resolved};
use crate::job::garbage::Garbage;
use crate::job::{JobNumber, JobResult};
use crate::message::{
    Completion, Control, ControlAnswer, DatabaseMethod, Event, Request, ToDatabase,
};
use crate::observers::AuditEntries;
use crate::once::recorded::{END_LINE, end_lines};
use crate::read_history::AppliedEntry;
use crate::replies::{Answer, Commit, Origin, Pending, Reason};
use crate::upstream::is_sent_again;

/// A relay passes a transaction on promptly within this time, ms: no client gives up a connection
/// and has a copy executed elsewhere that fast.
const PROMPT_MS: u64 = 1000;

/// The server itself holds no locks.
struct NoLocks;

impl LockOwner for NoLocks {
    fn owns(&self, _lock: &str) -> bool {
        false
    }
}

impl DatabaseService {
    pub(super) fn execute_request(&mut self, now: Now, request: Box<Request>) {
        if self.is_dismissed(&request.info) {
            self.outputs.drop_request(&request);
            return;
        }
        match request.method {
            DatabaseMethod::Transact => self.transact(now, request),
            DatabaseMethod::Convert => self.convert(now, request),
            DatabaseMethod::GetSchema => {
                let schema = self.database.schema().to_json().to_bytes();
                if self.environment.has_room_for_schema(schema.len()) {
                    self.reply(request, schema);
                } else {
                    self.refuse(request, client_memory::exhausted());
                }
            }
            DatabaseMethod::Monitor(version) => self.begin_monitor(request, version),
            DatabaseMethod::MonitorCondChange => self.change_condition(request),
            DatabaseMethod::MonitorCancel => {
                self.answer_when_stored(Answer::MonitorCanceled, Origin::Client(request));
            }
        }
    }

    fn begin_monitor(&mut self, request: Box<Request>, version: Version) {
        let source = past_source(&self.model, &self.file, &self.subscriptions);
        let (outputs, environment) = (&mut self.outputs, &self.environment);
        let database = &mut self.database;
        let subscriptions = &mut self.subscriptions;
        match subscriptions.begin(request, version, database, source, (outputs, environment)) {
            Begun::Joined(request, answer) => {
                self.answer_when_stored(answer, Origin::Client(request));
            }
            Begun::Refused(request, error) => self.refuse(request, error),
            Begun::Waits => {}
        }
    }

    pub(super) fn change_condition(&mut self, request: Box<Request>) {
        let (database, environment) = (&mut self.database, &self.environment);
        let subscriptions = &mut self.subscriptions;
        let answer = match subscriptions.change_condition(&request, database, environment) {
            Ok(change) => Answer::ConditionChanged(Box::new(change)),
            Err(error) => Answer::Error(Box::new(error)),
        };
        self.answer_when_stored(answer, Origin::Client(request));
    }

    /// A `cancel`: completes like a request, after the reply to the canceled request.
    pub(super) fn cancel(&mut self, now: Now, session: SessionId, id: Box<[u8]>) {
        if self.conversions.is_asked_by(session, &id) {
            self.cancel_conversion();
        } else if !self.cancel_waiting(now, session, &id) {
            let seqno = self.executor.triggers.find(session, &id);
            if let Some(trigger) = seqno.and_then(|seqno| self.executor.triggers.remove(seqno)) {
                let origin = Origin::Client(trigger.request);
                self.pending.push(Pending::answer(Answer::Canceled, origin));
            }
        }
        self.answer_when_stored(Answer::Nothing, Origin::Cancel(session, id));
    }

    /// Cancels a request that no leader has. False if there is no such request.
    pub(super) fn cancel_waiting(&mut self, now: Now, session: SessionId, id: &[u8]) -> bool {
        let Some((upstream, mut parts)) = self.following(now) else {
            return false;
        };
        let forwarding = &mut upstream.forwarding;
        let Some(entry) = forwarding.take_canceled(session, id, &mut parts) else {
            return false;
        };
        let request = entry.request;
        self.replying()
            .cancel_request(&request, Completion::of(&request));
        if let Some((upstream, mut parts)) = self.following(now) {
            let was_blocked = request.blocked;
            upstream
                .forwarding
                .end_forward(session, was_blocked, &mut parts);
        }
        true
    }

    /// Answers with a snapshot, when everything that it contains is stored.
    pub(super) fn take_snapshot(&mut self, control: Control) {
        if let Control::Snapshot(token) = control {
            let snapshot = ControlAnswer::Snapshot(Some(self.database.snapshot()));
            let event = Event::Answered(token, snapshot);
            let answer = Answer::Event(Box::new(event));
            self.answer_when_stored(answer, Origin::Control(control));
        }
    }

    pub(super) fn transact(&mut self, now: Now, request: Box<Request>) {
        let left = self.transact_within(now, request, &mut self.executor.work_budget());
        assert!(left.is_none(), "nothing limits it");
    }

    /// Executes a transaction if it fits into the budget. Otherwise returns its request, and
    /// nothing has changed.
    pub(super) fn transact_within(
        &mut self,
        now: Now,
        mut request: Box<Request>,
        budget: &mut WorkBudget,
    ) -> Option<Box<Request>> {
        let is_new = request.seqno.is_none();
        let is_repeated = is_sent_again(&request);
        if is_new {
            if self
                .executor
                .triggers
                .find(request.session, &request.id)
                .is_some()
            {
                self.refuse_duplicate(request);
                return None;
            }
            request.seqno = Some(self.executor.take_seqno());
            // Timeouts count from here: the way from the socket does not take of the client's time.
            request.arrived_ms = now.mono_ms;
            self.begin_once(now, &mut request);
        }
        // Before it is forwarded: a copy of one that is on its way must not be sent as well.
        let request = self.resolve_once(request)?;
        let (outputs, environment) = (&self.outputs, &self.environment);
        let upstream = self.model.upstream();
        let forwarding = upstream.map(|upstream| &upstream.forwarding);
        if forwarding
            .is_some_and(|it| it.forwards_at_once(&request, is_repeated, outputs, environment))
        {
            self.forward(now, request);
            return None;
        }
        *budget = self.environment.limit_selections(*budget);
        let Ok(outcome) = self.execution(now).execute(&request, budget) else {
            return Some(request);
        };
        let committed = self.queue_outcome(now, request, outcome);
        self.retry_affected(now, committed.as_deref());
        self.release();
        None
    }

    /// A request begins. Unless its client has sent it before, none of the commits up to now is its
    /// own. So a leader that decides about it later need not know those.
    fn begin_once(&self, now: Now, request: &mut Request) {
        let Some(once) = &mut request.once else {
            return;
        };
        let last = match self.model.upstream() {
            // Its source judges it when it comes, which is now unless it had to wait. Meanwhile the
            // client may have given up a connection that is dead, and a copy may have been executed
            // elsewhere.
            Some(upstream) if upstream.forwarding.is_relay() => {
                let has_source = upstream.forwarding.leader().is_some();
                let came = once.came.filter(|(came_ms, _)| {
                    !has_source || now.mono_ms.saturating_sub(*came_ms) > PROMPT_MS
                });
                came.map(|(_, seen)| seen)
            }
            // Speculative commits may come to nothing.
            Some(upstream) => Some(upstream.contents.applied_eid().0),
            // Without a history, commits have the id zero, which proves nothing. The request stays
            // here, where its own commit is remembered, so nothing needs to be proved.
            None => self.executor.once.last().filter(|id| *id != Uuid::ZERO),
        };
        once.after = once.after.or(last);
    }

    /// Returns a transaction that is to be executed, or passed on. A copy of one that was executed
    /// before, or may have been, is answered, or waits for the outcome of the first.
    fn resolve_once(&mut self, request: Box<Request>) -> Option<Box<Request>> {
        let Some(once) = request.once else {
            return Some(request);
        };
        if self.model.upstream().is_some() && request.info.is_closed() {
            // An earlier one of its session may have been dropped, and this one must not happen
            // without it.
            self.outputs.end_request(&request);
            return None;
        }
        let is_follower = self.model.is_follower();
        match self.executor.once.resolve(request, once, is_follower) {
            Resolved::New(request) => return Some(request),
            Resolved::Answered(request, answer) => {
                let left = match self.model.upstream_mut() {
                    Some(upstream) => {
                        let forwarding = &mut upstream.forwarding;
                        forwarding.answer_in_order(request, answer, &mut self.outputs)
                    }
                    None => Some((request, answer)),
                };
                if let Some((request, answer)) = left {
                    self.answer_when_stored(answer, Origin::Client(request));
                }
            }
            Resolved::Waits(Some(session)) => self.outputs.complete(session, Completion::Request),
            Resolved::Waits(None) => {}
        }
        None
    }

    fn refuse_duplicate(&mut self, request: Box<Request>) {
        let error = WireError::syntax(request.params(), "transact: duplicate request ID");
        self.refuse(request, error);
    }

    /// Executes a transaction of the server itself. It must succeed: a failure is a bug in the code
    /// that composed it.
    pub(super) fn transact_as_server(&mut self, now: Now, params: &[u8]) {
        if self.model.is_follower() {
            return;
        }
        let mut context = Context {
            elapsed_ms: 0,
            read_only: false,
            identities: &[],
            can_wait: false,
            uuids: self.environment.uuids(),
            locks: &NoLocks,
        };
        if let Outcome::Done {
            result,
            mut delta,
            durable,
            ..
        } = self.database.execute(params, &mut context)
        {
            if let Some(delta) = &mut delta {
                self.execution(now).name_server(delta);
            }
            let origin = Origin::Server(params.to_vec());
            let answer = Answer::Result(result);
            let committed = self.execution(now).queue(delta, durable, answer, origin);
            self.retry_affected(now, committed.as_deref());
            self.release();
        }
    }

    /// Applies a transaction of a backup's source. It is stored and causes updates like any other,
    /// and has no reply.
    ///
    /// # Errors
    /// It does not fit the present rows; nothing changes then.
    pub(super) fn replicate(&mut self, now: Now, mut recorded: Recorded) -> Result<(), WireError> {
        let once = &mut self.executor.once;
        recorded.comment = once.replicated_comment().or(recorded.comment);
        // Its records are not numbered, and must not pass for those that a seed numbers.
        if once.must_end_lines() && recorded.comment.as_deref() != Some(END_LINE) {
            end_lines(recorded.comment.get_or_insert_default());
        }
        let delta = Arc::new(
            self.database
                .apply_recorded(recorded, self.environment.uuids())?,
        );
        if delta.is_empty() {
            return Ok(());
        }
        let nothing = Answer::Result(Vec::new());
        self.execution(now)
            .queue(Some(delta.clone()), false, nothing, Origin::Source);
        self.retry_affected(now, Some(&delta));
        self.release();
        Ok(())
    }

    /// Executes a request once. Queues its reply, or adds it to the blocked transactions. Returns
    /// its commit.
    pub(super) fn attempt(&mut self, now: Now, request: Box<Request>) -> Option<Arc<Delta>> {
        let request = self.resolve_once(request)?;
        let mut budget = self
            .environment
            .limit_selections(self.executor.work_budget());
        match self.execution(now).execute(&request, &mut budget) {
            Ok(outcome) => self.queue_outcome(now, request, outcome),
            Err(TooLong) => unreachable!("nothing limits it"),
        }
    }

    /// Queues the reply of an executed request, blocks it, or forwards it. Returns its commit.
    pub(super) fn queue_outcome(
        &mut self,
        now: Now,
        request: Box<Request>,
        outcome: Outcome,
    ) -> Option<Arc<Delta>> {
        let (upstream, database) = (self.model.upstream(), &mut self.database);
        let forwarding = upstream.map(|upstream| &upstream.forwarding);
        if forwarding.is_some_and(|it| it.withdraw_trial(&request, &outcome, database)) {
            self.forward(now, request);
            return None;
        }
        let once = &mut self.executor.once;
        if self.model.follows_leader()
            && let Some(answer) = answer_of_applied(&request, &outcome, once)
        {
            self.answer_when_stored(answer, Origin::Client(request));
            return None;
        }
        self.execution(now).queue_outcome(request, outcome)
    }

    /// Has the leader of the cluster, or a relay's source, execute a request.
    pub(super) fn forward(&mut self, now: Now, request: Box<Request>) {
        if let Some((upstream, mut parts)) = self.following(now) {
            upstream.forward(request, &mut parts);
        }
    }

    /// Retries the blocked transactions that a commit affects.
    pub(super) fn retry_affected(&mut self, now: Now, committed: Option<&Delta>) {
        if let Some(delta) = committed.filter(|_| !self.executor.triggers.is_empty()) {
            let seqnos = self.executor.triggers.affected(delta);
            self.retry(now, seqnos);
        }
    }

    /// Retries blocked transactions, oldest first. A commit of one of them retries younger ones in
    /// this round and older ones in the next.
    pub(super) fn retry(&mut self, now: Now, seqnos: BTreeSet<u64>) {
        let mut round = seqnos;
        let mut next = BTreeSet::new();
        loop {
            let Some(seqno) = round.pop_first() else {
                if next.is_empty() {
                    return;
                }
                std::mem::swap(&mut round, &mut next);
                continue;
            };
            let Some(trigger) = self.executor.triggers.remove(seqno) else {
                continue;
            };
            if let Some(delta) = self.attempt(now, trigger.request) {
                let mut older = self.executor.triggers.affected(&delta);
                round.append(&mut older.split_off(&seqno));
                next.append(&mut older);
            }
        }
    }

    /// Executes an input again. Returns it if it must wait in the outbox of its session, before the
    /// later requests of that session.
    pub(super) fn execute_again_unless_blocked(
        &mut self,
        now: Now,
        input: ToDatabase,
    ) -> Option<ToDatabase> {
        if let Some(session) = self.awaited_session(&input) {
            self.outputs.outboxes.block(session, Reason::Cluster);
        }
        let is_retry = matches!(&input, ToDatabase::Request(request) if request.blocked);
        if !is_retry && self.outputs.outboxes.must_queue(&input) {
            return Some(input);
        }
        match input {
            ToDatabase::Request(request) => self.execute_request(now, request),
            ToDatabase::Cancel(session, id) => self.cancel(now, session, id),
            ToDatabase::Control(control) => self.take_snapshot(control),
            _ => unreachable!("only these are pending"),
        }
        None
    }
}

/// A request has come. A relay may keep it for long before it begins: behind others of its session,
/// or without a source.
pub(super) fn note_arrival(model: &Model, now: Now, request: &mut Request) {
    if let Some(once) = &mut request.once
        && let Some(upstream) = model.upstream()
        && upstream.forwarding.is_relay()
    {
        let seen = upstream.contents.applied_eid().0;
        once.came = (seen != Uuid::ZERO).then_some((now.mono_ms, seen));
    }
}

/// The answer to a transaction that would block at a member that follows, although another copy of
/// it was executed: its `wait` may never be satisfied again.
fn answer_of_applied(request: &Request, outcome: &Outcome, once: &mut OnceState) -> Option<Answer> {
    let blocks = matches!(outcome, Outcome::Blocked { .. });
    once.answer_of_applied(request.once.filter(|_| blocks)?)
}

/// Where the past of a database can be read.
fn past_source(model: &Model, file: &DatabaseFile, subscriptions: &Subscriptions) -> PastSource {
    if let Some(member) = model.member() {
        return PastSource::Member(AppliedEntry {
            index: member.upstream.contents.applied(),
            id: subscriptions.last_stored(),
        });
    }
    match file.exists() {
        true => PastSource::Standalone,
        false => PastSource::None,
    }
}

/// Replies, and commits that are stored.
impl DatabaseService {
    /// Queues a reply to a request that changes no rows. It leaves at once if everything before it
    /// is stored.
    pub(super) fn answer_when_stored(&mut self, answer: Answer, origin: Origin) {
        if let (true, Origin::Client(request)) = (answer.changes_monitors(), &origin) {
            self.outputs.outboxes.begin_monitor_change(request.session);
        }
        self.pending.push(Pending::answer(answer, origin));
        self.release();
    }

    /// Replies with an outcome that is certain, after what is pending.
    pub(super) fn send_answer(&mut self, request: Box<Request>, reply: Answer, has_changed: bool) {
        if self.is_dismissed(&request.info) {
            self.outputs.drop_request(&request);
        // Otherwise it would overtake a reply of its session that waits for a record.
        } else if self.pending.is_empty() {
            self.replying().answer(request, reply, has_changed);
        } else {
            let answer = Answer::Certain(Box::new(reply), has_changed);
            let origin = Origin::Client(request);
            self.pending.push(Pending::answer(answer, origin));
            self.release();
        }
    }

    /// Replies with a result when the commits that it could have seen are stored.
    pub(super) fn reply(&mut self, request: Box<Request>, result: Vec<u8>) {
        self.answer_when_stored(Answer::Result(result), Origin::Client(request));
    }

    /// Replies with an error object when the commits that it could have seen are stored.
    pub(super) fn refuse(&mut self, request: Box<Request>, error: WireError) {
        let answer = Answer::Error(Box::new(error));
        self.answer_when_stored(answer, Origin::Client(request));
    }

    /// Releases replies that wait for no record.
    pub(super) fn release(&mut self) {
        self.release_through(LogPosition(0));
    }

    /// Releases replies in order up to the first whose record comes after `stored`.
    pub(super) fn release_through(&mut self, stored: LogPosition) {
        while let Some(entry) = self.pending.pop_stored(stored) {
            let Pending {
                commit,
                date_ms,
                refused,
                answer,
                origin,
            } = entry;
            let has_changed = commit.is_some();
            // From here on an undo cannot take it back, so a copy of it is never executed.
            self.executor.once.released(origin.once_id());
            // Before the reply: the updates that precede it are to have its own changes.
            if let Some(commit) = commit {
                self.release_commit(&commit, date_ms, &origin);
            }
            // As the entry of a commit, it is in the trail before its client knows the outcome.
            if let Some(refused) = refused {
                let schema = self.database.schema();
                let entry = AuditEntries::of_refused(schema, date_ms, &origin, *refused);
                self.outputs.audit.push(entry);
            }
            match origin {
                Origin::Client(request) => self.replying().answer(request, answer, has_changed),
                Origin::Cancel(session, _) => self.outputs.complete(session, Completion::Request),
                Origin::Control(_) => {
                    if let Answer::Event(event) = answer {
                        self.outputs.events.push(*event);
                    }
                }
                Origin::Forwarded(forwarded) => {
                    if let Some(member) = self.model.member_mut() {
                        member.release_forwarded(forwarded, answer);
                    }
                }
                Origin::Server(_) | Origin::Source | Origin::Member(_) => {}
            }
        }
    }

    /// A commit is stored: sessions may see it.
    pub(super) fn release_commit(&mut self, commit: &Commit, date_ms: i64, origin: &Origin) {
        let delta = &commit.delta;
        // A conversion begins with the stored state, and carries over the commits stored since.
        self.conversions
            .observe_commit(delta, date_ms, commit.record_bytes);
        let atoms = self.database.atom_count();
        self.subscriptions
            .release_commit(delta, atoms, &mut self.outputs);
        let (database, outputs) = (&self.database, &mut self.outputs);
        self.observers
            .observe_commit(commit, date_ms, origin, database, outputs);
    }
}

/// Conversions. The steps between are in `conversion.rs`.
impl DatabaseService {
    /// Begins a conversion, while nothing is pending and there is no other.
    pub(super) fn convert(&mut self, now: Now, request: Box<Request>) {
        if self
            .executor
            .triggers
            .find(request.session, &request.id)
            .is_some()
        {
            let error = WireError::syntax(request.params(), "convert: duplicate request ID");
            self.replying().fail(&request, &error);
            return;
        }
        match self.new_schema(&request) {
            Err(error) => {
                let (audit, schema) = (&self.observers.audit, self.database.schema());
                let entry = audit.of_refused_conversion(schema, now, &request, &error);
                self.outputs.audit.extend(entry);
                self.replying().fail(&request, &error);
            }
            // The leader converts.
            Ok(_) if self.model.is_follower() => self.forward(now, request),
            Ok(schema) => {
                self.conversions.begin(request, schema);
                self.advance_conversion(now);
            }
        }
    }

    /// Checks a request; returns the schema to convert to.
    pub(super) fn new_schema(&self, request: &Request) -> Result<Arc<Schema>, WireError> {
        let name = &self.database.schema().name;
        // The source of a relay judges columns itself.
        let is_clustered = self.model.member().is_some();
        let is_writable = self.model.accepts_client_writes();
        schema_of(request, name, is_writable, is_clustered)
    }

    /// Takes all steps of the conversion that can be taken. Called when a step may have become
    /// possible.
    pub(super) fn advance_conversion(&mut self, now: Now) {
        loop {
            let is_all_stored = self.pending.is_empty();
            let (conversions, mut parts) = self.converting();
            match conversions.step(now, is_all_stored, &mut parts) {
                Step::Taken => {}
                Step::Waits => return,
                Step::Complete => return self.complete_conversion(now),
            }
        }
    }

    /// The conversion lacks nothing: swaps the contents, or has the cluster decide when.
    fn complete_conversion(&mut self, now: Now) {
        let Some(member) = self.model.member_mut() else {
            self.finish_conversion(now, Ok(()));
            return;
        };
        let environment = &mut self.environment;
        let current = self.conversions.current.as_mut();
        let proposed = current.map(|it| member.propose_conversion(now, it, environment));
        // Members would refuse its entry.
        if let Some(Err(error)) = proposed
            && let Some((_, request)) = self.take_conversion()
        {
            self.fail_conversion(&request, &error);
        }
    }

    /// Takes the result of a job of the conversion.
    pub(super) fn take_job_result(&mut self, now: Now, number: JobNumber, done: JobResult) {
        let (conversions, mut parts) = self.converting();
        match conversions.take_result(number, done, &mut parts) {
            Ok(true) => self.advance_conversion(now),
            Ok(false) => {}
            Err(error) => self.give_up_conversion(Some(&error)),
        }
    }

    /// The new file holds everything that it was given.
    pub(super) fn continue_conversion(&mut self, now: Now) {
        if let Some(conversion) = &mut self.conversions.current {
            conversion.mark_written();
        }
        self.advance_conversion(now);
    }

    /// Ends the conversion with nothing changed. Replies with the error, if the session is still
    /// there.
    pub(super) fn give_up_conversion(&mut self, error: Option<&WireError>) {
        if let (Some(request), Some(error)) = (self.drop_conversion(), error) {
            self.fail_conversion(&request, error);
        }
        self.compact_wanted();
    }

    /// Drops the conversion, which must not be swapping, and returns its request.
    pub(super) fn drop_conversion(&mut self) -> Option<Box<Request>> {
        let (conversions, mut parts) = self.converting();
        conversions.drop_current(&mut parts)
    }

    /// Takes the conversion, which is given up here: the entry that it was proposed as, and its
    /// request.
    pub(super) fn take_conversion(&mut self) -> Option<(Option<Eid>, Box<Request>)> {
        let (conversions, mut parts) = self.converting();
        conversions.take_current(&mut parts)
    }

    /// A conversion has failed with nothing changed.
    pub(super) fn fail_conversion(&mut self, request: &Request, error: &WireError) {
        let member = self.model.member_mut();
        if !member.is_some_and(|member| member.fail_conversion(error)) {
            self.replying().fail(request, error);
        }
    }

    /// The client has canceled its conversion.
    fn cancel_conversion(&mut self) {
        if let Some(request) = self.drop_conversion() {
            self.replying()
                .cancel_request(&request, Completion::Request);
        }
        self.compact_wanted();
    }

    /// The new file is in place, or has failed: swaps the database, and notifies sessions in the
    /// order of docs/spec/protocol.md 4.15.
    pub(super) fn finish_conversion(&mut self, now: Now, result: Result<(), StoreError>) {
        let Some(mut conversion) = self.conversions.current.take() else {
            return;
        };
        let database = match (result, conversion.take_database()) {
            (Ok(()), Some(database)) => database,
            (result, database) => {
                assert!(result.is_err(), "the database of a file in place is here");
                if let Some(database) = database {
                    self.outputs.free(Garbage::database(database));
                }
                if let Err(error) = result {
                    self.fail_conversion(&conversion.request, &error.to_wire());
                }
                conversion.end(&mut self.converting().1);
                return;
            }
        };
        debug_assert!(
            is_conversion_of(&self.database, &database),
            "a conversion is that of the moment of its swap"
        );
        // The new file has no history either.
        let answers = self.file.answer_compactions(&Ok(()));
        self.outputs.events.extend(answers);
        let last_txn = match conversion.entry {
            Some(eid) => eid.0,
            None => self.environment.txn_id(self.subscriptions.keeps_history()),
        };
        self.swap_contents(database, last_txn);
        let (_, request) = conversion.end(&mut self.converting().1);
        let audit = &self.observers.audit;
        let entry = audit.of_conversion(self.database.schema(), now, &request);
        self.outputs.audit.extend(entry);
        let member = self.model.member_mut();
        if !member.is_some_and(Clustered::ends_forwarded_conversion) {
            self.reply(request, b"{}".to_vec());
        }
        self.end_swap();
    }

    /// The contents have another schema, and the request for it is answered: cancels what waits for
    /// rows of the old one, and has the sessions closed that do not know the new one.
    pub(super) fn end_swap(&mut self) {
        let triggers = self.executor.triggers.take_all();
        self.replying().cancel_triggers(triggers);
        let schema = self.database.schema().clone();
        self.outputs
            .events
            .push(Event::Converted(self.id, schema, self.conversions.epoch));
    }

    /// Serves other contents from now on: cancels the monitors and begins the history with
    /// `last_txn`.
    pub(super) fn swap_contents(&mut self, database: Database, last_txn: Uuid) {
        let schema = database.schema().clone();
        self.conversions.epoch = self.environment.begin_epoch();
        self.replying().abandon_initial_contents();
        self.executor.once.committed(last_txn);
        self.executor.once.end_numbering();
        let (outputs, environment) = (&mut self.outputs, &self.environment);
        self.subscriptions
            .convert(schema, last_txn, outputs, environment);
        let old = std::mem::replace(&mut self.database, database);
        self.outputs.free(Garbage::database(old));
        let columns = &mut self.observers.watched_columns;
        self.outputs.events.extend(columns.rebind(&self.database));
    }

    /// Begins the compaction that was asked for during another rewrite, when its turn comes.
    pub(super) fn compact_wanted(&mut self) {
        if let Some(token) = self.file.take_wanted() {
            let compact = ToDatabase::Control(Control::Compact(token));
            self.barrier_queue.push(compact);
        }
    }
}
