//! A histogram of durations, which some threads fill while others read it.
//!
//! Each duration falls into one of a few buckets with fixed bounds, a third of a decade apart from
//! 1 us to 100 s. The bounds are fixed so that histograms of several threads can be added. Adding a
//! duration is two relaxed additions and no lock. A reader may see one addition before the other;
//! the next reading has both.

use std::sync::atomic::{AtomicU64, Ordering};

/// The upper bounds of all buckets except the last, which has none, ns.
pub const BOUNDS_NS: [u64; BUCKETS - 1] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
    2_000_000_000,
    5_000_000_000,
    10_000_000_000,
    30_000_000_000,
    100_000_000_000,
];

const BUCKETS: usize = 25;

/// A histogram that is being filled.
#[derive(Debug, Default)]
pub struct Durations {
    buckets: [AtomicU64; BUCKETS],
    sum_ns: AtomicU64,
}

/// The contents of a histogram at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// The count of each bucket, the unbounded one last.
    pub buckets: [u64; BUCKETS],
    /// The sum of all durations, ns.
    pub sum_ns: u64,
}

impl Durations {
    /// Counts one duration.
    #[inline]
    pub fn add(&self, duration_ns: u64) {
        let bucket = BOUNDS_NS.partition_point(|bound| *bound < duration_ns);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum_ns.fetch_add(duration_ns, Ordering::Relaxed);
    }

    /// The current contents.
    #[must_use]
    pub fn read(&self) -> Counted {
        Counted {
            buckets: std::array::from_fn(|bucket| self.buckets[bucket].load(Ordering::Relaxed)),
            sum_ns: self.sum_ns.load(Ordering::Relaxed),
        }
    }
}

impl Counted {
    /// The count of all durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

impl std::ops::AddAssign for Counted {
    fn add_assign(&mut self, other: Counted) {
        for (mine, theirs) in self.buckets.iter_mut().zip(other.buckets) {
            *mine += theirs;
        }
        self.sum_ns += other.sum_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_the_bucket_below_it() {
        let durations = Durations::default();
        for duration_ns in [0, 1_000, 1_001, 2_000, 100_000_000_000, 100_000_000_001] {
            durations.add(duration_ns);
        }
        let mut counted = durations.read();
        assert_eq!(counted.buckets[..3], [2, 2, 0]);
        assert_eq!(counted.buckets[BUCKETS - 2..], [1, 1]);
        assert_eq!((counted.count(), counted.sum_ns), (6, 200_000_004_002));
        counted += counted;
        assert_eq!((counted.count(), counted.buckets[0]), (12, 4));
        assert!(BOUNDS_NS.is_sorted());
    }
}
