//! The study of relays with few clients: nothing is lost, and each level gets a change later than
//! the level above it.

use corvid_sim::relay_tree::{COSTS, Plan, run};

#[test]
fn every_client_below_a_tree_gets_every_change_and_levels_follow_each_other() {
    let plan = Plan {
        relays: vec![2, 4, 8],
        clients: 40,
        observers: 2,
        commits: 20,
        rate: 10,
        seed: 1,
    };
    let levels = run(&plan, &COSTS).expect("every client has every change");
    let changes: Vec<usize> = levels.iter().map(|it| it.changes).collect();
    assert_eq!(changes, [2 * 20, 4 * 20, 8 * 20, 40 * 20]);
    assert!(levels.is_sorted_by(|above, below| above.half_ms < below.half_ms));
    assert!(levels.is_sorted_by(|above, below| above.all_ms < below.all_ms));
}

/// Servers pause after a flush to many sessions. Changes that arrive during the pause must leave
/// even if nothing more arrives.
#[test]
fn changes_that_come_in_a_pause_reach_all_clients() {
    let plan = Plan {
        relays: vec![1],
        clients: 300,
        observers: 0,
        commits: 30,
        rate: 500,
        seed: 1,
    };
    let levels = run(&plan, &COSTS).expect("every client has every change");
    assert_eq!(levels[0].changes, 300 * 30);
}
