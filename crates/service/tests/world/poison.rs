//! Requests that another server would refuse: their own client gets an error, and no other client
//! is affected. At each limit, one below and one above, at every kind of server.

use corvid_json::WRAPPING_BYTES;
use corvid_service::message::SessionInfo;

use crate::cluster::Cluster;
use crate::databases::insert;
use crate::relays::Tree;

/// Orders of events per play.
const SEEDS: u64 = 20;

/// The depth of the deepest message that a client may send.
const DEPTH_MAX: usize = 1000;

/// A value so deep that a `transact` with it has this depth.
fn deep_operation(depth: usize) -> String {
    let levels = depth - 4;
    format!(
        r#"{{"op":"insert","table":"T","row":{{"k":{}{}}}}}"#,
        "[".repeat(levels),
        "]".repeat(levels)
    )
}

/// An insert of a row whose key has this many bytes.
fn long_operation(bytes: usize) -> String {
    insert(&"k".repeat(bytes))
}

#[test]
fn the_deepest_request_is_answered_at_every_level_of_a_tree() {
    for (is_once, seed) in [(true, 1), (false, 2)] {
        let mut tree = Tree::started_with_ids(seed, &[&[0], &[1]], is_once);
        for world in 0..3 {
            for depth in [DEPTH_MAX - 1, DEPTH_MAX] {
                let answer = tree.write_at(world, &deep_operation(depth));
                assert!(answer.contains("syntax error"), "{world}: {answer}");
            }
            let too_deep = tree.write_at(world, &deep_operation(DEPTH_MAX + 1));
            assert!(!too_deep.contains("result"), "{world}: {too_deep}");
            let answer = tree.write_at(world, &insert(&format!("honest-{world}")));
            assert!(answer.contains("uuid"), "{world}: {answer}");
        }
        tree.check_equal();
        tree.check_idle();
    }
}

#[test]
fn the_deepest_request_is_answered_by_every_member() {
    let mut cluster = Cluster::led(3, 3, 0);
    for node in 0..3 {
        let client = cluster.connect(node);
        for depth in [DEPTH_MAX - 1, DEPTH_MAX] {
            cluster.transact(client, depth as u64, &deep_operation(depth));
            cluster.run();
            let answer = cluster.take(client);
            assert!(answer.contains("syntax error"), "{node}: {answer}");
        }
    }
    cluster.check_equal();
}

#[test]
fn a_name_that_members_do_not_forward_is_an_error_of_its_client_alone() {
    for (bytes, is_taken) in [(4095, true), (4096, true), (4097, false)] {
        let mut cluster = Cluster::led(4, 3, 0);
        for node in 0..3 {
            let name = Some("n".repeat(bytes));
            let named = cluster.connect_as(node, SessionInfo::new(false, String::new(), name));
            let honest = cluster.connect(node);
            let id = node as u64;
            cluster.transact(named, id, &insert(&format!("named-{node}")));
            cluster.transact(honest, id, &insert(&format!("honest-{node}")));
            cluster.run();
            let (named, honest) = (cluster.take(named), cluster.take(honest));
            assert!(honest.contains("uuid"), "{honest}");
            // The leader forwards nothing.
            let is_executed = named.contains("uuid");
            assert_eq!(is_executed, is_taken || node == 0, "{node}: {named}");
            if !is_executed {
                assert!(named.contains("resources exhausted"), "{named}");
                assert!(named.contains("the name in the client's certificate is longer than 4096"));
            }
        }
        cluster.check_equal();
    }
}

