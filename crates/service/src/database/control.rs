//! Messages of the server itself to a database: settings, its role, its removal, reports, and the
//! status of remotes.
//!
//! Invariant: a control message is executed between two requests, never within one. After the
//! removal nothing is executed: every later input gets the answer that its sender would get from a
//! server without this database.

use std::sync::Arc;

use corvid_log::cluster::Index;
use corvid_log::storage::{RewriteNumber, RewriteStage, StoreError};

use super::backup::{Backup, Change};
use super::clustered::Clustered;
use super::conversion::{canceled_because, conversion_not_allowed};
use super::file::Progress;
use super::{DatabaseService, Now};
use crate::client_memory::ClientMemory;
use crate::counters::Counters;
use crate::job::JobNumber;
use crate::job::garbage::Garbage;
use crate::member_row;
use crate::message::{Control, ControlAnswer, Event, Report, TableReport, Usage, database_removed};
use crate::remote_status::RemoteStatuses;
use crate::replication::{Role, SourceEvent, SourceId};
use crate::replies::Reason;
use crate::tape::{Setting, Tape};

impl DatabaseService {
    /// Charges replies to this memory, which other databases share.
    pub fn set_client_memory(&mut self, memory: Arc<ClientMemory>) {
        self.outputs.set_client_memory(memory.clone());
        self.environment.set_memory(memory);
    }

    /// Has values that no input carries recorded, or replayed.
    pub(crate) fn set_tape(&mut self, tape: Tape) {
        self.environment.set_tape(tape);
    }

    /// Sets how many rows the database reads itself for the initial contents of a monitor; contents
    /// of more are left to a job.
    pub fn set_initial_rows_max(&mut self, rows: usize) {
        let setting = Setting::InitialRowsMax;
        self.environment.record_setting(setting, rows as u64);
        self.subscriptions.set_initial_rows_max(rows);
    }

    /// Sets how many steps the database spends on the selections of one transaction; the rest is
    /// deferred to a job.
    pub fn set_select_steps_max(&mut self, steps: u64) {
        let setting = Setting::SelectStepsMax;
        self.environment.record_setting(setting, steps);
        self.executor.set_select_steps_max(steps);
    }

    /// Sets how many changed rows an update may have before its body is deferred to a job. A step
    /// of a long update gets the text of so many rows of 1 KiB, and 4 KiB at least.
    pub fn set_update_rows_max(&mut self, rows: usize) {
        let setting = Setting::UpdateRowsMax;
        self.environment.record_setting(setting, rows as u64);
        self.subscriptions.set_update_rows_max(rows);
    }

    /// Sets from how many atoms on a commit is long.
    pub fn set_long_atoms(&mut self, atoms: u64) {
        self.environment.record_setting(Setting::LongAtoms, atoms);
        self.file.set_long_atoms(atoms);
    }

    /// Turns the audit trail on or off; it is off at first.
    pub fn set_audited(&mut self, is_audited: bool) {
        self.observers.audit.set(is_audited);
    }

    /// Transactions that take this long, ms, are reported ([`Event::Slow`]); none are at first.
    pub fn set_slow_ms(&mut self, threshold_ms: u64) {
        self.observers.slow.set_threshold_ms(threshold_ms);
    }

    pub(super) fn handle_control(&mut self, now: Now, control: Control) {
        match control {
            Control::Transact(params) => self.transact_as_server(now, &params),
            Control::Compact(token) => self.compact(now, token),
            Control::EnableColumnDiff => self.file.enable_column_diff(),
            Control::EnableNoDataConversion => self.set_data_conversion(false),
            Control::Snapshot(_) => self.take_snapshot(control),
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
            Control::SetRole(role, token) => self.set_role(role, token),
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

    /// Compacts the file, while nothing is pending. An event answers when a crash cannot bring the
    /// old file back.
    fn compact(&mut self, now: Now, token: Option<u64>) {
        if token.is_none() {
            self.file.end_queued_compaction();
        }
        if let Some(member) = self.model.member_mut() {
            member.compact(token, &mut self.database, &self.pending);
            return;
        }
        let snapshot = || {
            // The new file holds what is stored, and nothing that may still be undone.
            assert!(self.pending.is_empty(), "compaction waits at the barrier");
            (self.database.snapshot(), self.executor.once.recorded())
        };
        let answer = self.file.compact(now, token, snapshot);
        self.outputs.events.extend(answer);
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
        self.compact_wanted();
        // The conversion may have waited for the swap.
        self.advance_conversion(now);
    }

    /// Changes roles while nothing is pending. Blocked transactions are tried in the new role.
    fn set_role(&mut self, role: Role, token: u64) {
        // The member decides the role of a clustered database.
        if self.model.upstream().is_none() {
            self.end_backup();
            if let Role::Backup(following) = role {
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

    /// Writes the status of remotes to the rows that watched columns refer to. The rows of a backup
    /// are copies and are not changed.
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
            let member = self.model.member_mut();
            if member.is_some_and(Clustered::ends_forwarded_conversion) {
                // The member that has the session finds out.
            } else if self.is_dismissed(&request.info) {
                self.drop_request(&request);
            } else {
                self.fail(&request, &canceled_because("removing database"));
            }
        }
        self.cancel_monitors();
        self.cancel_triggers();
        self.cancel_in_flight(now);
        self.observers.watched_columns.clear();
        self.end_backup();
        self.subscriptions.forget_sessions();
        // From now on no shard reports that a session has read its replies.
        for session in self.outputs.outboxes.blocked_by(Reason::ReplyBackpressure) {
            self.outputs.outboxes.clear_unread(session);
            self.resume_if_unblocked(session);
        }
        self.file.give_up_compaction();
        let removed = Err(database_removed(&self.database.schema().name));
        let answers = self.file.answer_compactions(&removed);
        self.outputs.events.extend(answers);
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
        let upstream = self.model.upstream();
        let in_flight = upstream.map_or(0, |it| it.forwarding.requests_in_flight());
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
