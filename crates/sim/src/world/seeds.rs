//! Runs many seeds of one kind on all cores, and reports the first failures. [`Seeds`] are the
//! seeds of a test.
//!
//! Invariant: a run depends only on its seed, so a failure is reproducible. Tests and `simulate`
//! call this module.

use std::fmt::Debug;
use std::panic::catch_unwind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use corvid_history::Policy;

use crate::world::dice;
use crate::world::trace::Stopped;
pub use crate::world::trace::Tracing;

/// Number of failures after which a test ends and shows them.
const SHOWN_MAX: usize = 3;

/// The history that the servers of a run keep: half of the runs keep none, a quarter keeps all, a
/// quarter keeps little and prunes.
#[must_use]
pub(crate) fn policy(seed: u64) -> Policy {
    match seed % 4 {
        1 => Policy {
            bytes: Some(u64::MAX),
            ..Policy::default()
        },
        3 => Policy {
            bytes: Some(4000),
            ..Policy::default()
        },
        _ => Policy::default(),
    }
}

/// The statistics of runs of one kind, and the function that executes one run.
pub trait Simulation: Default + Send {
    /// The arguments of `simulate`, besides the seed, that select this kind.
    const OPTION: &'static str;

    /// Runs a seed.
    ///
    /// # Errors
    /// A description of the failure.
    fn run(seed: u64, tracing: Tracing) -> Result<Self, String>;

    /// Adds the statistics of another run; hashes are mixed.
    fn add(&mut self, other: &Self);
}

/// A failed run.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The seed of the run.
    pub seed: u64,
    /// A description of the failure.
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

/// Runs one seed; a panic counts as a failure.
///
/// # Errors
/// The failure.
pub fn run_seed<P: Simulation>(seed: u64, tracing: Tracing) -> Result<P, Failure> {
    let outcome = catch_unwind(|| P::run(seed, tracing));
    outcome_of(seed, outcome)
}

/// Runs one seed and prints its trace, up to the line with the number `last`. `None`: the run was
/// ended after that line.
///
/// # Errors
/// The failure, if it comes first.
pub fn run_until<P: Simulation>(seed: u64, last: u64) -> Result<Option<P>, Failure> {
    match catch_unwind(|| P::run(seed, Tracing::PrintedUntil(last))) {
        Err(panic) if panic.is::<Stopped>() => Ok(None),
        outcome => outcome_of(seed, outcome).map(Some),
    }
}

fn outcome_of<P: Simulation>(
    seed: u64,
    outcome: std::thread::Result<Result<P, String>>,
) -> Result<P, Failure> {
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

/// A range of seeds, and how to run them.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    /// The first seed.
    pub first: u64,
    /// Number of seeds.
    pub count: u64,
    /// Number of concurrent runs.
    pub threads: usize,
    /// Start no further seed after this many failures.
    pub failures_max: usize,
}

impl Range {
    /// A range of `count` seeds from `first` on, run on all cores, without a limit of failures.
    #[must_use]
    pub fn new(first: u64, count: u64) -> Range {
        Range {
            first,
            count,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            failures_max: usize::MAX,
        }
    }
}

/// The runs of a range.
#[derive(Clone, Debug, Default)]
pub struct Runs<P> {
    /// The sum of the runs' statistics.
    pub summary: P,
    /// The failures, in the order of their seeds.
    pub failures: Vec<Failure>,
    /// Number of completed runs.
    pub count: u64,
}

/// Runs seeds. After each run, calls `ended` with the number of completed runs and the run's
/// failure.
#[must_use]
pub fn run_seeds<P: Simulation>(
    range: Range,
    ended: impl Fn(u64, Option<&Failure>) + Sync,
) -> Runs<P> {
    let next = AtomicU64::new(range.first);
    let results: Mutex<Runs<P>> = Mutex::default();
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= range.first + range.count {
                return;
            }
            let outcome = run_seed::<P>(seed, Tracing::None);
            let Ok(mut results) = results.lock() else {
                return;
            };
            results.count += 1;
            ended(results.count, outcome.as_ref().err());
            match outcome {
                Ok(summary) => results.summary.add(&summary),
                Err(failure) => results.failures.push(failure),
            }
            if results.failures.len() >= range.failures_max {
                return;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..range.threads.max(1) {
            scope.spawn(work);
        }
    });
    let mut runs = results.into_inner().unwrap_or_default();
    runs.failures.sort_by_key(|failure| failure.seed);
    runs
}

