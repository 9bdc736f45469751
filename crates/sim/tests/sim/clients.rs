//! Clients of the library beside two servers and a network in which everything goes wrong, in virtual time: many seeds, each a run of its own.
//!
//! `CORVID_CASES` runs another number of them; `CORVID_SEED` begins elsewhere. A failure prints the command that replays it.

use corvid_sim::clients::Summary;
use corvid_sim::seeds::Seeds;

/// Runs in an ordinary test.
const SEEDS: usize = 100;

#[test]
fn replicas_follow_and_transactions_end_once_whatever_servers_and_network_do() {
    Seeds::of_test(SEEDS).expect_all(2, |seen: &Summary| {
        vec![
            seen.committed / 5,
            seen.refused / 5,
            seen.unknown,
            seen.cuts,
            seen.stalls,
            seen.restarts,
            seen.fail_overs,
            seen.conversions,
            seen.conditions,
            seen.fetches,
        ]
    });
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    Seeds::of_test(SEEDS).expect_repeatable::<Summary>(5);
}
