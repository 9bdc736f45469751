//! Seeds of random runs: `CORVID_SEED` replays one run, `CORVID_RUNS` sets the number of runs.

/// Runs the usual number of seeds, starting from a random one, or those that the environment
/// requests, and prints each. Returns true if they were the usual ones, so that tests may check
/// their totals.
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
