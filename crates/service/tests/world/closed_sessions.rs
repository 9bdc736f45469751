//! Sessions that are closed because the served databases change: a session that is not change-aware
//! learns nothing about the change.

use expect_test::expect;

use corvid_monitor::SessionId;

use crate::databases::{schema, wider_schema};
use crate::world::{World, play};

/// The change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Added,
    Removed,
    Converted,
    Exit,
}

const CHANGES: [Change; 4] = [
    Change::Added,
    Change::Removed,
    Change::Converted,
    Change::Exit,
];

fn bring_about(world: &mut World, asker: SessionId, change: Change) {
    match change {
        Change::Added => world.add(schema("C")),
        Change::Removed => world.remove("A"),
        Change::Converted => {
            let params = format!(r#"["A",{}]"#, wider_schema("A"));
            world.ask(asker, "9", "convert", &params);
        }
        Change::Exit => world.exit(),
    }
}

/// A monitor and a blocked transaction, on `A` and on `_Server`. The transaction on `_Server` waits
/// for `name` to appear or disappear.
fn watch_everything(world: &mut World, session: SessionId, name: &str, until: &str) {
    let monitor =
        r#"["_Server","s",{"Database":{"columns":["name","schema"],"select":{"initial":false}}}]"#;
    world.ask(session, "1", "monitor", monitor);
    world.monitor(session, "2", "A", "m");
    world.transact(
        session,
        "3",
        "A",
        r#"{"op":"wait","table":"T","where":[],"columns":["k"],"until":"==","rows":[{"k":"never"}]}"#,
    );
    for (id, name, until) in [("4", "Nobody", "=="), ("5", name, until)] {
        let wait = format!(
            r#"{{"op":"wait","table":"Database","where":[["name","==","{name}"]],"columns":["name"],"until":"{until}","rows":[{{"name":"{name}"}}]}}"#
        );
        world.transact(session, id, "_Server", &wait);
    }
    world.run();
    world.take(session);
}

#[test]
fn sessions_that_are_not_aware_are_closed_without_messages_about_the_change() {
    for change in CHANGES {
        play(|world| {
            let (asker, other) = (world.connect_aware(), world.connect());
            let unaware = [world.connect(), world.connect()];
            for session in unaware {
                let (name, until) = if change == Change::Added {
                    ("C", "==")
                } else {
                    ("A", "!=")
                };
                watch_everything(world, session, name, until);
            }
            // One session owns a lock that the others wait for.
            for session in [unaware[0], unaware[1], other] {
                world.ask(session, r#""lock""#, "lock", r#"["L"]"#);
                world.run();
                world.take(session);
            }
            bring_about(world, asker, change);
            world.run();
            for session in [unaware[0], unaware[1], other] {
                assert_eq!(world.take(session), "", "{change:?}");
                let is_closed = world.clients[&session].closed.is_some();
                assert!(is_closed || change == Change::Exit, "{change:?}");
            }
            String::new()
        });
    }
}

#[test]
fn commits_before_the_change_are_answered() {
    for change in [Change::Removed, Change::Converted, Change::Exit] {
        play(|world| {
            let asker = world.connect_aware();
            let id = world.id("A");
            let writers = [world.connect(), world.connect()];
            for (writer, key) in writers.iter().zip(["a", "b", "c", "d"]) {
                for number in 0..4 {
                    let row =
                        format!(r#"{{"op":"insert","table":"T","row":{{"k":"{key}{number}"}}}}"#);
                    world.transact(*writer, &number.to_string(), "A", &row);
                }
            }
            for _ in 0..world.dice.below(30) {
                world.step();
            }
            bring_about(world, asker, change);
            world.run();
            let database = world.databases[&id].pump.service().database();
            let table = database.schema().table_id("T").expect("there");
            let stored = database.row_count(table);
            let heard: usize = writers
                .iter()
                .map(|writer| world.take(*writer).lines().count())
                .sum();
            assert_eq!(heard, stored, "{change:?}");
            String::new()
        });
    }
}

#[test]
fn aware_sessions_are_notified_when_the_server_exits() {
    let told = play(|world| {
        let aware = world.connect_aware();
        watch_everything(world, aware, "A", "!=");
        world.exit();
        world.run();
        world.take(aware)
    });
    expect![[r#"
        {"id":null,"method":"monitor_canceled","params":["m"]}
        {"error":"canceled","id":3}
        {"id":null,"method":"monitor_canceled","params":["s"]}
        {"error":"canceled","id":4}
        {"error":"canceled","id":5}
    "#]]
    .assert_eq(&told);
}

/// A session loses a transaction without notification, and becomes change-aware before sessions are
/// closed.
#[test]
fn a_session_that_becomes_aware_after_a_missed_cancellation_is_closed() {
    for change in [Change::Removed, Change::Converted] {
        play(|world| {
            let (asker, late) = (world.connect_aware(), world.connect());
            world.transact(
                late,
                "1",
                "A",
                r#"{"op":"wait","table":"T","where":[],"columns":["k"],"until":"==","rows":[{"k":"never"}]}"#,
            );
            world.run();
            world.is_main_held = true;
            bring_about(world, asker, change);
            world.run();
            world.ask(late, "2", "set_db_change_aware", "[true]");
            world.run();
            world.is_main_held = false;
            world.run();
            assert_eq!(world.take(late), "");
            assert!(world.clients[&late].closed.is_some());
            String::new()
        });
    }
}

/// A client that connects after the change has seen nothing else, even if its shard learns of the
/// change later.
#[test]
fn a_session_that_begins_after_a_change_stays() {
    for change in [Change::Added, Change::Removed] {
        let mut world = World::new(1);
        let asker = world.connect_aware();
        let old = world.connect();
        world.run();
        bring_about(&mut world, asker, change);
        if change == Change::Removed {
            world.run_until(|world| world.removed.len() == 1);
        }
        let new = world.connect();
        world.run();
        let is_closed = |session| world.clients[&session].closed.is_some();
        assert!(is_closed(old), "{change:?}");
        assert!(!is_closed(new), "{change:?}");
    }
}
