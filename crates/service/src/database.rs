//! One served database: its parts, and the route of each input through them.
//!
//! Inputs are [`ToDatabase`] messages with the time. Outputs are collected in [`Outputs`]; the
//! [`pump`](crate::pump) takes them from there. Everything executes on speculative state: each
//! reply, of every kind, is made from the state after the commits before it, and waits in one queue
//! until those commits are stored (`replies`, `release`, `undo`). A single session may be blocked
//! (`replies/outbox`). Only an input that replaces the database or its file waits at a barrier
//! until nothing is pending, together with every input after it.
//!
//! Each part owns its state and is given what it needs: ARCHITECTURE.md, "The parts of a database",
//! has them in a drawing.

mod backup;
mod barrier;
mod clustered;
mod control;
mod conversion;
mod conversion_request;
mod environment;
mod executor;
mod file;
mod inline_execution;
mod model;
mod observers;
mod release;
mod replies;
mod subscriptions;
mod transactions;
mod undo;

use std::sync::{Arc, Mutex};

use corvid_data::Schema;
use corvid_data::uuid::UuidSource;
use corvid_engine::Database;
use corvid_log::storage::{StorageReply, StorageRequest};
use corvid_monitor::{Monitors, SessionId, Version};

pub use model::Model;
pub use replies::Outputs;

use crate::client_memory::{self, ClientMemory};
use crate::job::JobResult;
use crate::job::garbage::Garbage;
use crate::locks::Locks;
use crate::message::{
    Completion, Control, DatabaseId, DatabaseMethod, Request, SessionInfo, ToDatabase,
};
use crate::recording::{Setting, Tape};
use crate::schema_epoch::SchemaEpochs;
use crate::storage::{FileState, Growth};
use barrier::{
    Activity, Barrier, BarrierQueue, Question, UnderWay, is_execution, outlives, replaces_something,
};
use conversion::Conversions;
use environment::Environment;
use executor::Executor;
use file::DatabaseFile;
use observers::Observers;
use replies::{Answer, Origin, PendingQueue, Reason};
use subscriptions::{Begun, Subscriptions};

/// The time of an input.
#[derive(Clone, Copy, Debug, Default)]
pub struct Now {
    /// Milliseconds on a clock that never jumps.
    pub mono_ms: u64,
    /// Milliseconds since the Unix epoch, for record dates.
    pub wall_ms: i64,
}

/// The settings of a database.
pub struct Options {
    /// Its number.
    pub id: DatabaseId,
    /// Its service model.
    pub model: Model,
    /// Its file as it was opened; `None`: the database is kept in memory only.
    pub file: Option<FileState>,
    /// Modified rows are recorded as column differences (`--disable-file-column-diff` turns it off).
    pub column_diff: bool,
    /// Keep a transaction history for `monitor_cond_since`.
    pub history: bool,
}

/// The state machine of one served database.
pub struct DatabaseService {
    id: DatabaseId,
    model: Model,
    database: Database,
    environment: Environment,
    subscriptions: Subscriptions,
    executor: Executor,
    pending: PendingQueue,
    file: DatabaseFile,
    barrier_queue: BarrierQueue,
    conversions: Conversions,
    observers: Observers,
    /// The database is not served any more; later requests are answered with that error.
    is_removed: bool,
    outputs: Outputs,
}

impl DatabaseService {
    /// Serves `database` from `now` on.
    #[must_use]
    pub fn new(
        now: Now,
        options: Options,
        database: Database,
        locks: Arc<Mutex<Locks>>,
        epochs: SchemaEpochs,
        uuids: Box<dyn UuidSource + Send>,
    ) -> DatabaseService {
        let Options {
            id,
            model,
            file,
            column_diff,
            history: keeps_history,
        } = options;
        let mut environment = Environment::new(locks, epochs, uuids);
        let shares_history = model.shares_history();
        let keeps_history = keeps_history || shares_history;
        let last_txn = match model.cluster() {
            Some(cluster) => cluster.applied_eid().0,
            None => environment.txn_id(keeps_history),
        };
        let seed = database.hash_seed();
        let mut monitors = Monitors::new(database.schema().clone(), last_txn, seed);
        if shares_history {
            monitors.share_ids();
        }
        let growth = file.map(|file| Growth::new(file, now.mono_ms, environment.chance()));
        DatabaseService {
            id,
            model,
            database,
            environment,
            subscriptions: Subscriptions::new(monitors, keeps_history),
            executor: Executor::new(last_txn),
            pending: PendingQueue::default(),
            file: DatabaseFile::new(growth, column_diff),
            barrier_queue: BarrierQueue::default(),
            conversions: Conversions::default(),
            observers: Observers::default(),
            is_removed: false,
            outputs: Outputs::new(id),
        }
    }

