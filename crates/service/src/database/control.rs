//! Messages of the server itself to a database: settings, its role, its removal, reports, and the
//! status of remotes.
//!
//! Invariant: a control message is executed between two requests, never within one. After the
//! removal nothing is executed: every later input gets the answer that its sender would get from a
//! server without this database.

use corvid_data::{Tag, WireError};
use corvid_log::cluster::Index;
use corvid_log::storage::{RewriteNumber, RewriteStage, StoreError};

use super::backup::{Backup, Change};
use super::barrier::Question;
use super::conversion_request::canceled_because;
use super::file::Progress;
use super::replies::{Answer, Origin, Reason};
use super::transactions::conversion_not_allowed;
use super::{DatabaseService, Now};
use crate::counters::Counters;
use crate::job::JobNumber;
use crate::job::garbage::Garbage;
use crate::member_row;
use crate::message::{
    Completion, Control, ControlAnswer, DatabaseMethod, Event, Report, TableReport, ToDatabase,
    Usage, database_removed,
};
use crate::remote_status::RemoteStatuses;
use crate::replication::{Role, SourceEvent, SourceId};

impl DatabaseService {
    /// Turns the audit trail on or off; it is off at first.
    pub fn set_audited(&mut self, is_audited: bool) {
        self.observers.audit.set(is_audited);
    }

    /// Transactions that take this long, ms, are reported ([`Event::Slow`]); none are at first.
    pub fn set_slow_ms(&mut self, threshold_ms: u64) {
        self.observers.slow.set_threshold_ms(threshold_ms);
    }

    /// Reports the last answered transaction if it was slow. Called with the present time before the next input that takes time, and at the
    /// end of each batch.
    pub fn report_slow(&mut self, now: Now) {
        let name = &self.database.schema().name;
        let slow = self.observers.slow.report(now, name);
        self.outputs.events.extend(slow);
    }

    pub(super) fn handle_control(&mut self, now: Now, control: Control) {
        match control {
            Control::Transact(params) => self.transact_as_server(now, &params),
            Control::Compact(token) => self.compact(now, token),
            Control::EnableColumnDiff => self.file.enable_column_diff(),
            Control::EnableNoDataConversion => self.set_data_conversion(false),
            Control::Snapshot(token) => {
                let snapshot = ControlAnswer::Snapshot(Some(self.database.snapshot()));
                let event = Event::Answered(token, snapshot);
                let answer = Answer::Event(Box::new(event));
                self.answer_when_stored(answer, Origin::Control(control));
            }
            Control::Remove => self.remove(now),
            Control::WatchColumn {
                name,
                table,
                column,
                texts_only,
            } => {
                let columns = &mut self.observers.watched_columns;
                let report = columns.watch(name, &table, &column, texts_only, &self.database);
                self.outputs.events.push(report);
            }
            Control::UnwatchColumn(name) => self.observers.watched_columns.unwatch(&name),
            Control::SetSlow(threshold_ms) => self.set_slow_ms(threshold_ms),
            Control::SetAudited(is_audited) => self.set_audited(is_audited),
            Control::SetHistory(is_kept) => self.set_history(is_kept),
            Control::ShowStatus(statuses) => self.show_status(now, &statuses),
            Control::ShowIndex(applied) => {
                let index = Index(self.environment.number(|| applied.take().0));
                let update = member_row::update_index(applied.database(), index);
                self.transact_as_server(now, &update);
            }
            Control::SetRole(role, token) => self.set_role(now, role, token),
            Control::LogRows(table, is_logged) => self.observers.row_log.set(table, is_logged),
            Control::Report(token) => {
                let report = ControlAnswer::Report(Box::new(self.report()));
                self.outputs.events.push(Event::Answered(token, report));
            }
            Control::StorageStatus(token) => {
                let status = ControlAnswer::StorageStatus(self.file.error().cloned());
                self.outputs.events.push(Event::Answered(token, status));
            }
        }
    }

    fn set_history(&mut self, is_kept: bool) {
        if self.model.shares_history() {
            return;
        }
        let last_txn = self.environment.txn_id(is_kept);
        self.executor.once.committed(last_txn);
        self.subscriptions.restart_history(is_kept, last_txn);
    }

    /// Compacts the file, while nothing is pending. An event answers when a crash cannot bring the old file back.
    fn compact(&mut self, now: Now, token: Option<u64>) {
        if token.is_none() {
            self.file.end_queued_compaction();
        }
        if self.model.cluster().is_some() && !self.model.is_relay() {
            self.compact_cluster(token);
            return;
        }
        let snapshot = || {
            // The new file holds what is stored, and nothing that may still be undone.
            assert!(self.pending.is_empty(), "compaction waits at the barrier");
            self.database.snapshot()
        };
        let answer = self.file.compact(now, token, snapshot);
        self.outputs.events.extend(answer);
    }

    /// Whether growth alone may have the file compacted: nothing under way makes a compaction unnecessary.
    pub(super) fn may_compact(&self) -> bool {
        self.activity().allows(Question::MayCompact)
    }

