//! The order of replies and updates of a session (docs/spec/protocol.md 4.5.6).

use expect_test::expect;

use crate::world::play;

#[test]
fn replies_keep_the_order_of_requests_across_databases() {
    let told = play(|world| {
        let client = world.connect();
        world.insert(client, "1", "A", "a");
        world.insert(client, "2", "B", "b");
        world.ask(client, "3", "list_dbs", "[]");
        world.transact(
            client,
            "4",
            "A",
            r#"{"op":"select","table":"T","where":[],"columns":["k"]}"#,
        );
        world.transact(client, "5", "A", r#"{"op":"comment","comment":"x"}"#);
        world.ask(client, "6", "echo", "[1]");
        world.transact(client, "7", "C", r#"{"op":"comment","comment":"x"}"#);
        world.ask(client, "8", "frobnicate", "[]");
        world.transact(
            client,
            "9",
            "_Server",
            r#"{"op":"select","table":"Database","where":[["name","==","A"]],"columns":["model"]}"#,
        );
        world.run();
        world.take(client)
    });
    expect![[r#"
        {"error":null,"id":1,"result":[{"uuid":["uuid","<0>"]}]}
        {"error":null,"id":2,"result":[{"uuid":["uuid","<1>"]}]}
        {"error":null,"id":3,"result":["A","B","_Server"]}
        {"error":null,"id":4,"result":[{"rows":[{"k":"a"}]}]}
        {"error":null,"id":5,"result":[{}]}
        {"error":null,"id":6,"result":[1]}
        {"error":{"details":"transact request specifies unknown database C","error":"unknown database","syntax":"[\"C\",{\"comment\":\"x\",\"op\":\"comment\"}]"},"id":7}
        {"error":"unknown method","id":8}
        {"error":null,"id":9,"result":[{"rows":[{"model":"standalone"}]}]}
    "#]].assert_eq(&told);
}

#[test]
fn updates_precede_the_reply_to_the_commit_that_made_them() {
    let told = play(|world| {
        let client = world.connect();
        world.monitor(client, "1", "A", "m");
        world.insert(client, "2", "A", "a");
        world.transact(
            client,
            "3",
            "A",
            r#"{"op":"delete","table":"T","where":[]}"#,
        );
        world.run();
        // Whether the two updates merge depends on when the first is written.
        let all = world.take(client);
        let (first, rest) = all.split_once('\n').unwrap();
        assert!(first.contains(r#""id":1"#));
        let updates = rest
            .lines()
            .filter(|line| line.contains(r#""update""#))
            .count();
        assert_eq!(updates, 2, "each commit precedes its reply: {all}");
        all
    });
    expect![[r#"
        {"error":null,"id":1,"result":{}}
        {"id":null,"method":"update","params":["m",{"T":{"<0>":{"new":{"k":"a"}}}}]}
        {"error":null,"id":2,"result":[{"uuid":["uuid","<0>"]}]}
        {"id":null,"method":"update","params":["m",{"T":{"<0>":{"old":{"k":"a"}}}}]}
        {"error":null,"id":3,"result":[{"count":1}]}
    "#]]
    .assert_eq(&told);
}

#[test]
fn a_reply_follows_the_updates_of_commits_that_other_sessions_have_seen() {
    let told = play(|world| {
        let (watcher, writer) = (world.connect(), world.connect());
        for database in ["A", "B"] {
            let params = format!(r#"["{database}","{database}",{{"T":{{"columns":["k"]}}}}]"#);
            world.ask(watcher, "1", "monitor", &params);
        }
        world.run();
        world.take(watcher);
        world.insert(writer, "2", "A", "a");
        world.run_until(|world| world.clients[&writer].received.len() == 1);
        world.insert(writer, "3", "B", "b");
        world.run_until(|world| world.clients[&writer].received.len() == 2);
        // The second commit is complete, so its update must precede any reply.
        world.ask(watcher, "4", "list_dbs", "[]");
        world.run();
        let all = world.take(watcher);
        let lines: Vec<&str> = all.lines().collect();
        assert_eq!(lines.len(), 3, "{all}");
        assert!(lines[2].contains(r#""id":4"#), "the reply is last: {all}");
        lines[2].to_owned()
    });
    expect![[r#"{"error":null,"id":4,"result":["A","B","_Server"]}"#]].assert_eq(&told);
}

#[test]
fn no_reply_overtakes_the_updates_of_a_slow_session() {
    let asked = [
        ("echo", "[1]"),
        ("list_dbs", "[]"),
        ("get_server_id", "[]"),
        ("set_db_change_aware", "[true]"),
        ("lock", r#"["l"]"#),
        ("unlock", r#"["l"]"#),
        ("frobnicate", "[]"),
        ("get_schema", r#"["C"]"#),
        ("get_schema", r#"["A"]"#),
        ("monitor_cancel", r#"["x"]"#),
        ("transact", r#"["A"]"#),
    ];
    for (method, params) in asked {
        play(|world| {
            let (watcher, writer) = (world.connect(), world.connect());
            world.monitor(watcher, "1", "A", "m");
            world.run();
            world.take(watcher);
            for (count, key) in (1..).zip(["a", "b", "c"]) {
                world.insert(writer, &count.to_string(), "A", key);
                world.run_until(|world| world.clients[&writer].received.len() == count);
            }
            // All three are committed, so the watcher's missing updates precede its reply.
            world.ask(watcher, "9", method, params);
            world.run();
            let told = world.take(watcher);
            let (updates, reply) = told.split_once(r#""id":9"#).unwrap_or((&told, ""));
            let has_all = ["a", "b", "c"]
                .iter()
                .all(|key| updates.contains(&format!(r#""k":"{key}""#)));
            assert!(has_all && reply.lines().count() == 1, "{method}: {told}");
            String::new()
        });
    }
}

#[test]
fn messages_after_a_malformed_one_are_ignored() {
    let told = play(|world| {
        let client = world.connect();
        world.transact(client, "1", "A", r#"{"op":"comment","comment":"x"}"#);
        world.send(client, r#"{"id":2,"method":"list_dbs","params":{}}"#);
        world.insert(client, "3", "A", "a");
        world.run();
        assert!(world.contents("A").is_empty());
        format!("{:?}\n", world.clients[&client].closed)
    });
    expect![[r#"
        Some(BadMessage("received bad JSON-RPC message: \"params\" must be JSON array"))
    "#]]
    .assert_eq(&told);
}

#[test]
fn requests_in_flight_are_bounded() {
    let told = play(|world| {
        let client = world.connect();
        for number in 0..3000 {
            world.transact(
                client,
                &number.to_string(),
                "A",
                r#"{"op":"comment","comment":"x"}"#,
            );
        }
        let mut most = 0;
        while world.step() {
            most = most.max(world.inbox_len("A"));
        }
        assert!(most <= 1024, "{most} at once");
        let client = &world.clients[&client];
        let ids: Vec<i64> = client
            .received
            .iter()
            .filter_map(|reply| reply.get("id")?.as_integer())
            .collect();
        assert!(ids.into_iter().eq(0..3000));
        String::new()
    });
    expect![""].assert_eq(&told);
}

#[test]
fn a_half_closed_client_stays_until_its_requests_are_answered() {
    play(|world| {
        let client = world.connect();
        assert!(world.half_close(client), "nothing is under way");
        let client = world.connect();
        world.disk("A").is_held = true;
        world.transact(
            client,
            "1",
            "A",
            r#"{"op":"insert","table":"T","row":{"k":"a"}},{"op":"commit","durable":true}"#,
        );
        world.ask(client, "2", "list_dbs", "[]");
        world.run();
        assert!(!world.half_close(client), "its commit is being stored");
        world.disk("A").is_held = false;
        world.run();
        assert_eq!(world.clients[&client].received.len(), 2);
        assert!(world.clients[&client].closed.is_some());
        String::new()
    });
}

#[test]
fn requests_before_a_malformed_message_are_answered() {
    let reply = r#"{"id":9,"result":[],"error":null}"#;
    let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(300 * 1024));
    for bad in [r#"{"a":1}"#, "[]", "[1}", reply, &long] {
        let told = play(|world| {
            let client = world.connect();
            world.disk("A").is_held = true;
            let insert = |key| {
                format!(
                    r#"{{"op":"insert","table":"T","row":{{"k":"{key}"}}}},{{"op":"commit","durable":true}}"#
                )
            };
            world.ask(client, "1", "monitor", r#"["A","m",{"T":{}}]"#);
            world.transact(client, "2", "A", &insert("a"));
            world.ask(client, "3", "echo", "[]");
            world.send(client, bad);
            world.transact(client, "4", "A", &insert("b"));
            world.run();
            assert!(
                world.clients[&client].closed.is_none(),
                "its commit is being stored"
            );
            world.disk("A").is_held = false;
            world.run();
            let told = world.take(client);
            let closed = world.clients[&client].closed.is_some();
            assert!(closed, "{bad}");
            let other = world.connect();
            let select = r#"{"op":"select","table":"T","where":[],"columns":["k"]}"#;
            world.transact(other, "1", "A", select);
            world.run();
            told + &world.take(other)
        });
        expect![[r#"
            {"error":null,"id":1,"result":{}}
            {"id":null,"method":"update","params":["m",{"T":{"<0>":{"new":{"_version":["uuid","<1>"],"k":"a","n":0}}}}]}
            {"error":null,"id":2,"result":[{"uuid":["uuid","<0>"]},{}]}
            {"error":null,"id":3,"result":[]}
            {"error":null,"id":1,"result":[{"rows":[{"k":"a"}]}]}
        "#]]
        .assert_eq(&told);
    }
}

#[test]
fn no_reply_overtakes_the_reply_to_a_canceled_request() {
    let told = play(|world| {
        let client = world.connect();
        let wait = r#"{"op":"wait","table":"T","where":[],"columns":["k"],"until":"==","rows":[{"k":"x"}]}"#;
        world.transact(client, "1", "A", wait);
        world.transact(client, "2", "B", r#"{"op":"comment","comment":"x"}"#);
        world.run();
        for canceled in [3, 1] {
            let text = format!(r#"{{"id":null,"method":"cancel","params":[{canceled}]}}"#);
            world.send(client, &text);
        }
        world.ask(client, "4", "list_dbs", "[]");
        world.ask(client, "5", "echo", "[]");
        world.transact(client, "6", "B", r#"{"op":"comment","comment":"x"}"#);
        world.run();
        world.take(client)
    });
    expect![[r#"
        {"error":null,"id":2,"result":[{}]}
        {"error":"canceled","id":1}
        {"error":null,"id":4,"result":["A","B","_Server"]}
        {"error":null,"id":5,"result":[]}
        {"error":null,"id":6,"result":[{}]}
    "#]]
    .assert_eq(&told);
}
