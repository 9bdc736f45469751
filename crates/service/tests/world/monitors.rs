//! Monitors of one session on several databases, and sessions that read slowly.

use corvid_service::Setting;
use corvid_service::message::{Control, ToDatabase};
use expect_test::expect;

use crate::databases::insert;
use crate::world::play;

#[test]
fn changes_merge_while_output_is_not_drained() {
    let told = play(|world| {
        let (watcher, writer) = (world.connect(), world.connect());
        world.ask(
            watcher,
            "1",
            "monitor_cond",
            r#"["A","m",{"T":[{"columns":["k","n"]}]}]"#,
        );
        world.run();
        world.take(watcher);
        world.clients.get_mut(&watcher).unwrap().is_stalled = true;
        // The first update fills the output; the others wait for it to drain, and merge.
        world.insert(writer, "1", "A", "first");
        world.run();
        world.transact(
            writer,
            "2",
            "A",
            r#"{"op":"insert","table":"T","row":{"k":"a","n":1}}"#,
        );
        world.run();
        world.transact(
            writer,
            "3",
            "A",
            r#"{"op":"update","table":"T","where":[["k","==","a"]],"row":{"n":2}}"#,
        );
        world.insert(writer, "4", "A", "gone");
        world.run();
        world.transact(
            writer,
            "5",
            "A",
            r#"{"op":"delete","table":"T","where":[["k","==","gone"]]}"#,
        );
        world.transact(
            writer,
            "6",
            "A",
            r#"{"op":"delete","table":"T","where":[["k","==","first"]]}"#,
        );
        world.run();
        let before = world.take(watcher);
        world.clients.get_mut(&watcher).unwrap().is_stalled = false;
        world.run();
        before + "drained\n" + &world.take(watcher)
    });
    expect![[r#"
        {"id":null,"method":"update2","params":["m",{"T":{"<0>":{"insert":{"k":"first"}}}}]}
        drained
        {"id":null,"method":"update2","params":["m",{"T":{"<0>":{"delete":null},"<1>":{"insert":{"k":"a","n":2}}}}]}
    "#]].assert_eq(&told);
}

#[test]
fn ids_are_unique_across_databases() {
    let told = play(|world| {
        let client = world.connect();
        let monitor = |database: &str| format!(r#"["{database}",["m",1.0],{{"T":{{}}}}]"#);
        world.ask(client, "1", "monitor", &monitor("A"));
        world.ask(client, "2", "monitor", &monitor("B"));
        world.ask(client, "3", "monitor_cancel", r#"[["m",1]]"#);
        world.ask(client, "4", "monitor", &monitor("B"));
        world.ask(client, "5", "monitor", r#"["A",null,{"T":{}}]"#);
        world.ask(client, "6", "monitor_cond_change", r#"[null,["m",1],{}]"#);
        world.ask(client, "7", "monitor_cond_change", r#"[null,{"new":0},{}]"#);
        world.ask(client, "8", "monitor_cancel", "[null]");
        world.ask(client, "9", "monitor_cancel", r#"[{"new":0}]"#);
        world.ask(client, "10", "monitor_cancel", r#"[{"new":0}]"#);
        world.ask(client, "11", "monitor_cond_change", r#"[{"new":0},1,{}]"#);
        world.ask(client, "12", "monitor_cancel", "[]");
        world.run();
        world.take(client)
    });
    expect![[r#"
        {"error":null,"id":1,"result":{}}
        {"error":{"details":"duplicate monitor ID","error":"syntax error","syntax":"[\"m\",1]"},"id":2}
        {"error":null,"id":3,"result":{}}
        {"error":null,"id":4,"result":{}}
        {"error":null,"id":5,"result":{}}
        {"error":{"details":"duplicate monitor ID","error":"syntax error","syntax":"[\"m\",1]"},"id":6}
        {"error":null,"id":7,"result":{}}
        {"error":"unknown monitor","id":8}
        {"error":null,"id":9,"result":{}}
        {"error":"unknown monitor","id":10}
        {"error":{"details":"unknown monitor session","error":"syntax error","syntax":"{\"new\":0}"},"id":11}
        {"error":"invalid parameters","id":12}
    "#]].assert_eq(&told);
}

#[test]
fn conditions_change_between_the_updates_of_old_and_new() {
    let told = play(|world| {
        let (watcher, writer) = (world.connect(), world.connect());
        world.transact(
            writer,
            "1",
            "A",
            r#"{"op":"insert","table":"T","row":{"k":"a","n":1}},{"op":"insert","table":"T","row":{"k":"b","n":2}}"#,
        );
        world.run();
        world.ask(
            watcher,
            "1",
            "monitor_cond",
            r#"["A","old",{"T":[{"columns":["k"],"where":[["n","==",1]]}]}]"#,
        );
        world.ask(
            watcher,
            "2",
            "monitor_cond_change",
            r#"["old","new",{"T":[{"where":[["n","==",2]]}]}]"#,
        );
        world.run();
        world.transact(
            writer,
            "2",
            "A",
            r#"{"op":"delete","table":"T","where":[]}"#,
        );
        world.run();
        world.take(watcher)
    });
    expect![[r#"
        {"error":null,"id":1,"result":{"T":{"<0>":{"initial":{"k":"a"}}}}}
        {"id":null,"method":"update2","params":["new",{"T":{"<0>":{"delete":null},"<1>":{"insert":{"k":"b"}}}}]}
        {"error":null,"id":2,"result":{}}
        {"id":null,"method":"update2","params":["new",{"T":{"<1>":{"delete":null}}}]}
    "#]].assert_eq(&told);
}

#[test]
fn a_monitor_continues_from_a_known_transaction() {
    let told = play(|world| {
        let (watcher, writer) = (world.connect(), world.connect());
        world.ask(
            watcher,
            "1",
            "monitor_cond_since",
            r#"["A","m",{"T":[{"columns":["k"]}]},"00000000-0000-0000-0000-000000000000"]"#,
        );
        world.run();
        world.insert(writer, "1", "A", "a");
        world.run();
        let known = {
            let last = world.clients[&watcher].received.last().unwrap();
            last.get("params").unwrap().as_array().unwrap()[1].to_string()
        };
        world.ask(watcher, "2", "monitor_cancel", r#"["m"]"#);
        world.run();
        world.insert(writer, "2", "A", "b");
        world.run();
        let params = format!(r#"["A","m",{{"T":[{{"columns":["k"]}}]}},{known}]"#);
        world.ask(watcher, "3", "monitor_cond_since", &params);
        world.run();
        world.take(watcher)
    });
    expect![[r#"
        {"error":null,"id":1,"result":[false,"<0>",{}]}
        {"id":null,"method":"update3","params":["m","<1>",{"T":{"<2>":{"insert":{"k":"a"}}}}]}
        {"error":null,"id":2,"result":{}}
        {"error":null,"id":3,"result":[true,"<3>",{"T":{"<4>":{"insert":{"k":"b"}}}}]}
    "#]]
    .assert_eq(&told);
}

#[test]
fn remotes_in_a_watched_column_are_reported() {
    let told = play(|world| {
        use corvid_service::message::{Control, ToDatabase};
        let client = world.connect();
        let follow = |table: &str, column: &str| {
            ToDatabase::Control(Control::WatchColumn {
                name: format!("db:A,{table},{column}"),
                table: table.to_owned(),
                column: column.to_owned(),
                texts_only: false,
            })
        };
        let id = world.id("A");
        for (table, column) in [("Remote", "target"), ("Remote", "none"), ("None", "x")] {
            world.post(id, follow(table, column));
        }
        world.run();
        world.transact(
            client,
            "1",
            "A",
            r#"{"op":"insert","table":"Remote","row":{"target":"ptcp:1"}}"#,
        );
        world.run();
        world.insert(client, "2", "A", "a");
        world.run();
        // A commit that cannot be stored is undone.
        world.disk("A").failures = 1;
        world.transact(
            client,
            "3",
            "A",
            r#"{"op":"delete","table":"Remote","where":[]}"#,
        );
        world.run();
        world.post(
            id,
            ToDatabase::Control(Control::UnwatchColumn("db:A,Remote,target".to_owned())),
        );
        world.transact(
            client,
            "4",
            "A",
            r#"{"op":"delete","table":"Remote","where":[]}"#,
        );
        world.run();
        world
            .events
            .iter()
            .map(|event| format!("{event:?}\n"))
            .collect()
    });
    expect![[r#"
        ColumnWatched("db:A,Remote,target", Ok({}))
        ColumnWatched("db:A,Remote,none", Err("\"db:A,Remote,none\": table \"Remote\" has no column \"none\""))
        ColumnWatched("db:A,None,x", Err("\"db:A,None,x\": no table named None"))
        RemotesChanged("db:A,Remote,target", {"ptcp:1": RemoteRow { probe_interval: None, max_backoff: None, read_only: false, role: "", dscp: None }})
    "#]].assert_eq(&told);
}

#[test]
fn rows_that_configure_remotes_show_their_status() {
    let told = play(|world| {
        use corvid_service::message::{Control, ToDatabase};
        use corvid_service::remote_status::RemoteStatus;
        let client = world.connect();
        let id = world.id("A");
        world.post(
            id,
            ToDatabase::Control(Control::WatchColumn {
                name: "db:A,Global,connections".to_owned(),
                table: "Global".to_owned(),
                column: "connections".to_owned(),
                texts_only: false,
            }),
        );
        world.transact(
            client,
            "1",
            "A",
            r#"{"op":"insert","table":"Connection","uuid-name":"a","row":{"target":"ptcp:1"}},
               {"op":"insert","table":"Connection","uuid-name":"b","row":{"target":"ptcp:2"}},
               {"op":"insert","table":"Global","row":{"connections":["set",[["named-uuid","a"],["named-uuid","b"]]]}}"#,
        );
        world.ask(
            client,
            "2",
            "monitor_cond",
            r#"["A","m",{"Connection":[{"columns":["target","is_connected","status"]}]}]"#,
        );
        world.run();
        world.take(client);
        let connected = RemoteStatus {
            is_connected: true,
            status: [("n_connections".to_owned(), "2".to_owned())].into(),
        };
        let known = std::sync::Arc::new([("ptcp:1".to_owned(), connected)].into());
        // The second time there is nothing to change.
        for _ in 0..2 {
            world.post(
                id,
                ToDatabase::Control(Control::ShowStatus(std::sync::Arc::clone(&known))),
            );
            world.run();
        }
        world.take(client)
    });
    expect![[r#"
        {"id":null,"method":"update2","params":["m",{"Connection":{"<0>":{"modify":{"is_connected":true,"status":["map",[["n_connections","2"]]]}},"<1>":{"modify":{"status":["map",[["sec_since_connect","0"],["sec_since_disconnect","0"]]]}}}}]}
    "#]].assert_eq(&told);
}

#[test]
fn after_a_flush_to_many_sessions_changes_merge_for_a_moment() {
    let told = play(|world| {
        let writer = world.connect();
        let watchers: Vec<_> = (0..60).map(|_| world.connect()).collect();
        for watcher in &watchers {
            let params = r#"["A","m",{"T":[{"columns":["k"]}]}]"#;
            world.ask(*watcher, "1", "monitor_cond", params);
        }
        world.run();
        let take_all = |world: &mut crate::world::World| {
            let mut told: Vec<String> = watchers
                .iter()
                .map(|watcher| world.take(*watcher))
                .collect();
            let own = told.remove(0);
            told.dedup();
            assert_eq!(told.len(), 1, "all are told the same");
            format!("first: {own}others: {}", told[0])
        };
        take_all(world);
        world.transact(writer, "1", "A", &insert("at once"));
        world.run();
        let mut all = take_all(world);
        world.insert(writer, "2", "A", "late");
        world.run();
        // A session with a request gets its updates before the reply.
        world.transact(watchers[0], "2", "A", &insert("together"));
        world.run();
        all += "--\n";
        all += &take_all(world);
        world.wait(1);
        all += "--\n";
        all += &take_all(world);
        all
    });
    expect![[r#"
        first: {"id":null,"method":"update2","params":["m",{"T":{"<0>":{"insert":{"k":"at once"}}}}]}
        others: {"id":null,"method":"update2","params":["m",{"T":{"<0>":{"insert":{"k":"at once"}}}}]}
        --
        first: {"id":null,"method":"update2","params":["m",{"T":{"<0>":{"insert":{"k":"late"}},"<1>":{"insert":{"k":"together"}}}}]}
        {"error":null,"id":2,"result":[{"uuid":["uuid","<1>"]}]}
        others: --
        first: others: {"id":null,"method":"update2","params":["m",{"T":{"<0>":{"insert":{"k":"late"}},"<1>":{"insert":{"k":"together"}}}}]}
    "#]].assert_eq(&told);
}

#[test]
fn without_a_history_all_zeros_is_no_id_of_a_commit_that_is_not_stored_yet() {
    play(|world| {
        let id = world.id("A");
        world.post(id, ToDatabase::Control(Control::SetHistory(false)));
        let (writer, watcher) = (world.connect(), world.connect());
        world.run();
        world.disk("A").is_held = true;
        let insert =
            r#"{"op":"insert","table":"T","row":{"k":"a"}},{"op":"commit","durable":true}"#;
        world.transact(writer, "1", "A", insert);
        world.run();
        let zeros = "00000000-0000-0000-0000-000000000000";
        let params = format!(r#"["A","m",{{"T":{{"columns":["k"]}}}},"{zeros}"]"#);
        world.ask(watcher, "1", "monitor_cond_since", &params);
        world.run();
        world.disk("A").is_held = false;
        world.run();
        let told = world.take(watcher);
        let begins = r#"{"error":null,"id":1,"result":[false,"#;
        assert!(
            told.starts_with(begins) && told.contains(r#"{"k":"a"}"#),
            "{told}"
        );
        world.take(writer);
        told
    });
}

#[test]
fn an_update_that_cancels_out_does_not_stop_those_after_it() {
    let told = play(|world| {
        // Long updates are sent in steps of 4 KiB.
        world.service("A").set(Setting::UpdateRowsMax, 4);
        let (slow, other, writer) = (world.connect(), world.connect(), world.connect());
        world.transact(
            writer,
            "1",
            "A",
            r#"{"op":"insert","table":"Connection","uuid-name":"a","row":{"target":"a"}},
               {"op":"insert","table":"Connection","uuid-name":"b","row":{"target":"b"}},
               {"op":"insert","table":"Global","row":{"connections":["set",[["named-uuid","a"],["named-uuid","b"]]]}}"#,
        );
        world.run();
        let targets = r#"["A","m",{"Connection":[{"columns":["target"]}]}]"#;
        for watcher in [slow, other] {
            world.ask(watcher, "1", "monitor_cond", targets);
            world.ask(watcher, "2", "monitor_cond", r#"["A","n",{"T":[{}]}]"#);
        }
        world.ask(other, "3", "monitor_cond", r#"["A","o",{"Other":[{}]}]"#);
        world.run();
        let update = |target: &str, row: &str| {
            format!(
                r#"{{"op":"update","table":"Connection","where":[["target","==","{target}"]],"row":{{{row}}}}}"#
            )
        };
        let pairs: Vec<String> = (0..600).map(|pair| format!(r#"["{pair}","x"]"#)).collect();
        let long = format!(r#""target":"a","status":["map",[{}]]"#, pairs.join(","));
        // The first session reads nothing from here on, so later changes wait for it.
        world.clients.get_mut(&slow).unwrap().is_stalled = true;
        world.insert(writer, "2", "A", "first");
        world.run();
        // A target changes and is the same again. With what the monitor does not ask for the row
        // has changed by more than a step, so the changes end a step of which no update is left.
        world.transact(writer, "3", "A", &update("a", r#""target":"x""#));
        world.run();
        world.transact(writer, "4", "A", &update("x", &long));
        world.run();
        // The other session falls behind too, so the next change begins a step of its own.
        world.clients.get_mut(&other).unwrap().is_stalled = true;
        let elsewhere = r#"{"op":"insert","table":"Other","row":{}}"#;
        world.transact(writer, "5", "A", elsewhere);
        world.run();
        world.transact(writer, "6", "A", &update("b", r#""target":"y""#));
        world.run();
        world.take(slow);
        world.clients.get_mut(&slow).unwrap().is_stalled = false;
        world.run();
        let told = world.take(slow);
        world.clients.get_mut(&other).unwrap().is_stalled = false;
        world.run();
        told
    });
    expect![[r#"
        {"id":null,"method":"update2","params":["m",{"Connection":{"<0>":{"modify":{"target":"y"}}}}]}
    "#]].assert_eq(&told);
}