    /// Charges replies to this memory, which other databases share.
    pub fn set_client_memory(&mut self, memory: Arc<ClientMemory>) {
        self.outputs.set_client_memory(memory.clone());
        self.environment.set_memory(memory);
    }

    /// Has values that are read beside inputs recorded, or replayed.
    pub(crate) fn set_tape(&mut self, tape: Tape) {
        self.environment.set_tape(tape);
    }

    /// The present schema.
    #[must_use]
    pub fn schema(&self) -> &corvid_data::Arc<Schema> {
        self.database.schema()
    }

    /// The service model.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The content, for configuration read from its tables.
    #[must_use]
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// The outputs of the inputs so far; the [`pump`](crate::pump) takes them.
    pub fn outputs(&mut self) -> &mut Outputs {
        &mut self.outputs
    }

    /// Sets how many rows the database reads itself for the initial contents of a monitor; contents
    /// of more are left to a job.
    pub fn set_initial_rows_max(&mut self, rows: usize) {
        let setting = Setting::InitialRowsMax;
        self.environment.record_setting(setting, rows as u64);
        self.subscriptions.set_initial_rows_max(rows);
    }

    /// Sets how many steps the database spends on the selections of one transaction; the rest is deferred to a job.
    pub fn set_select_steps_max(&mut self, steps: u64) {
        let setting = Setting::SelectStepsMax;
        self.environment.record_setting(setting, steps);
        self.executor.set_select_steps_max(steps);
    }

    /// Sets how many changed rows an update may have before its body is deferred to a job. A step of
    /// a long update gets the text of so many rows of 1 KiB, and 4 KiB at least.
    pub fn set_update_rows_max(&mut self, rows: usize) {
        let setting = Setting::UpdateRowsMax;
        self.environment.record_setting(setting, rows as u64);
        self.subscriptions.set_update_rows_max(rows);
    }

    /// Whether composing updates may take long, so that finished replies should leave first.
    #[must_use]
    pub fn is_flush_long(&self) -> bool {
        self.subscriptions.is_flush_long()
    }

    /// Whether a session that is ready has pending updates.
    #[must_use]
    pub fn has_pending_updates(&self) -> bool {
        self.subscriptions.has_pending_updates()
    }

    /// Composes updates for every session that is ready, unless it is too early. Called once per batch of inputs.
    pub fn flush_updates(&mut self, now: Now) {
        let (outputs, environment) = (&mut self.outputs, &self.environment);
        self.subscriptions.flush(now, outputs, environment);
    }

    /// The same if there are at most `sessions_max` sessions and few changes. Otherwise does
    /// nothing and returns false.
    pub fn flush_if_small(&mut self, now: Now, sessions_max: usize) -> bool {
        let (outputs, environment) = (&mut self.outputs, &self.environment);
        let subscriptions = &mut self.subscriptions;
        subscriptions.flush_if_small(now, sessions_max, outputs, environment)
    }

    /// Sets from how many atoms on a commit is long.
    pub fn set_long_atoms(&mut self, atoms: u64) {
        self.environment.record_setting(Setting::LongAtoms, atoms);
        self.file.set_long_atoms(atoms);
    }

    /// Takes the requests to the file. Call it after the jobs have been taken: composing long records may take long.
    pub fn take_stores(&mut self) -> Vec<StorageRequest> {
        let counts = &mut self.observers.counts;
        self.file.take_requests(&mut self.pending, counts)
    }

    /// Whether there are requests to the file.
    #[must_use]
    pub fn has_stores(&self) -> bool {
        self.file.has_requests()
    }