    /// Compacts the file if it has grown enough.
    pub(super) fn compact_if_due(&mut self, now: Now) {
        if self.file.is_due(now) && self.may_compact() {
            self.file.queue_compaction();
            self.handle(now, ToDatabase::Control(Control::Compact(None)));
        }
    }

    /// Begins the compaction that was asked for during another rewrite.
    pub(super) fn compact_wanted(&mut self, now: Now) {
        if let Some(token) = self.file.take_wanted() {
            self.handle(now, ToDatabase::Control(Control::Compact(token)));
        }
    }

    /// A new file has reached a stage, or has failed.
    pub(super) fn advance_rewrite(
        &mut self,
        now: Now,
        number: RewriteNumber,
        outcome: Result<RewriteStage, StoreError>,
    ) {
        let chance = || self.environment.chance();
        match self.file.advance(now, number, outcome, chance) {
            Progress::UnderWay => return,
            Progress::Written => {
                self.continue_conversion(now);
                return;
            }
            Progress::Compacted(answers) => self.outputs.events.extend(answers),
            Progress::Converted(result) => self.finish_conversion(now, result),
        }
        self.compact_wanted(now);
        // The conversion may have waited for the swap.
        self.advance_conversion(now);
        self.resume(now);
    }

    /// Changes roles while nothing is pending. Blocked transactions are tried in the new role.
    fn set_role(&mut self, now: Now, role: Role, token: u64) {
        // The member decides the role of a clustered database.
        if self.model.cluster().is_none() {
            self.end_backup();
            if let Role::Backup(following) = role {
                let name = self.database.schema().name.to_string();
                self.model
                    .begin_backup(Box::new(Backup::new(&name, *following)));
                if self.conversions.current.is_some() {
                    self.give_up_conversion(now, Some(&conversion_not_allowed(&name)));
                }
            }
        }
        let done = Event::Answered(token, ControlAnswer::RoleSet);
        self.outputs.events.push(done);
    }

    /// Ends being a backup: from here on clients may write.
    fn end_backup(&mut self) {
        if let Some(backup) = self.model.end_backup() {
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
    fn advance_backup(&mut self, now: Now, takes_messages: bool) {
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
        self.resume(now);
    }

    /// A commit from a backup's source could not be stored and is undone.
    pub(super) fn report_unstored(&mut self, now: Now) {
        if let Some(backup) = self.model.source_mut() {
            backup.undo();
            self.advance_backup(now, false);
        }
    }

    /// Writes the status of remotes to the rows behind watched columns. The rows of a backup are copies and are not changed.
    fn show_status(&mut self, now: Now, statuses: &RemoteStatuses) {
        if !self.model.accepts_server_writes() {
            return;
        }
        let columns = &self.observers.watched_columns;
        for write_back in columns.write_back(&self.database, statuses) {
            let missing = write_back.without_status.map(Event::NoStatusColumn);
            self.outputs.events.extend(missing);
            let missing = write_back.without_target.map(Event::NoTarget);
            self.outputs.events.extend(missing);
            if let Some(params) = write_back.params {
                self.transact_as_server(now, &params);
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
        self.observers.watched_columns.clear();
        self.end_backup();
        self.subscriptions.forget_sessions();
        // No shard will report any more that a session has read its replies.
        for session in self.outputs.outboxes.blocked_by(Reason::ReplyBackpressure) {
            self.outputs.outboxes.clear_unread(session);
            self.resume_if_unblocked(session);
        }
        self.file.give_up_compaction();
        let removed = Err(database_removed(&self.database.schema().name));
        let answers = self.file.answer_compactions(&removed);
        self.outputs.events.extend(answers);
        // Inputs at the barrier are refused. The removal is reported last, so every earlier input is answered by then.
        self.resume(now);
        self.outputs.events.push(Event::Removed(self.id));
    }

    /// Answers an input that was sent before its sender knew of the removal.
    pub(super) fn refuse_removed(&mut self, input: ToDatabase) {
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

    /// The report of this moment. Costs as much as there are tables.
    #[must_use]
    pub fn report(&self) -> Report {
        let schema = self.database.schema();
        let tables = schema.iter().map(|(id, table)| {
            let name = table.name.to_string();
            TableReport {
                is_logged: self.observers.row_log.contains(&name),
                rows: self.database.row_count(id) as u64,
                name,
            }
        });
        let in_flight = self.model.cluster();
        let in_flight = in_flight.map_or(0, |cluster| cluster.in_flight().len());
        Report {
            usage: self.usage(),
            tables: tables.collect(),
            counts: Counters {
                updates: self.subscriptions.notification_counts(),
                ..self.observers.counts.clone()
            },
            pending: (self.pending.len() + in_flight) as u64,
            queued: self.barrier_queue.len() as u64,
            file: self.file.report(),
            is_converting: self.conversions.current.is_some(),
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
}
