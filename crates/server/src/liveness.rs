//! Whether the threads that everything depends on get on with their work.
//!
//! Whoever works on a database, its own thread or a shard that executes inline, notes when the present piece of work began and that it is
//! done; the main thread notes each pass of its loop, which it makes every few seconds whatever happens. So who is idle counts as
//! alive, and who has been at one piece of work for very long counts as stuck: it waits for something that does not come, or goes
//! round in circles. A long transaction is one piece of work; others are parts of a batch.
//!
//! Invariant: an entry lives as long as its [`Heartbeat`], so a database that is served no more is asked after no more. Writers:
//! [`crate::database::driver`] and [`crate::main_loop`], at moments for which they have read the clock anyway. Readers: the watchdog and
//! whoever answers questions about health, on any thread, without holding up those who work.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// At one piece of work for longer than this: stuck, ms. The longest honest ones, transactions of millions of rows, take seconds.
pub(crate) const STUCK_MS: u64 = 60_000;

/// One thread's, or one database's, to note what it does; cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heartbeat(Arc<Beat>);

/// When the present piece of work began, monotonic ms; 0: at rest.
#[derive(Debug, Default)]
struct Beat(AtomicU64);

impl Heartbeat {
    /// A piece of work begins; the one before it is done. `now_ms` is monotonic.
    pub(crate) fn work(&self, now_ms: u64) {
        self.0.0.store(now_ms, Ordering::Relaxed);
    }

    /// The work is done, and nothing is to be done until somebody asks for something.
    pub(crate) fn rest(&self) {
        self.0.0.store(0, Ordering::Relaxed);
    }

    /// For how long the present piece of work has lasted, ms; 0 at rest.
    #[must_use]
    pub(crate) fn busy_ms(&self, now_ms: u64) -> u64 {
        self.0.busy_ms(now_ms)
    }
}

impl Beat {
    fn busy_ms(&self, now_ms: u64) -> u64 {
        match self.0.load(Ordering::Relaxed) {
            0 => 0,
            since_ms => now_ms.saturating_sub(since_ms),
        }
    }
}

/// Everybody's.
#[derive(Debug, Default)]
pub(crate) struct Heartbeats(Mutex<Vec<(String, Weak<Beat>)>>);

impl Heartbeats {
    /// One more, of `main` or `db:NAME`; asked after until all its clones are gone.
    #[must_use]
    pub(crate) fn add(&self, name: &str) -> Heartbeat {
        let beat = Heartbeat::default();
        let mut beats = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        beats.push((name.to_owned(), Arc::downgrade(&beat.0)));
        beat
    }

    /// Who is there, with how long the present piece of work of each has lasted, ms (0: at rest).
    #[must_use]
    pub(crate) fn busy(&self, now_ms: u64) -> Vec<(String, u64)> {
        let mut beats = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut busy = Vec::new();
        beats.retain(|(name, beat)| {
            let beat = beat.upgrade();
            busy.extend(
                beat.as_ref()
                    .map(|beat| (name.clone(), beat.busy_ms(now_ms))),
            );
            beat.is_some()
        });
        busy
    }

    /// Who has been at one piece of work for longer than `limit_ms` ([`STUCK_MS`]), and for how long, ms.
    #[must_use]
    pub(crate) fn stuck(&self, now_ms: u64, limit_ms: u64) -> Vec<(String, u64)> {
        let mut stuck = self.busy(now_ms);
        stuck.retain(|(_, busy_ms)| *busy_ms > limit_ms);
        stuck
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_idle_are_alive_and_the_busy_are_stuck_after_a_while() {
        let beats = Heartbeats::default();
        let (main, database) = (beats.add("main"), beats.add("db:A"));
        assert_eq!(beats.stuck(1_000_000, STUCK_MS), [], "at rest");
        main.work(1000);
        database.work(2000);
        assert_eq!(main.busy_ms(1500), 500);
        assert_eq!(beats.stuck(61_000, STUCK_MS), []);
        assert_eq!(beats.stuck(61_001, STUCK_MS), [("main".to_owned(), 60_001)]);
        main.work(61_002);
        assert_eq!(beats.stuck(70_000, STUCK_MS), [("db:A".to_owned(), 68_000)]);
        database.rest();
        assert_eq!(beats.stuck(70_000, STUCK_MS), []);
    }

    #[test]
    fn whoever_is_gone_is_asked_after_no_more() {
        let beats = Heartbeats::default();
        let database = beats.add("db:A");
        let clone = database.clone();
        database.work(1);
        drop(database);
        assert_eq!(beats.busy(11), [("db:A".to_owned(), 10)]);
        drop(clone);
        assert_eq!(beats.busy(11), []);
    }
}
