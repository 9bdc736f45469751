//! Pseudo-random numbers that follow from a seed (SplitMix64), so that a failed test can be
//! repeated.
//!
//! Called by the randomised tests, which print their seed. Not suitable for secrets.

use std::env;
use std::time::{SystemTime, UNIX_EPOCH};

/// A sequence of numbers.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Returns the sequence that follows from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Returns the next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Returns a number below `end`, which must not be 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next_u64() % end
    }

    /// Returns true with a probability of one in `times`.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// Returns `count` random bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        std::iter::repeat_with(|| self.next_u64().to_le_bytes()[0])
            .take(count)
            .collect()
    }
}

/// Spreads the influence of each bit of a number over all bits. Equal numbers give equal results.
#[must_use]
pub fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Returns the seed in the environment variable `variable`, or a new one. Prints the seed, as every
/// randomised test must.
///
/// # Panics
///
/// If the variable does not contain a number.
#[must_use]
pub fn seed(variable: &str) -> u64 {
    let seed = match env::var(variable) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|error| panic!("{variable}={text}: {error}")),
        Err(_) => SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |time| u64::from(time.subsec_nanos())),
    };
    println!("{variable}={seed}");
    seed
}
