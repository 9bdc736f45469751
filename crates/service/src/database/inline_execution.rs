//! Inline execution: inputs cheap enough for a shard, or a member's thread, to execute itself, without waking the database thread. Called by
//! [`crate::pump`] only.
//!
//! Invariant: nothing here takes long, however large the database is and however many inputs wait. An input that might take long is handed
//! back unchanged, and all inputs behind it must be left too. Inline execution does the work of [`DatabaseService::handle`]; only
//! [`DatabaseService::tick`] and flushes that [`DatabaseService::flush_if_small`] declines are left to the database thread.

use corvid_consensus::database::MemberEvent;
use corvid_engine::WorkBudget;

use super::barrier::Question;
use super::{DatabaseService, Now, clustered};
use crate::message::{Control, DatabaseMethod, ToDatabase};

/// Longer requests are not executed inline, bytes.
const REQUEST_MAX: usize = 32 * 1024;

/// A transaction is long when its request has more bytes than this: parsing it takes about a millisecond.
const LONG_BYTES: usize = 256 * 1024;

impl DatabaseService {
    /// Executes an input if it may be executed inline and fits into the rest of `budget`. Otherwise returns it.
    pub(crate) fn try_inline(
        &mut self,
        now: Now,
        input: ToDatabase,
        budget: &mut WorkBudget,
    ) -> Option<ToDatabase> {
        let must_wait =
            self.outputs.outboxes.must_queue(&input) || self.awaits_cluster(&input).is_some();
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
                    None
                }
                event => Some(ToDatabase::Member(event)),
            },
            ToDatabase::Relay(news)
                if self.may_execute_for_others() && clustered::is_short_news(&news) =>
            {
                self.handle_upstream(now, ToDatabase::Relay(news));
                None
            }
            other => Some(other),
        }
    }

    /// Executes an input, unless it is a transaction that takes more than `long_steps`. Such a transaction is returned unchanged, so that
    /// the inputs before it can be answered first. While a conversion or anything else blocks inputs, no transaction counts as long.
    pub(crate) fn handle_unless_long(
        &mut self,
        now: Now,
        input: ToDatabase,
        long_steps: u64,
    ) -> Option<ToDatabase> {
        let is_free = self.activity().allows(Question::MayExecute)
            && !self.outputs.outboxes.must_queue(&input)
            && self.awaits_cluster(&input).is_none();
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

    /// Whether nothing is under way that could make an event of the member long: contents that are replaced, requests of clients that wait
    /// until an event lets them be executed here.
    fn may_execute_for_others(&self) -> bool {
        let may_execute = self.activity().allows(Question::MayExecuteForOthers);
        may_execute && self.model.cluster().is_some()
    }

    /// Whether [`DatabaseService::tick`] has something to do.
    #[must_use]
    pub(crate) fn must_tick(&self, now: Now) -> bool {
        let trigger = self.executor.triggers.next_deadline();
        (self.file.is_due(now) && self.may_compact())
            || trigger.is_some_and(|at_ms| at_ms <= now.mono_ms)
            || self.database.is_indexing()
    }
}
