//! How quickly the disk takes records: whether whoever holds the database may write them itself, or leaves them to the disk thread.
//!
//! A shard serves many connections, so it may not wait for a disk that is busy writing back. Durations of writes come in, measured by
//! whoever has a clock.
//!
//! Invariant: after a slow write, after a failed one, and after opening, the disk is not quick until several writes in a row have shown
//! it; and the more of them the oftener it has disappointed. Called by the [`Committer`](super::Committer).

/// A write that takes longer is slow whatever others took, ns.
const SLOW_NS: u64 = 5_000_000;

/// Writes that take longer on average are slow, ns.
const SLOW_AVERAGE_NS: u64 = 1_000_000;

/// A write that takes less shows that the disk is quick, ns.
const QUICK_NS: u64 = 500_000;

/// What a byte may take on top, ns: copying 4 MB takes long on any disk.
const BYTE_NS: u64 = 4;

/// One write in so many counts for the average.
const AVERAGED: u64 = 8;

/// So many quick writes in a row are wanted at least.
pub const QUICK_WRITES_MIN: u32 = 8;

/// So many are wanted at most.
const QUICK_WRITES_MAX: u32 = 4096;

/// After so many writes without a slow one it counts as if there had never been any.
const FORGIVEN: u32 = 16_384;

/// See the module.
#[derive(Debug)]
pub(super) struct Pace {
    is_quick: bool,
    /// What writes take, moving, ns.
    average_ns: u64,
    /// Writes without a slow one.
    row: u32,
    /// How many quick ones in a row are wanted.
    wanted: u32,
}

impl Default for Pace {
    /// Of a disk that has not been written to.
    fn default() -> Pace {
        Pace {
            is_quick: false,
            average_ns: 0,
            row: 0,
            wanted: QUICK_WRITES_MIN,
        }
    }
}

impl Pace {
    /// Of a disk that need not show anything.
    pub(super) fn presumed_quick() -> Pace {
        Pace {
            is_quick: true,
            ..Pace::default()
        }
    }

    /// Whether it takes so little to write that nobody notices.
    pub(super) fn is_quick(&self) -> bool {
        self.is_quick
    }

    /// A write of so many bytes has taken so long.
    pub(super) fn wrote(&mut self, took_ns: u64, bytes: usize) {
        let took_ns = took_ns.saturating_sub(bytes as u64 * BYTE_NS);
        self.average_ns = (self.average_ns * (AVERAGED - 1) + took_ns) / AVERAGED;
        self.row = self.row.saturating_add(1);
        if self.is_quick {
            if took_ns >= SLOW_NS || self.average_ns >= SLOW_AVERAGE_NS {
                self.wanted = (self.wanted * 2).min(QUICK_WRITES_MAX);
                self.failed();
            } else if self.row >= FORGIVEN {
                self.wanted = QUICK_WRITES_MIN;
            }
        } else if took_ns >= QUICK_NS {
            self.row = 0;
        } else if self.row >= self.wanted {
            self.is_quick = true;
            self.average_ns = took_ns;
            self.row = 0;
        }
    }

    /// A write, a sync or a cut has failed.
    pub(super) fn failed(&mut self) {
        self.is_quick = false;
        self.row = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Writes of this duration until it is quick, or not for very long.
    fn writes_until_quick(pace: &mut Pace, took_ns: u64) -> u32 {
        for number in 1..100_000 {
            pace.wrote(took_ns, 200);
            if pace.is_quick() {
                return number;
            }
        }
        u32::MAX
    }

    #[test]
    fn a_disk_is_quick_once_it_has_shown_it() {
        let mut pace = Pace::default();
        assert_eq!(writes_until_quick(&mut pace, 5_000), QUICK_WRITES_MIN);
        let mut pace = Pace::default();
        assert_eq!(writes_until_quick(&mut pace, 2 * MS), u32::MAX);
        assert_eq!(writes_until_quick(&mut pace, 5_000), QUICK_WRITES_MIN);
    }

    #[test]
    fn one_slow_write_or_several_that_are_not_quick_end_it() {
        let mut pace = Pace::default();
        writes_until_quick(&mut pace, 5_000);
        pace.wrote(500 * MS, 200);
        assert!(!pace.is_quick());
        writes_until_quick(&mut pace, 5_000);
        pace.wrote(4 * MS, 200);
        assert!(pace.is_quick(), "a scheduler may do that");
        for _ in 0..AVERAGED {
            pace.wrote(4 * MS, 200);
        }
        assert!(!pace.is_quick());
    }

    #[test]
    fn long_records_may_take_long() {
        let mut pace = Pace::default();
        writes_until_quick(&mut pace, 5_000);
        pace.wrote(40 * MS, 10_000_000);
        assert!(pace.is_quick());
        pace.wrote(80 * MS, 10_000_000);
        assert!(!pace.is_quick());
    }

    #[test]
    fn who_disappoints_often_has_to_show_more_and_is_forgiven_in_the_end() {
        let mut pace = Pace::default();
        let mut wanted = writes_until_quick(&mut pace, 5_000);
        for _ in 0..20 {
            pace.wrote(10 * MS, 200);
            let more = writes_until_quick(&mut pace, 5_000);
            assert!(more == 2 * wanted || more == QUICK_WRITES_MAX);
            wanted = more;
        }
        for _ in 0..FORGIVEN {
            pace.wrote(5_000, 200);
        }
        pace.wrote(10 * MS, 200);
        let writes = writes_until_quick(&mut pace, 5_000);
        assert_eq!(writes, 2 * QUICK_WRITES_MIN);
    }

    #[test]
    fn after_a_failure_it_has_to_be_shown_again() {
        let mut pace = Pace::default();
        writes_until_quick(&mut pace, 5_000);
        pace.failed();
        assert!(!pace.is_quick());
        assert_eq!(writes_until_quick(&mut pace, 5_000), QUICK_WRITES_MIN);
    }
}
