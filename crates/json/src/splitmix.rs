//! SplitMix64: numbers that look random and follow from a seed. Every crate that needs reproducible
//! numbers may depend on this crate.
//!
//! Not for secrets: one number reveals all others.

/// The step between two states: 2^64 divided by the golden ratio.
pub const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes a number: a bijection that changes half of the bits when one changes.
#[must_use]
pub fn mix(number: u64) -> u64 {
    let mixed = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// A sequence of numbers.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// The sequence that follows from a seed.
    #[must_use]
    pub const fn new(seed: u64) -> SplitMix64 {
        SplitMix64(seed)
    }

    /// The next number. No number repeats before all 2^64 have come.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_of_a_seed_is_the_published_one() {
        let mut numbers = SplitMix64::new(1_234_567);
        assert_eq!(numbers.draw(), 6_457_827_717_110_365_317);
        assert_eq!(numbers.draw(), 3_203_168_211_198_807_973);
        assert_eq!(numbers.draw(), 9_817_491_932_198_370_423);
    }
}
