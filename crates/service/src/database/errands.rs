//! Errands: inputs so short that a thread with better things to do can take them along, a shard for instance, instead of waking
//! the database's own.
//!
//! Invariant: nothing here takes long, however large the database and however much waits. What might is handed back as it came, and so
//! must be everything behind it. An errand does what [`DatabaseService::handle`] would have done; only
//! [`DatabaseService::tick`] and what [`DatabaseService::flush_few`] declines are left to the thread.

use corvid_engine::Allowance;

use super::{DatabaseService, Now};
use crate::message::{Method, ToDatabase};

/// Longer requests are no errands, bytes.
const REQUEST_MAX: usize = 32 * 1024;

/// A transaction is long when it takes more steps or bytes than this: about a millisecond.
const LONG_STEPS: u64 = 50_000;
const LONG_BYTES: usize = 256 * 1024;

impl DatabaseService {
    /// Takes an input if it is an errand that fits into what is left of `allowance`. Otherwise it comes back.
    pub fn take_along(
        &mut self,
        now: Now,
        input: ToDatabase,
        allowance: &mut Allowance,
    ) -> Option<ToDatabase> {
        self.hold_unread();
        if !self.has_time() || self.held.must_follow(&input) {
            return Some(input);
        }
        match input {
            ToDatabase::Request(request)
                if request.method == Method::Transact
                    && request.frame.len() <= REQUEST_MAX
                    && !self.is_dismissed(&request.info)
                    && !self.monitors.is_behind(request.session) =>
            {
                let left = self.transact_within(now, request, allowance);
                left.map(ToDatabase::Request)
            }
            ToDatabase::Drained(session)
                if !self.monitors.is_behind(session) && !self.unread.holds(session) =>
            {
                self.drained(session);
                None
            }
            other => Some(other),
        }
    }

    /// Takes an input, unless it is a transaction that turns out to be long: that comes back as it was, so that what was done before it
    /// can be answered first. A conversion, or whatever else inputs wait for, makes no difference between long and short.
    pub fn take_unless_long(&mut self, now: Now, input: ToDatabase) -> Option<ToDatabase> {
        self.hold_unread();
        let is_free = self.deferred.is_empty()
            && !self.is_parking_much()
            && self.conversion.is_none()
            && !self.is_removed
            && !self.held.must_follow(&input);
        match input {
            ToDatabase::Request(request)
                if request.method == Method::Transact
                    && is_free
                    && !self.is_dismissed(&request.info) =>
            {
                if request.frame.len() > LONG_BYTES {
                    return Some(ToDatabase::Request(request));
                }
                let mut allowance = self.patience().at_most(LONG_STEPS);
                let left = self.transact_within(now, request, &mut allowance);
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
            && self.followed.is_empty()
            && self.deferred.is_empty()
            && self.conversion.is_none()
            && self.rewrites.is_idle()
            && !self.is_removed
            && !self.is_parking_much()
    }

    /// Whether [`DatabaseService::tick`] has something to do.
    #[must_use]
    pub fn must_tick(&self, now: Now) -> bool {
        let growth = self.growth.filter(|_| self.may_compact());
        let trigger = self.triggers.next_deadline();
        growth.is_some_and(|growth| growth.is_due(now.mono_ms))
            || trigger.is_some_and(|at_ms| at_ms <= now.mono_ms)
            || self.database.is_indexing()
    }
}
