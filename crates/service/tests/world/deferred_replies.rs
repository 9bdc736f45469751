//! Deferred bodies, written by jobs: results of transactions that select much, and updates of many
//! rows. (In all plays, every other order of events treats every selection as long, and every third
//! treats every update as long.)

use corvid_service::Setting;
use expect_test::expect;

use crate::databases::{insert, wider_schema};
use crate::world::{World, play};

const ALL: &str = r#"{"op":"select","table":"T","where":[],"columns":["k"],"sort":["k"]}"#;

/// One row. Every selection is deferred to a job, which is held.
fn prepare(world: &mut World) {
    world.service("A").set(Setting::SelectStepsMax, 0);
    world.served("A").may_inline = false;
    world.service("A").set(Setting::UpdateRowsMax, 1000);
    world.served("A").is_worker_held = true;
    let writer = world.connect();
    world.insert(writer, "1", "A", "a");
    world.run();
}

fn monitor(world: &mut World, client: corvid_monitor::SessionId) {
    let params = r#"["A","m",{"T":{"columns":["k"],"select":{"initial":false}}}]"#;
    world.ask(client, "0", "monitor", params);
    world.run();
    world.take(client);
}

#[test]
fn a_precomputed_update_waits_for_its_record_and_is_dropped_by_an_undo() {
    let told = play(|world| {
        world.service("A").set(Setting::LongAtoms, 0);
        let (writer, watcher) = (world.connect(), world.connect());
        monitor(world, watcher);
        world.disk("A").is_held = true;
        let durable = r#"{"op":"commit","durable":true}"#;
        world.transact(writer, "1", "A", &[&insert("a"), durable].join(","));
        world.run();
        assert_eq!(world.take(watcher), "", "nothing before the record");
        world.disk("A").failures = 1;
        world.disk("A").is_held = false;
        world.run();
        let failed = world.take(writer) + &world.take(watcher);
        world.insert(writer, "2", "A", "b");
        world.run();
        failed + "\n" + &world.take(writer) + &world.take(watcher)
    });
    expect![[r#"
        {"error":null,"id":1,"result":[{"uuid":["uuid","<0>"]},{},{"details":"x.db: write failed","error":"I/O error","io-error":"No space left on device"}]}

        {"error":null,"id":2,"result":[{"uuid":["uuid","<0>"]}]}
        {"id":null,"method":"update","params":["m",{"T":{"<0>":{"new":{"k":"b"}}}}]}
    "#]].assert_eq(&told);
}

#[test]
fn a_deferred_reply_shows_its_moment_and_later_messages_follow_it() {
    let told = play(|world| {
        prepare(world);
        let (reader, writer) = (world.connect(), world.connect());
        monitor(world, reader);
        world.transact(reader, "1", "A", ALL);
        world.insert(reader, "2", "A", "c");
        world.ask(reader, "3", "echo", "[]");
        world.run();
        world.insert(writer, "1", "A", "b");
        world.run();
        let others = world.take(writer);
        assert_eq!(world.take(reader), "", "nothing before the reply");
        world.served("A").is_worker_held = false;
        world.run();
        others + "\n" + &world.take(reader)
    });
    expect![[r#"
        {"error":null,"id":1,"result":[{"uuid":["uuid","<0>"]}]}

        {"error":null,"id":1,"result":[{"rows":[{"k":"a"}]}]}
        {"id":null,"method":"update","params":["m",{"T":{"<0>":{"new":{"k":"b"}},"<1>":{"new":{"k":"c"}}}}]}
        {"error":null,"id":2,"result":[{"uuid":["uuid","<1>"]}]}
        {"error":null,"id":3,"result":[]}
    "#]]
    .assert_eq(&told);
}

#[test]
fn a_deferred_selection_shows_the_rows_of_its_operation() {
    let told = play(|world| {
        prepare(world);
        let (client, watcher) = (world.connect(), world.connect());
        monitor(world, client);
        monitor(world, watcher);
        let delete = r#"{"op":"delete","table":"T","where":[["k","==","a"]]}"#;
        let operations = [ALL, delete, &insert("b"), ALL, delete].join(",");
        world.transact(client, "1", "A", &operations);
        world.run();
        let others = world.take(watcher);
        let before = world.take(client);
        world.served("A").is_worker_held = false;
        world.run();
        [others, before, world.take(client)].join("\n")
    });
    expect![[r#"
        {"id":null,"method":"update","params":["m",{"T":{"<0>":{"old":{"k":"a"}},"<1>":{"new":{"k":"b"}}}}]}

        {"id":null,"method":"update","params":["m",{"T":{"<0>":{"old":{"k":"a"}},"<1>":{"new":{"k":"b"}}}}]}

        {"error":null,"id":1,"result":[{"rows":[{"k":"a"}]},{"count":1},{"uuid":["uuid","<0>"]},{"rows":[{"k":"b"}]},{"count":0}]}
    "#]]
    .assert_eq(&told);
}

#[test]
fn messages_to_the_session_follow_its_deferred_reply() {
    let told = play(|world| {
        prepare(world);
        let (client, writer) = (world.connect_aware(), world.connect());
        world.take(client);
        monitor(world, client);
        let wait = r#"{"op":"wait","table":"T","where":[["k","==","b"]],"columns":["k"],"until":"==","rows":[{"k":"b"}]}"#;
        world.transact(client, "1", "A", wait);
        world.transact(client, "2", "A", ALL);
        world.run();
        // The conversion overtakes the result.
        let job = world.served("A").jobs.pop_front().expect("ordered");
        world.served("A").is_worker_held = false;
        let params = format!(r#"["A",{}]"#, wider_schema("A"));
        world.ask(writer, "1", "convert", &params);
        world.run();
        world.served("A").jobs.push_back(job);
        world.run();
        world.take(client)
    });
    expect![[r#"
        {"error":null,"id":2,"result":[{"rows":[{"k":"a"}]}]}
        {"id":null,"method":"monitor_canceled","params":["m"]}
        {"error":"canceled","id":1}
    "#]]
    .assert_eq(&told);
}

#[test]
fn the_reply_to_an_unblocked_transaction_follows_a_deferred_reply() {
    let told = play(|world| {
        prepare(world);
        let (client, writer) = (world.connect(), world.connect());
        monitor(world, client);
        let wait = r#"{"op":"wait","table":"T","where":[["k","==","b"]],"columns":["k"],"until":"==","rows":[{"k":"b"}]}"#;
        world.transact(client, "1", "A", &format!("{wait},{ALL}"));
        world.transact(client, "2", "A", ALL);
        world.run();
        world.insert(writer, "1", "A", "b");
        world.run();
        let at_once = world.take(client);
        world.served("A").is_worker_held = false;
        world.run();
        at_once + "\n" + &world.take(client)
    });
    expect![[r#"

        {"error":null,"id":2,"result":[{"rows":[{"k":"a"}]}]}
        {"id":null,"method":"update","params":["m",{"T":{"<0>":{"new":{"k":"b"}}}}]}
        {"error":null,"id":1,"result":[{},{"rows":[{"k":"a"},{"k":"b"}]}]}
    "#]]
    .assert_eq(&told);
}

#[test]
fn a_removal_completes_deferred_replies_and_a_closed_session_drops_them() {
    let told = play(|world| {
        prepare(world);
        let (stays, gone) = (world.connect_aware(), world.connect());
        world.take(stays);
        for client in [stays, gone] {
            world.transact(client, "1", "A", ALL);
            world.insert(client, "2", "A", "last");
        }
        world.run();
        world.disconnect(gone);
        world.run();
        world.remove("A");
        world.run();
        world.take(stays)
    });
    expect![[r#"
        {"error":null,"id":1,"result":[{"rows":[{"k":"a"}]}]}
        {"error":{"details":"transact request specifies unknown database A","error":"unknown database","syntax":"[\"A\",{\"op\":\"insert\",\"row\":{\"k\":\"last\"},\"table\":\"T\"}]"},"id":2}
    "#]].assert_eq(&told);
}

#[test]
fn a_deferred_reply_to_a_failed_commit_ends_with_the_error() {
    let told = play(|world| {
        prepare(world);
        let (writer, reader) = (world.connect(), world.connect());
        world.disk("A").is_held = true;
        let durable = r#"{"op":"commit","durable":true}"#;
        let operations = [&insert("b"), ALL, durable].join(",");
        world.transact(writer, "1", "A", &operations);
        world.run();
        world.transact(reader, "1", "A", ALL);
        world.run();
        world.disk("A").failures = 1;
        world.disk("A").is_held = false;
        world.served("A").is_worker_held = false;
        world.run();
        world.take(writer) + "\n" + &world.take(reader)
    });
    expect![[r#"
        {"error":null,"id":1,"result":[{"uuid":["uuid","<0>"]},{"rows":[{"k":"a"},{"k":"b"}]},{},{"details":"x.db: write failed","error":"I/O error","io-error":"No space left on device"}]}

        {"error":null,"id":1,"result":[{"rows":[{"k":"a"}]}]}
    "#]].assert_eq(&told);
}

/// Every update is deferred to a job, which is held.
fn prepare_updates(world: &mut World) {
    world.service("A").set(Setting::UpdateRowsMax, 0);
    world.served("A").is_worker_held = true;
}

#[test]
fn other_sessions_continue_during_a_deferred_update_and_later_changes_merge() {
    let told = play(|world| {
        let (watcher, writer) = (world.connect(), world.connect());
        monitor(world, watcher);
        prepare_updates(world);
        world.insert(writer, "1", "A", "a");
        world.run();
        world.insert(writer, "2", "A", "b");
        world.run();
        world.insert(writer, "3", "A", "c");
        world.ask(watcher, "1", "list_dbs", "[]");
        world.run();
        let others = world.take(writer);
        assert_eq!(world.take(watcher), "", "nothing before the update");
        world.served("A").is_worker_held = false;
        world.run();
        others + "\n" + &world.take(watcher)
    });
    expect![[r#"
        {"error":null,"id":1,"result":[{"uuid":["uuid","<0>"]}]}
        {"error":null,"id":2,"result":[{"uuid":["uuid","<1>"]}]}
        {"error":null,"id":3,"result":[{"uuid":["uuid","<2>"]}]}

        {"id":null,"method":"update","params":["m",{"T":{"<0>":{"new":{"k":"a"}}}}]}
        {"id":null,"method":"update","params":["m",{"T":{"<1>":{"new":{"k":"b"}},"<2>":{"new":{"k":"c"}}}}]}
        {"error":null,"id":1,"result":["A","B","_Server"]}
    "#]].assert_eq(&told);
}

#[test]
fn the_reply_to_a_commit_follows_its_deferred_update() {
    let told = play(|world| {
        let (client, other) = (world.connect(), world.connect());
        monitor(world, client);
        prepare_updates(world);
        world.insert(client, "1", "A", "a");
        world.run();
        world.insert(client, "2", "A", "b");
        world.run();
        world.insert(other, "1", "A", "c");
        world.run();
        let others = world.take(other);
        assert_eq!(world.take(client), "", "nothing before the update");
        world.served("A").is_worker_held = false;
        world.run();
        others + "\n" + &world.take(client)
    });
    expect![[r#"
        {"error":null,"id":1,"result":[{"uuid":["uuid","<0>"]}]}

        {"id":null,"method":"update","params":["m",{"T":{"<0>":{"new":{"k":"a"}}}}]}
        {"error":null,"id":1,"result":[{"uuid":["uuid","<0>"]}]}
        {"id":null,"method":"update","params":["m",{"T":{"<1>":{"new":{"k":"c"}},"<2>":{"new":{"k":"b"}}}}]}
        {"error":null,"id":2,"result":[{"uuid":["uuid","<2>"]}]}
    "#]].assert_eq(&told);
}

#[test]
fn a_deferred_update_without_changes_is_not_sent_and_the_next_one_is() {
    let told = play(|world| {
        let (watcher, writer) = (world.connect(), world.connect());
        world.insert(writer, "1", "A", "a");
        world.run();
        monitor(world, watcher);
        prepare_updates(world);
        // The first update is being written; the other two merge.
        for (id, key) in [("2", "b"), ("3", "c"), ("4", "b")] {
            let update =
                format!(r#"{{"op":"update","table":"T","where":[],"row":{{"k":"{key}"}}}}"#);
            world.transact(writer, id, "A", &update);
            world.run();
        }
        world.served("A").is_worker_held = false;
        world.run();
        let first = world.take(watcher);
        world.insert(writer, "5", "A", "d");
        world.run();
        first + "\n" + &world.take(watcher)
    });
    expect![[r#"
        {"id":null,"method":"update","params":["m",{"T":{"<0>":{"new":{"k":"b"},"old":{"k":"a"}}}}]}

        {"id":null,"method":"update","params":["m",{"T":{"<0>":{"new":{"k":"d"}}}}]}
    "#]]
    .assert_eq(&told);
}

#[test]
fn a_conversion_completes_deferred_updates() {
    let told = play(|world| {
        let (watcher, writer) = (world.connect_aware(), world.connect());
        world.take(watcher);
        monitor(world, watcher);
        prepare_updates(world);
        world.insert(writer, "1", "A", "a");
        world.run();
        // The conversion overtakes the update.
        let job = world.served("A").jobs.pop_front().expect("ordered");
        world.served("A").is_worker_held = false;
        let params = format!(r#"["A",{}]"#, wider_schema("A"));
        world.ask(writer, "2", "convert", &params);
        world.run();
        world.served("A").jobs.push_back(job);
        world.run();
        world.take(watcher)
    });
    expect![[r#"
        {"id":null,"method":"update","params":["m",{"T":{"<0>":{"new":{"k":"a"}}}}]}
        {"id":null,"method":"monitor_canceled","params":["m"]}
    "#]]
    .assert_eq(&told);
}
