//! Reproducible random numbers: for the order in which remotes are tried, and for the delays of attempts.
//!
//! The seed is an input, so a run can be repeated. Nothing here must be hard to guess.

use corvid_json::splitmix::SplitMix64;

/// A splitmix64 generator.
#[derive(Debug, Clone)]
pub struct Prng(SplitMix64);

impl Prng {
    /// A generator that goes on from a seed.
    #[must_use]
    pub fn new(seed: u64) -> Prng {
        Prng(SplitMix64::new(seed))
    }

    /// A number below `bound`; 0 when that is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.word().checked_rem(bound).unwrap_or(0)
    }

    /// Any number: each of the generator's states gives another one.
    pub fn word(&mut self) -> u64 {
        self.0.draw()
    }

    /// Puts the items in any order, all orders alike.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1);
            items.swap(last, usize::try_from(other).unwrap_or(last));
        }
    }
}
