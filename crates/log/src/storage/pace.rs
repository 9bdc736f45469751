//! How fast the disk accepts records: decides whether the holder of the database may write them
//! itself or leaves them to the disk thread.
//!
//! A shard serves many connections, so it must not wait for a disk that is busy writing back. The
//! caller measures the duration of each write.
//!
//! Invariant: after opening, and after a slow or failed write, the disk counts as quick only after
//! several quick writes in a row. Each relapse doubles that number. The
//! [`Committer`](super::Committer) calls this module.

/// A single write that takes at least this long is slow, ns.
const SLOW_NS: u64 = 5_000_000;

/// Writes that take at least this long on average are slow, ns.
const SLOW_AVERAGE_NS: u64 = 1_000_000;

/// A write that takes less than this is quick, ns.
const QUICK_NS: u64 = 500_000;

/// Extra time allowed per byte, ns: copying 4 MB takes long on any disk.
const BYTE_NS: u64 = 4;

/// Weight of the moving average: each write counts for one part in this many.
const AVERAGE_WEIGHT: u64 = 8;

/// Initial number of quick writes in a row that are required.
pub const QUICK_WRITES_MIN: u32 = 8;

/// Maximum number of quick writes in a row that are required.
const QUICK_WRITES_MAX: u32 = 4096;

/// After this many writes without a slow one, the requirement returns to its minimum.
const RESET_WRITES: u32 = 16_384;

/// Tracks whether the disk is quick enough for inline writes.
#[derive(Debug)]
pub(super) struct Pace {
    is_quick: bool,
    /// Moving average of write durations, ns.
    average_ns: u64,
    /// Writes since the last slow one.
    streak: u32,
    /// Number of quick writes in a row that are required.
    required: u32,
}

impl Default for Pace {
    /// For a disk that has not been written to yet.
    fn default() -> Pace {
        Pace {
            is_quick: false,
            average_ns: 0,
            streak: 0,
            required: QUICK_WRITES_MIN,
        }
    }
}

impl Pace {
    /// For a disk that counts as quick without proof.
    pub(super) fn presumed_quick() -> Pace {
        Pace {
            is_quick: true,
            ..Pace::default()
        }
    }

    /// Whether writes are fast enough for the holder of the database to do them inline.
    pub(super) fn is_quick(&self) -> bool {
        self.is_quick
    }

    /// Records how long a write of this many bytes took.
    pub(super) fn record_write(&mut self, took_ns: u64, bytes: usize) {
        let took_ns = took_ns.saturating_sub(bytes as u64 * BYTE_NS);
        self.average_ns = (self.average_ns * (AVERAGE_WEIGHT - 1) + took_ns) / AVERAGE_WEIGHT;
        self.streak = self.streak.saturating_add(1);
        if self.is_quick {
            if took_ns >= SLOW_NS || self.average_ns >= SLOW_AVERAGE_NS {
                self.required = (self.required * 2).min(QUICK_WRITES_MAX);
                self.record_failure();
            } else if self.streak >= RESET_WRITES {
                self.required = QUICK_WRITES_MIN;
            }
        } else if took_ns >= QUICK_NS {
            self.streak = 0;
        } else if self.streak >= self.required {
            self.is_quick = true;
            self.average_ns = took_ns;
            self.streak = 0;
        }
    }

    /// Records that a write, a sync or a cut has failed.
    pub(super) fn record_failure(&mut self) {
        self.is_quick = false;
        self.streak = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Number of writes of this duration until the disk counts as quick; `u32::MAX` if it never
    /// does.
    fn writes_until_quick(pace: &mut Pace, took_ns: u64) -> u32 {
        for number in 1..100_000 {
            pace.record_write(took_ns, 200);
            if pace.is_quick() {
                return number;
            }
        }
        u32::MAX
    }

    #[test]
    fn disk_is_quick_after_several_quick_writes() {
        let mut pace = Pace::default();
        assert_eq!(writes_until_quick(&mut pace, 5_000), QUICK_WRITES_MIN);
        let mut pace = Pace::default();
        assert_eq!(writes_until_quick(&mut pace, 2 * MS), u32::MAX);
        assert_eq!(writes_until_quick(&mut pace, 5_000), QUICK_WRITES_MIN);
    }

    #[test]
    fn one_slow_write_or_a_slow_average_make_the_disk_slow() {
        let mut pace = Pace::default();
        writes_until_quick(&mut pace, 5_000);
        pace.record_write(500 * MS, 200);
        assert!(!pace.is_quick());
        writes_until_quick(&mut pace, 5_000);
        pace.record_write(4 * MS, 200);
        assert!(pace.is_quick(), "a scheduler may do that");
        for _ in 0..AVERAGE_WEIGHT {
            pace.record_write(4 * MS, 200);
        }
        assert!(!pace.is_quick());
    }

    #[test]
    fn allowed_duration_grows_with_the_record() {
        let mut pace = Pace::default();
        writes_until_quick(&mut pace, 5_000);
        pace.record_write(40 * MS, 10_000_000);
        assert!(pace.is_quick());
        pace.record_write(80 * MS, 10_000_000);
        assert!(!pace.is_quick());
    }

    #[test]
    fn each_slow_write_doubles_the_required_streak_until_a_reset() {
        let mut pace = Pace::default();
        let mut required = writes_until_quick(&mut pace, 5_000);
        for _ in 0..20 {
            pace.record_write(10 * MS, 200);
            let more = writes_until_quick(&mut pace, 5_000);
            assert!(more == 2 * required || more == QUICK_WRITES_MAX);
            required = more;
        }
        for _ in 0..RESET_WRITES {
            pace.record_write(5_000, 200);
        }
        pace.record_write(10 * MS, 200);
        let writes = writes_until_quick(&mut pace, 5_000);
        assert_eq!(writes, 2 * QUICK_WRITES_MIN);
    }

    #[test]
    fn failure_requires_quick_writes_again() {
        let mut pace = Pace::default();
        writes_until_quick(&mut pace, 5_000);
        pace.record_failure();
        assert!(!pace.is_quick());
        assert_eq!(writes_until_quick(&mut pace, 5_000), QUICK_WRITES_MIN);
    }
}
