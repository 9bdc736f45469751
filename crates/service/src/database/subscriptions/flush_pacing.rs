//! When sessions get updates: before each of their replies, and otherwise by flushes at the end of
//! a batch, whose pace is limited.
//!
//! A flush composes updates for every session that is ready. Its cost is a write for each session,
//! which is far more than the commits cost when many sessions monitor the same rows. So a flush to
//! many sessions is followed by a pause of about three times what it took; commits made during the
//! pause merge and leave together.
//!
//! A pause that would merge nothing is skipped. The pacing estimates the interval between commits
//! and flushes at once if the next commit is not expected before the pause ends. With 200 sessions
//! the pause is 4 ms: a client that commits every 0.1 ms has its commits merged by forty, while one
//! that waits for each commit to arrive everywhere, and so commits every 3 ms, never waits for the
//! rest of a pause. At the limit, one commit for each half pause, this doubles the flushes.
//!
//! Invariant: while an update is pending for a session that is ready, a flush is due
//! ([`Subscriptions::updates_due_ms`]). No reply overtakes the updates that its session has yet to
//! get.

use corvid_monitor::{Frame, SessionId};

use super::super::Now;
use super::Subscriptions;
use crate::environment::Environment;
use crate::replies::Outputs;

/// A flush to so many sessions is followed by a pause of one millisecond. One session takes some 5
/// us: a frame, a queue, a write.
const SESSIONS_PER_MS: u64 = 50;
/// The longest pause, ms.
const PAUSE_MAX_MS: u64 = 20;

/// The estimate of the interval between commits has this many units in a millisecond.
const UNITS_PER_MS: u64 = 16;

/// Changed rows whose updates take some 300 us to compose.
const MANY_CHANGES: usize = 1000;

/// The pace of one database's flushes.
#[derive(Debug, Default)]
pub(super) struct FlushPacing {
    /// The next flush is not before this, monotonic ms.
    next_ms: u64,
    /// Rows that were changed since the last flush.
    changes: usize,
    /// Commits that became visible since the last observation.
    commits: u64,
    /// When commits were last observed, monotonic ms.
    commit_ms: u64,
    /// The length of the last pause, ms.
    pause_ms: u64,
    /// The estimated interval between commits, in units: half of it is the last interval, a quarter
    /// the one before. An interval counts as a pause at most, so a burst that ends a quiet hour is
    /// paced from its second commit on.
    interval: u64,
}

impl FlushPacing {
    /// Whether a flush may begin. Called at the end of each batch, it also observes the commits of
    /// that batch.
    fn is_time(&mut self, now: Now) -> bool {
        let interval_ms = now
            .mono_ms
            .saturating_sub(self.commit_ms)
            .min(self.pause_ms);
        // Without commits there is nothing to divide by, and nothing to observe.
        if let Some(interval) = (UNITS_PER_MS * interval_ms).checked_div(self.commits) {
            self.interval = (self.interval + interval) / 2;
            (self.commits, self.commit_ms) = (0, now.mono_ms);
        }
        UNITS_PER_MS * self.next_ms.saturating_sub(now.mono_ms) <= self.interval
    }

    /// Counts the changed rows of a commit.
    pub(super) fn add(&mut self, changes: usize) {
        self.changes = self.changes.saturating_add(changes);
        self.commits += 1;
    }

    /// A flush to so many sessions begins.
    fn begin(&mut self, now: Now, sessions: usize) {
        self.changes = 0;
        self.pause_ms = (sessions as u64 / SESSIONS_PER_MS).min(PAUSE_MAX_MS);
        self.next_ms = now.mono_ms + self.pause_ms;
    }
}

impl Subscriptions {
    /// Sends a session all its pending updates.
    pub(in super::super) fn send_updates(
        &mut self,
        session: SessionId,
        outputs: &mut Outputs,
        environment: &Environment,
    ) {
        let mut frames = Vec::new();
        self.monitors.flush(session, &mut frames);
        self.send_frames(session, frames, outputs, environment);
    }

    /// Sends a session its next updates. The others follow when it has read these.
    fn send_next_updates(
        &mut self,
        session: SessionId,
        outputs: &mut Outputs,
        environment: &Environment,
    ) {
        let mut is_left = true;
        // An update whose changes cancel out is not sent, so nobody will report that it was read.
        while is_left {
            let mut frames = Vec::new();
            is_left = self.monitors.flush_step(session, &mut frames);
            is_left &= !self.send_frames(session, frames, outputs, environment);
        }
    }

