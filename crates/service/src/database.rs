//! One served database: engine, monitors, blocked transactions, and the order in which replies leave.
//!
//! Inputs are [`ToDatabase`] messages with the time. Outputs are collected in [`Outputs`]; the [`pump`](crate::pump) takes them from there.
//! Everything executes on speculative state: each reply, of every kind, is made from the state after the commits before it, and waits in
//! one queue until those commits are stored (`pending`, `release`, `undo`). A single session may be blocked (`outbox`). Only an input that
//! replaces the database or its file waits at a `Barrier` until nothing is pending, together with every input behind it.

use corvid_log::storage::{LogPosition, StorageReply, StoreError};
mod audit_entries;
mod backup;
mod clustered;
mod conversion;
mod conversion_request;
mod deferred_replies;
mod flush_pacing;
mod initial_contents;
mod inline_execution;
mod model;
mod monitor_quota;
mod monitor_requests;
mod once_transactions;
mod outbox;
mod outputs;
mod pending;
mod records;
mod release;
mod reply_backpressure;
mod report;
mod rewrites;
mod row_log;
mod slow_transactions;
mod transactions;
mod triggers;
mod undo;
mod watched_columns;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use corvid_consensus::database::MemberEvent;
use corvid_data::TrustedKeys;
use corvid_data::uuid::UuidSource;
use corvid_data::{Schema, Tag, Uuid, WireError};
use corvid_engine::Database;
use corvid_log::cluster::Index;
use corvid_monitor::{Monitors, SessionId};

pub use model::Model;
pub use outputs::Outputs;

use crate::client_memory::{self, ClientMemory};
use crate::counters::Counters;
use crate::job::JobResult;
use crate::job::garbage::Garbage;
use crate::locks::Locks;
use crate::member_row;
use crate::message::{
    Completion, Control, DatabaseId, DatabaseMethod, Event, Report, Request, SessionInfo,
    ToDatabase,
};
use crate::recording::Tape;
use crate::schema_epoch::{SchemaEpoch, SchemaEpochs};
use crate::storage::{FileState, Growth};
use conversion::Conversion;
use conversion_request::canceled_because;
use flush_pacing::FlushPacing;
use initial_contents::InitialContents;
use monitor_quota::MonitorQuota;
use once_transactions::OnceState;
use outbox::Reason;
use pending::{Answer, Origin, PendingQueue};
use records::Records;
use release::completion_of;
use rewrites::Rewrites;
use row_log::RowLog;
use slow_transactions::SlowLog;
use triggers::Triggers;
use watched_columns::WatchedColumn;

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
    column_diff: bool,
    keeps_history: bool,
    database: Database,
    monitors: Monitors,
    triggers: Triggers,
    flush_pacing: FlushPacing,
    pending: PendingQueue,
    records: Records,
    /// Inputs at a barrier: the first one waits for it, the others are behind the first.
    barrier_queue: VecDeque<ToDatabase>,
    conversion: Option<Conversion>,
    conversion_bytes_max: usize,
    initial_contents: InitialContents,
    /// Steps that the database spends on the selections of one transaction.
    select_steps_max: u64,
    monitor_quota: MonitorQuota,
    /// The number of jobs so far.
    last_job: u64,
    rewrites: Rewrites,
    /// How the file has grown, if there is a file.
    growth: Option<Growth>,
    /// Why the last commit could not be stored.
    storage_error: Option<StoreError>,
    /// Columns that configure remotes, by the remote's text, with the remotes that were last reported.
    watched_columns: Vec<WatchedColumn>,
    row_log: RowLog,
    counts: Counters,
    once: OnceState,
    slow: SlowLog,
    /// There is an audit trail.
    is_audited: bool,
    /// Values that are read beside inputs go through the tape.
    tape: Tape,
    sessions: HashMap<SessionId, Arc<SessionInfo>, TrustedKeys>,
    locks: Arc<Mutex<Locks>>,
    epochs: SchemaEpochs,
    /// The epoch that the last conversion began.
    converted: SchemaEpoch,
    uuids: Box<dyn UuidSource + Send>,
    next_position: LogPosition,
    /// The sequence number of the next request that is executed for the first time.
    next_seqno: u64,
    /// The database is not served any more; later requests are answered with that error.
    is_removed: bool,
    outputs: Outputs,
}

