//! The whole server under crashes and failing disks, in virtual time: many seeds, each a run of its own.
//!
//! `CORVID_CASES` runs another number of them; `CORVID_SEED` begins elsewhere. A failure prints the command that replays it.

use corvid_sim::seeds::Seeds;
use corvid_sim::server::Summary;

/// Runs in an ordinary test.
const SEEDS: usize = 2000;

#[test]
fn nothing_acknowledged_is_lost_and_nothing_is_half_done_or_invented() {
    Seeds::of_test(SEEDS).expect_all(5, |seen: &Summary| {
        vec![
            seen.power_losses,
            seen.kills,
            seen.compactions,
            seen.conversions,
            seen.store_failures,
            seen.damages,
            seen.removals,
            seen.inline_batches,
            seen.rolled_back,
            seen.inline_failures,
            seen.cut_batches,
            seen.inline_writes,
            seen.slow_writes,
        ]
    });
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    Seeds::of_test(SEEDS).expect_repeatable::<Summary>(40);
}
