//! One served database: its parts, its settings, and what routes give a part of the others.
//!
//! Inputs are [`ToDatabase`](crate::message::ToDatabase) messages with the time (`inputs`). Outputs
//! are collected in [`Outputs`]; the [`pump`](crate::pump) takes them from there. Everything
//! executes on speculative state: each reply, of every kind, is made from the state after the
//! commits before it, and waits in one queue until those commits are stored (`replies`, `requests`,
//! `executor/undo`). A follower and a relay release at once what they apply (`following`). A single
//! session may be blocked (`replies/outbox`). Only an input that replaces the database or its file
//! waits at a barrier until nothing is pending, together with every input after it (`barrier`).
//!
//! Each part owns its state and is given what it needs: docs/internals/request.md, "The parts of a
//! database", has them in a drawing. The functions here that return several parts at once lend
//! them; they call no route.

mod backup;
mod clustered;
mod conversion;
mod execution;
mod file;
mod following;
mod inputs;
mod model;
mod replying;
mod requests;
mod subscriptions;

use std::sync::{Arc, Mutex};

use corvid_data::uuid::UuidSource;
use corvid_engine::Database;
use corvid_monitor::{Monitors, SessionId};

pub use crate::replies::Outputs;
pub use model::Model;

use crate::barrier::{Activity, BarrierQueue, UnderWay};
use crate::client_memory::ClientMemory;
use crate::counters::Counters;
use crate::environment::Environment;
use crate::executor::Executor;
use crate::locks::Locks;
use crate::message::{DatabaseId, Now, Report, SessionInfo, ToDatabase, Usage};
use crate::observers::Observers;
use crate::once::RecordedCommits;
use crate::replies::PendingQueue;
use crate::schema_epoch::SchemaEpochs;
use crate::storage::{FileState, Growth};
use crate::tape::{Setting, Tape};
use crate::upstream::{Parts, Upstream};
use backup::Backup;
use conversion::Conversions;
use execution::Execution;
use file::DatabaseFile;
use replying::Replying;
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
        // Clients of an earlier run know the last commit by the id that the file tells.
        let known = recorded.last().filter(|_| keeps_history && !shares_history);
        let seed = database.hash_seed();
        let first = known.unwrap_or(last_txn);
        let mut monitors = Monitors::new(database.schema().clone(), first, seed);
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

    /// Checks that a server that reads this in the database's file, of which nothing is missing,
    /// would know the last commits by their ids. For simulations.
    ///
    /// # Errors
    /// How they differ.
    pub fn check_recorded(&self, file: &RecordedCommits) -> Result<(), String> {
        self.executor.once.check_recorded(file)
    }

    /// The outputs of the inputs so far; the [`pump`](crate::pump) takes them.
    pub fn outputs(&mut self) -> &mut Outputs {
        &mut self.outputs
    }

    /// Charges replies to this memory, which other databases share.
    pub fn set_client_memory(&mut self, memory: Arc<ClientMemory>) {
        self.outputs.set_client_memory(memory.clone());
        self.environment.set_memory(memory);
    }

    /// Has values that no input carries recorded, or replayed.
    pub(crate) fn set_tape(&mut self, tape: Tape) {
        self.environment.set_tape(tape);
    }

    /// Changes a setting. The change is recorded, or was recorded and is replayed.
    pub fn set(&mut self, setting: Setting, value: u64) {
        self.environment.record_setting(setting, value);
        let count = usize::try_from(value).unwrap_or(usize::MAX);
        match setting {
            Setting::InitialRowsMax => self.subscriptions.set_initial_rows_max(count),
            Setting::UpdateRowsMax => self.subscriptions.set_update_rows_max(count),
            Setting::SelectStepsMax => self.executor.set_select_steps_max(value),
            Setting::LongAtoms => self.file.set_long_atoms(value),
            Setting::ConversionBytesMax => self.conversions.bytes_max = count,
            Setting::RecordClients => self.file.name_clients(value != 0),
        }
    }

    /// Turns the audit trail on or off; it is off at first.
    pub fn set_audited(&mut self, is_audited: bool) {
        self.observers.audit.set(is_audited);
    }

    /// Transactions that take this long, ms, are reported ([`Event::Slow`]); none are at first.
    pub fn set_slow_ms(&mut self, threshold_ms: u64) {
        self.observers.slow.set_threshold_ms(threshold_ms);
    }

    /// The report of this moment. Costs as much as there are tables.
    #[must_use]
    pub fn report(&self) -> Report {
        let upstream = self.model.upstream();
        let in_flight = upstream.map_or(0, |it| it.forwarding.requests_in_flight());
        Report {
            usage: self.usage(),
            tables: self.observers.row_log.report(&self.database),
            counts: Counters {
                updates: self.subscriptions.notification_counts(),
                ..self.observers.counts.clone()
            },
            pending: (self.pending.len() + in_flight) as u64,
            queued: self.barrier_queue.len() as u64,
            file: self.file.report(),
            is_converting: self.conversions.current.is_some(),
            slow_transactions: self.observers.slow.kept(),
            replication: self.model.source().map(Backup::status),
        }
    }

    /// The counters of the database, except the updates that it has composed.
    #[must_use]
    pub fn counts(&self) -> &Counters {
        &self.observers.counts
    }

    /// `update`, `update2` and `update3` notifications composed so far.
    #[must_use]
    pub fn updates_composed(&self) -> [u64; 3] {
        self.subscriptions.notification_counts()
    }

    fn usage(&self) -> Usage {
        let schema = self.database.schema();
        // `_uuid` and `_version` are cells too.
        let cells = schema
            .iter()
            .map(|(id, table)| self.database.row_count(id) * (table.columns().len() + 2));
        let (commits, atoms) = self.subscriptions.history_size();
        Usage {
            atoms: self.database.atom_count(),
            cells: cells.sum::<usize>() as u64,
            monitors: self.subscriptions.len() as u64,
            triggers: self.executor.triggers.len() as u64,
            weak_references: self.database.weak_reference_count(),
            history_commits: commits as u64,
            history_atoms: atoms,
        }
    }

    /// The model, and the parts that following another server uses.
    fn model_and_parts(&mut self, now: Now) -> (&mut Model, Parts<'_>) {
        let parts = Parts {
            now,
            database: &mut self.database,
            environment: &mut self.environment,
            once: &mut self.executor.once,
            outputs: &mut self.outputs,
            barrier_queue: &mut self.barrier_queue,
            audit: &self.observers.audit,
            is_removed: self.is_removed,
            epoch: self.conversions.epoch,
            is_converting: self.conversions.is_waiting(&self.file),
            held_bytes_max: self.conversions.bytes_max,
            is_diff: self.file.is_diff(),
            names_clients: self.file.names_clients(),
        };
        (&mut self.model, parts)
    }

    /// The part of a clustered database or a relay that depends on another server, and the parts
    /// that it uses.
    fn following(&mut self, now: Now) -> Option<(&mut Upstream, Parts<'_>)> {
        let (model, parts) = self.model_and_parts(now);
        Some((model.upstream_mut()?, parts))
    }

    /// The parts that a reply passes through on its way to its session.
    fn replying(&mut self) -> Replying<'_> {
        Replying {
            model: &mut self.model,
            database: &self.database,
            environment: &self.environment,
            subscriptions: &mut self.subscriptions,
            barrier_queue: &mut self.barrier_queue,
            slow: &mut self.observers.slow,
            is_removed: self.is_removed,
            outputs: &mut self.outputs,
        }
    }

    /// The parts that execute a request.
    fn execution(&mut self, now: Now) -> Execution<'_> {
        Execution {
            now,
            model: &mut self.model,
            database: &mut self.database,
            environment: &mut self.environment,
            subscriptions: &mut self.subscriptions,
            executor: &mut self.executor,
            pending: &mut self.pending,
            file: &mut self.file,
            observers: &mut self.observers,
            outputs: &mut self.outputs,
        }
    }

    /// The conversions, and the parts that they use.
    fn converting(&mut self) -> (&mut Conversions, conversion::Parts<'_>) {
        let parts = conversion::Parts {
            database: &self.database,
            file: &mut self.file,
            outputs: &mut self.outputs,
            environment: &mut self.environment,
            barrier_queue: &mut self.barrier_queue,
        };
        (&mut self.conversions, parts)
    }

    /// Whether a session is about to be closed ([`Environment::is_dismissed`]).
    ///
    /// [`Environment::is_dismissed`]: crate::environment::Environment::is_dismissed
    fn is_dismissed(&self, info: &SessionInfo) -> bool {
        let epoch = self.conversions.epoch;
        self.environment.is_dismissed(info, self.is_removed, epoch)
    }

    /// The session of an input that must wait until its transactions in flight are answered.
    fn awaited_session(&self, input: &ToDatabase) -> Option<SessionId> {
        let (outputs, environment) = (&self.outputs, &self.environment);
        let upstream = self.model.upstream()?;
        upstream.forwarding.awaited_by(input, outputs, environment)
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
