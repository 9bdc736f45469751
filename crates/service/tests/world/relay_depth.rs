//! Relays of relays when the root of their tree goes away and returns: how long until clients are
//! told, and what a relay has when it reports being connected.

use crate::databases::wider_schema;
use crate::relay_plays::fill;
use crate::relays::Tree;

const SEEDS: u64 = 20;

/// Lets time pass. A relay that becomes connected meanwhile has everything that the source has.
fn wait_for_relays(tree: &mut Tree, ms: u64) {
    let expected = tree.worlds[0].contents("A");
    let relays = 1..tree.worlds.len();
    let mut before: Vec<bool> = relays
        .clone()
        .map(|it| tree.is_shown_connected(it))
        .collect();
    let end_ms = tree.now_ms() + ms;
    while tree.now_ms() < end_ms {
        for world in &mut tree.worlds {
            world.wait(500);
        }
        loop {
            for world in relays.clone() {
                let is_connected = tree.is_shown_connected(world);
                let was_connected = std::mem::replace(&mut before[world - 1], is_connected);
                if is_connected && !was_connected {
                    assert_eq!(tree.worlds[world].contents("A"), expected, "world {world}");
                }
            }
            if !tree.step() {
                break;
            }
        }
    }
}

/// The time does not grow with the depth: half a minute until clients are told, and one backoff
/// until they return.
#[test]
fn a_tree_of_four_levels_is_told_of_its_root_within_one_bound() {
    let trees: [&[&[usize]]; 2] = [
        &[&[0], &[1], &[2], &[3]],
        // Two relays on each level; each may use either relay of the level above.
        &[
            &[0],
            &[0],
            &[1, 2],
            &[1, 2],
            &[3, 4],
            &[3, 4],
            &[5, 6],
            &[5, 6],
        ],
    ];
    for sources in trees {
        for seed in 0..SEEDS {
            let mut tree = Tree::started(seed, sources);
            let relays = 1..=sources.len();
            fill(&mut tree);
            tree.is_down[0] = true;
            tree.wait(29_000);
            for world in relays.clone() {
                assert!(tree.is_shown_connected(world), "{world}, seed {seed}");
            }
            tree.write(r#"{"op":"insert","table":"T","row":{"k":"during the outage"}}"#);
            tree.wait(3_000);
            for world in relays.clone() {
                assert!(!tree.is_shown_connected(world), "{world}, seed {seed}");
            }
            // Long enough for the longest backoff of each level.
            tree.wait(60_000);
            tree.is_down[0] = false;
            wait_for_relays(&mut tree, 15_000);
            for world in relays {
                assert!(tree.is_shown_connected(world), "{world}, seed {seed}");
            }
            tree.check_equal();
            tree.check_idle();
        }
    }
}

/// A client that connects as soon as it reads that the relay is connected is not closed because of
/// the conversion that the relay missed.
#[test]
fn a_relay_is_connected_again_when_it_has_the_schema_that_it_missed() {
    for seed in 0..SEEDS {
        let mut tree = Tree::started(seed, &[&[0], &[1]]);
        tree.is_down[0] = true;
        tree.wait(35_000);
        let client = tree.worlds[0].connect_aware();
        let convert = format!(r#"["A",{}]"#, wider_schema("A"));
        tree.worlds[0].ask(client, "1", "convert", &convert);
        tree.run();
        tree.worlds[0].disconnect(client);
        tree.is_down[0] = false;
        let mut clients = [None, None];
        let end_ms = tree.now_ms() + 30_000;
        while tree.now_ms() < end_ms {
            for world in &mut tree.worlds {
                world.wait(500);
            }
            loop {
                for world in [1, 2] {
                    if clients[world - 1].is_none() && tree.is_shown_connected(world) {
                        clients[world - 1] = Some(tree.worlds[world].connect());
                    }
                }
                if !tree.step() {
                    break;
                }
            }
        }
        for world in [1, 2] {
            let client = clients[world - 1].expect("connected again");
            assert!(!tree.is_closed(world, client), "world {world}, seed {seed}");
            tree.worlds[world].disconnect(client);
        }
        tree.run();
    }
}
