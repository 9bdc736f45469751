//! Seeds of random runs: `CORVID_SEED` replays one, `CORVID_RUNS` makes another number of them.

/// Runs as many seeds as usual from a drawn one, or those that the environment asks for, and prints each. True if they were as usual, so that
/// the tests can expect something of their sums.
pub(crate) fn each(usual: u64, mut run: impl FnMut(u64)) -> bool {
    let given = number("CORVID_SEED");
    let first = given.unwrap_or_else(|| {
        let now = std::time::SystemTime::now();
        let since = now.duration_since(std::time::UNIX_EPOCH);
        u64::from(since.map_or(0, |since| since.subsec_nanos()))
    });
    let runs = number("CORVID_RUNS");
    let runs = runs.unwrap_or(if given.is_some() { 1 } else { usual });
    for seed in first..first + runs {
        println!("CORVID_SEED={seed}");
        run(seed);
    }
    given.is_none() && runs >= usual
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().expect("a number"))
}
