//! Transactions that wait: tried again after every commit and at their deadlines, oldest first (protocol.md 4.3).

use corvid_monitor::SessionId;

use crate::message::Request;

/// A blocked transaction.
#[derive(Debug)]
pub(super) struct Trigger {
    /// The request, executed again from its text.
    pub(super) request: Request,
    /// When to try again at the latest, ms on the monotonic clock.
    pub(super) deadline_ms: Option<u64>,
}

/// Blocked transactions in order of arrival.
#[derive(Debug, Default)]
pub(super) struct Triggers {
    waiting: Vec<Trigger>,
}

impl Triggers {
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn push(&mut self, trigger: Trigger) {
        self.waiting.push(trigger);
    }

    /// Takes all of them for another attempt; those that block again are pushed back in the same order.
    pub(super) fn take_all(&mut self) -> Vec<Trigger> {
        std::mem::take(&mut self.waiting)
    }

    /// Takes those whose deadline has come.
    pub(super) fn take_expired(&mut self, now_ms: u64) -> Vec<Trigger> {
        let is_expired = |trigger: &Trigger| {
            trigger
                .deadline_ms
                .is_some_and(|deadline| deadline <= now_ms)
        };
        if !self.waiting.iter().any(is_expired) {
            return Vec::new();
        }
        let (expired, waiting) = self.take_all().into_iter().partition(is_expired);
        self.waiting = waiting;
        expired
    }

    /// The earliest deadline.
    pub(super) fn next_deadline(&self) -> Option<u64> {
        self.waiting
            .iter()
            .filter_map(|trigger| trigger.deadline_ms)
            .min()
    }

    /// Whether a session has a blocked request with this id.
    pub(super) fn contains(&self, session: SessionId, id: &[u8]) -> bool {
        self.waiting
            .iter()
            .any(|trigger| trigger.request.session == session && *trigger.request.id == *id)
    }

    /// Takes one out.
    pub(super) fn remove(&mut self, session: SessionId, id: &[u8]) -> Option<Trigger> {
        let found =
            |trigger: &Trigger| trigger.request.session == session && *trigger.request.id == *id;
        self.waiting
            .iter()
            .position(found)
            .map(|position| self.waiting.remove(position))
    }

    /// Drops those of a session that is gone.
    pub(super) fn remove_session(&mut self, session: SessionId) {
        self.waiting
            .retain(|trigger| trigger.request.session != session);
    }
}
