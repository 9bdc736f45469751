//! Clients of the library and a network with all kinds of faults, in virtual time: many seeds, each
//! a run of its own, with two servers or with relays of a cluster.
//!
//! `CORVID_CASES` sets the number of runs; `CORVID_SEED` sets the first seed. A failure prints the
//! command that replays it.

use corvid_sim::clients::Summary;
use corvid_sim::world::seeds::Seeds;

/// Default number of runs.
const SEEDS: usize = 400;

#[test]
fn replicas_converge_and_transactions_end_once_under_all_faults() {
    Seeds::of_test(SEEDS).expect_all(2, |summary: &Summary| {
        vec![
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
            summary.trees * 2,
            summary.relayed / 3,
            summary.lost * 20,
            summary.relay_kills,
            summary.relay_breaks,
        ]
    });
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    Seeds::of_test(SEEDS).expect_repeatable::<Summary>(5);
}
