//! Requests through a relay. They are forwarded unchanged, the source answers them, and they are
//! kept while the source is away.

use std::time::Duration;

use corvid_tests::client::{Client, Received};
use corvid_tests::ledger::{self, DATABASE};
use corvid_tests::numbered_rows::{self, insert, numbers};
use corvid_tests::server::Implementation::Corvid;
use serde_json::{Value, json};

use super::node::{
    Node, await_contents, implementations, receive, relay_of, row, serving, wait_for,
    wait_until_equal,
};

fn send(client: &mut Client, id: &str, params: &Value) {
    let request = json!({"id": id, "method": "transact", "params": params});
    client.send(request.to_string().as_bytes()).expect("sent");
}

/// Starts a source of numbered rows, and our server as its relay.
fn numbered() -> (Node, Node) {
    let source = Node::started(Corvid, &numbered_rows::schema(), &[]);
    let relay = relay_of(Corvid, numbered_rows::DATABASE, &source.remote());
    await_contents(&relay, numbered_rows::DATABASE);
    (source, relay)
}

#[test]
fn requests_wait_while_the_source_is_away() {
    let (mut source, relay) = numbered();
    let mut client = relay.client();
    numbered_rows::add(&mut client, 1).expect("inserted");
    source.process.kill();
    wait_for("the relay sees that", &[&relay], || {
        relay.process.log().contains("connection closed by peer")
            || relay.process.log().contains("connection dropped")
    });
    // Reads are answered and writes wait. Everything that a session sends stays in order.
    let mut gone = relay.client();
    send(&mut gone, "gone", &insert(7, ""));
    let mut patient = relay.client();
    for n in 2..5 {
        send(&mut patient, "wait", &insert(n, ""));
    }
    assert_eq!(numbers(&mut client).expect("rows"), [1].into());
    assert_eq!(
        patient.receive(Duration::from_millis(300)).expect("open"),
        Received::Nothing
    );
    assert_eq!(
        gone.receive(Duration::from_millis(10)).expect("open"),
        Received::Nothing
    );
    drop(gone);
    // Another session can only be served after the relay has noticed the end of this one.
    assert_eq!(numbers(&mut relay.client()).expect("rows"), [1].into());
    source.process.start().expect("a server");
    for _ in 2..5 {
        let reply = receive(&mut patient).expect("a reply");
        assert!(reply["result"][0]["uuid"].is_array(), "{reply}");
    }
    let expected = (1..5).collect();
    assert_eq!(numbers(&mut patient).expect("rows"), expected);
    assert_eq!(
        numbers(&mut source.client()).expect("rows"),
        expected,
        "what a session that left had not sent is dropped"
    );
}

#[test]
fn a_wait_is_kept_at_the_relay_and_judged_again_at_the_source() {
    for of in implementations() {
        let source = Node::started(of, &numbered_rows::schema(), &[]);
        let relay = relay_of(Corvid, numbered_rows::DATABASE, &source.remote());
        await_contents(&relay, numbered_rows::DATABASE);
        let wait = |timeout: u32| {
            json!([numbered_rows::DATABASE,
                {"op": "wait", "table": "T", "where": [["n", "==", 1]], "columns": ["n"], "until": "==",
                 "rows": [{"n": 1}], "timeout": timeout},
                {"op": "insert", "table": "T", "row": {"n": 2}}])
        };
        let mut patient = relay.client();
        send(&mut patient, "patient", &wait(60_000));
        let mut brief = relay.client();
        send(&mut brief, "brief", &wait(200));
        let reply = receive(&mut brief).expect("a reply");
        assert_eq!(reply["result"][0]["error"], "timed out", "{reply}");
        assert_eq!(
            patient.receive(Duration::from_millis(10)).expect("open"),
            Received::Nothing
        );
        numbered_rows::add(&mut source.client(), 1).expect("inserted");
        let reply = receive(&mut patient).expect("a reply");
        assert!(reply["result"][1]["uuid"].is_array(), "{reply}");
        assert_eq!(numbers(&mut source.client()).expect("rows"), [1, 2].into());
        // A waiting request that is canceled is answered.
        let cancel = r#"{"id":null,"method":"cancel","params":["again"]}"#;
        let absent = json!([numbered_rows::DATABASE,
            {"op": "wait", "table": "T", "where": [["n", "==", 9]], "columns": ["n"], "until": "==", "rows": [{"n": 9}]},
            {"op": "insert", "table": "T", "row": {"n": 3}}]);
        send(&mut patient, "again", &absent);
        patient.send(cancel.as_bytes()).expect("sent");
        let reply = receive(&mut patient).expect("a reply");
        assert_eq!(reply["error"], "canceled", "{reply}");
    }
}

