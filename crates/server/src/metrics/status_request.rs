//! A request to a thread for its status, and how long the thread has left it unanswered.
//!
//! The page sends the request and wakes the thread; the thread answers between two pieces of work.
//! A request that is repeated before it is answered keeps its time. An answer therefore proves that
//! an idle thread wakes, and that a busy thread finishes its current piece of work.

use std::sync::atomic::{AtomicU64, Ordering};

/// The request to one thread.
#[derive(Debug, Default)]
pub(super) struct StatusRequest {
    /// When the oldest unanswered request was sent, monotonic ms; 0: all are answered.
    since_ms: AtomicU64,
    /// When the last answer arrived, monotonic ms; 0: never.
    answered_ms: AtomicU64,
}

impl StatusRequest {
    /// Sends the request; the caller must wake the thread afterwards.
    pub(super) fn send(&self, now_ms: u64) {
        // If the thread answers at this very moment, the next request takes effect.
        let _ = self
            .since_ms
            .compare_exchange(0, now_ms, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Whether a request is unanswered. Costs one load, so the thread can check often.
    #[must_use]
    pub(super) fn is_pending(&self) -> bool {
        self.since_ms.load(Ordering::Acquire) != 0
    }

    /// Records that the thread has published its status.
    pub(super) fn answer(&self, now_ms: u64) {
        self.answered_ms.store(now_ms, Ordering::Relaxed);
        self.since_ms.store(0, Ordering::Release);
    }

    /// Milliseconds since the oldest unanswered request; 0 if all are answered.
    #[must_use]
    pub(super) fn unanswered_ms(&self, now_ms: u64) -> u64 {
        match self.since_ms.load(Ordering::Acquire) {
            0 => 0,
            since_ms => now_ms.saturating_sub(since_ms),
        }
    }

    /// The age of the last answer, ms; `None`: there was none.
    #[must_use]
    pub(super) fn age_ms(&self, now_ms: u64) -> Option<u64> {
        match self.answered_ms.load(Ordering::Relaxed) {
            0 => None,
            answered_ms => Some(now_ms.saturating_sub(answered_ms)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_request_keeps_its_time_until_it_is_answered() {
        let request = StatusRequest::default();
        assert_eq!((request.unanswered_ms(5), request.age_ms(5)), (0, None));
        request.send(10);
        request.send(20);
        assert!(request.is_pending());
        assert_eq!(request.unanswered_ms(70), 60);
        request.answer(80);
        assert!(!request.is_pending());
        assert_eq!(
            (request.unanswered_ms(90), request.age_ms(90)),
            (0, Some(10))
        );
        request.send(100);
        assert_eq!(request.unanswered_ms(101), 1);
    }
}
