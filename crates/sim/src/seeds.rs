//! Many runs of one kind on all cores, and what to say of the first that fails.

use std::panic::catch_unwind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// What runs of one kind saw, and how such a run is acted.
pub trait Play: Default + Send {
    /// What `simulate` is told, besides the seed, to act one.
    const OPTION: &'static str;

    /// Acts the run of a seed; `is_printed`: its trace goes to standard output.
    ///
    /// # Errors
    /// What went wrong, in words.
    fn act(seed: u64, is_printed: bool) -> Result<Self, String>;

    /// Adds what another run saw; hashes are mixed.
    fn add(&mut self, other: &Self);
}

/// A run that went wrong.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Its seed.
    pub seed: u64,
    /// What went wrong.
    pub problem: String,
    option: &'static str,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "seed {}: {}\nreplay it with: cargo run --release -p corvid-sim --bin simulate -- {}--seed {} --trace",
            self.seed, self.problem, self.option, self.seed
        )
    }
}

/// Runs one seed; a panic is a failure like any other.
///
/// # Errors
/// What went wrong.
pub fn run_seed<P: Play>(seed: u64, is_printed: bool) -> Result<P, Failure> {
    let outcome = catch_unwind(|| P::act(seed, is_printed));
    let outcome = outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!("panicked: {}", text.unwrap_or("(no words)")))
    });
    outcome.map_err(|problem| Failure {
        seed,
        problem,
        option: P::OPTION,
    })
}

/// Runs `count` seeds from `first` on, on all cores. Returns the sum of what they saw, and the failures in order of seeds.
#[must_use]
pub fn run_seeds<P: Play>(first: u64, count: u64) -> (P, Vec<Failure>) {
    let next = AtomicU64::new(first);
    let results = Mutex::new((P::default(), Vec::new()));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + count {
                return;
            }
            let outcome = run_seed::<P>(seed, false);
            let Ok(mut results) = results.lock() else {
                return;
            };
            match outcome {
                Ok(seen) => results.0.add(&seen),
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
    let (seen, mut failures) = results.into_inner().unwrap_or_default();
    failures.sort_by_key(|failure| failure.seed);
    (seen, failures)
}