    /// Returns whether there is anything to send.
    fn send_frames(
        &mut self,
        session: SessionId,
        mut frames: Vec<Frame>,
        outputs: &mut Outputs,
        environment: &Environment,
    ) -> bool {
        outputs.defer_bodies(session, &mut frames, &mut self.monitors, environment);
        let is_sent = !frames.is_empty();
        if is_sent {
            // Later changes merge until the session has read these.
            self.monitors.set_ready(session, false);
            outputs.updates(session, frames);
        }
        is_sent
    }

    /// Sets how many changed rows an update may have before its body is deferred to a job, and by
    /// that the steps of long updates.
    pub(in super::super) fn set_update_rows_max(&mut self, rows: usize) {
        // With shorter steps a slow client would get a message for each commit that it has missed.
        const STEP_ROWS_MIN: usize = 4;
        const STEP_BYTES_PER_ROW: u64 = 1024;
        self.monitors.set_update_rows_max(rows);
        let rows = rows.max(STEP_ROWS_MIN) as u64;
        self.monitors
            .set_step_bytes(rows.saturating_mul(STEP_BYTES_PER_ROW));
    }

    /// Whether composing updates may take long, so that finished replies should leave first.
    pub(in super::super) fn is_flush_long(&self) -> bool {
        self.has_pending_updates() && self.pacing.changes > MANY_CHANGES
    }

    /// Whether a session that is ready has pending updates.
    pub(in super::super) fn has_pending_updates(&self) -> bool {
        self.monitors.pending_len() > 0
    }

    /// Composes updates for every session that is ready, unless it is too early.
    pub(in super::super) fn flush(
        &mut self,
        now: Now,
        outputs: &mut Outputs,
        environment: &Environment,
    ) {
        if !self.pacing.is_time(now) || !self.has_pending_updates() {
            return;
        }
        let mut sessions = Vec::new();
        self.monitors.take_pending(&mut sessions);
        self.pacing.begin(now, sessions.len());
        for session in sessions {
            self.send_next_updates(session, outputs, environment);
        }
    }

    /// The same if there are at most `sessions_max` sessions and few changes. Otherwise does
    /// nothing and returns false.
    pub(in super::super) fn flush_if_small(
        &mut self,
        now: Now,
        sessions_max: usize,
        outputs: &mut Outputs,
        environment: &Environment,
    ) -> bool {
        if !self.pacing.is_time(now) {
            return true;
        }
        let is_few = self.monitors.pending_len() <= sessions_max && !self.is_flush_long();
        if is_few {
            self.flush(now, outputs, environment);
        }
        is_few
    }

    /// When the next flush is due, if there are pending updates, monotonic ms.
    pub(in super::super) fn updates_due_ms(&self) -> Option<u64> {
        self.has_pending_updates().then_some(self.pacing.next_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSIONS: usize = 4 * SESSIONS_PER_MS as usize;

    /// How many flushes there are for a commit every so many tenths of a millisecond, in a second.
    fn flushes(pacing: &mut FlushPacing, interval: u64) -> usize {
        let mut count = 0;
        let mut pending = false;
        for tenths in (0..10_000).step_by(interval as usize) {
            let now = Now {
                mono_ms: 100_000 + tenths / 10,
                wall_ms: 0,
            };
            pacing.add(1);
            pending = true;
            if pacing.is_time(now) {
                pacing.begin(now, SESSIONS);
                count += 1;
                pending = false;
            }
        }
        count + usize::from(pending)
    }

    #[test]
    fn commits_that_come_faster_than_half_a_pause_merge() {
        // A pause of 4 ms ends early by less than one interval.
        for (interval, most) in [(1, 260), (3, 280), (5, 290), (10, 345), (15, 345)] {
            let count = flushes(&mut FlushPacing::default(), interval);
            assert!((240..=most).contains(&count), "{interval}: {count}");
        }
    }

    #[test]
    fn commits_that_come_slower_leave_at_once() {
        for interval in [30, 33, 40, 100] {
            let mut pacing = FlushPacing::default();
            let count = flushes(&mut pacing, interval);
            // The first ones show the interval.
            assert!(count as u64 + 4 >= 10_000 / interval, "{interval}: {count}");
        }
    }

    #[test]
    fn a_burst_after_quiet_is_paced_from_its_second_commit() {
        let mut pacing = FlushPacing::default();
        let now = |mono_ms| Now {
            mono_ms,
            wall_ms: 0,
        };
        for mono_ms in [1_000, 2_000, 3_000] {
            pacing.add(1);
            assert!(pacing.is_time(now(mono_ms)));
            pacing.begin(now(mono_ms), SESSIONS);
        }
        pacing.add(1);
        assert!(!pacing.is_time(now(3_000)));
        assert!(pacing.is_time(now(3_004)));
    }
}
