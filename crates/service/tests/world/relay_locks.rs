//! Locks that clients of relays take at the source (docs/internals/relay.md, "Locks").

use corvid_monitor::SessionId;

use crate::databases::insert;
use crate::relays::Tree;

/// Orders of events per play.
const SEEDS: u64 = 30;

/// Longer than a relay waits before it reconnects, ms.
const RECONNECT_MS: u64 = 10_000;

/// A request of this length leaves no room for another on the way to the source.
const LONG_BYTES: usize = 65 << 20;

fn ask(tree: &mut Tree, (world, client): (usize, SessionId), id: &str, method: &str) {
    tree.worlds[world].ask(client, id, method, r#"["L"]"#);
}

fn write(tree: &mut Tree, (world, client): (usize, SessionId), id: &str, key: &str) {
    let both = format!(r#"{{"op":"assert","lock":"L"}},{}"#, insert(key));
    tree.worlds[world].transact(client, id, "A", &both);
}

fn take(tree: &mut Tree, (world, client): (usize, SessionId)) -> String {
    tree.worlds[world].take(client)
}

/// Two relays of the source and one relay of the first, and a client of each of these worlds.
fn tree<const N: usize>(seed: u64, worlds: [usize; N]) -> (Tree, [(usize, SessionId); N]) {
    let mut tree = Tree::started(seed, &[&[0], &[0], &[1]]);
    let clients = worlds.map(|world| (world, tree.worlds[world].connect()));
    (tree, clients)
}

#[test]
fn one_client_of_the_whole_tree_owns_a_lock_and_may_write() {
    for seed in 0..SEEDS {
        let (mut tree, clients) = tree(seed, [3, 1, 2, 0]);
        for client in clients {
            ask(&mut tree, client, "1", "lock");
            write(&mut tree, client, "2", &format!("k{}", client.0));
            tree.run();
        }
        let is_owner = clients.map(|client| {
            let text = take(&mut tree, client);
            let is_owner = text.contains(r#""id":1,"result":{"locked":true}"#);
            assert!(is_owner || text.contains(r#"{"locked":false}"#), "{text}");
            assert_eq!(text.contains("not owner"), !is_owner, "{text}");
            is_owner
        });
        assert_eq!(is_owner, [true, false, false, false]);
        assert_eq!(tree.worlds[0].contents("A").len(), 1);
        // The lock passes from relay to relay, and to a client of the source itself. The first
        // relay waits for its second turn.
        ask(&mut tree, clients[0], "3", "unlock");
        tree.run();
        for at in [2, 3, 1] {
            let text = take(&mut tree, clients[at]);
            assert!(text.contains(r#""method":"locked""#), "{at}: {text}");
            write(&mut tree, clients[at], "4", &format!("next{at}"));
            tree.run();
            assert!(take(&mut tree, clients[at]).contains(r#""result":[{},{"uuid""#));
            let (world, client) = clients[at];
            tree.worlds[world].disconnect(client);
            tree.run();
        }
        assert_eq!(tree.worlds[0].contents("A").len(), 4);
        tree.check_equal();
        tree.check_idle();
    }
}

#[test]
fn a_lock_is_stolen_from_a_client_of_another_relay() {
    for seed in 0..SEEDS {
        let (mut tree, [victim, thief, waiter]) = tree(seed, [3, 2, 3]);
        for client in [victim, waiter] {
            ask(&mut tree, client, "1", "lock");
            tree.run();
        }
        ask(&mut tree, thief, "1", "steal");
        tree.run();
        assert!(take(&mut tree, thief).contains(r#"{"locked":true}"#));
        assert!(take(&mut tree, victim).contains(r#""method":"stolen""#));
        write(&mut tree, victim, "2", "a");
        write(&mut tree, thief, "2", "b");
        tree.run();
        assert!(take(&mut tree, victim).contains("not owner"));
        assert!(take(&mut tree, thief).contains(r#""result":[{},{"uuid""#));
        ask(&mut tree, thief, "3", "unlock");
        tree.run();
        assert!(take(&mut tree, victim).contains(r#""method":"locked""#));
        write(&mut tree, victim, "4", "c");
        tree.run();
        assert!(take(&mut tree, victim).contains(r#""result":[{},{"uuid""#));
        assert_eq!(
            take(&mut tree, waiter),
            "{\"error\":null,\"id\":1,\"result\":{\"locked\":false}}\n"
        );
        tree.check_idle();
    }
}

#[test]
fn a_client_loses_its_lock_with_the_source_and_gets_it_back() {
    for seed in 0..SEEDS {
        let (mut tree, [owner, direct]) = tree(seed, [3, 0]);
        ask(&mut tree, owner, "1", "lock");
        tree.run();
        ask(&mut tree, direct, "1", "lock");
        tree.run();
        take(&mut tree, owner);
        // One of the two connections between the client's relay and the source ends.
        tree.is_down[(seed % 2) as usize] = true;
        tree.run();
        let text = take(&mut tree, owner);
        assert!(text.contains(r#""method":"stolen""#), "{text}");
        write(&mut tree, owner, "2", "a");
        tree.wait(RECONNECT_MS);
        let text = take(&mut tree, owner);
        assert!(text.contains("not owner"), "{text}");
        assert!(take(&mut tree, direct).contains(r#""method":"locked""#));
        // A client that requests the lock now waits, or learns that it cannot steal. Probes are
        // answered meanwhile.
        let [late, thief] = [3, 3].map(|world| (world, tree.worlds[world].connect()));
        ask(&mut tree, late, "1", "lock");
        ask(&mut tree, thief, "1", "steal");
        tree.worlds[3].ask(late.1, "9", "echo", "[]");
        tree.run();
        assert!(take(&mut tree, late).contains(r#"{"locked":false}"#));
        let text = take(&mut tree, thief);
        if seed % 2 == 1 {
            assert!(text.contains("not connected"), "{text}");
        }
        tree.is_down[(seed % 2) as usize] = false;
        tree.wait(RECONNECT_MS);
        assert!(
            !take(&mut tree, owner).contains("locked"),
            "another one has it"
        );
        let (world, client) = direct;
        tree.worlds[world].disconnect(client);
        tree.wait(RECONNECT_MS);
        let text = take(&mut tree, owner);
        assert!(text.contains(r#""method":"locked""#), "{text}");
        write(&mut tree, owner, "3", "b");
        tree.run();
        let text = take(&mut tree, owner);
        assert!(text.contains(r#""result":[{},{"uuid""#), "{text}");
        tree.check_idle();
    }
}

#[test]
fn a_session_gets_answers_and_updates_in_their_order() {
    for seed in 0..SEEDS {
        let (mut tree, [first, second]) = tree(seed, [1, 2]);
        let (world, session) = second;
        tree.worlds[world].monitor(session, "7", "A", "m");
        ask(&mut tree, first, "1", "lock");
        tree.run();
        take(&mut tree, second);
        // All at once: the next owner sees what the previous one has written before it learns that
        // it owns the lock.
        write(&mut tree, first, "2", "a");
        ask(&mut tree, second, "1", "lock");
        ask(&mut tree, first, "3", "unlock");
        write(&mut tree, second, "2", "b");
        tree.run();
        let text = take(&mut tree, second);
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
        let owns = [r#""method":"locked""#, r#"{"locked":true}"#];
        let owns = owns.iter().filter_map(|part| text.find(part)).min();
        assert!(Some(at(r#"{"k":"a"}"#)) < owns, "{text}");
        tree.check_idle();
    }
}

#[test]
fn a_transaction_that_waits_for_a_source_comes_before_the_next_claim() {
    for seed in 0..SEEDS {
        let (mut tree, [owner, next]) = tree(seed, [1, 1]);
        ask(&mut tree, owner, "1", "steal");
        tree.run();
        ask(&mut tree, next, "1", "lock");
        tree.run();
        take(&mut tree, owner);
        take(&mut tree, next);
        // The write is checked while its session owns the lock, and cannot leave before the
        // connection has ended.
        tree.relay(1).is_held = true;
        write(&mut tree, owner, "2", "a");
        tree.run();
        tree.cut(1);
        tree.relay(1).is_held = false;
        tree.wait(RECONNECT_MS);
        let text = take(&mut tree, owner);
        assert!(
            text.contains("stolen") && text.contains("not owner"),
            "{text}"
        );
        assert!(take(&mut tree, next).contains(r#""method":"locked""#));
        write(&mut tree, next, "2", "b");
        tree.run();
        assert!(take(&mut tree, next).contains(r#""result":[{},{"uuid""#));
        tree.check_idle();
    }
}

#[test]
fn a_transaction_that_waits_for_room_is_judged_when_it_leaves() {
    for seed in 0..2 {
        let (mut tree, [owner, thief, writer]) = tree(seed, [1, 1, 1]);
        ask(&mut tree, owner, "1", "lock");
        tree.run();
        tree.relay(1).is_held = true;
        let text = "x".repeat(LONG_BYTES);
        let long = format!(
            r#"{{"op":"comment","comment":"{text}"}},{}"#,
            insert("long")
        );
        tree.worlds[1].transact(writer.1, "1", "A", &long);
        tree.run();
        write(&mut tree, owner, "2", "a");
        tree.run();
        ask(&mut tree, thief, "1", "steal");
        tree.run();
        tree.relay(1).is_held = false;
        tree.run();
        assert!(take(&mut tree, thief).contains(r#"{"locked":true}"#));
        let text = take(&mut tree, owner);
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
        assert!(at("stolen") < at("not owner"), "{text}");
        assert_eq!(tree.worlds[0].contents("A").len(), 1);
        tree.check_idle();
    }
}

#[test]
fn a_blocked_transaction_does_not_write_for_the_next_owner() {
    for seed in 0..SEEDS {
        let (mut tree, [owner, next]) = tree(seed, [1, 1]);
        tree.write(&insert("there"));
        ask(&mut tree, owner, "1", "lock");
        tree.run();
        ask(&mut tree, next, "1", "lock");
        tree.run();
        take(&mut tree, owner);
        // The wait is satisfied at the relay, but blocks at the source.
        tree.relay(1).is_held = true;
        tree.write(r#"{"op":"delete","table":"T","where":[]}"#);
        let wait = r#"{"op":"wait","table":"T","where":[["k","==","there"]],"columns":["k"],"until":"==","rows":[{"k":"there"}]}"#;
        let operations = format!(r#"{{"op":"assert","lock":"L"}},{wait},{}"#, insert("a"));
        tree.worlds[1].transact(owner.1, "2", "A", &operations);
        tree.run();
        tree.relay(1).is_held = false;
        tree.run();
        assert_eq!(take(&mut tree, owner), "");
        ask(&mut tree, next, "2", "unlock");
        ask(&mut tree, next, "3", "steal");
        tree.run();
        tree.write(&insert("there"));
        tree.run();
        let text = take(&mut tree, owner);
        assert!(text.contains("canceled"), "{text}");
        assert_eq!(tree.worlds[0].contents("A").len(), 1);
        tree.check_idle();
    }
}
