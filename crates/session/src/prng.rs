//! Reproducible random numbers: for the order in which remotes are tried, and for the delays of attempts.
//!
//! The seed is an input, so a run can be repeated. Nothing here must be hard to guess.

/// A splitmix64 generator.
#[derive(Debug, Clone)]
pub struct Prng(u64);

impl Prng {
    /// A generator that goes on from a seed.
    #[must_use]
    pub fn new(seed: u64) -> Prng {
        Prng(seed)
    }

    /// A number below `bound`; 0 when that is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.word().checked_rem(bound).unwrap_or(0)
    }

    /// Any number: each of the generator's states gives another one.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Puts the items in any order, all orders alike.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1);
            items.swap(last, usize::try_from(other).unwrap_or(last));
        }
    }
}
