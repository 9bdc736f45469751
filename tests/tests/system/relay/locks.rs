//! Locks that are taken through relays, between real processes.

use corvid_tests::client::Client;
use corvid_tests::numbered_rows::{DATABASE, schema};
use corvid_tests::server::Implementation::Corvid;
use serde_json::{Value, json};

use super::node::{Node, await_contents, implementations, receive, relay_of};

/// Asks for the lock, or releases it. Returns whether the client owns it.
fn ask(client: &mut Client, method: &str) -> Option<bool> {
    let reply = client.call(method, &json!(["L"])).expect("a reply");
    reply["result"]["locked"].as_bool()
}

/// Waits until a client receives this notification. The reference also sends `locked` to an owner
/// when another client stops waiting.
fn await_told(client: &mut Client, method: &str) {
    loop {
        let message = receive(client).expect("a notification");
        if message["method"] == method {
            assert_eq!(message["params"], json!(["L"]));
            return;
        }
    }
}

/// Writes with the lock. Returns false if the client does not own it.
fn may_write(client: &mut Client) -> bool {
    let operations = [
        json!(DATABASE),
        json!({"op": "assert", "lock": "L"}),
        json!({"op": "insert", "table": "T", "row": {"n": 1}}),
    ];
    let reply = client.call("transact", &json!(operations));
    let reply = reply.expect("a reply");
    match reply["result"][0]["error"].as_str() {
        None => {
            assert!(reply["result"][1]["uuid"].is_array(), "{reply}");
            true
        }
        Some(error) => {
            assert_eq!(error, "not owner", "{reply}");
            false
        }
    }
}

fn count(node: &Node) -> usize {
    let select = json!({"op": "select", "table": "T", "where": []});
    let reply = node.client().call("transact", &json!([DATABASE, select]));
    let rows: Value = reply.expect("a reply")["result"][0]["rows"].clone();
    rows.as_array().map_or(0, Vec::len)
}

#[test]
fn locks_are_those_of_the_source_at_any_depth() {
    for implementation in implementations() {
        let mut source = Node::started(implementation, &schema(), &[]);
        let upper = relay_of(Corvid, DATABASE, &source.remote());
        await_contents(&upper, DATABASE);
        let lower = relay_of(Corvid, DATABASE, &upper.remote());
        await_contents(&lower, DATABASE);
        let (mut below, mut above) = (lower.client(), upper.client());
        let mut direct = source.client();
        assert_eq!(ask(&mut below, "lock"), Some(true), "{implementation:?}");
        assert_eq!(ask(&mut above, "lock"), Some(false));
        assert_eq!(ask(&mut direct, "lock"), Some(false));
        assert!(may_write(&mut below) && !may_write(&mut above) && !may_write(&mut direct));
        ask(&mut below, "unlock");
        assert!(!may_write(&mut below));
        // The upper relay asks for the lock again, and is now after the client that waits at the
        // source.
        await_told(&mut direct, "locked");
        assert!(may_write(&mut direct) && !may_write(&mut above));
        assert_eq!(ask(&mut below, "steal"), Some(true));
        await_told(&mut direct, "stolen");
        assert!(may_write(&mut below) && !may_write(&mut direct));
        drop(below);
        // The first in the queue at the source is the client whose lock was stolen.
        await_told(&mut direct, "locked");
        drop(direct);
        await_told(&mut above, "locked");
        assert!(may_write(&mut above));
        assert_eq!(count(&source), 4);
        // The lock is lost when the source dies, and is taken again when the source is back.
        source.process.kill();
        await_told(&mut above, "stolen");
        source.process.start().expect("a server");
        await_told(&mut above, "locked");
        assert!(may_write(&mut above));
        assert_eq!(count(&source), 5);
    }
}
