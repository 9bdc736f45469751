//! Transactions that are sent again and executed once: by relays after a lost connection, and by
//! any client of a server that announces it.

use corvid_service::message::SessionInfo;

use crate::databases::insert;
use crate::relays::Tree;
use crate::world::World;

/// Orders of events per play.
const SEEDS: u64 = 40;

const ID: &str = "5e1f3c9a-0000-4a00-9c66-2f0d8e5b7a11";

fn once(after: &str, operations: &str) -> String {
    format!(r#"["{ID}","{after}",["A",{operations}]]"#)
}

/// The last commit, as a client learns it.
pub(crate) fn last_commit(world: &mut World) -> String {
    let client = world.connect();
    let zero = "00000000-0000-0000-0000-000000000000";
    let params = format!(r#"["A","m",{{}},"{zero}"]"#);
    world.ask(client, "1", "monitor_cond_since", &params);
    world.run();
    let received = &world.clients[&client].received;
    let text = received.last().expect("a reply").to_string();
    let id = text.split('"').find(|part| part.len() == zero.len());
    world.disconnect(client);
    world.run();
    id.unwrap_or_else(|| panic!("{text}")).to_owned()
}

/// Cuts a relay's connection at some moment after it has sent something.
fn cut_after_sending(tree: &mut Tree, world: usize, steps: u64) {
    let sent = tree.relay(world).machine.session().metrics().bytes_sent;
    while tree.relay(world).machine.session().metrics().bytes_sent == sent {
        assert!(tree.step());
    }
    for _ in 0..steps {
        tree.step();
    }
    tree.cut(world);
}

#[test]
fn a_write_whose_connection_is_lost_happens_once_and_is_answered() {
    let (mut before, mut after) = (0, 0);
    for seed in 0..SEEDS * 3 {
        let mut tree = Tree::started_with_ids(seed, &[&[0], &[1]], true);
        let world = 1 + seed as usize % 2;
        let client = tree.worlds[2].connect();
        tree.worlds[2].monitor(client, "1", "A", "m");
        tree.run();
        tree.worlds[2].take(client);
        // An index refuses the second execution, if there is one.
        tree.worlds[2].insert(client, "2", "A", "a");
        tree.worlds[2].insert(client, "3", "A", "b");
        cut_after_sending(&mut tree, world, seed % 40);
        match tree.worlds[0].contents("A").is_empty() {
            true => before += 1,
            false => after += 1,
        }
        if seed % 5 == 0 {
            tree.cut(3 - world);
        }
        tree.wait(30_000);
        let text = tree.worlds[2].take(client);
        assert!(
            text.contains(r#""id":2,"result":[{"uuid""#),
            "seed {seed}: {text}"
        );
        assert!(
            text.contains(r#""id":3,"result":[{"uuid""#),
            "seed {seed}: {text}"
        );
        let at = |part: &str| text.find(part).expect("there");
        assert!(at(r#"{"k":"a"}"#) < at(r#""id":2"#) && at(r#""id":2"#) < at(r#""id":3"#));
        assert_eq!(tree.worlds[0].contents("A").len(), 2);
        tree.check_equal();
        tree.check_idle();
    }
    assert!(before > 5 && after > 5, "{before} and {after}");
}

#[test]
fn writes_that_are_sent_again_keep_their_order() {
    let mut resent = 0;
    for seed in 0..SEEDS {
        let mut tree = Tree::started_with_ids(seed, &[&[0]], true);
        let client = tree.worlds[1].connect();
        tree.worlds[1].insert(client, "1", "A", "a");
        let change =
            r#"["A",{"op":"update","table":"T","where":[["k","==","a"]],"row":{"k":"b"}}]"#;
        tree.worlds[1].ask(client, "2", "transact", change);
        cut_after_sending(&mut tree, 1, seed % 20);
        resent += u64::from(tree.worlds[0].contents("A").is_empty());
        tree.wait(30_000);
        let text = tree.worlds[1].take(client);
        assert!(
            text.contains(r#""id":2,"result":[{"count":1}]"#),
            "seed {seed}: {text}"
        );
        tree.check_equal();
        tree.check_idle();
    }
    assert!(resent > 5, "{resent}");
}

#[test]
fn a_write_of_a_client_that_has_gone_is_not_sent_again() {
    let mut unsent = 0;
    for seed in 0..SEEDS * 2 {
        let (is_named, goes_first) = (seed % 2 == 0, seed % 4 < 2);
        let mut tree = Tree::started_with_ids(seed, &[&[0]], true);
        let after = last_commit(&mut tree.worlds[1]);
        let client = tree.worlds[1].connect();
        match is_named {
            true => {
                let params = once(&after, &insert("a"));
                let params = params.replace(&format!("\"{after}\""), "null");
                tree.worlds[1].ask(client, "1", "transact_once", &params);
            }
            false => tree.worlds[1].insert(client, "1", "A", "a"),
        }
        let sent = tree.relay(1).machine.session().metrics().bytes_sent;
        while tree.relay(1).machine.session().metrics().bytes_sent == sent {
            assert!(tree.step());
        }
        for _ in 0..seed % 5 {
            tree.step();
        }
        for goes in [goes_first, !goes_first] {
            match goes {
                true => {
                    tree.worlds[1].disconnect(client);
                    // The relay notices it.
                    while tree.worlds[1].step() {}
                }
                false => tree.cut(1),
            }
        }
        // The source executes what it has read.
        while tree.worlds[0].step() {}
        let had = tree.worlds[0].contents("A").len();
        tree.wait(30_000);
        // It was executed over the old connection, or never.
        assert_eq!(tree.worlds[0].contents("A").len(), had, "seed {seed}");
        unsent += usize::from(had == 0);
        // The client comes back.
        if is_named {
            let client = tree.worlds[1].connect();
            tree.worlds[1].ask(client, "2", "transact_once", &once(&after, &insert("a")));
            tree.wait(1000);
            let text = tree.worlds[1].take(client);
            assert!(
                text.contains(r#""id":2,"result":[{"uuid""#),
                "seed {seed}: {text}"
            );
            assert_eq!(tree.worlds[0].contents("A").len(), 1, "seed {seed}");
        }
        tree.check_equal();
        tree.check_idle();
    }
    assert!(unsent > 10, "{unsent}");
}

#[test]
fn another_relay_of_the_source_finds_out_what_became_of_a_write() {
    for seed in 0..SEEDS {
        // The third world finds the second one when the first is away.
        let mut tree = Tree::started_with_ids(seed, &[&[0], &[0], &[1, 2]], true);
        let client = tree.worlds[3].connect();
        tree.worlds[3].insert(client, "1", "A", "a");
        let sent = tree.relay(3).machine.session().metrics().bytes_sent;
        while tree.relay(3).machine.session().metrics().bytes_sent == sent {
            assert!(tree.step());
        }
        let (source, _) = tree.relay(3).link.expect("connected");
        tree.is_down[source] = true;
        tree.wait(30_000);
        let text = tree.worlds[3].take(client);
        assert!(text.contains(r#""id":1,"result":[{"uuid""#), "{text}");
        assert_eq!(tree.worlds[0].contents("A").len(), 1, "seed {seed}");
        tree.is_down[source] = false;
        tree.wait(30_000);
        tree.check_equal();
        tree.check_idle();
    }
}

#[test]
fn an_id_is_executed_once_and_its_result_is_told_again() {
    for seed in 0..SEEDS {
        let mut world = World::new(seed);
        world.wait(1000);
        let first = world.connect();
        let after = last_commit(&mut world);
        let params = once(&after, &insert("a")).replace(&format!("\"{after}\""), "null");
        world.ask(first, "1", "transact_once", &params);
        // The second copy may overtake the first on its way to the database.
        let second = world.connect();
        let steps = world.dice.below(12);
        for _ in 0..steps {
            world.step();
        }
        world.ask(second, "2", "transact_once", &once(&after, &insert("a")));
        world.run();
        let reply = |text: &str| text.split(r#""result""#).nth(1).map(str::to_owned);
        let (told, again) = (world.take(first), world.take(second));
        assert!(told.contains(r#"[{"uuid""#), "{told}");
        assert_eq!(reply(&told), reply(&again));
        assert_eq!(world.contents("A").len(), 1);
        // A transaction that was aborted stays aborted, whatever its copy would do now.
        let nothing = format!(r#"{},{{"op":"abort"}}"#, insert("b"));
        let abort = once(&after, &nothing).replace("5e1f", "5e11");
        world.ask(second, "3", "transact_once", &abort);
        let other = once(&after, &insert("c")).replace("5e1f", "5e11");
        world.ask(second, "4", "transact_once", &other);
        // The outcome of an older transaction is unknown.
        let unknown = once("5e1f3c9a-7d42-4a0b-9c66-2f0d8e5b7a13", &insert("b"));
        let unknown = unknown.replacen("5e1f", "5e10", 1);
        world.ask(second, "5", "transact_once", &unknown);
        world.ask(second, "6", "transact_once", r#"["A",0]"#);
        world.run();
        let text = world.take(second);
        assert_eq!(text.matches(r#""error":"aborted""#).count(), 1, "{text}");
        assert!(text.contains("another transaction has this id"), "{text}");
        assert!(text.contains(r#"{"error":"canceled","id":5}"#), "{text}");
        assert!(
            text.contains(r#"{"error":"unknown method","id":6}"#),
            "{text}"
        );
        assert_eq!(world.contents("A").len(), 1);
        world.check_idle();
    }
}

#[test]
fn a_commit_that_could_not_be_stored_is_executed_when_it_is_sent_again() {
    for seed in 0..SEEDS {
        let mut world = World::new(seed);
        world.wait(1000);
        let after = last_commit(&mut world);
        world.disk("A").failures = 1;
        let client = world.connect();
        let durable = format!(r#"{},{{"op":"commit","durable":true}}"#, insert("a"));
        world.ask(client, "1", "transact_once", &once(&after, &durable));
        world.run();
        let text = world.take(client);
        assert!(text.contains("I/O error"), "{text}");
        world.ask(client, "2", "transact_once", &once(&after, &durable));
        world.run();
        let text = world.take(client);
        assert!(
            text.contains(r#""id":2,"result":[{"uuid""#) && !text.contains("error\":\""),
            "{text}"
        );
        assert_eq!(world.contents("A").len(), 1);
        world.check_idle();
    }
}

#[test]
fn a_blocked_transaction_and_its_repetition_happen_once() {
    for seed in 0..SEEDS {
        let mut world = World::new(seed);
        world.wait(1000);
        let wait = r#"{"op":"wait","table":"T","where":[["k","==","go"]],"columns":["k"],"until":"==","rows":[{"k":"go"}]}"#;
        let both = format!("{wait},{}", insert("a"));
        let clients = [
            world.connect(),
            world.connect_as(SessionInfo::new(false, String::new(), None)),
        ];
        let after = last_commit(&mut world);
        for client in clients {
            world.ask(client, "1", "transact_once", &once(&after, &both));
            world.run();
            assert_eq!(world.take(client), "");
        }
        world.transact_here(&insert("go"));
        let [first, second] = clients.map(|client| world.take(client));
        assert!(first.contains(r#""id":1,"result":[{},{"uuid""#), "{first}");
        assert_eq!(first, second);
        assert_eq!(world.contents("A").len(), 2);
        world.check_idle();
    }
}

/// Makes a server forget every outcome by adding others.
fn push_out_outcomes(world: &mut World) {
    let client = world.connect();
    let nothing = format!(
        r#"{{"op":"delete","table":"Other","where":[["n","==",7]]}},{{"op":"{}"}}"#,
        "y".repeat(20_000)
    );
    for number in 0..450 {
        let id = format!("0f1f3c9a-0000-4a00-9c66-{number:012x}");
        let params = format!(r#"["{id}",null,["A",{nothing}]]"#);
        world.ask(client, "2", "transact_once", &params);
        world.run();
        let told = world.clients.get_mut(&client).expect("there");
        let text = told.received.pop().expect("a reply").to_string();
        assert!(
            text.len() > 40_000 && text.contains(r#"{"count":0}"#),
            "{text}"
        );
    }
    world.disconnect(client);
    world.run();
}

#[test]
fn an_id_whose_outcome_is_forgotten_is_not_executed_again() {
    for seed in 0..2 {
        let mut world = World::new(seed);
        world.wait(1000);
        let client = world.connect();
        let params = format!(r#"["{ID}",null,["A",{}]]"#, insert("a"));
        world.ask(client, "1", "transact_once", &params);
        world.run();
        assert!(world.take(client).contains(r#"[{"uuid""#));
        let seen = last_commit(&mut world);
        push_out_outcomes(&mut world);
        world.transact_here(&insert("missed"));
        let again = format!(r#"["{ID}",null,["A",{}]]"#, insert("b"));
        world.ask(client, "2", "transact_once", &again);
        world.run();
        let rows = world.contents("A").len();
        assert_eq!(rows, 2, "it is not executed again");
        let text = world.take(client);
        assert!(text.contains(r#"{"error":"canceled","id":2}"#), "{text}");
        // The id still names the first commit: a client that has seen that commit gets everything
        // that came later.
        let params = format!(r#"["A","m",{{"T":{{"columns":["k"]}}}},"{seen}"]"#);
        world.ask(client, "3", "monitor_cond_since", &params);
        world.run();
        let text = world.take(client);
        assert!(text.contains("missed") && text.contains("true,"), "{text}");
        world.check_idle();
    }
}

#[test]
fn a_commit_shows_no_other_client_the_id_of_its_transaction() {
    for seed in 0..SEEDS {
        let mut world = World::new(seed);
        world.wait(1000);
        let (owner, other) = (world.connect(), world.connect());
        let params = format!(r#"["{ID}",null,["A",{}]]"#, insert("a"));
        world.ask(owner, "1", "transact_once", &params);
        world.run();
        world.take(owner);
        let seen = last_commit(&mut world);
        assert!(!seen.starts_with("5e1f3c9a"), "{seen}");
        // The three bytes that must be zero in a client's id, cleared.
        let guess = format!(
            "{}-00{}-{}00-{}",
            &seen[..8],
            "00",
            &seen[14..16],
            &seen[19..]
        );
        let params = format!(r#"["{guess}",null,["A",{}]]"#, insert("b"));
        world.ask(other, "1", "transact_once", &params);
        let zero = r#"["00000000-0000-0000-0000-000000000000",null,["A"]]"#;
        world.ask(other, "2", "transact_once", zero);
        world.run();
        let text = world.take(other);
        // The other client's request is a separate transaction.
        assert!(text.contains(r#""id":1,"result":[{"uuid""#), "{text}");
        assert!(
            text.contains(r#""error":"unknown method","id":2"#),
            "{text}"
        );
        assert_eq!(world.contents("A").len(), 2);
        world.check_idle();
    }
}
