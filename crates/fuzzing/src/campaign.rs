//! A bounded, reproducible run of one target over mutated seeds.
//!
//! When a target panics, the run's seed, the number of the input and the input itself are printed: enough to reproduce the failure.

use crate::mutate::mutate;
use crate::random::Random;
use crate::targets::Target;

/// The current input. When a panic drops it, it prints how to reproduce the failure.
struct Trial<'t> {
    target: &'t str,
    seed: u64,
    number: usize,
    input: &'t [u8],
}

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Trial {
                target,
                seed,
                number,
                input,
            } = self;
            eprintln!(
                "fuzzing `{target}` with seed {seed}, input {number}: b\"{}\"",
                input.escape_ascii()
            );
        }
    }
}

/// Runs the target on every seed, then on `count` mutated seeds.
///
/// # Panics
/// An invariant of the target is broken, or there are no seeds.
pub fn run(target: &Target, seeds: &[Vec<u8>], seed: u64, count: usize) {
    assert!(!seeds.is_empty(), "no seeds for {}", target.name);
    let mut random = Random::new(seed);
    for number in 0..seeds.len() + count {
        let input = match seeds.get(number) {
            Some(input) => input.clone(),
            None => mutate(&mut random, seeds),
        };
        let _trial = Trial {
            target: target.name,
            seed,
            number,
            input: &input,
        };
        (target.run)(&input);
    }
}
