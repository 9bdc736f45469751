//! When sessions get updates: before each of their replies, and otherwise by flushes at the end of a batch, whose pace is limited.
//!
//! A flush composes updates for every session that is ready. Its cost is a write for each session, which is far more than the commits cost
//! when many sessions monitor the same rows. So after a flush to many sessions the next one waits about three times as long as that one
//! took; commits meanwhile merge and leave together. A change after a quiet moment leaves at once.
//!
//! Invariant: while an update is pending for a session that is ready, a flush is due ([`DatabaseService::next_deadline_ms`]). No reply
//! overtakes the updates that its session has yet to get.

use corvid_monitor::SessionId;

use super::{DatabaseService, Now};

/// A flush to so many sessions is followed by a pause of one millisecond. One session takes some 5 us: a frame, a queue, a write.
const SESSIONS_PER_MS: u64 = 50;
/// The longest pause, ms.
const PAUSE_MAX_MS: u64 = 20;

/// Changed rows whose updates take some 300 us to compose.
const MANY_CHANGES: usize = 1000;

/// The pace of one database's flushes.
#[derive(Debug, Default)]
pub(super) struct FlushPacing {
    /// The next flush is not before this, monotonic ms.
    next_ms: u64,
    /// Rows that were changed since the last flush.
    changes: usize,
}

impl FlushPacing {
    fn is_time(&self, now: Now) -> bool {
        self.next_ms <= now.mono_ms
    }

    /// Counts the changed rows of a commit.
    pub(super) fn add(&mut self, changes: usize) {
        self.changes = self.changes.saturating_add(changes);
    }

    /// A flush to so many sessions begins.
    fn begin(&mut self, now: Now, sessions: usize) {
        self.changes = 0;
        let pause_ms = (sessions as u64 / SESSIONS_PER_MS).min(PAUSE_MAX_MS);
        self.next_ms = now.mono_ms + pause_ms;
    }
}

impl DatabaseService {
    /// Sends a session all its pending updates.
    pub(super) fn send_updates(&mut self, session: SessionId) {
        let mut frames = Vec::new();
        self.monitors.flush(session, &mut frames);
        self.defer_bodies(session, &mut frames);
        if !frames.is_empty() {
            self.monitors.set_ready(session, false);
            self.outputs.updates(session, frames);
        }
    }

    /// Whether composing updates may take long, so that finished replies should leave first.
    #[must_use]
    pub fn is_flush_long(&self) -> bool {
        self.monitors.pending_len() > 0 && self.flush_pacing.changes > MANY_CHANGES
    }

    /// Whether a session that is ready has pending updates.
    #[must_use]
    pub fn has_pending_updates(&self) -> bool {
        self.monitors.pending_len() > 0
    }

    /// Composes updates for every session that is ready, unless it is too early. Called once per batch of inputs.
    pub fn flush_updates(&mut self, now: Now) {
        if self.monitors.pending_len() == 0 || !self.flush_pacing.is_time(now) {
            return;
        }
        let mut sessions = Vec::new();
        self.monitors.take_pending(&mut sessions);
        self.flush_pacing.begin(now, sessions.len());
        for session in sessions {
            self.send_updates(session);
        }
    }

    /// The same if there are at most `sessions_max` sessions and few changes. Otherwise does nothing and returns false.
    pub fn flush_if_small(&mut self, now: Now, sessions_max: usize) -> bool {
        if !self.flush_pacing.is_time(now) {
            return true;
        }
        let is_few = self.monitors.pending_len() <= sessions_max && !self.is_flush_long();
        if is_few {
            self.flush_updates(now);
        }
        is_few
    }

    /// When the next flush is due, if there are pending updates.
    pub(super) fn updates_due_ms(&self) -> Option<u64> {
        (self.monitors.pending_len() > 0).then_some(self.flush_pacing.next_ms)
    }
}
