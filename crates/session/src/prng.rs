//! Reproducible random numbers, for the order of remotes and for delays of attempts.
//!
//! The seed is an input, so a run can be repeated. None of these numbers has to be unpredictable.

use corvid_json::splitmix::SplitMix64;

/// A splitmix64 generator.
#[derive(Debug, Clone)]
pub struct Prng(SplitMix64);

impl Prng {
    /// A generator that starts from this seed.
    #[must_use]
    pub fn new(seed: u64) -> Prng {
        Prng(SplitMix64::new(seed))
    }

    /// A number below `bound`; 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.word().checked_rem(bound).unwrap_or(0)
    }

    /// Any number: each state of the generator yields a different one.
    pub fn word(&mut self) -> u64 {
        self.0.draw()
    }

    /// Shuffles the items; every order is equally likely.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1);
            items.swap(last, usize::try_from(other).unwrap_or(last));
        }
    }
}
