//! The route of each input: to the part that it is for, to a queue, or to a barrier. Which inputs
//! [`crate::pump`] has executed inline, when long ones end its batch, the work between two batches,
//! and what is taken at the end of one. Messages of the server itself: settings, compaction,
//! removal, the status of remotes.
//!
//! Invariant: an input is executed between two others, never within one. After the removal nothing
//! is executed: every later input gets the answer that its sender would get from a server without
//! this database. The other routes call nothing here, so none of them handles an input within
//! another: it leaves that input at the barrier.
//!
//! Inline execution takes inputs cheap enough for a shard, or a member's thread, to execute itself,
//! without waking the database thread. Invariant: nothing there takes long, however large the
//! database is and however many inputs wait. An input that might take long is handed back
//! unchanged, and all inputs after it must be left too. Inline execution does the work of
//! [`DatabaseService::handle`]; only [`DatabaseService::tick`] and flushes that
//! [`DatabaseService::flush_if_small`] declines are left to the database thread.

use corvid_consensus::database::{MemberEvent, MemberRequest};
use corvid_engine::WorkBudget;
use corvid_log::cluster::Index;
use corvid_log::storage::{
    LogPosition, RewriteNumber, RewriteStage, StorageReply, StorageRequest, StoreError,
};
use corvid_monitor::SessionId;

use super::clustered::{self, Clustered};
use super::conversion::canceled_because;
use super::file::Progress;
use super::requests::note_arrival;
use super::{DatabaseService, Now};
use crate::barrier::{Barrier, Question, is_execution, outlives, replaces_something};
use crate::job::JobResult;
use crate::member_row;
use crate::message::{
    Completion, Control, ControlAnswer, DatabaseMethod, Event, SourceRequest, ToDatabase,
    database_removed,
};
use crate::remote_status::RemoteStatuses;
use crate::replies::{Reason, inputs_as_garbage};
use crate::upstream::{Upstream, is_short_news};

/// Rows taken into an index between two batches of inputs: about a millisecond.
const INDEXED_ROWS_PER_BATCH: usize = 8192;

/// Longer requests are not executed inline, bytes.
const REQUEST_MAX: usize = 32 * 1024;

/// A transaction is long when its request has more bytes than this: parsing it takes about a
/// millisecond.
const LONG_BYTES: usize = 256 * 1024;

impl DatabaseService {
    /// Executes one input, or queues it.
    pub fn handle(&mut self, now: Now, input: ToDatabase) {
        let was_removed = self.is_removed;
        self.route(now, input);
        self.drain_barrier(now, was_removed);
    }

