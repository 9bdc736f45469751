//! Calling a thread to come and look, and telling how long it has not come.
//!
//! The caller notes when and wakes the thread by its own means; the thread answers between two pieces of work. A call that is repeated before
//! it is answered keeps its time. So an idle thread must show that it wakes, and a busy one that it comes to an end.

use std::sync::atomic::{AtomicU64, Ordering};

/// One thread's.
#[derive(Debug, Default)]
pub(super) struct Call {
    /// When it was first called without having come since, monotonic ms; 0: it has come.
    since_ms: AtomicU64,
    /// When it last came.
    came_ms: AtomicU64,
}

impl Call {
    /// Calls; the caller must wake the thread afterwards.
    pub(super) fn make(&self, now_ms: u64) {
        // Should it answer just now: the next call finds that out.
        let _ = self
            .since_ms
            .compare_exchange(0, now_ms, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Whether somebody calls. One load, for the thread to ask often.
    #[must_use]
    pub(super) fn is_made(&self) -> bool {
        self.since_ms.load(Ordering::Acquire) != 0
    }

    /// The thread has come, and what was to be looked at lies ready.
    pub(super) fn answer(&self, now_ms: u64) {
        self.came_ms.store(now_ms, Ordering::Relaxed);
        self.since_ms.store(0, Ordering::Release);
    }

    /// For how long it has not come though called, ms; 0 when nobody calls.
    #[must_use]
    pub(super) fn unanswered_ms(&self, now_ms: u64) -> u64 {
        match self.since_ms.load(Ordering::Acquire) {
            0 => 0,
            since_ms => now_ms.saturating_sub(since_ms),
        }
    }

    /// How old what it last left is, ms; `None`: it never came.
    #[must_use]
    pub(super) fn age_ms(&self, now_ms: u64) -> Option<u64> {
        match self.came_ms.load(Ordering::Relaxed) {
            0 => None,
            came_ms => Some(now_ms.saturating_sub(came_ms)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_call_keeps_its_time_until_it_is_answered() {
        let call = Call::default();
        assert_eq!((call.unanswered_ms(5), call.age_ms(5)), (0, None));
        call.make(10);
        call.make(20);
        assert!(call.is_made());
        assert_eq!(call.unanswered_ms(70), 60);
        call.answer(80);
        assert!(!call.is_made());
        assert_eq!((call.unanswered_ms(90), call.age_ms(90)), (0, Some(10)));
        call.make(100);
        assert_eq!(call.unanswered_ms(101), 1);
    }
}
