//! The whole server under crashes and failing disks, in virtual time: many seeds, each a run of its
//! own.
//!
//! `CORVID_CASES` sets the number of runs; `CORVID_SEED` sets the first seed. A failure prints the
//! command that replays it.

use corvid_sim::server::Summary;
use corvid_sim::world::seeds::Seeds;

/// Default number of runs.
const SEEDS: usize = 2000;

#[test]
fn nothing_acknowledged_is_lost_and_nothing_is_half_done_or_invented() {
    Seeds::of_test(SEEDS).expect_all(5, |summary: &Summary| {
        vec![
            summary.power_losses,
            summary.kills,
            summary.compactions,
            summary.conversions,
            summary.store_failures,
            summary.damages,
            summary.removals,
            summary.inline_batches,
            summary.rolled_back,
            summary.inline_failures,
            summary.cut_batches,
            summary.inline_writes,
            summary.slow_writes,
            summary.segments,
            summary.gaps,
        ]
    });
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    Seeds::of_test(SEEDS).expect_repeatable::<Summary>(40);
}
