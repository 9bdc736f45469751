//! Many runs of one kind on all cores, and what to say of the first that fails. [`Seeds`] are those of a test.

use std::fmt::Debug;
use std::panic::catch_unwind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::dice;

/// Failures that a test shows.
const SHOWN_MAX: usize = 3;

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

/// The seeds of a test: always the same, so that a failure is the fault of the change at hand, unless `CORVID_SEED` names another first one and
/// `CORVID_CASES` another number of them.
#[derive(Clone, Copy, Debug)]
pub struct Seeds {
    first: u64,
    count: u64,
    /// Fewer than in an ordinary test: they need not see everything.
    is_cut: bool,
}

impl Seeds {
    /// Those of a test that ordinarily acts `usual` of them.
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

    /// Acts them all. `happened` counts what must happen more than once in `often` runs, since runs in which nothing happens prove nothing.
    ///
    /// # Panics
    /// A run fails, or too little happens.
    pub fn expect_all<P: Play + Debug>(self, often: u64, happened: impl FnOnce(&P) -> Vec<u64>) {
        let Seeds { first, count, .. } = self;
        let (seen, failures) = run_seeds::<P>(first, count);
        println!("{count} seeds from CORVID_SEED={first}: {seen:?}");
        let shown = failures.iter().take(SHOWN_MAX).map(ToString::to_string);
        assert!(
            failures.is_empty(),
            "{} of {count} seeds fail:\n{}",
            failures.len(),
            shown.collect::<Vec<_>>().join("\n")
        );
        let is_enough = |times: &u64| self.is_cut || *times > count / often;
        assert!(
            happened(&seen).iter().all(is_enough),
            "too little happens: {seen:?}"
        );
    }

    /// Acts the first `count` twice: a seed tells everything, and no two tell the same. Those that fail are left to the other test.
    ///
    /// # Panics
    /// Two runs of a seed differ, or those of neighbours do not.
    pub fn expect_repeatable<P: Play + Debug + PartialEq>(self, count: u64) {
        let mut before = None;
        for seed in self.first..self.first + count {
            let [one, two] = [(); 2].map(|()| run_seed::<P>(seed, false));
            let (Ok(one), Ok(two)) = (one, two) else {
                continue;
            };
            assert_eq!(one, two, "seed {seed}");
            assert_ne!(before, Some(two), "seed {seed} and the one before it");
            before = Some(one);
        }
    }
}
