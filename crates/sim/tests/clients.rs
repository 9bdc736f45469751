//! Clients of the library beside two servers and a network in which everything goes wrong, in virtual time: many seeds, each a run of its own.
//!
//! `CORVID_CASES` runs another number of them; `CORVID_SEED` begins elsewhere. A failure prints the command that replays it.

use corvid_sim::clients::Summary;
use corvid_sim::dice;
use corvid_sim::seeds::{run_seed, run_seeds};

/// Runs in an ordinary test.
const SEEDS: usize = 100;

/// The first of them: always the same, so that a failure is the fault of the change at hand.
const FIRST: u64 = 1;

fn first() -> u64 {
    let given = std::env::var("CORVID_SEED").ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(FIRST)
}

#[test]
fn replicas_follow_and_transactions_end_once_whatever_servers_and_network_do() {
    let seeds = dice::cases(SEEDS) as u64;
    let (summary, failures) = run_seeds::<Summary>(first(), seeds);
    println!("{seeds} seeds from CORVID_SEED={}: {summary:?}", first());
    let shown: Vec<String> = failures.iter().take(3).map(ToString::to_string).collect();
    assert!(
        failures.is_empty(),
        "{} of {seeds} seeds fail:\n{}",
        failures.len(),
        shown.join("\n")
    );
    // Runs in which nothing happens prove nothing.
    if seeds >= SEEDS as u64 {
        let happened = [
            summary.committed / 5,
            summary.refused / 5,
            summary.unknown,
            summary.cuts,
            summary.stalls,
            summary.restarts,
            summary.fail_overs,
            summary.conversions,
            summary.conditions,
            summary.fetches,
        ];
        assert!(
            happened.iter().all(|times| *times > seeds / 2),
            "too little happens: {summary:?}"
        );
    }
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    for seed in first()..first() + 5 {
        let [one, two] = [(); 2].map(|()| run_seed::<Summary>(seed, false));
        let (Ok(one), Ok(two)) = (one, two) else {
            // The other test tells.
            continue;
        };
        assert_eq!(one, two, "seed {seed}");
    }
}
