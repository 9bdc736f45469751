//! Whole servers of clusters with clients, in virtual time: many seeds, each a run of its own.
//!
//! `CORVID_CASES` sets the number of runs; `CORVID_SEED` sets the first seed. A failure prints the
//! command that replays it.

use corvid_sim::whole_cluster::Summary;
use corvid_sim::world::seeds::Seeds;

/// Default number of runs.
const SEEDS: usize = 1_000;

#[test]
fn servers_of_a_cluster_and_their_clients_agree_after_any_faults() {
    Seeds::of_test(SEEDS).expect_all(6, |summary: &Summary| {
        vec![
            summary.commits / 10,
            summary.acknowledged / 10,
            summary.leaderships,
            summary.moves,
            summary.continued,
            summary.restarts,
            summary.power_losses,
            summary.broken_connections,
            summary.partitions,
            summary.pauses,
            summary.snapshots,
        ]
    });
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    Seeds::of_test(SEEDS).expect_repeatable::<Summary>(10);
}
