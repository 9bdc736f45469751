//! Blocked transactions: how they unblock, time out and are canceled (docs/spec/protocol.md 4.3,
//! 4.4, 5.7).

use corvid_monitor::SessionId;
use expect_test::expect;

use crate::databases::{insert, schema};
use crate::world::{World, play};

/// A transaction that waits until `T` has a row `k` and then sets its `n`.
fn wait_for(world: &mut World, client: SessionId, id: &str, row: &str, timeout: &str, then: &str) {
    let operations = format!(
        r#"{{"op":"wait","table":"T","where":[["k","==","{row}"]],"columns":["k"],"until":"==","rows":[{{"k":"{row}"}}]{timeout}}},{then}"#
    );
    world.transact(client, id, "A", &operations);
}

const NOTE: &str = r#"{"op":"comment","comment":"x"}"#;

#[test]
fn a_wait_ends_with_the_commit_that_satisfies_it_and_other_requests_continue() {
    let told = play(|world| {
        let (waiter, writer) = (world.connect(), world.connect());
        wait_for(world, waiter, "1", "a", "", NOTE);
        world.ask(waiter, "2", "echo", "[]");
        world.transact(waiter, "3", "B", NOTE);
        world.transact(waiter, "4", "A", NOTE);
        world.run();
        world.transact(
            writer,
            "1",
            "A",
            r#"{"op":"insert","table":"Other","row":{}}"#,
        );
        world.run();
        world.insert(writer, "2", "A", "b");
        world.run();
        let before = world.take(waiter);
        world.insert(writer, "3", "A", "a");
        world.run();
        before + "committed\n" + &world.take(waiter)
    });
    expect![[r#"
        {"error":null,"id":2,"result":[]}
        {"error":null,"id":3,"result":[{}]}
        {"error":null,"id":4,"result":[{}]}
        committed
        {"error":null,"id":1,"result":[{},{}]}
    "#]]
    .assert_eq(&told);
}

#[test]
fn waits_for_each_other_end_together() {
    let told = play(|world| {
        let (waiter, writer) = (world.connect(), world.connect());
        wait_for(world, waiter, "1", "c", "", NOTE);
        world.run();
        wait_for(world, waiter, "2", "b", "", &insert("c"));
        world.run();
        wait_for(world, waiter, "3", "a", "", &insert("b"));
        world.run();
        world.insert(writer, "1", "A", "a");
        world.run();
        world.take(waiter)
    });
    expect![[r#"
        {"error":null,"id":3,"result":[{},{"uuid":["uuid","<0>"]}]}
        {"error":null,"id":2,"result":[{},{"uuid":["uuid","<1>"]}]}
        {"error":null,"id":1,"result":[{},{}]}
    "#]]
    .assert_eq(&told);
}

#[test]
fn each_timeout_is_reported_once_at_its_time() {
    let told = play(|world| {
        let waiter = world.connect();
        wait_for(world, waiter, "1", "a", r#","timeout":100"#, NOTE);
        wait_for(world, waiter, "2", "a", r#","timeout":50"#, NOTE);
        wait_for(world, waiter, "3", "a", r#","timeout":0"#, NOTE);
        world.run();
        let mut told = world.take(waiter);
        for _ in 0..3 {
            world.wait(50);
            told += &format!("{} ms\n{}", world.now_ms - 1000, world.take(waiter));
        }
        told
    });
    expect![[r#"
        {"error":null,"id":3,"result":[{"details":"\"where\" clause test failed","error":"timed out"},null]}
        50 ms
        {"error":null,"id":2,"result":[{"details":"\"wait\" timed out after 50 ms","error":"timed out"},null]}
        100 ms
        {"error":null,"id":1,"result":[{"details":"\"wait\" timed out after 100 ms","error":"timed out"},null]}
        150 ms
    "#]].assert_eq(&told);
}

#[test]
fn canceled_requests_are_answered_once() {
    let told = play(|world| {
        let (waiter, writer) = (world.connect(), world.connect());
        wait_for(world, waiter, r#"["x",1]"#, "a", "", NOTE);
        wait_for(world, waiter, "2", "a", "", NOTE);
        world.run();
        // No request with these ids is blocked, or the parameters are malformed.
        for params in ["[3]", "[]", "[2,2]", "[[\"x\",2]]"] {
            world.send(
                waiter,
                &format!(r#"{{"id":null,"method":"cancel","params":{params}}}"#),
            );
        }
        world.run();
        world.send(
            waiter,
            r#"{"id":null,"method":"cancel","params":[["x",1.0]]}"#,
        );
        world.send(
            waiter,
            r#"{"id":null,"method":"cancel","params":[["x",1.0]]}"#,
        );
        world.run();
        world.insert(writer, "1", "A", "a");
        world.send(waiter, r#"{"id":null,"method":"cancel","params":[7]}"#);
        world.run();
        world.take(waiter)
    });
    expect![[r#"
        {"error":"canceled","id":["x",1]}
        {"error":null,"id":2,"result":[{},{}]}
    "#]]
    .assert_eq(&told);
}

#[test]
fn ids_of_blocked_requests_are_refused_until_the_reply() {
    let told = play(|world| {
        let (waiter, writer) = (world.connect(), world.connect());
        wait_for(world, waiter, "1", "a", "", NOTE);
        world.transact(waiter, "1", "A", NOTE);
        world.transact(writer, "1", "A", NOTE);
        world.run();
        world.insert(writer, "2", "A", "a");
        world.run();
        world.transact(waiter, "1", "A", NOTE);
        world.run();
        world.take(waiter)
    });
    expect![[r#"
        {"error":{"details":"transact: duplicate request ID","error":"syntax error","syntax":"[\"A\",{\"comment\":\"x\",\"op\":\"comment\"}]"},"id":1}
        {"error":null,"id":1,"result":[{},{}]}
        {"error":null,"id":1,"result":[{}]}
    "#]].assert_eq(&told);
}

#[test]
fn blocked_transactions_of_a_disconnected_client_are_dropped() {
    let told = play(|world| {
        let (waiter, writer) = (world.connect(), world.connect());
        wait_for(world, waiter, "1", "a", "", &insert("b"));
        world.run();
        world.disconnect(waiter);
        world.run();
        world.insert(writer, "1", "A", "a");
        world.run();
        world.contents("A").len().to_string()
    });
    expect!["1"].assert_eq(&told);
}

#[test]
fn a_wait_may_name_rows_of_the_server_database() {
    let told = play(|world| {
        let waiter = world.connect_aware();
        world.transact(
            waiter,
            "1",
            "_Server",
            r#"{"op":"wait","table":"Database","where":[["name","==","C"]],"columns":["name"],"until":"==","rows":[{"name":"C"}]}"#,
        );
        world.run();
        world.serve(schema("C"));
        world.run();
        world.take(waiter)
    });
    expect![[r#"
        {"error":null,"id":1,"result":[{}]}
    "#]]
    .assert_eq(&told);
}
