//! Replies wait for the disk; failures of the disk.

use expect_test::expect;

use crate::databases::insert;
use crate::world::play;

const DURABLE: &str = r#"{"op":"commit","durable":true}"#;

const SELECT: &str = r#"{"op":"select","table":"T","where":[],"columns":["k"]}"#;

#[test]
fn durable_commits_are_neither_answered_nor_shown_before_they_are_stored() {
    let told = play(|world| {
        let (writer, watcher) = (world.connect(), world.connect());
        world.monitor(watcher, "1", "A", "m");
        world.run();
        world.take(watcher);
        world.disk("A").is_held = true;
        world.transact(writer, "1", "A", &format!("{},{DURABLE}", insert("a")));
        world.run();
        // These have seen the commit, so they wait for it too.
        world.transact(writer, "2", "A", SELECT);
        world.ask(writer, "3", "get_schema", r#"["A"]"#);
        world.transact(watcher, "2", "A", SELECT);
        world.monitor(watcher, "3", "A", "n");
        world.run();
        let before = world.take(writer) + &world.take(watcher);
        assert_eq!(before, "");
        world.disk("A").is_held = false;
        world.run();
        let told = world.take(writer);
        let replies: Vec<&str> = told
            .lines()
            .map(|line| &line[..60.min(line.len())])
            .collect();
        replies.join("\n") + "\n" + &world.take(watcher)
    });
    expect![[r#"
        {"error":null,"id":1,"result":[{"uuid":["uuid","<0>"]},{}]}
        {"error":null,"id":2,"result":[{"rows":[{"k":"a"}]}]}
        {"error":null,"id":3,"result":{"name":"A","tables":{"Connect
        {"id":null,"method":"update","params":["m",{"T":{"<0>":{"new":{"k":"a"}}}}]}
        {"error":null,"id":2,"result":[{"rows":[{"k":"a"}]}]}
        {"error":null,"id":3,"result":{"T":{"<0>":{"new":{"k":"a"}}}}}
    "#]]
    .assert_eq(&told);
}

#[test]
fn a_failed_commit_gets_its_results_and_the_error_and_is_undone() {
    let told = play(|world| {
        let (writer, watcher) = (world.connect(), world.connect());
        world.monitor(watcher, "1", "A", "m");
        world.run();
        world.take(watcher);
        world.disk("A").failures = 1;
        world.transact(
            writer,
            "1",
            "A",
            &format!("{},{}", insert("a"), insert("b")),
        );
        world.transact(writer, "2", "A", SELECT);
        world.run();
        world.take(writer) + &world.take(watcher)
    });
    expect![[r#"
        {"error":null,"id":1,"result":[{"uuid":["uuid","<0>"]},{"uuid":["uuid","<1>"]},{"details":"x.db: write failed","error":"I/O error","io-error":"No space left on device"}]}
        {"error":null,"id":2,"result":[{"rows":[]}]}
    "#]].assert_eq(&told);
}

#[test]
fn commits_behind_a_failed_one_are_executed_again() {
    let told = play(|world| {
        let (one, two) = (world.connect(), world.connect());
        world.disk("A").is_held = true;
        world.disk("A").failures = 1;
        world.transact(one, "1", "A", &format!("{},{DURABLE}", insert("a")));
        world.run();
        // This fails because of the row, and succeeds once the row is undone.
        world.insert(two, "1", "A", "a");
        world.transact(two, "2", "A", SELECT);
        world.monitor(two, "3", "A", "m");
        world.insert(two, "4", "A", "b");
        world.run();
        world.insert(one, "2", "A", "c");
        world.run();
        world.disk("A").is_held = false;
        world.run();
        let rows = world.contents("A").len();
        assert_eq!(rows, 3);
        world.take(one)
    });
    expect![[r#"
        {"error":null,"id":1,"result":[{"uuid":["uuid","<0>"]},{},{"details":"x.db: write failed","error":"I/O error","io-error":"No space left on device"}]}
        {"error":null,"id":2,"result":[{"uuid":["uuid","<1>"]}]}
    "#]].assert_eq(&told);
}

#[test]
fn a_wait_unblocked_by_a_failed_commit_blocks_again() {
    let told = play(|world| {
        let (waiter, writer) = (world.connect(), world.connect());
        world.transact(
            waiter,
            "1",
            "A",
            &format!(
                r#"{{"op":"wait","table":"T","where":[],"columns":["k"],"until":"==","rows":[{{"k":"a"}}]}},{}"#,
                insert("b")
            ),
        );
        world.run();
        world.disk("A").is_held = true;
        world.disk("A").failures = 1;
        world.transact(writer, "1", "A", &format!("{},{DURABLE}", insert("a")));
        world.run();
        world.disk("A").is_held = false;
        world.run();
        assert!(world.contents("A").is_empty());
        // It completes once: later requests are neither lost nor answered out of order.
        world.transact(waiter, "2", "A", SELECT);
        world.transact(waiter, "3", "B", SELECT);
        world.ask(waiter, "4", "list_dbs", "[]");
        world.run();
        let before = world.take(waiter);
        world.insert(writer, "2", "A", "a");
        world.run();
        before + "stored\n" + &world.take(waiter)
    });
    expect![[r#"
        {"error":null,"id":2,"result":[{"rows":[]}]}
        {"error":null,"id":3,"result":[{"rows":[]}]}
        {"error":null,"id":4,"result":["A","B","_Server"]}
        stored
        {"error":null,"id":1,"result":[{},{"uuid":["uuid","<0>"]}]}
    "#]]
    .assert_eq(&told);
}

#[test]
fn a_disconnected_client_leaves_nothing_behind_with_a_slow_disk() {
    play(|world| {
        let (client, other) = (world.connect(), world.connect());
        world.disk("A").is_held = true;
        world.transact(client, "1", "A", &format!("{},{DURABLE}", insert("a")));
        world.ask(client, "2", "monitor", r#"["A","m",{"T":{}}]"#);
        world.insert(client, "3", "A", "b");
        world.run();
        world.disconnect(client);
        world.transact(other, "1", "A", SELECT);
        world.run();
        world.disk("A").is_held = false;
        world.run();
        assert_eq!(world.clients[&other].received.len(), 1);
        assert_eq!(world.contents("A").len(), 2, "what arrived is executed");
        String::new()
    });
}

#[test]
fn compaction_keeps_what_was_committed() {
    let told = play(|world| {
        use corvid_service::message::{Control, ToDatabase};
        let client = world.connect();
        world.insert(client, "1", "A", "a");
        world.run();
        let id = world.id("A");
        world.disk("A").is_held = true;
        world.post(id, ToDatabase::Control(Control::Compact(Some(7))));
        world.run();
        world.insert(client, "2", "A", "b");
        world.run();
        world.disk("A").is_held = false;
        world.run();
        format!("{:?}\n", world.events)
    });
    expect![[r#"
        [Answered(7, Compacted(Ok(())))]
    "#]]
    .assert_eq(&told);
}
