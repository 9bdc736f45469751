//! Inline execution: inputs cheap enough for a shard to execute itself, without waking the database thread. Called by
//! [`crate::pump`] only.
//!
//! Invariant: nothing here takes long, however large the database and however much waits. An input that might comes back as it
//! was, and the inputs behind it must come back too. Inline execution does what [`DatabaseService::handle`] would have done; only
//! [`DatabaseService::tick`] and what [`DatabaseService::flush_if_small`] declines are left to the database thread.

use corvid_engine::WorkBudget;

use super::{DatabaseService, Now};
use crate::message::{DatabaseMethod, ToDatabase};

/// Longer requests are not executed inline, bytes.
const REQUEST_MAX: usize = 32 * 1024;

/// A transaction is long when its request has more bytes than this: reading it takes about a millisecond.
const LONG_BYTES: usize = 256 * 1024;

impl DatabaseService {
    /// Executes an input if it is one for inline execution and fits into what is left of `budget`. Otherwise it comes back.
    pub(crate) fn try_inline(
        &mut self,
        now: Now,
        input: ToDatabase,
        budget: &mut WorkBudget,
    ) -> Option<ToDatabase> {
        if !self.has_time() || self.outputs.outboxes.must_queue(&input) {
            return Some(input);
        }
        match input {
            ToDatabase::Request(request)
                if request.method == DatabaseMethod::Transact
                    && request.frame.len() <= REQUEST_MAX
                    && !self.is_dismissed(&request.info)
                    && !self.monitors.is_behind(request.session) =>
            {
                let left = self.transact_within(now, request, budget);
                left.map(ToDatabase::Request)
            }
            ToDatabase::Drained(session)
                if !self.monitors.is_behind(session)
                    && !self.outputs.outboxes.has_requests(session) =>
            {
                self.drained(session);
                None
            }
            other => Some(other),
        }
    }

    /// Executes an input, unless it is a transaction that turns out to take more than `long_steps`: that comes back as it was, so that
    /// the inputs before it can be answered first. While a conversion, or anything else, blocks inputs, no transaction counts as long.
    pub(crate) fn handle_unless_long(
        &mut self,
        now: Now,
        input: ToDatabase,
        long_steps: u64,
    ) -> Option<ToDatabase> {
        let is_free = self.barrier_queue.is_empty()
            && !self.pending.is_full()
            && self.conversion.is_none()
            && !self.is_removed
            && !self.outputs.outboxes.must_queue(&input);
        match input {
            ToDatabase::Request(request)
                if request.method == DatabaseMethod::Transact
                    && is_free
                    && !self.is_dismissed(&request.info) =>
            {
                if request.frame.len() > LONG_BYTES {
                    return Some(ToDatabase::Request(request));
                }
                let mut budget = self.work_budget().at_most(long_steps);
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

    /// Whether nothing is under way that a commit might concern, and that might make it long: transactions that wait, columns that
    /// configure remotes, a conversion, a new file.
    fn has_time(&self) -> bool {
        self.triggers.is_empty()
            && self.watched_columns.is_empty()
            && self.barrier_queue.is_empty()
            && self.conversion.is_none()
            && self.rewrites.is_idle()
            && !self.is_removed
            && !self.pending.is_full()
    }

    /// Whether [`DatabaseService::tick`] has something to do.
    #[must_use]
    pub(crate) fn must_tick(&self, now: Now) -> bool {
        let growth = self.growth.filter(|_| self.may_compact());
        let trigger = self.triggers.next_deadline();
        growth.is_some_and(|growth| growth.is_due(now.mono_ms))
            || trigger.is_some_and(|at_ms| at_ms <= now.mono_ms)
            || self.database.is_indexing()
    }
}