/// The condition that an input waits for, with every input behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Barrier {
    /// A conversion starts or swaps its file in.
    Conversion,
    /// A new file is being put in place.
    Swap,
    /// Pending replies have so many bytes that no more may be made.
    Room,
    /// Everything pending is stored.
    Stored,
}

/// Whether an input replaces the database, its file, its history or its role, or begins to.
fn replaces_something(input: &ToDatabase) -> bool {
    match input {
        ToDatabase::Request(request) => request.method == DatabaseMethod::Convert,
        ToDatabase::Member(event) => clustered::has_conversion(event),
        ToDatabase::Control(control) => matches!(
            control,
            Control::Compact(_)
                | Control::Remove
                | Control::SetRole(..)
                | Control::SetHistory(_)
                | Control::WatchColumn { .. }
        ),
        _ => false,
    }
}

/// A new id of a commit, or of the state that a history begins with; all zeros where no history is kept.
fn txn_id(is_kept: bool, uuids: &mut dyn UuidSource) -> Uuid {
    if is_kept { uuids.fresh() } else { Uuid::ZERO }
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
        mut uuids: Box<dyn UuidSource + Send>,
    ) -> DatabaseService {
        let Options {
            id,
            model,
            file,
            column_diff,
            history: keeps_history,
        } = options;
        let shares_history = model.shares_history();
        let keeps_history = keeps_history || shares_history;
        let last_txn = match model.cluster() {
            Some(cluster) => cluster.applied_eid().0,
            None => txn_id(keeps_history, &mut *uuids),
        };
        let seed = database.hash_seed();
        let mut monitors = Monitors::new(database.schema().clone(), last_txn, seed);
        if shares_history {
            monitors.share_ids();
        }
        let mut service = DatabaseService {
            id,
            model,
            column_diff,
            keeps_history,
            database,
            monitors,
            triggers: Triggers::default(),
            flush_pacing: FlushPacing::default(),
            pending: PendingQueue::default(),
            records: Records::default(),
            barrier_queue: VecDeque::new(),
            conversion: None,
            conversion_bytes_max: conversion::BYTES_MAX,
            initial_contents: InitialContents::default(),
            select_steps_max: deferred_replies::SELECT_STEPS_MAX,
            monitor_quota: MonitorQuota::default(),
            last_job: 0,
            rewrites: Rewrites::default(),
            growth: None,
            storage_error: None,
            watched_columns: Vec::new(),
            row_log: RowLog::default(),
            counts: Counters::default(),
            once: OnceState::new(last_txn),
            slow: SlowLog::default(),
            is_audited: false,
            tape: Tape::default(),
            sessions: HashMap::default(),
            locks,
            epochs,
            converted: SchemaEpoch::default(),
            uuids,
            next_position: LogPosition(1),
            next_seqno: 0,
            is_removed: false,
            outputs: Outputs::new(id),
        };
        if let Some(file) = file {
            let chance = service.chance();
            service.growth = Some(Growth::new(file, now.mono_ms, chance));
        }
        service
    }

    /// Charges replies to this memory, which other databases share.
    pub fn set_client_memory(&mut self, memory: Arc<ClientMemory>) {
        self.outputs.client_memory = memory;
    }

    /// Has values that are read beside inputs recorded, or replayed.
    pub(crate) fn set_tape(&mut self, tape: Tape) {
        self.tape = tape;
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
        match input {
            ToDatabase::Storage(StorageReply::Appended(position, result)) => {
                self.stored(now, position, result);
            }
            ToDatabase::Storage(StorageReply::Rewrite(number, outcome)) => {
                self.rewrite_advanced(now, number, outcome);
            }
            ToDatabase::JobDone(_, JobResult::InitialContents(written)) => {
                self.contents_written(now, &written);
            }
            ToDatabase::JobDone(_, JobResult::DeferredBody(session)) => {
                self.body_written(now, session);
            }
            ToDatabase::JobDone(number, JobResult::Compared(found)) => {
                self.compared(now, number, found);
            }
            ToDatabase::JobDone(number, done) => self.job_done(now, number, done),
            ToDatabase::Installed(installed) => self.install(now, *installed),
            ToDatabase::Member(event) if !matches!(event, MemberEvent::Execute { .. }) => {
                self.member(now, event);
            }
            ToDatabase::Drained(session) => self.drained(session),
            ToDatabase::Closed(session) => self.close(now, session),
            ToDatabase::LockClaims => self.claim_locks(),
            other if self.must_queue(&other) => self.barrier_queue.push_back(other),
            other => self.execute_input(now, other),
        }
        self.resume(now);
    }

    /// Executes inputs at a barrier as far as the state allows. Called when a barrier may have fallen.
    fn resume(&mut self, now: Now) {
        self.advance_due(now);
        while let Some(input) = self.barrier_queue.pop_front() {
            if self.barrier(&input).is_some() {
                self.barrier_queue.push_front(input);
                break;
            }
            self.execute_input(now, input);
        }
    }

    /// Queues these inputs before all others at the barrier.
    fn queue_first<I>(&mut self, inputs: I)
    where
        I: IntoIterator<Item = ToDatabase, IntoIter: DoubleEndedIterator>,
    {
        for input in inputs.into_iter().rev() {
            self.barrier_queue.push_front(input);
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
        if self.is_conversion_waiting() {
            return Some(Barrier::Conversion);
        }
        match input {
            ToDatabase::Request(_) | ToDatabase::Member(_) if self.pending.is_full() => {
                Some(Barrier::Room)
            }
            ToDatabase::Control(Control::Remove) if self.rewrites.is_swapping() => {
                Some(Barrier::Swap)
            }
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
        if let Some(conversion) = &mut self.conversion
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
            ToDatabase::Request(request) => self.request(now, request),
            ToDatabase::Cancel(session, id) => self.cancel(now, session, id),
            ToDatabase::Fence(session, answer) => {
                self.send_updates(session);
                self.outputs.complete(session, answer);
            }
            ToDatabase::Source(id, event) => self.source(now, id, event),
            ToDatabase::Control(control) => self.control(now, control),
            ToDatabase::Member(event) => self.member(now, event),
            ToDatabase::Storage(_)
            | ToDatabase::JobDone(..)
            | ToDatabase::Installed(_)
            | ToDatabase::Drained(_)
            | ToDatabase::Closed(_)
            | ToDatabase::LockClaims => self.handle(now, input),
        }
    }

    fn request(&mut self, now: Now, request: Box<Request>) {
        if self.is_dismissed(&request.info) {
            self.drop_request(&request);
            return;
        }
        match request.method {
            DatabaseMethod::Transact => self.transact(now, request),
            DatabaseMethod::Convert => self.convert(now, request),
            DatabaseMethod::GetSchema => {
                let schema = self.database.schema().to_json().to_bytes();
                let has_room = || self.outputs.client_memory.has_room_for(schema.len());
                if self.tape.flag(has_room) {
                    self.reply(request, schema);
                } else {
                    self.outputs.client_memory.refuse();
                    self.refuse(request, client_memory::exhausted());
                }
            }
            DatabaseMethod::Monitor(version) => self.monitor(request, version),
            DatabaseMethod::MonitorCondChange => self.change_condition(request),
            DatabaseMethod::MonitorCancel => {
                self.answer_when_stored(Answer::MonitorCanceled, Origin::Client(request));
            }
        }
    }

    fn set_history(&mut self, is_kept: bool) {
        if self.model.shares_history() {
            return;
        }
        self.keeps_history = is_kept;
        let last_txn = txn_id(is_kept, &mut *self.uuids);
        self.once.committed(last_txn);
        self.monitors.restart_history(last_txn);
    }

    fn control(&mut self, now: Now, control: Control) {
        match control {
            Control::Transact(params) => self.transact_as_server(now, &params),
            Control::Compact(token) => self.compact(now, token),
            Control::EnableColumnDiff => self.column_diff = true,
            Control::EnableNoDataConversion => self.set_data_conversion(false),
            Control::Snapshot(token) => {
                let event = Event::Snapshot(token, Some(self.database.snapshot()));
                let answer = Answer::Event(Box::new(event));
                self.answer_when_stored(answer, Origin::Control(control));
            }
            Control::Remove => self.remove(now),
            Control::WatchColumn {
                name,
                table,
                column,
                texts_only,
            } => self.watch_column(name, &table, &column, texts_only),
            Control::UnwatchColumn(name) => {
                self.watched_columns.retain(|watched| watched.name != name);
            }
            Control::SetSlow(threshold_ms) => self.set_slow_ms(threshold_ms),
            Control::SetAudited(is_audited) => self.set_audited(is_audited),
            Control::SetHistory(is_kept) => self.set_history(is_kept),
            Control::ShowStatus(statuses) => self.show_status(now, &statuses),
            Control::ShowIndex(applied) => {
                let index = Index(self.tape.number(|| applied.take().0));
                let update = member_row::update_index(applied.database(), index);
                self.transact_as_server(now, &update);
            }
            Control::SetRole(role, token) => self.set_role(now, role, token),
            Control::LogRows(table, is_logged) => self.row_log.set(table, is_logged),
            Control::Report(token) => {
                let report = Box::new(self.report());
                self.outputs.events.push(Event::Report(token, report));
            }
            Control::StorageStatus(token) => {
                let event = Event::StorageStatus(token, self.storage_error.clone());
                self.outputs.events.push(event);
            }
        }
    }

    /// Cancels everything that clients have pending here, because the database is removed.
    fn remove(&mut self, now: Now) {
        self.is_removed = true;
        if let Some(request) = self.drop_conversion() {
            if self.ends_forwarded_conversion() {
                // The member that has the session finds out.
            } else if self.is_dismissed(&request.info) {
                self.drop_request(&request);
            } else {
                self.fail(&request, &canceled_because("removing database"));
            }
        }
        self.cancel_monitors();
        self.cancel_triggers();
        self.cancel_in_flight();
        self.give_up_replacement();
        self.watched_columns.clear();
        self.end_backup();
        self.sessions.clear();
        self.monitor_quota = MonitorQuota::default();
        self.unblock_all_unread_sessions();
        self.give_up_compaction();
        self.answer_compactions(&Err(self.removed_error()));
        // Inputs at the barrier are refused. The removal is reported last, so every earlier input is answered by then.
        self.resume(now);
        self.outputs.events.push(Event::Removed(self.id));
    }

    /// Whether a session is about to be closed because this database has been removed, or converted since the session began. Nothing of it is
    /// executed any more.
    fn is_dismissed(&self, info: &SessionInfo) -> bool {
        (self.is_removed || info.epoch < self.converted) && !self.tape.flag(|| info.is_aware())
    }

    /// Drops a request of a dismissed session without a reply.
    fn drop_request(&mut self, request: &Request) {
        request.info.miss_cancellation();
        self.outputs
            .complete(request.session, completion_of(request));
    }

    fn removed_error(&self) -> StoreError {
        StoreError {
            details: format!("{}: database removed", self.database.schema().name),
            io_error: String::new(),
        }
    }

    /// Answers an input that was sent before its sender knew of the removal.
    fn refuse_removed(&mut self, input: ToDatabase) {
        match input {
            ToDatabase::Request(request) if self.is_dismissed(&request.info) => {
                self.drop_request(&request);
            }
            ToDatabase::Request(request) => {
                let method = request.method.name();
                let name = &self.database.schema().name;
                let details = format!("{method} request specifies unknown database {name}");
                let error =
                    WireError::new(Tag::UnknownDatabase, details).with_fragment(request.params());
                match request.method {
                    // These name no database. Their monitors are gone, and the reply says so.
                    DatabaseMethod::MonitorCancel => self.release_monitor_cancel(&request),
                    DatabaseMethod::MonitorCondChange => self.change_condition(request),
                    _ => self.fail(&request, &error),
                }
            }
            ToDatabase::Fence(session, answer) => self.outputs.complete(session, answer),
            ToDatabase::Cancel(session, _) => self.outputs.complete(session, Completion::Request),
            ToDatabase::Control(Control::Compact(token)) => {
                let event = Event::Compacted(token, Err(self.removed_error()));
                self.outputs.events.push(event);
            }
            ToDatabase::Control(Control::Snapshot(token)) => {
                self.outputs.events.push(Event::Snapshot(token, None));
            }
            ToDatabase::Control(Control::WatchColumn { name, .. }) => {
                let database = &self.database.schema().name;
                let error = format!("\"{name}\": no database named {database}");
                self.outputs
                    .events
                    .push(Event::ColumnWatched(name, Err(error)));
            }
            ToDatabase::Control(Control::StorageStatus(token)) => {
                let event = Event::StorageStatus(token, Some(self.removed_error()));
                self.outputs.events.push(event);
            }
            ToDatabase::Control(Control::SetRole(_, token)) => {
                self.outputs.events.push(Event::RoleSet(token));
            }
            ToDatabase::Control(Control::Report(token)) => {
                let report = Box::<Report>::default();
                self.outputs.events.push(Event::Report(token, report));
            }
            ToDatabase::Control(
                Control::Transact(_)
                | Control::Remove
                | Control::EnableColumnDiff
                | Control::EnableNoDataConversion
                | Control::UnwatchColumn(_)
                | Control::SetSlow(_)
                | Control::SetAudited(_)
                | Control::SetHistory(_)
                | Control::ShowStatus(_)
                | Control::ShowIndex(_)
                | Control::LogRows(..),
            )
            | ToDatabase::Source(..)
            | ToDatabase::Drained(_)
            | ToDatabase::Closed(_)
            | ToDatabase::LockClaims
            | ToDatabase::Storage(_)
            | ToDatabase::Member(_)
            | ToDatabase::Installed(_)
            | ToDatabase::JobDone(..) => {}
        }
    }

    fn close(&mut self, now: Now, session: SessionId) {
        self.sessions.remove(&session);
        self.monitor_quota.remove_session(session);
        self.monitors.remove_session(session);
        self.triggers.remove_session(session);
        self.withdraw_session(session);
        // A transaction that arrived before the end is executed, unless the session is blocked until it has read its replies. A conversion
        // is given up while that is possible.
        let is_wanted = |input: &ToDatabase| match input {
            ToDatabase::Request(request) => {
                request.session != session || request.method == DatabaseMethod::Transact
            }
            ToDatabase::Fence(fenced, _) => *fenced != session,
            _ => true,
        };
        self.barrier_queue.retain(is_wanted);
        if let Some(mut outbox) = self.outputs.outboxes.remove(session) {
            let requests = std::mem::take(&mut outbox.requests);
            if outbox.is_blocked_by(Reason::ReplyBackpressure)
                || outbox.is_blocked_by(Reason::Cluster)
            {
                self.outputs.free(Garbage::inputs(requests));
            } else {
                self.queue_first(requests.into_iter().filter(is_wanted));
            }
            if !outbox.deliveries.is_empty() {
                self.outputs.free(outbox.into_garbage());
            }
        }
        if let Some(conversion) = &mut self.conversion {
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
        self.triggers.is_clean()
            && self.pending.is_empty()
            && self.barrier_queue.is_empty()
            && self.conversion.is_none()
            && self.initial_contents.is_idle()
            && self.outputs.outboxes.is_empty()
            && self.monitor_quota.is_empty()
            && self.rewrites.is_idle()
            && self.sessions.is_empty()
            && self.monitors.is_empty()
            && (self.model.cluster())
                .is_none_or(|cluster| cluster.in_flight().is_empty() && !cluster.is_replacing())
    }

    fn next_log_position(&mut self) -> LogPosition {
        let position = self.next_position;
        self.next_position = LogPosition(position.0 + 1);
        position
    }
}
