//! One served database: its parts, and the route of each input through them.
//!
//! Inputs are [`ToDatabase`] messages with the time. Outputs are collected in [`Outputs`]; the
//! [`pump`](crate::pump) takes them from there. Everything executes on speculative state: each
//! reply, of every kind, is made from the state after the commits before it, and waits in one queue
//! until those commits are stored (`replies`, `release`, `executor/undo`). A single session may be
//! blocked (`replies/outbox`). Only an input that replaces the database or its file waits at a
//! barrier until nothing is pending, together with every input after it.
//!
//! Each part owns its state and is given what it needs: docs/internals/request.md, "The parts of a
//! database", has them in a drawing.

mod backup;
mod batch;
mod clustered;
mod control;
mod conversion;
mod file;
mod following;
mod model;
mod release;
mod requests;
mod subscriptions;
mod transactions;

use std::sync::{Arc, Mutex};

use corvid_data::Schema;
use corvid_data::uuid::UuidSource;
use corvid_engine::Database;
use corvid_log::storage::{LogPosition, StorageReply, StoreError};
use corvid_monitor::{Monitors, SessionId};

pub use crate::replies::Outputs;
pub(crate) use batch::check_parts;
pub use model::Model;

use crate::barrier::{
    Activity, Barrier, BarrierQueue, UnderWay, is_execution, outlives, replaces_something,
};
use crate::environment::Environment;
use crate::executor::Executor;
use crate::job::JobResult;
use crate::locks::Locks;
use crate::message::{Completion, Control, DatabaseId, Event, Now, ToDatabase};
use crate::observers::Observers;
use crate::once::RecordedCommits;
use crate::replies::{PendingQueue, Reason, inputs_as_garbage};
use crate::schema_epoch::SchemaEpochs;
use crate::storage::{FileState, Growth};
use conversion::Conversions;
use file::DatabaseFile;
use subscriptions::Subscriptions;

/// The settings of a database.
pub struct Options {
    /// Its number.
    pub id: DatabaseId,
    /// Its service model.
    pub model: Model,
    /// Its file as it was opened; `None`: the database is kept in memory only.
    pub file: Option<FileState>,
    /// Modified rows are recorded as column differences (`--disable-file-column-diff` turns it
    /// off).
    pub column_diff: bool,
    /// Keep a transaction history for `monitor_cond_since`.
    pub history: bool,
    /// The last commits that the records of the file name.
    pub recorded: RecordedCommits,
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
            recorded,
        } = options;
        let mut environment = Environment::new(locks, epochs, uuids);
        let shares_history = model.shares_history();
        let keeps_history = keeps_history || shares_history;
        let last_txn = match model.upstream() {
            Some(upstream) => upstream.contents.applied_eid().0,
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
            executor: Executor::new(last_txn, &recorded),
            pending: PendingQueue::default(),
            file: DatabaseFile::new(growth, column_diff),
            barrier_queue: BarrierQueue::default(),
            conversions: Conversions::default(),
            observers: Observers::default(),
            is_removed: false,
            outputs: Outputs::new(id),
        }
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

    /// Executes one input, or queues it.
    pub fn handle(&mut self, now: Now, input: ToDatabase) {
        let was_removed = self.is_removed;
        self.route(now, input);
        self.drain_barrier(now, was_removed);
    }

    /// Passes an input on to the part that it is for, or queues it.
    fn route(&mut self, now: Now, input: ToDatabase) {
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
            ToDatabase::Installed(_) | ToDatabase::Relay(_) => self.handle_upstream(now, input),
            ToDatabase::Member(_) if !is_execution(&input) => self.handle_upstream(now, input),
            ToDatabase::Drained(session) => self.handle_drained(session),
            ToDatabase::Closed(session) => self.close(now, session),
            ToDatabase::LockClaims => self.claim_locks(now),
            other if self.must_queue(&other) => self.barrier_queue.push(other),
            other => self.execute_input(now, other),
        }
    }

    /// Executes inputs at a barrier as far as the state allows. Called when a barrier may have
    /// fallen.
    fn resume(&mut self, now: Now) {
        self.drain_barrier(now, self.is_removed);
    }

    fn drain_barrier(&mut self, now: Now, was_removed: bool) {
        loop {
            // Requests in flight came before those of their sessions that wait at the barrier.
            self.advance_sessions(now);
            let Some(input) = self.barrier_queue.pop() else {
                break;
            };
            if self.barrier(&input).is_some() {
                self.barrier_queue.push_first([input]);
                break;
            }
            self.execute_input(now, input);
        }
        if self.is_removed && !was_removed {
            // The inputs at the barrier are refused by now. The removal is reported last, so every
            // earlier input is answered before.
            self.outputs.events.push(Event::Removed(self.id));
        }
    }

    /// Records are stored, or have failed.
    fn handle_stored(&mut self, now: Now, position: LogPosition, result: Result<(), StoreError>) {
        self.observers.slow.set_now(now);
        match result {
            Ok(()) => {
                self.file.clear_error();
                self.release_through(position);
            }
            Err(error) => {
                self.undo_unstored(now, position, &error);
                self.advance_backup(now, false);
            }
        }
        self.advance_conversion(now);
    }

    /// Whether an input must queue, after others or at a barrier.
    fn must_queue(&self, input: &ToDatabase) -> bool {
        // The member owns the file, so its snapshot replaces nothing here. It passes every input
        // that waits: those may wait for the file that the snapshot goes into.
        if matches!(input, ToDatabase::Control(Control::Compact(_)))
            && self.model.upstream().is_some()
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
        if let Some(session) = self.awaited_session(&input) {
            if let ToDatabase::Cancel(session, id) = &input
                && self.cancel_waiting(now, *session, id)
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
            | ToDatabase::LockClaims => unreachable!("these wait at no barrier"),
        }
    }

    fn close(&mut self, now: Now, session: SessionId) {
        self.subscriptions.remove_session(session);
        self.executor.triggers.remove_session(session);
        if let Some((upstream, mut parts)) = self.following(now) {
            upstream.forwarding.withdraw_session(session, &mut parts);
        }
        // A transaction that arrived before the end is executed, unless the session is blocked
        // until it has read its replies. A conversion is given up while that is possible.
        let is_wanted = |input: &ToDatabase| outlives(input, session);
        self.barrier_queue.retain(is_wanted);
        if let Some(mut outbox) = self.outputs.outboxes.remove(session) {
            let requests = std::mem::take(&mut outbox.requests);
            if outbox.is_blocked_by(Reason::ReplyBackpressure)
                || outbox.is_blocked_by(Reason::Cluster)
            {
                self.outputs.free(inputs_as_garbage(requests));
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
                self.give_up_conversion(None);
            }
        }
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
