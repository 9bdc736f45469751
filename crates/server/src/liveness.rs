//! Liveness of the main thread and of each database: when the current piece of work began.
//!
//! The thread that works on a database (the database's own, or a shard that executes inline)
//! records when a piece of work begins and when it ends. The main thread records each pass of its
//! loop, which takes a few seconds at most. An idle thread is alive. A thread that has spent longer
//! than [`STUCK_MS`] on one piece is stuck: it blocks or loops forever. A long transaction is one
//! piece of work; short transactions are parts of a batch.
//!
//! Invariant: an entry lives as long as its [`Liveness`], so a database that is no longer served
//! has no entry. Writers are [`crate::database::driver`] and [`crate::main_loop`], with clock
//! readings that they need anyway. The reader is the watchdog. Readers take no lock that a writer
//! needs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A thread that spends longer than this on one piece of work is stuck, ms. The longest legitimate
/// pieces, transactions on millions of rows, take seconds.
pub(crate) const STUCK_MS: u64 = 60_000;

/// The liveness of one thread or one database; cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Liveness(Arc<BusySince>);

/// When the current piece of work began, monotonic ms; 0: idle.
#[derive(Debug, Default)]
struct BusySince(AtomicU64);

impl Liveness {
    /// Records that a piece of work begins, and that the previous one has ended. `now_ms` is
    /// monotonic.
    pub(crate) fn busy(&self, now_ms: u64) {
        self.0.0.store(now_ms, Ordering::Relaxed);
    }

    /// Records that the thread is idle.
    pub(crate) fn idle(&self) {
        self.0.0.store(0, Ordering::Relaxed);
    }

    /// Milliseconds since the current piece of work began; 0 when idle.
    #[must_use]
    pub(crate) fn busy_ms(&self, now_ms: u64) -> u64 {
        self.0.busy_ms(now_ms)
    }
}

impl BusySince {
    fn busy_ms(&self, now_ms: u64) -> u64 {
        match self.0.load(Ordering::Relaxed) {
            0 => 0,
            since_ms => now_ms.saturating_sub(since_ms),
        }
    }
}

/// The liveness entries of all threads and databases.
#[derive(Debug, Default)]
pub(crate) struct LivenessRegistry(Mutex<Vec<(String, Weak<BusySince>)>>);

impl LivenessRegistry {
    /// Adds an entry named `main`, `db:NAME` or `open:FILE`. The entry lasts until all clones of
    /// the result are dropped.
    #[must_use]
    pub(crate) fn add(&self, name: &str) -> Liveness {
        let beat = Liveness::default();
        let mut beats = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        beats.push((name.to_owned(), Arc::downgrade(&beat.0)));
        beat
    }

    /// All entries, each with the age of its current piece of work, ms (0: idle).
    #[must_use]
    pub(crate) fn durations(&self, now_ms: u64) -> Vec<(String, u64)> {
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

    /// The entries that have been on one piece of work for longer than `limit_ms` ([`STUCK_MS`]),
    /// each with the age of that piece, ms.
    #[must_use]
    pub(crate) fn stuck(&self, now_ms: u64, limit_ms: u64) -> Vec<(String, u64)> {
        let mut stuck = self.durations(now_ms);
        stuck.retain(|(_, busy_ms)| *busy_ms > limit_ms);
        stuck
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_threads_are_alive_and_busy_ones_are_stuck_after_the_limit() {
        let beats = LivenessRegistry::default();
        let (main, database) = (beats.add("main"), beats.add("db:A"));
        assert_eq!(beats.stuck(1_000_000, STUCK_MS), [], "idle");
        main.busy(1000);
        database.busy(2000);
        assert_eq!(main.busy_ms(1500), 500);
        assert_eq!(beats.stuck(61_000, STUCK_MS), []);
        assert_eq!(beats.stuck(61_001, STUCK_MS), [("main".to_owned(), 60_001)]);
        main.busy(61_002);
        assert_eq!(beats.stuck(70_000, STUCK_MS), [("db:A".to_owned(), 68_000)]);
        database.idle();
        assert_eq!(beats.stuck(70_000, STUCK_MS), []);
    }

    #[test]
    fn an_entry_ends_with_its_last_clone() {
        let beats = LivenessRegistry::default();
        let database = beats.add("db:A");
        let clone = database.clone();
        database.busy(1);
        drop(database);
        assert_eq!(beats.durations(11), [("db:A".to_owned(), 10)]);
        drop(clone);
        assert_eq!(beats.durations(11), []);
    }
}
