//! A small generator of pseudo-random numbers (SplitMix64). The same seed gives the same run on
//! every machine.

use corvid_json::splitmix::SplitMix64;

/// The generator.
#[derive(Debug, Clone)]
pub struct Random(SplitMix64);

impl Random {
    /// Starts a sequence.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Random(SplitMix64::new(seed))
    }

    /// Returns the next number.
    pub fn number(&mut self) -> u64 {
        self.0.draw()
    }

    /// Returns a number below `limit`, or 0 if `limit` is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        if limit == 0 {
            0
        } else {
            (self.number() % limit as u64) as usize
        }
    }

    /// Returns one of `choices`, which must not be empty.
    pub fn pick<'c, T>(&mut self, choices: &'c [T]) -> &'c T {
        &choices[self.below(choices.len())]
    }
}
