//! Requests of every kind that are executed while earlier commits are not stored: no client waits
//! for another, and undone requests are executed again.

use corvid_service::Setting;
use corvid_service::message::{Control, ToDatabase};
use expect_test::expect;

use crate::databases::insert;
use crate::world::{World, play};

const DURABLE: &str = r#"{"op":"commit","durable":true}"#;

fn monitor(key: &str) -> String {
    format!(r#"["A","m",{{"T":[{{"columns":["k"],"where":[["k","==","{key}"]]}}]}}]"#)
}

fn condition(key: &str) -> String {
    format!(r#"["m","m",{{"T":[{{"where":[["k","==","{key}"]]}}]}}]"#)
}

/// A commit whose record the disk holds back.
fn begin(world: &mut World, key: &str) {
    let writer = world.connect();
    world.disk("A").is_held = true;
    world.transact(writer, "1", "A", &format!("{},{DURABLE}", insert(key)));
    world.run();
}

/// The number of rows after the last executed commit.
fn rows(world: &mut World) -> usize {
    let database = world.service("A").database();
    let table = database.schema().table_id("T").expect("a table");
    database.row_count(table)
}

fn release(world: &mut World) {
    world.disk("A").is_held = false;
    world.run();
}

#[test]
fn requests_about_monitors_delay_no_other_session() {
    let told = play(|world| {
        let (watcher, other, writer) = (world.connect(), world.connect(), world.connect());
        world.ask(watcher, "1", "monitor_cond", &monitor("a"));
        world.ask(other, "1", "monitor_cond", &monitor("a"));
        world.run();
        world.take(watcher);
        world.take(other);
        begin(world, "a");
        world.ask(watcher, "2", "monitor_cond_change", &condition("b"));
        world.ask(other, "2", "monitor_cancel", r#"["m"]"#);
        let id = world.id("A");
        world.post(id, ToDatabase::Control(Control::Snapshot(1)));
        world.run();
        for (id, key) in [("1", "b"), ("2", "c")] {
            world.transact(writer, id, "A", &format!("{},{DURABLE}", insert(key)));
        }
        world.run();
        let late = world.connect();
        world.ask(late, "1", "monitor_cond", &monitor("c"));
        world.run();
        assert_eq!(rows(world), 3, "all are executed");
        let report = world.service("A").report();
        assert_eq!((report.pending, report.queued), (7, 0));
        let told = world.take(watcher) + &world.take(other) + &world.take(late);
        assert_eq!(told, "", "nothing is answered");
        release(world);
        world.take(watcher) + &world.take(other) + &world.take(late)
    });
    expect![[r#"
        {"id":null,"method":"update2","params":["m",{"T":{"<0>":{"insert":{"k":"a"}}}}]}
        {"id":null,"method":"update2","params":["m",{"T":{"<0>":{"delete":null}}}]}
        {"error":null,"id":2,"result":{}}
        {"id":null,"method":"update2","params":["m",{"T":{"<1>":{"insert":{"k":"b"}}}}]}
        {"id":null,"method":"update2","params":["m",{"T":{"<0>":{"insert":{"k":"a"}}}}]}
        {"error":null,"id":2,"result":{}}
        {"error":null,"id":1,"result":{"T":{"<0>":{"initial":{"k":"c"}}}}}
    "#]]
    .assert_eq(&told);
}

#[test]
fn requests_that_read_no_table_are_answered_at_once() {
    play(|world| {
        let watcher = world.connect();
        world.ask(watcher, "1", "monitor_cond", &monitor("a"));
        world.run();
        world.take(watcher);
        begin(world, "a");
        world.ask(watcher, "2", "echo", "[]");
        world.run();
        let told = world.take(watcher);
        assert_eq!(told, "{\"error\":null,\"id\":2,\"result\":[]}\n");
        release(world);
        world.take(watcher);
        String::new()
    });
}

#[test]
fn a_second_monitor_change_waits_for_the_first_and_later_requests_for_both() {
    let told = play(|world| {
        let (watcher, writer) = (world.connect(), world.connect());
        world.ask(watcher, "1", "monitor_cond", &monitor("a"));
        world.run();
        world.take(watcher);
        begin(world, "a");
        world.ask(watcher, "2", "monitor_cond_change", &condition("b"));
        world.insert(watcher, "3", "A", "b");
        world.ask(watcher, "4", "monitor_cond_change", &condition("c"));
        world.insert(watcher, "5", "A", "c");
        world.insert(writer, "1", "A", "d");
        world.run();
        assert_eq!(rows(world), 3, "the one behind the second change waits");
        release(world);
        world.take(watcher)
    });
    expect![[r#"
        {"id":null,"method":"update2","params":["m",{"T":{"<0>":{"insert":{"k":"a"}}}}]}
        {"id":null,"method":"update2","params":["m",{"T":{"<0>":{"delete":null}}}]}
        {"error":null,"id":2,"result":{}}
        {"id":null,"method":"update2","params":["m",{"T":{"<1>":{"insert":{"k":"b"}}}}]}
        {"error":null,"id":3,"result":[{"uuid":["uuid","<1>"]}]}
        {"id":null,"method":"update2","params":["m",{"T":{"<1>":{"delete":null}}}]}
        {"error":null,"id":4,"result":{}}
        {"id":null,"method":"update2","params":["m",{"T":{"<2>":{"insert":{"k":"c"}}}}]}
        {"error":null,"id":5,"result":[{"uuid":["uuid","<2>"]}]}
    "#]]
    .assert_eq(&told);
}

#[test]
fn requests_behind_a_commit_that_fails_are_executed_again() {
    let told = play(|world| {
        let (watcher, other) = (world.connect(), world.connect());
        world.ask(watcher, "1", "monitor_cond", &monitor("b"));
        world.run();
        world.take(watcher);
        world.disk("A").failures = 1;
        begin(world, "a");
        world.ask(watcher, "2", "monitor_cond_change", &condition("a"));
        world.run();
        world.ask(other, "1", "monitor_cond", &monitor("a"));
        world.insert(other, "2", "A", "b");
        world.run();
        world.ask(watcher, "3", "monitor_cond_change", &condition("b"));
        world.run();
        release(world);
        world.take(watcher) + &world.take(other)
    });
    // No client gets the row that was never stored.
    expect![[r#"
        {"error":null,"id":2,"result":{}}
        {"id":null,"method":"update2","params":["m",{"T":{"<0>":{"insert":{"k":"b"}}}}]}
        {"error":null,"id":3,"result":{}}
        {"error":null,"id":1,"result":{}}
        {"error":null,"id":2,"result":[{"uuid":["uuid","<0>"]}]}
    "#]]
    .assert_eq(&told);
}

/// A monitor whose contents a job writes, before or after the commit that they show is stored.
fn long_contents(world: &mut World, fails: bool, are_early: bool) -> String {
    world.service("A").set(Setting::InitialRowsMax, 0);
    world.service("A").set(Setting::UpdateRowsMax, 1000);
    world.served("A").is_worker_held = !are_early;
    let (watcher, twin) = (world.connect(), world.connect());
    world.disk("A").failures = u32::from(fails);
    begin(world, "a");
    for session in [watcher, twin] {
        world.ask(
            session,
            "1",
            "monitor_cond",
            r#"["A","m",{"T":{"columns":["k"]}}]"#,
        );
        let row = insert(&format!("of-{}", session.0));
        world.transact(session, "2", "A", &row);
    }
    world.run();
    assert_eq!(world.take(watcher) + &world.take(twin), "");
    release(world);
    world.served("A").is_worker_held = false;
    world.run();
    world.take(watcher) + &world.take(twin)
}

#[test]
fn long_contents_leave_when_their_commits_are_stored() {
    for are_early in [true, false] {
        play(|world| {
            let told = long_contents(world, false, are_early);
            let first = |line: &&str| line.contains(r#""id":1,"#);
            let replies: Vec<&str> = told.lines().filter(first).collect();
            assert_eq!(replies.len(), 2, "{told}");
            for reply in replies {
                assert!(reply.contains(r#""initial":{"k":"a"}"#), "{told}");
            }
            assert_eq!(told.matches(r#""id":2,"#).count(), 2, "{told}");
            assert_eq!(world.contents("A").len(), 3);
            String::new()
        });
    }
}

#[test]
fn long_contents_of_a_state_that_is_undone_are_never_shown() {
    for are_early in [true, false] {
        play(|world| {
            let told = long_contents(world, true, are_early);
            assert!(!told.contains(r#""k":"a""#), "{told}");
            assert_eq!(told.matches(r#""id":1,"#).count(), 2, "{told}");
            assert_eq!(told.matches(r#""id":2,"#).count(), 2, "{told}");
            assert_eq!(world.contents("A").len(), 2);
            String::new()
        });
    }
}

#[test]
fn a_client_that_disconnects_before_its_monitor_is_released_leaves_none_behind() {
    for fails in [false, true] {
        play(|world| {
            let (watcher, other) = (world.connect(), world.connect());
            world.ask(other, "1", "monitor_cond", &monitor("b"));
            world.run();
            world.take(other);
            world.disk("A").failures = u32::from(fails);
            begin(world, "a");
            world.ask(watcher, "1", "monitor_cond", &monitor("a"));
            world.ask(other, "2", "monitor_cond_change", &condition("a"));
            world.run();
            world.disconnect(watcher);
            world.disconnect(other);
            world.run();
            release(world);
            assert_eq!(world.service("A").report().usage.monitors, 0);
            String::new()
        });
    }
}

#[test]
fn a_refused_monitor_of_a_disconnected_client_stays_refused_after_an_undo() {
    play(|world| {
        let watcher = world.connect();
        world.ask(watcher, "1", "monitor_cond", &monitor("a"));
        world.run();
        world.disk("A").failures = 1;
        begin(world, "a");
        // A duplicate while the client is connected; valid once its monitors are gone.
        world.ask(watcher, "2", "monitor_cond", &monitor("a"));
        world.run();
        world.disconnect(watcher);
        world.run();
        release(world);
        assert_eq!(world.service("A").report().usage.monitors, 0);
        String::new()
    });
}

const WAIT: &str = r#"{"op":"wait","table":"T","where":[["k","==","a"]],"columns":["k"],"until":"!=","rows":[{"k":"a"}]}"#;

#[test]
fn a_wait_that_a_failed_commit_blocked_is_unblocked() {
    let told = play(|world| {
        let waiting = world.connect();
        world.disk("A").failures = 1;
        begin(world, "a");
        world.transact(waiting, "1", "A", &format!("{WAIT},{}", insert("b")));
        world.run();
        assert_eq!(rows(world), 1, "it waits for the row to go");
        release(world);
        world.take(waiting)
    });
    expect![[r#"
        {"error":null,"id":1,"result":[{},{"uuid":["uuid","<0>"]}]}
    "#]]
    .assert_eq(&told);
}

const UNTIL_THERE: &str = r#"{"op":"wait","table":"T","where":[["k","==","a"]],"columns":["k"],"until":"==","rows":[{"k":"a"}]}"#;

#[test]
fn a_canceled_wait_stays_canceled_after_an_undo() {
    let told = play(|world| {
        let waiting = world.connect();
        world.transact(waiting, "1", "A", UNTIL_THERE);
        world.run();
        world.disk("A").failures = 1;
        begin(world, "a");
        world.send(waiting, r#"{"id":null,"method":"cancel","params":[1]}"#);
        world.ask(waiting, "2", "echo", "[]");
        world.run();
        assert_eq!(world.take(waiting), "");
        release(world);
        world.take(waiting)
    });
    expect![[r#"
        {"error":"canceled","id":1}
        {"error":null,"id":2,"result":[]}
    "#]]
    .assert_eq(&told);
}
