//! Locks between sessions of different shards (docs/spec/protocol.md 4.11).

use expect_test::expect;

use crate::world::play;

#[test]
fn locks_pass_on_across_shards_in_order() {
    let told = play(|world| {
        let clients = [world.connect(), world.connect(), world.connect()];
        for client in clients {
            world.ask(client, "1", "lock", r#"["L"]"#);
            world.run();
        }
        world.ask(clients[0], "2", "unlock", r#"["L"]"#);
        world.run();
        world.disconnect(clients[1]);
        world.run();
        clients
            .iter()
            .map(|client| world.take(*client) + "\n")
            .collect()
    });
    expect![[r#"
        {"error":null,"id":1,"result":{"locked":true}}
        {"error":null,"id":2,"result":{}}

        {"error":null,"id":1,"result":{"locked":false}}
        {"id":null,"method":"locked","params":["L"]}

        {"error":null,"id":1,"result":{"locked":false}}
        {"id":null,"method":"locked","params":["L"]}

    "#]]
    .assert_eq(&told);
}

#[test]
fn the_victim_of_a_steal_is_notified_and_regains_the_lock() {
    let told = play(|world| {
        let (owner, thief) = (world.connect(), world.connect());
        world.ask(owner, "1", "lock", r#"["L"]"#);
        world.run();
        world.ask(thief, "1", "steal", r#"["L"]"#);
        world.run();
        world.transact(owner, "2", "A", r#"{"op":"assert","lock":"L"}"#);
        world.transact(thief, "2", "A", r#"{"op":"assert","lock":"L"}"#);
        world.run();
        world.ask(thief, "3", "unlock", r#"["L"]"#);
        world.run();
        world.transact(owner, "3", "A", r#"{"op":"assert","lock":"L"}"#);
        world.run();
        world.take(owner) + "\n" + &world.take(thief)
    });
    expect![[r#"
        {"error":null,"id":1,"result":{"locked":true}}
        {"id":null,"method":"stolen","params":["L"]}
        {"error":null,"id":2,"result":[{"details":"Asserted lock L not held.","error":"not owner"}]}
        {"id":null,"method":"locked","params":["L"]}
        {"error":null,"id":3,"result":[{}]}

        {"error":null,"id":1,"result":{"locked":true}}
        {"error":null,"id":2,"result":[{}]}
        {"error":null,"id":3,"result":{}}
    "#]]
    .assert_eq(&told);
}

#[test]
fn a_new_owner_has_the_updates_of_the_last_owners_commits() {
    play(|world| {
        let (old, new) = (world.connect(), world.connect());
        for database in ["A", "B"] {
            let params = format!(r#"["{database}","{database}",{{"T":{{"columns":["k"]}}}}]"#);
            world.ask(new, "1", "monitor", &params);
        }
        world.ask(old, "1", "lock", r#"["L"]"#);
        world.run();
        world.ask(new, "2", "lock", r#"["L"]"#);
        world.run();
        world.take(new);
        world.insert(old, "2", "A", "a");
        world.insert(old, "3", "B", "b");
        world.ask(old, "4", "unlock", r#"["L"]"#);
        world.run();
        let heard = world.take(new);
        let lines: Vec<&str> = heard.lines().collect();
        assert_eq!(lines.len(), 3, "{heard}");
        assert!(
            lines[2].contains(r#""locked""#),
            "the lock comes last: {heard}"
        );
        String::new()
    });
}

#[test]
fn requests_for_locks_are_checked() {
    let told = play(|world| {
        use corvid_service::message::SessionInfo;
        let client = world.connect();
        let reader = world.connect_as(SessionInfo::new(true, String::new(), None));
        world.ask(client, "1", "lock", r#"["L"]"#);
        world.ask(client, "2", "steal", r#"["L"]"#);
        world.ask(client, "3", "unlock", r#"["M"]"#);
        world.ask(client, "4", "lock", r#"["9"]"#);
        world.ask(client, "5", "lock", r#"["a","b"]"#);
        world.ask(client, "6", "unlock", r#"["L"]"#);
        world.ask(client, "7", "unlock", r#"["L"]"#);
        world.ask(reader, "8", "lock", "[]");
        world.transact(client, "9", "A", r#"{"op":"assert","lock":"L"}"#);
        world.run();
        world.take(client) + &world.take(reader)
    });
    expect![[r#"
        {"error":null,"id":1,"result":{"locked":true}}
        {"error":{"details":"must issue \"unlock\" before new \"steal\"","error":"syntax error","syntax":"[\"L\"]"},"id":2}
        {"error":{"details":"unlock: \"unlock\" without \"lock\" or \"steal\"","error":"syntax error","syntax":"[\"M\"]"},"id":3}
        {"error":{"details":"lock request params must be <id>","error":"syntax error","syntax":"[\"9\"]"},"id":4}
        {"error":{"details":"lock request params must be <id>","error":"syntax error","syntax":"[\"a\",\"b\"]"},"id":5}
        {"error":null,"id":6,"result":{}}
        {"error":{"details":"unlock: \"unlock\" without \"lock\" or \"steal\"","error":"syntax error","syntax":"[\"L\"]"},"id":7}
        {"error":null,"id":9,"result":[{"details":"Asserted lock L not held.","error":"not owner"}]}
        {"error":"lock and unlock methods not allowed, DB server is read only.","id":8}
    "#]].assert_eq(&told);
}