/// The seeds of a test. They are always the same, so that a new failure comes from the change at
/// hand. `CORVID_SEED` sets another first seed, `CORVID_CASES` another number of seeds.
#[derive(Clone, Copy, Debug)]
pub struct Seeds {
    first: u64,
    count: u64,
    /// Whether there are fewer seeds than by default. Then the runs need not reach every situation.
    is_cut: bool,
}

impl Seeds {
    /// The seeds of a test that runs `usual` of them by default.
    #[must_use]
    pub fn of_test(usual: usize) -> Seeds {
        let count = dice::cases(usual);
        let given = std::env::var("CORVID_SEED").ok();
        Seeds {
            first: given.and_then(|text| text.parse().ok()).unwrap_or(1),
            count: count as u64,
            is_cut: count < usual,
        }
    }

    /// Runs them all. `happened` returns counters of situations, each of which must occur more than
    /// once in `often` runs on average: runs without them prove nothing.
    ///
    /// # Panics
    /// A run fails, or a situation occurs too rarely.
    pub fn expect_all<P: Simulation + Debug>(
        self,
        often: u64,
        happened: impl FnOnce(&P) -> Vec<u64>,
    ) {
        let Seeds { first, count, .. } = self;
        let range = Range {
            failures_max: SHOWN_MAX,
            ..Range::new(first, count)
        };
        let Runs {
            summary,
            failures,
            count: ended,
        } = run_seeds::<P>(range, |_, _| {});
        println!("{ended} seeds from CORVID_SEED={first}: {summary:?}");
        let shown = failures.iter().map(ToString::to_string);
        assert!(
            failures.is_empty(),
            "{} of the first {ended} of {count} seeds fail:\n{}",
            failures.len(),
            shown.collect::<Vec<_>>().join("\n")
        );
        let is_enough = |times: &u64| self.is_cut || *times > count / often;
        assert!(
            happened(&summary).iter().all(is_enough),
            "too little happens: {summary:?}"
        );
    }

    /// Runs the first `count` seeds twice: equal seeds must give equal traces, and different seeds
    /// different ones. Another test reports failed runs.
    ///
    /// # Panics
    /// Two runs of a seed differ, or runs of neighbouring seeds do not.
    pub fn expect_repeatable<P: Simulation + Debug + PartialEq>(self, count: u64) {
        let mut before = None;
        for seed in self.first..self.first + count {
            let [one, two] = [(); 2].map(|()| run_seed::<P>(seed, Tracing::Hashed));
            let (Ok(one), Ok(two)) = (one, two) else {
                continue;
            };
            assert_eq!(one, two, "seed {seed}");
            assert_ne!(before, Some(two), "seed {seed} and the one before it");
            before = Some(one);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::trace::Trace;

    /// A run with as many lines as its seed, then a failure if the seed is odd. Its value is the
    /// hash of the trace.
    #[derive(Debug, Default, PartialEq)]
    struct Lines(u64);

    impl Simulation for Lines {
        const OPTION: &'static str = "--lines ";

        fn run(seed: u64, tracing: Tracing) -> Result<Lines, String> {
            let trace = Trace::new(tracing);
            for line in 1..=seed {
                trace.line(format_args!("line {line}"));
            }
            assert!(seed.is_multiple_of(2), "odd");
            Ok(Lines(trace.hash()))
        }

        fn add(&mut self, _: &Lines) {}
    }

    #[test]
    fn a_run_is_ended_after_the_line_that_was_asked_for() {
        assert_eq!(run_until::<Lines>(7, 3).expect("no failure"), None);
        // All of it is the same as without an end.
        let whole = run_seed::<Lines>(8, Tracing::Hashed).expect("no failure");
        assert_eq!(run_until::<Lines>(8, 8).expect("no failure"), Some(whole));
        let failure = run_until::<Lines>(7, 7).expect_err("a failure");
        assert!(failure.problem.starts_with("panicked: "), "{failure}");
    }
}