    /// Executes one input, or queues it.
    pub fn handle(&mut self, now: Now, input: ToDatabase) {
        match input {
            ToDatabase::Storage(StorageReply::Appended(position, result)) => {
                self.handle_stored(now, position, result);
            }
            ToDatabase::Storage(StorageReply::Rewrite(number, outcome)) => {
                self.advance_rewrite(now, number, outcome);
            }
            ToDatabase::JobDone(_, JobResult::InitialContents(written)) => {
                self.answer_written_contents(now, &written);
            }
            ToDatabase::JobDone(_, JobResult::DeferredBody(session)) => {
                self.deliver_written_body(now, session);
            }
            ToDatabase::JobDone(number, JobResult::Compared(found)) => {
                self.apply_compared(now, number, found);
            }
            ToDatabase::JobDone(number, done) => self.handle_job_done(now, number, done),
            ToDatabase::Installed(installed) => self.install(now, *installed),
            ToDatabase::Member(_) | ToDatabase::Relay(_) if !is_execution(&input) => {
                self.handle_upstream(now, input);
            }
            ToDatabase::Drained(session) => self.handle_drained(session),
            ToDatabase::Closed(session) => self.close(now, session),
            ToDatabase::LockClaims => self.claim_locks(),
            other if self.must_queue(&other) => self.barrier_queue.push(other),
            other => self.execute_input(now, other),
        }
        self.resume(now);
    }

    /// Executes inputs at a barrier as far as the state allows. Called when a barrier may have fallen.
    fn resume(&mut self, now: Now) {
        self.advance_due(now);
        while let Some(input) = self.barrier_queue.pop() {
            if self.barrier(&input).is_some() {
                self.barrier_queue.push_first([input]);
                break;
            }
            self.execute_input(now, input);
        }
    }

    /// Whether an input must queue: behind others, or at a barrier.
    fn must_queue(&self, input: &ToDatabase) -> bool {
        // The member owns the file: a snapshot replaces nothing here. It passes all that waits, which may be for the file that it goes into.
        if matches!(input, ToDatabase::Control(Control::Compact(_)))
            && self.model.cluster().is_some()
        {
            return false;
        }
        !self.barrier_queue.is_empty() || self.barrier(input).is_some()
    }

    /// The barrier that an input waits at, if there is one.
    fn barrier(&self, input: &ToDatabase) -> Option<Barrier> {
        if self.conversions.is_waiting(&self.file) {
            return Some(Barrier::Conversion);
        }
        match input {
            ToDatabase::Request(_) | ToDatabase::Member(_) if self.pending.is_full() => {
                Some(Barrier::Room)
            }
            ToDatabase::Control(Control::Remove) if self.file.is_swapping() => Some(Barrier::Swap),
            input if replaces_something(input) && !self.pending.is_empty() => Some(Barrier::Stored),
            _ => None,
        }
    }

    /// Executes an input that waits at no barrier, unless its session is blocked.
    fn execute_input(&mut self, now: Now, input: ToDatabase) {
        if self.is_removed {
            self.refuse_removed(input);
            return;
        }
        let is_blocked = self.outputs.outboxes.must_queue(&input);
        if let Some(conversion) = &mut self.conversions.current
            && conversion.must_wait_for_end(&input, is_blocked)
        {
            conversion.queue(input);
            return;
        }
        if is_blocked {
            self.outputs.outboxes.push_request(input);
            return;
        }
        if let Some(session) = self.awaits_cluster(&input) {
            if let ToDatabase::Cancel(session, id) = &input
                && self.cancel_waiting(*session, id)
            {
                self.outputs.complete(*session, Completion::Request);
                return;
            }
            self.outputs.outboxes.block(session, Reason::Cluster);
            self.outputs.outboxes.push_request(input);
            return;
        }
        if let ToDatabase::Request(request) = &input
            && request.method.is_about_monitors()
            && self.outputs.outboxes.changes_monitors(request.session)
        {
            let outboxes = &mut self.outputs.outboxes;
            outboxes.block(request.session, Reason::MonitorChange);
            outboxes.push_request(input);
            return;
        }
        match input {
            ToDatabase::Request(request) => self.execute_request(now, request),
            ToDatabase::Cancel(session, id) => self.cancel(now, session, id),
            ToDatabase::Fence(session, answer) => {
                self.send_updates(session);
                self.outputs.complete(session, answer);
            }
            ToDatabase::Source(id, event) => self.handle_source_event(now, id, event),
            ToDatabase::Control(control) => self.handle_control(now, control),
            ToDatabase::Member(_) => self.handle_upstream(now, input),
            ToDatabase::Storage(_)
            | ToDatabase::JobDone(..)
            | ToDatabase::Relay(_)
            | ToDatabase::Installed(_)
            | ToDatabase::Drained(_)
            | ToDatabase::Closed(_)
            | ToDatabase::LockClaims => self.handle(now, input),
        }
    }