#[test]
fn an_entry_that_members_do_not_take_is_refused_before_its_commit() {
    for node in [0, 1] {
        // The smallest limit at which the insertion of a row fits.
        let fits = |bytes_max: usize| {
            let mut cluster = Cluster::led(5, 3, 0);
            for node in &mut cluster.nodes {
                node.pump
                    .service_mut()
                    .set_entry_limits(bytes_max, usize::MAX);
            }
            let client = cluster.connect(node);
            cluster.transact(client, 1, &long_operation(3000));
            cluster.transact(client, 2, &insert("later"));
            cluster.run();
            let answers = cluster.take(client);
            assert!(answers.contains(r#""id":2,"result":[{"uuid""#), "{answers}");
            cluster.check_equal();
            let data = cluster.log.iter().filter_map(|entry| entry.data.as_ref());
            let longest = data.map(|(_, data)| data.len()).max().expect("entries");
            assert!(longest <= bytes_max, "{longest} of {bytes_max}");
            let is_refused = answers.contains("resources exhausted");
            assert_eq!(is_refused, longest < 3000);
            if is_refused {
                assert!(answers.contains(r#""id":1,"result":[{"uuid""#), "{answers}");
                assert!(
                    answers.contains("most that members of a cluster take"),
                    "{answers}"
                );
            }
            !is_refused
        };
        let edge = (3000..3600).find(|bytes_max| fits(*bytes_max));
        let edge = edge.expect("its data are little longer than its row");
        assert!(fits(edge + 1) && !fits(edge - 1));
    }
}

#[test]
fn a_longer_election_timer_permits_a_longer_entry() {
    for node in [0, 1] {
        let mut cluster = Cluster::led(7, 3, 0);
        let client = cluster.connect(node);
        cluster.set_election_timer(0, 0);
        cluster.transact(client, 1, &insert("later"));
        cluster.run();
        let answers = cluster.take(client);
        let expected = "an entry of more than 0 bytes, the most that members of a cluster take \
                        with an election timer of 0 ms (cluster/change-election-timer)";
        assert!(answers.contains(expected), "{answers}");
        cluster.set_election_timer(0, 1);
        cluster.transact(client, 2, &insert("later"));
        cluster.run();
        let answers = cluster.take(client);
        assert!(answers.contains(r#""id":2,"result":[{"uuid""#), "{answers}");
        cluster.check_equal();
    }
}

#[test]
fn a_result_that_members_do_not_take_is_refused_before_its_commit() {
    for (bytes_max, is_taken) in [(400, false), (4000, true)] {
        let mut cluster = Cluster::led(6, 3, 0);
        for node in &mut cluster.nodes {
            node.pump
                .service_mut()
                .set_entry_limits(usize::MAX, bytes_max);
        }
        let client = cluster.connect(1);
        cluster.transact(client, 1, &long_operation(1000));
        let select = r#"{"op":"select","table":"T","where":[],"columns":["k"]}"#;
        cluster.transact(client, 2, &format!("{},{select}", insert("b")));
        cluster.transact(client, 3, &insert("c"));
        cluster.run();
        let answers = cluster.take(client);
        assert!(answers.contains(r#""id":3,"result":[{"uuid""#), "{answers}");
        let is_refused = answers.contains("result is longer than 400 bytes");
        assert_eq!(is_refused, !is_taken, "{answers}");
        cluster.check_equal();
    }
}

#[test]
fn a_request_that_is_too_long_for_the_source_is_answered_and_stops_no_other() {
    const BYTES_MAX: usize = 5000;
    for seed in 0..SEEDS {
        let mut tree = Tree::started_with_ids(seed, &[&[0], &[1]], true);
        tree.worlds[0].text_bytes_max = BYTES_MAX;
        // At the source: exactly at its limit, and one byte above.
        let head = r#"{"id":1,"method":"transact","params":["A",]}"#.len() + insert("").len();
        let answer = tree.write_at(0, &long_operation(BYTES_MAX - head));
        assert!(answer.contains("uuid"), "{answer}");
        let answer = tree.write_at(0, &long_operation(BYTES_MAX - head + 1));
        assert_eq!(answer, "");
        for world in [1, 2] {
            // As long as a client of the source may send: wrapping does not make it too long.
            let mark = format!("{world}");
            let operation = insert(&(mark + &"w".repeat(BYTES_MAX - head - 1)));
            let answer = tree.write_at(world, &operation);
            assert!(answer.contains("uuid"), "{answer}");
            let poison = tree.worlds[world].connect();
            let honest = tree.worlds[world].connect();
            let key = format!("honest-{world}");
            tree.worlds[world].transact(
                poison,
                "7",
                "A",
                &long_operation(BYTES_MAX + WRAPPING_BYTES),
            );
            tree.worlds[world].insert(honest, "8", "A", &key);
            tree.worlds[world].insert(poison, "9", "A", &(key + "-too"));
            tree.wait(1000);
            let (refused, others) = (
                tree.worlds[world].take(poison),
                tree.worlds[world].take(honest),
            );
            assert!(others.contains("uuid"), "{others}");
            assert!(refused.contains("resources exhausted"), "{refused}");
            assert!(
                refused.contains("request is longer than 5000 bytes"),
                "{refused}"
            );
            assert!(refused.contains(r#""id":9,"result":[{"uuid""#), "{refused}");
            tree.worlds[world].disconnect(poison);
            tree.worlds[world].disconnect(honest);
        }
        tree.check_equal();
        tree.check_idle();
    }
}

#[test]
fn a_request_upon_which_the_source_closes_the_connection_is_not_sent_for_ever() {
    for seed in 0..SEEDS * 2 {
        let mut tree = Tree::started_with_ids(seed, &[&[0], &[1]], true);
        let world = 1 + seed as usize % 2;
        tree.relay(world).refused = Some("poison");
        let poison = tree.worlds[2].connect();
        let honest = tree.worlds[2].connect();
        if seed % 3 > 0 {
            tree.worlds[2].insert(honest, "1", "A", "before");
        }
        tree.worlds[2].insert(poison, "2", "A", "poison");
        if seed % 3 > 1 {
            tree.worlds[2].insert(poison, "3", "A", "poison-too");
        }
        tree.worlds[2].insert(honest, "4", "A", "after");
        tree.wait(200_000);
        let (refused, others) = (tree.worlds[2].take(poison), tree.worlds[2].take(honest));
        let answers = others.matches(r#""result":[{"uuid""#).count();
        assert_eq!(
            answers,
            1 + usize::from(seed % 3 > 0),
            "seed {seed}: {others}"
        );
        let poisons = 1 + usize::from(seed % 3 > 1);
        let refusals = refused
            .matches("closes the connection upon this request")
            .count();
        assert_eq!(refusals, poisons, "seed {seed}: {refused}");
        // Sent with others, sent again with them, and three times alone.
        let resets = tree.relay(world).resets;
        assert!(resets <= 2 + 4 * poisons, "seed {seed}: {resets} resets");
        tree.check_equal();
        tree.check_idle();
    }
}
