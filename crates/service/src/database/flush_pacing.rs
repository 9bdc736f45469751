//! When sessions are told what they monitor: before each of their replies, and otherwise in rounds.
//!
//! A round composes for every session that is ready. Its cost is a write for each, which dwarfs the commits that it tells of when many
//! monitor the same. So after a round to many the next one waits about three times as long as that one took; what is committed
//! meanwhile merges, and leaves together. A change that comes after a quiet moment leaves at once.
//!
//! Invariant: while anything is pending for a session that is ready, a round is due ([`DatabaseService::next_deadline_ms`]); no reply
//! overtakes what its session has yet to be told.

use corvid_monitor::SessionId;

use super::{DatabaseService, Now};

/// A round to so many sessions is followed by a pause of one millisecond. Telling one takes some 5 us: a frame, a queue, a write.
const SESSIONS_PER_MS: u64 = 50;
/// The longest pause, ms.
const PAUSE_MAX_MS: u64 = 20;

/// Changed rows that take some 300 us to tell of.
const MANY_CHANGES: usize = 1000;

/// The rounds of one database.
#[derive(Debug, Default)]
pub(super) struct FlushPacing {
    /// The next one is not before this, monotonic ms.
    next_ms: u64,
    /// Rows that were changed since the last one.
    changes: usize,
}

impl FlushPacing {
    fn is_time(&self, now: Now) -> bool {
        self.next_ms <= now.mono_ms
    }

    /// A commit is to be told of.
    pub(super) fn add(&mut self, changes: usize) {
        self.changes = self.changes.saturating_add(changes);
    }

    /// A round to so many sessions is being made.
    fn begin(&mut self, now: Now, sessions: usize) {
        self.changes = 0;
        let pause_ms = (sessions as u64 / SESSIONS_PER_MS).min(PAUSE_MAX_MS);
        self.next_ms = now.mono_ms + pause_ms;
    }
}

impl DatabaseService {
    /// Hands over everything the session has yet to be told.
    pub(super) fn send_updates(&mut self, session: SessionId) {
        let mut frames = Vec::new();
        self.monitors.flush(session, &mut frames);
        self.defer_bodies(session, &mut frames);
        if !frames.is_empty() {
            self.monitors.set_ready(session, false);
            self.outputs.updates(session, frames);
        }
    }

    /// Whether composing updates may take long, so that what is ready to leave had better leave before.
    #[must_use]
    pub fn is_flush_long(&self) -> bool {
        self.monitors.pending_len() > 0 && self.flush_pacing.changes > MANY_CHANGES
    }

    /// Whether some session that is ready has yet to be told of a commit.
    #[must_use]
    pub fn has_pending_updates(&self) -> bool {
        self.monitors.pending_len() > 0
    }

    /// Composes updates for every session that is ready for them, if it is time for that. Called once per batch of inputs.
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

    /// The same if there are at most `sessions_max` sessions to compose for, and not much to tell. False otherwise: then nothing is done.
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

    /// When the next round is due, if there is anything to tell.
    pub(super) fn updates_due_ms(&self) -> Option<u64> {
        (self.monitors.pending_len() > 0).then_some(self.flush_pacing.next_ms)
    }
}
