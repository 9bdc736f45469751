//! A batch of inputs as [`crate::pump`] executes it: which inputs are executed inline, when long
//! ones end the batch, the work between two batches, and what is taken at the end of one. Called by
//! the pump only.
//!
//! Inline execution takes inputs cheap enough for a shard, or a member's thread, to execute itself,
//! without waking the database thread. Invariant: nothing there takes long, however large the
//! database is and however many inputs wait. An input that might take long is handed back
//! unchanged, and all inputs after it must be left too. Inline execution does the work of
//! [`DatabaseService::handle`]; only [`DatabaseService::tick`] and flushes that
//! [`DatabaseService::flush_if_small`] declines are left to the database thread.

use corvid_consensus::database::MemberEvent;
use corvid_engine::WorkBudget;
use corvid_log::storage::StorageRequest;

use super::{DatabaseService, Now, clustered};
use crate::barrier::Question;
use crate::message::{Control, DatabaseMethod, ToDatabase};
use crate::upstream::is_short_news;

/// Rows taken into an index between two batches of inputs: about a millisecond.
const INDEXED_ROWS_PER_BATCH: usize = 8192;

/// Longer requests are not executed inline, bytes.
const REQUEST_MAX: usize = 32 * 1024;

/// A transaction is long when its request has more bytes than this: parsing it takes about a
/// millisecond.
const LONG_BYTES: usize = 256 * 1024;

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
                self.handle_drained(session);
                None
            }
            // The updates of `_Server` are short. Elsewhere those of a session that has not read
            // its last ones may be long.
            ToDatabase::Fence(session, answer)
                if self.model.is_server_db() || !self.subscriptions.is_behind(session) =>
            {
                self.send_updates(session);
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

    /// Whether [`DatabaseService::tick`] has something to do.
    #[must_use]
    pub(crate) fn must_tick(&self, now: Now) -> bool {
        let trigger = self.executor.triggers.next_deadline();
        (self.file.is_due(now) && self.may_compact())
            || trigger.is_some_and(|at_ms| at_ms <= now.mono_ms)
            || self.database.is_indexing()
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

    /// Takes the requests to the file. Call it after the jobs have been taken: composing long
    /// records may take long.
    pub fn take_stores(&mut self) -> Vec<StorageRequest> {
        let counts = &mut self.observers.counts;
        self.file.take_requests(&mut self.pending, counts)
    }

    /// Whether there are requests to the file.
    #[must_use]
    pub fn has_stores(&self) -> bool {
        self.file.has_requests()
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