/// The source stops silently when it has the request, and is then killed. Nobody can know whether
/// the request was executed.
#[test]
fn a_request_that_was_under_way_when_the_source_died_has_no_wrong_answer() {
    for of in implementations() {
        let mut source = Node::started(of, &numbered_rows::schema(), &[]);
        let relay = relay_of(Corvid, numbered_rows::DATABASE, &source.remote());
        await_contents(&relay, numbered_rows::DATABASE);
        let mut client = relay.client();
        numbered_rows::add(&mut client, 1).expect("inserted");
        source.process.pause(true).expect("stopped");
        send(&mut client, "lost", &insert(2, ""));
        assert_eq!(
            client.receive(Duration::from_millis(500)).expect("open"),
            Received::Nothing
        );
        source.process.kill();
        source.process.start().expect("a server");
        let reply = receive(&mut client).expect("a reply");
        let is_done = reply["result"][0]["uuid"].is_array();
        assert!(is_done || reply["error"] == "canceled", "{reply}");
        let expected = if is_done { 1..3 } else { 1..2 };
        assert_eq!(
            numbers(&mut source.client()).expect("rows"),
            expected.collect()
        );
        numbered_rows::add(&mut client, 3).expect("inserted");
    }
}

#[test]
fn a_conversion_is_forwarded_to_the_source() {
    let old = ledger::schema(1);
    let new = ledger::schema(2);
    let source = Node::started(Corvid, &old, &[]);
    let first = serving(Corvid, &source);
    let second = serving(Corvid, &first);
    ledger::fill(&mut source.client(), 100, 50).expect("filled");
    wait_until_equal(&old, &[&source, &first, &second]);
    // A session that is not aware of database changes is closed; one that is aware loses its
    // monitor.
    let tables = json!({"Filler": {"columns": ["number"]}});
    let mut unaware = second.client();
    let reply = unaware.call("monitor", &json!([DATABASE, "u", tables]));
    assert!(reply.expect("a reply")["error"].is_null());
    let mut aware = second.client();
    aware
        .call("set_db_change_aware", &json!([true]))
        .expect("a reply");
    let reply = aware.call("monitor", &json!([DATABASE, "a", tables]));
    assert!(reply.expect("a reply")["error"].is_null());
    let mut asking = second.client();
    asking
        .call("set_db_change_aware", &json!([true]))
        .expect("a reply");
    let reply = asking.call("convert", &json!([DATABASE, new]));
    let reply = reply.expect("a reply");
    assert_eq!(reply["result"], json!({}), "{reply}");
    wait_until_equal(&new, &[&source, &first, &second]);
    for node in [&source, &first, &second] {
        wait_for("_Server shows the new schema", &[node], || {
            let row = row(node, DATABASE);
            row["schema"]
                .as_str()
                .is_some_and(|schema| schema.contains("\"Extra\""))
        });
    }
    assert!(receive(&mut unaware).is_none(), "it is closed");
    let canceled = receive(&mut aware).expect("a message");
    assert_eq!(canceled["method"], "monitor_canceled", "{canceled}");
    assert_eq!(canceled["params"], json!(["a"]));
    let log = second.process.log();
    assert!(
        log.contains("disconnecting (database Ledger schema changed)"),
        "{log}"
    );
    // Writers can use the new table.
    let extra = json!({"op": "insert", "table": "Extra", "row": {"number": 1}});
    let inserted = second.transact(&extra);
    assert!(inserted["uuid"].is_array(), "{inserted}");
    // A schema that does not fit is rejected with the source's error.
    let mut narrow = old.clone();
    narrow["tables"]["Filler"]["columns"]["text"] =
        json!({"type": {"key": {"type": "string", "maxLength": 3}}});
    let asked = |node: &Node| {
        let mut client = node.client();
        let reply = client.call("convert", &json!([DATABASE, narrow]));
        reply.expect("a reply")["error"].clone()
    };
    let refused = asked(&source);
    assert!(refused["error"].is_string(), "{refused}");
    assert_eq!(asked(&second), refused);
}