    fn execute_request(&mut self, now: Now, request: Box<Request>) {
        if self.is_dismissed(&request.info) {
            self.drop_request(&request);
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
        let (outputs, environment) = (&mut self.outputs, &self.environment);
        let database = &mut self.database;
        let subscriptions = &mut self.subscriptions;
        match subscriptions.begin(request, version, database, outputs, environment) {
            Begun::Joined(request, answer) => {
                self.answer_when_stored(answer, Origin::Client(request));
            }
            Begun::Refused(request, error) => self.refuse(request, error),
            Begun::Waits => {}
        }
    }

    fn change_condition(&mut self, request: Box<Request>) {
        let (database, environment) = (&mut self.database, &self.environment);
        let subscriptions = &mut self.subscriptions;
        let answer = match subscriptions.change_condition(&request, database, environment) {
            Ok(change) => Answer::ConditionChanged(Box::new(change)),
            Err(error) => Answer::Error(Box::new(error)),
        };
        self.answer_when_stored(answer, Origin::Client(request));
    }

    /// Whether a session is about to be closed because this database has been removed, or converted since the session began. Nothing of it is
    /// executed any more.
    fn is_dismissed(&self, info: &SessionInfo) -> bool {
        (self.is_removed || info.epoch < self.conversions.epoch) && !self.environment.is_aware(info)
    }

    /// Drops a request of a dismissed session without a reply.
    fn drop_request(&mut self, request: &Request) {
        request.info.miss_cancellation();
        self.outputs
            .complete(request.session, Completion::of(request));
    }

    fn close(&mut self, now: Now, session: SessionId) {
        self.subscriptions.remove_session(session);
        self.executor.triggers.remove_session(session);
        self.withdraw_session(session);
        // A transaction that arrived before the end is executed, unless the session is blocked until it has read its replies. A conversion
        // is given up while that is possible.
        let is_wanted = |input: &ToDatabase| outlives(input, session);
        self.barrier_queue.retain(is_wanted);
        if let Some(mut outbox) = self.outputs.outboxes.remove(session) {
            let requests = std::mem::take(&mut outbox.requests);
            if outbox.is_blocked_by(Reason::ReplyBackpressure)
                || outbox.is_blocked_by(Reason::Cluster)
            {
                self.outputs.free(Garbage::inputs(requests));
            } else {
                self.barrier_queue
                    .push_first(requests.into_iter().filter(is_wanted));
            }
            if !outbox.deliveries.is_empty() {
                self.outputs.free(outbox.into_garbage());
            }
        }
        if let Some(conversion) = &mut self.conversions.current {
            conversion.queued_mut().retain(is_wanted);
            if conversion.is_cancelable() && conversion.request.session == session {
                self.give_up_conversion(now, None);
            }
        }
        self.resume(now);
    }

    /// Whether no session has left anything behind: nothing is blocked, pending or queued, and nothing is monitored.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.activity().allows(Question::IsIdle)
    }

    /// Everything that is under way.
    fn activity(&self) -> Activity {
        // Taken apart, so that a new field does not compile before it reports, or has nothing to
        // report.
        let DatabaseService {
            id: _,
            model,
            database: _,
            environment: _,
            subscriptions,
            executor,
            pending,
            file,
            barrier_queue,
            conversions,
            observers,
            is_removed,
            outputs,
        } = self;
        let mut activity = Activity::default();
        model.report_activity(&mut activity);
        subscriptions.report_activity(&mut activity);
        executor.report_activity(&mut activity);
        pending.report_activity(&mut activity);
        file.report_activity(&mut activity);
        conversions.report_activity(&mut activity);
        observers.report_activity(&mut activity);
        outputs.report_activity(&mut activity);
        activity.report(UnderWay::QueuedInputs, !barrier_queue.is_empty());
        activity.report(UnderWay::Removed, *is_removed);
        activity
    }
}

/// Checks what the parts rely on of each other, between two inputs. Costs in proportion to all that
/// waits: for simulations.
///
/// # Panics
/// An invariant does not hold.
pub(crate) fn check_parts(service: &DatabaseService) {
    service.pending.check();
    service.outputs.outboxes.check();
    service.executor.check();
    service.subscriptions.check();
    service.file.check();
    service.conversions.check();
}
