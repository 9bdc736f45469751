//! Reproducible randomness: one seed gives one sequence. Every test prints its seed; `CORVID_SEED`
//! repeats a run.

use std::time::{SystemTime, UNIX_EPOCH};

use corvid_json::splitmix::SplitMix64;

/// A splitmix64 generator.
#[derive(Clone, Debug)]
pub struct Dice(SplitMix64);

impl Dice {
    /// The sequence of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Dice {
        Dice(SplitMix64::new(seed))
    }

    /// The next 64 bits.
    pub fn draw(&mut self) -> u64 {
        self.0.draw()
    }

    /// A number less than `limit`, which must not be 0.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.draw() % limit as u64) as usize
    }

    /// True `percent` times in a hundred.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// A number from `low` to `high`, inclusive.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as usize) as i64
    }

    /// One of `choices`, which must not be empty.
    pub fn pick<'c, T>(&mut self, choices: &'c [T]) -> &'c T {
        &choices[self.below(choices.len())]
    }
}

/// The seed of this run: `CORVID_SEED`, or else the time. Printed under `name`.
#[must_use]
pub fn seed(name: &str) -> u64 {
    let given = std::env::var("CORVID_SEED").ok();
    let seed = given.and_then(|text| text.parse().ok()).unwrap_or_else(|| {
        let time = SystemTime::now().duration_since(UNIX_EPOCH);
        time.map_or(1, |time| time.as_nanos() as u64)
    });
    println!("{name}: CORVID_SEED={seed}");
    seed
}

/// Number of cases to run: `CORVID_CASES`, or else `usual`.
#[must_use]
pub fn cases(usual: usize) -> usize {
    let given = std::env::var("CORVID_CASES").ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(usual)
}