    /// Passes an input on to the part that it is for, or queues it.
    fn route(&mut self, now: Now, mut input: ToDatabase) {
        if let ToDatabase::Request(request) = &mut input {
            note_arrival(&self.model, now, request);
        }
        match input {
            ToDatabase::Storage(StorageReply::Appended(position, result)) => {
                self.handle_stored(now, position, result);
            }
            ToDatabase::Storage(StorageReply::Rewrite(number, outcome)) => {
                self.advance_rewrite(now, number, outcome);
            }
            ToDatabase::JobDone(_, JobResult::InitialContents(written)) => {
                self.replying().answer_written_contents(now, &written);
            }
            ToDatabase::JobDone(_, JobResult::DeferredBody(session)) => {
                self.replying().deliver_written_body(now, session);
            }
            ToDatabase::JobDone(number, JobResult::PastRead(read)) => {
                self.replying().answer_past(now, number, read);
            }
            ToDatabase::JobDone(number, JobResult::Compared(found)) => {
                self.apply_compared(now, number, found);
            }
            ToDatabase::JobDone(number, done) => self.handle_job_done(now, number, done),
            ToDatabase::Installed(_) | ToDatabase::Relay(_) => self.handle_upstream(now, input),
            ToDatabase::Member(_) if !is_execution(&input) => self.handle_upstream(now, input),
            ToDatabase::Drained(session) => self.replying().mark_drained(session),
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
                self.replying().send_updates(session);
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
}

/// Inputs of a batch.
impl DatabaseService {
    /// Executes an input if it may be executed inline and fits into the rest of `budget`. Otherwise
    /// returns it.
    pub(crate) fn try_inline(
        &mut self,
        now: Now,
        input: ToDatabase,
        budget: &mut WorkBudget,
    ) -> Option<ToDatabase> {
        let must_wait =
            self.outputs.outboxes.must_queue(&input) || self.awaited_session(&input).is_some();
        if !self.activity().allows(Question::IsShort) || must_wait {
            return Some(input);
        }
        match input {
            ToDatabase::Request(request)
                if request.method == DatabaseMethod::Transact
                    && request.frame.len() <= REQUEST_MAX
                    && !self.is_dismissed(&request.info)
                    && !self.subscriptions.is_behind(request.session) =>
            {
                let left = self.transact_within(now, request, budget);
                self.follow_up(now);
                left.map(ToDatabase::Request)
            }
            ToDatabase::Drained(session)
                if !self.subscriptions.is_behind(session)
                    && !self.outputs.outboxes.has_requests(session) =>
            {
                self.replying().mark_drained(session);
                None
            }
            // The updates of `_Server` are short. Elsewhere those of a session that has not read
            // its last ones may be long.
            ToDatabase::Fence(session, answer)
                if self.model.is_server_db() || !self.subscriptions.is_behind(session) =>
            {
                self.replying().send_updates(session);
                self.outputs.complete(session, answer);
                None
            }
            ToDatabase::Control(Control::ShowIndex(applied)) => {
                self.handle_control(now, Control::ShowIndex(applied));
                None
            }
            ToDatabase::Member(event) if self.may_execute_for_others() => match event {
                MemberEvent::Execute { origin, forwards }
                    if forwards.iter().all(clustered::is_short_forward) =>
                {
                    self.observers.slow.set_now(now);
                    let left = self.execute_forwards_within(now, origin, forwards, budget);
                    left.map(ToDatabase::Member)
                }
                event if clustered::is_short(&event) => {
                    self.handle_upstream(now, ToDatabase::Member(event));
                    self.resume(now);
                    None
                }
                event => Some(ToDatabase::Member(event)),
            },
            ToDatabase::Relay(news) if self.may_execute_for_others() && is_short_news(&news) => {
                self.handle_upstream(now, ToDatabase::Relay(news));
                self.resume(now);
                None
            }
            other => Some(other),
        }
    }

    /// Executes an input, unless it is a transaction that takes more than `long_steps`. Such a
    /// transaction is returned unchanged, so that the inputs before it can be answered first. While
    /// a conversion or anything else blocks inputs, no transaction counts as long.
    pub(crate) fn handle_unless_long(
        &mut self,
        now: Now,
        input: ToDatabase,
        long_steps: u64,
    ) -> Option<ToDatabase> {
        let is_free = self.activity().allows(Question::MayExecute)
            && !self.outputs.outboxes.must_queue(&input)
            && self.awaited_session(&input).is_none();
        match input {
            ToDatabase::Request(request)
                if request.method == DatabaseMethod::Transact
                    && is_free
                    && !self.is_dismissed(&request.info) =>
            {
                if request.frame.len() > LONG_BYTES {
                    return Some(ToDatabase::Request(request));
                }
                let mut budget = self.executor.work_budget().at_most(long_steps);
                let left = self.transact_within(now, request, &mut budget);
                self.resume(now);
                left.map(ToDatabase::Request)
            }
            other => {
                self.handle(now, other);
                None
            }
        }
    }

    /// Whether an event of the member is short: no contents are being replaced, and no requests of
    /// clients wait for an event that lets them be executed here.
    fn may_execute_for_others(&self) -> bool {
        let may_execute = self.activity().allows(Question::MayExecuteForOthers);
        may_execute && self.model.upstream().is_some()
    }
}

/// The work between two batches, and what the pump takes at the end of one.
impl DatabaseService {
    /// Whether [`DatabaseService::tick`] has something to do.
    #[must_use]
    pub(crate) fn must_tick(&self, now: Now) -> bool {
        let trigger = self.executor.triggers.next_deadline();
        (self.file.is_due(now) && self.may_compact())
            || trigger.is_some_and(|at_ms| at_ms <= now.mono_ms)
            || self.database.is_indexing()
    }

    /// When [`DatabaseService::tick`] and [`DatabaseService::flush_updates`] must be called at the
    /// latest.
    #[must_use]
    pub fn next_deadline_ms(&self, now: Now) -> Option<u64> {
        let updates = self.subscriptions.updates_due_ms();
        if self.conversions.is_waiting(&self.file) {
            return updates;
        }
        let check = self.file.next_check_ms(now);
        let check = check.filter(|_| self.may_compact());
        let trigger = self.executor.triggers.next_deadline();
        let expiry = self.subscriptions.contents_expire_at_ms();
        let index = self.database.is_indexing().then_some(now.mono_ms);
        let deadlines = [trigger, check, expiry, index, updates];
        deadlines.into_iter().flatten().min()
    }

    /// Retries blocked transactions whose deadline has come, compacts a file that has grown,
    /// continues building indexes for conditions. Called once per batch of inputs.
    pub fn tick(&mut self, now: Now) {
        if self.conversions.is_waiting(&self.file) {
            return;
        }
        let expired = self.executor.triggers.expired(now.mono_ms);
        if !expired.is_empty() {
            self.retry(now, expired);
            self.release();
        }
        self.compact_if_due(now);
        self.resume(now);
        self.subscriptions.expire_contents(now);
        if self.database.is_indexing() {
            self.database.index(INDEXED_ROWS_PER_BATCH);
        }
    }

    /// Whether growth alone may have the file compacted: nothing under way makes a compaction
    /// unnecessary.
    fn may_compact(&self) -> bool {
        self.activity().allows(Question::MayCompact)
    }

    /// Has the file compacted, when its turn comes, if it has grown enough.
    fn compact_if_due(&mut self, now: Now) {
        if self.file.is_due(now) && self.may_compact() {
            self.file.queue_compaction();
            let compact = ToDatabase::Control(Control::Compact(None));
            self.barrier_queue.push(compact);
        }
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

    /// Composes updates for every session that is ready, unless it is too early. Called once per
    /// batch of inputs.
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

    /// Whether there are requests to the file.
    #[must_use]
    pub fn has_stores(&self) -> bool {
        self.file.has_requests()
    }

    /// Takes the requests to the file. Call it after the jobs have been taken: composing long
    /// records may take long.
    pub fn take_stores(&mut self) -> Vec<StorageRequest> {
        let counts = &mut self.observers.counts;
        self.file.take_requests(&mut self.pending, counts)
    }

    /// The last entry that a member's database has applied, if that is news.
    pub(crate) fn take_applied(&mut self) -> Option<Index> {
        self.model.member_mut()?.take_applied()
    }

    /// Takes the requests for the member of a clustered database, in order. No other database has
    /// any.
    pub(crate) fn take_member_requests(&mut self) -> impl Iterator<Item = MemberRequest> + use<> {
        let requests = self.model.member_mut().map(Clustered::take_requests);
        requests.into_iter().flatten()
    }

    /// Takes the requests for the source of a relay, in order. No other database has any.
    pub(crate) fn take_source_requests(&mut self) -> impl Iterator<Item = SourceRequest> + use<> {
        let upstream = self.model.upstream_mut();
        let requests = upstream.map(Upstream::take_source_requests);
        requests.into_iter().flatten()
    }

    /// Reports the last answered transaction if it was slow. Called with the present time before
    /// the next input that takes time, and at the end of each batch.
    pub fn report_slow(&mut self, now: Now) {
        let name = &self.database.schema().name;
        let slow = self.observers.slow.report(now, name);
        self.outputs.events.extend(slow);
    }

    /// Whether nothing of any session is left: nothing is blocked, pending or queued, and nothing
    /// is monitored.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.activity().allows(Question::IsIdle)
    }
}

/// Messages of the server itself.
impl DatabaseService {
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
            Control::SetRecordClients(are_recorded) => self.file.name_clients(are_recorded),
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
        self.executor.once.end_numbering();
        self.subscriptions.restart_history(is_kept, last_txn);
    }

    /// Compacts the file, while nothing is pending. An event answers when a crash cannot bring the
    /// old file back.
    fn compact(&mut self, now: Now, token: Option<u64>) {
        if token.is_none() {
            self.file.end_queued_compaction();
        }
        if let Some(member) = self.model.member_mut() {
            member.compact(
                token,
                &mut self.database,
                &self.pending,
                &self.executor.once,
            );
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
                self.outputs.drop_request(&request);
            } else {
                self.replying()
                    .fail(&request, &canceled_because("removing database"));
            }
        }
        self.replying().cancel_monitors();
        let triggers = self.executor.triggers.take_all();
        self.replying().cancel_triggers(triggers);
        self.cancel_in_flight(now);
        self.observers.watched_columns.clear();
        self.end_backup();
        self.subscriptions.forget_sessions();
        // From now on no shard reports that a session has read its replies.
        for session in self.outputs.outboxes.blocked_by(Reason::ReplyBackpressure) {
            self.outputs.outboxes.clear_unread(session);
            self.replying().resume_if_unblocked(session);
        }
        self.file.give_up_compaction();
        let removed = Err(database_removed(&self.database.schema().name));
        let answers = self.file.answer_compactions(&removed);
        self.outputs.events.extend(answers);
    }
}
