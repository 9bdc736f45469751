//! Requests too long to be parsed on the shard: order, errors and disconnections are the same as
//! for short ones.

use corvid_service::frontend::Close;
use expect_test::expect;

use crate::world::{World, play};

/// More than a shard parses itself, bytes.
const LONG: usize = 300 * 1024;

/// A long transaction that inserts a row.
fn insertion(key: &str) -> String {
    let comment = "x".repeat(LONG);
    format!(
        r#"{{"op":"comment","comment":"{comment}"}},{{"op":"insert","table":"T","row":{{"k":"{key}"}}}}"#
    )
}

fn keys(world: &mut World) -> String {
    let client = world.connect();
    let select = r#"{"op":"select","table":"T","where":[],"columns":["k"]}"#;
    world.transact(client, "1", "A", select);
    world.run();
    world.take(client)
}

#[test]
fn a_long_request_keeps_its_order_in_its_session() {
    let told = play(|world| {
        let client = world.connect();
        let short = r#"{"op":"insert","table":"T","row":{"k":"a"}}"#;
        world.transact(client, "1", "A", short);
        world.transact(client, "2", "A", &insertion("b"));
        world.transact(client, "3", "A", &insertion("b"));
        world.ask(client, "4", "echo", "[]");
        let select = r#"{"op":"select","table":"T","where":[],"columns":["k"]}"#;
        world.transact(client, "5", "A", select);
        world.run();
        let mut told = world.take(client);
        told.truncate(told.len().min(1000));
        told
    });
    expect![[r#"
        {"error":null,"id":1,"result":[{"uuid":["uuid","<0>"]}]}
        {"error":null,"id":2,"result":[{},{"uuid":["uuid","<1>"]}]}
        {"error":null,"id":3,"result":[{},{"uuid":["uuid","<2>"]},{"details":"Transaction causes multiple rows in \"T\" table to have identical values (b) for index on column \"k\".  First row, with UUID <1>, existed in the database before this transaction and was not modified by the transaction.  Second row, with UUID <2>, was inserted by this transaction.","error":"constraint violation"}]}
        {"error":null,"id":4,"result":[]}
        {"error":null,"id":5,"result":[{"rows":[{"k":"a"},{"k":"b"}]}]}
    "#]]
    .assert_eq(&told);
}

#[test]
fn other_sessions_are_served_while_a_long_request_is_parsed() {
    let told = play(|world| {
        // Clients alternate between two shards, so the first and the third share one.
        let (long, _, short) = (world.connect(), world.connect(), world.connect());
        world.is_reading_held = true;
        world.transact(long, "1", "A", &insertion("b"));
        world.run();
        world.ask(short, "1", "echo", "[]");
        let insert = r#"{"op":"insert","table":"T","row":{"k":"a"}}"#;
        world.transact(short, "2", "A", insert);
        world.run();
        let mut told = world.take(short);
        told += &world.take(long);
        world.is_reading_held = false;
        world.run();
        told + &world.take(long) + &keys(world)
    });
    expect![[r#"
        {"error":null,"id":1,"result":[]}
        {"error":null,"id":2,"result":[{"uuid":["uuid","<0>"]}]}
        {"error":null,"id":1,"result":[{},{"uuid":["uuid","<0>"]}]}
        {"error":null,"id":1,"result":[{"rows":[{"k":"a"},{"k":"b"}]}]}
    "#]]
    .assert_eq(&told);
}

#[test]
fn a_long_malformed_message_closes_its_session() {
    let told = play(|world| {
        let client = world.connect();
        let blanks = " ".repeat(LONG);
        world.send(
            client,
            &format!(r#"{{"id":1,{blanks}"method":"transact","params":["A",}}"#),
        );
        let insert = r#"{"op":"insert","table":"T","row":{"k":"behind"}}"#;
        world.transact(client, "2", "A", insert);
        world.run();
        let Some(Close::BadMessage(why)) = &world.clients[&client].closed else {
            panic!("it stays open");
        };
        let why = why.clone();
        why + "\n" + &world.take(client) + &keys(world)
    });
    expect![[r#"
        error parsing stream: line 0, column 307242, byte 307242: syntax error expecting value
        {"error":null,"id":1,"result":[{"rows":[]}]}
    "#]]
    .assert_eq(&told);
}

#[test]
fn clients_may_disconnect_while_their_requests_are_parsed() {
    let told = play(|world| {
        let (gone, half_closed) = (world.connect(), world.connect());
        world.is_reading_held = true;
        world.transact(gone, "1", "A", &insertion("gone"));
        let params = format!(r#"["{}"]"#, "x".repeat(LONG));
        world.ask(half_closed, "1", "frobnicate", &params);
        world.run();
        assert!(!world.half_close(half_closed), "its request is being read");
        world.disconnect(gone);
        world.is_reading_held = false;
        world.run();
        let closed = format!("{:?}\n", world.clients[&half_closed].closed);
        world.take(half_closed) + &closed + &keys(world)
    });
    expect![[r#"
        {"error":"unknown method","id":1}
        Some(EndOfInput)
        {"error":null,"id":1,"result":[{"rows":[]}]}
    "#]]
    .assert_eq(&told);
}

#[test]
fn a_long_echo_is_answered_in_full() {
    play(|world| {
        let client = world.connect();
        world.ask(client, "1", "echo", &format!("[{}1]", "1,".repeat(LONG)));
        world.run();
        let answer = world.take(client);
        assert!(answer.len() > 2 * LONG, "{}", answer.len());
        String::new()
    });
}
