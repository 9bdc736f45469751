//! Members of clusters under crashes, failing disks, bad networks and bad clocks, in virtual time:
//! many seeds, each a run of its own.
//!
//! `CORVID_CASES` sets the number of runs; `CORVID_SEED` sets the first seed. A failure prints the
//! command that replays it.

use corvid_sim::cluster::Summary;
use corvid_sim::world::seeds::Seeds;

/// Default number of runs.
const SEEDS: usize = 5_000;

#[test]
fn nothing_committed_is_lost_doubled_or_forked_and_clusters_recover() {
    Seeds::of_test(SEEDS).expect_all(6, |summary: &Summary| {
        vec![
            summary.commits / 10,
            summary.acknowledged / 10,
            summary.forwarded / 5,
            summary.leaderships,
            summary.judged,
            summary.restarts,
            summary.power_losses,
            summary.lost,
            summary.doubled,
            summary.partitions,
            summary.pauses,
            summary.damages * 2,
        ]
    });
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    Seeds::of_test(SEEDS).expect_repeatable::<Summary>(10);
}
