//! The whole server under crashes and failing disks, in virtual time: many seeds, each a run of its own.
//!
//! `CORVID_CASES` runs another number of them; `CORVID_SEED` begins elsewhere. A failure prints the command that replays it.

use corvid_sim::dice;
use corvid_sim::seeds::{run_seed, run_seeds};
use corvid_sim::server::Summary;

/// Runs in an ordinary test.
const SEEDS: usize = 2000;

/// The first of them: always the same, so that a failure is the fault of the change at hand.
const FIRST: u64 = 1;

fn first() -> u64 {
    let given = std::env::var("CORVID_SEED").ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(FIRST)
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_is_half_done_or_invented() {
    let seeds = dice::cases(SEEDS) as u64;
    let (summary, failures) = run_seeds::<Summary>(first(), seeds);
    println!("{seeds} seeds: {summary:?}");
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
            summary.power_losses,
            summary.kills,
            summary.compactions,
            summary.conversions,
            summary.store_failures,
            summary.damages,
        ];
        assert!(
            happened.iter().all(|times| *times > seeds / 4),
            "too little happens: {summary:?}"
        );
    }
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    for seed in first()..first() + 40 {
        let [one, two] = [(); 2].map(|()| run_seed::<Summary>(seed, false));
        let (Ok(one), Ok(two)) = (one, two) else {
            // The other test tells.
            continue;
        };
        assert_eq!(one, two, "seed {seed}");
        let other = run_seed::<Summary>(seed + 1, false);
        assert!(other.is_err() || other.is_ok_and(|other| other.hash != one.hash));
    }
}
