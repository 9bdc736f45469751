//! A bounded, reproducible run of one target on mutated seeds.
//!
//! If a target panics, the run prints its seed, the number of the input and the input itself, which
//! is enough to reproduce the failure.

use crate::mutate::mutate;
use crate::random::Random;
use crate::targets::Target;

/// The current input. If a panic drops it, it prints how the failure can be reproduced.
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
/// If an invariant of the target is broken, or if there are no seeds.
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
