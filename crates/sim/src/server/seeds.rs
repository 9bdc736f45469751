//! Many runs on all cores, and what to say of the first that fails.

use std::panic::catch_unwind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::run::{Summary, run};

/// A run that went wrong.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Its seed.
    pub seed: u64,
    /// What went wrong.
    pub problem: String,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "seed {}: {}\nreplay it with: cargo run --release -p corvid-sim --bin simulate -- --seed {} --trace",
            self.seed, self.problem, self.seed
        )
    }
}

/// Runs one seed; a panic is a failure like any other.
///
/// # Errors
/// What went wrong.
pub fn run_seed(seed: u64, is_printed: bool) -> Result<Summary, Failure> {
    let outcome = catch_unwind(|| run(seed, is_printed));
    let outcome = outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!("panicked: {}", text.unwrap_or("(no words)")))
    });
    outcome.map_err(|problem| Failure { seed, problem })
}

/// Runs `count` seeds from `first` on, on all cores. Returns the sum of what they saw, and the failures in order of seeds.
#[must_use]
pub fn run_seeds(first: u64, count: u64) -> (Summary, Vec<Failure>) {
    let next = AtomicU64::new(first);
    let results = Mutex::new((Summary::default(), Vec::new()));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + count {
                return;
            }
            let outcome = run_seed(seed, false);
            let Ok(mut results) = results.lock() else {
                return;
            };
            match outcome {
                Ok(summary) => results.0.add(&summary),
                Err(failure) => results.1.push(failure),
            }
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(work);
        }
    });
    let (summary, mut failures) = results.into_inner().unwrap_or_default();
    failures.sort_by_key(|failure| failure.seed);
    (summary, failures)
}

impl Summary {
    /// Adds up; the hashes are mixed.
    fn add(&mut self, other: &Summary) {
        self.hash ^= other.hash;
        self.transactions += other.transactions;
        self.power_losses += other.power_losses;
        self.kills += other.kills;
        self.compactions += other.compactions;
        self.conversions += other.conversions;
        self.store_failures += other.store_failures;
        self.damages += other.damages;
        self.disk_operations += other.disk_operations;
    }
}
