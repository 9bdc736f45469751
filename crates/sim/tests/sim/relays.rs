//! Trees of relays below the servers of a cluster, with clients of both, in virtual time: many
//! seeds, each a run of its own.
//!
//! `CORVID_CASES` sets the number of runs; `CORVID_SEED` sets the first seed. A failure prints the
//! command that replays it.

use corvid_sim::whole_cluster::RelaySummary;
use corvid_sim::world::seeds::Seeds;

/// Default number of runs.
const SEEDS: usize = 250;

#[test]
fn relays_and_their_clients_agree_with_the_cluster_after_any_faults() {
    Seeds::of_test(SEEDS).expect_all(10, |summary: &RelaySummary| {
        let (servers, relays) = (&summary.servers, &summary.relays);
        vec![
            servers.commits / 10,
            servers.leaderships,
            servers.restarts,
            servers.moves,
            relays.acknowledged / 2,
            // A relay gives up the transactions of clients that have gone without telling anybody,
            // and restarted members know what has happened.
            relays.canceled * 15,
            relays.asserted,
            relays.kills,
            relays.pauses,
            relays.downloads,
            relays.broken_connections,
        ]
    });
}

#[test]
fn the_same_seed_with_relays_gives_the_same_trace() {
    Seeds::of_test(SEEDS).expect_repeatable::<RelaySummary>(5);
}
