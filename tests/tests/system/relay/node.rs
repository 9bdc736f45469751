//! Relays of a database, and trees of relays.

use std::io;

use corvid_tests::client::Client;
use corvid_tests::ledger::DATABASE;
use corvid_tests::peer;
use corvid_tests::server::Implementation::{self, Corvid, Reference};
use serde_json::{Value, json};

pub(super) use crate::active_backup::node::{Node, begin, receive, wait_for, write};

/// Starts a relay of the database of ledgers.
pub(super) fn relay(implementation: Implementation, remotes: &str) -> Node {
    relay_of(implementation, DATABASE, remotes)
}

/// Starts a relay of a database.
pub(crate) fn relay_of(implementation: Implementation, database: &str, remotes: &str) -> Node {
    let argument = format!("relay:{database}:{remotes}");
    Node::with_arguments(implementation, &[argument])
}

/// Starts a relay of `source`, and waits for its initial contents.
pub(super) fn serving(implementation: Implementation, source: &Node) -> Node {
    let relay = relay(implementation, &source.remote());
    await_contents(&relay, DATABASE);
    relay
}

/// Waits until a relay serves its database. At that moment, it closes older connections of clients
/// that are not aware of database changes.
pub(crate) fn await_contents(relay: &Node, database: &str) {
    wait_for("the relay has contents", &[relay], || {
        let row = try_row_by(&mut relay.client(), database).unwrap_or_default();
        row["schema"].is_string() && row["connected"] == true
    });
}

/// Returns the row of a database in `_Server`; null if there is none.
pub(super) fn row(node: &Node, database: &str) -> Value {
    row_by(&mut node.client(), database)
}

/// Like [`row`], on a given connection.
pub(super) fn row_by(client: &mut Client, database: &str) -> Value {
    try_row_by(client, database).expect("a reply")
}

fn try_row_by(client: &mut Client, database: &str) -> io::Result<Value> {
    let columns = json!([
        "name",
        "model",
        "connected",
        "leader",
        "schema",
        "cid",
        "sid",
        "index"
    ]);
    let select = json!({"op": "select", "table": "Database", "where": [["name", "==", database]], "columns": columns});
    let reply = client.call("transact", &json!(["_Server", select]))?;
    Ok(reply["result"][0]["rows"][0].clone())
}

/// Returns the implementations that can be tested on this machine.
pub(super) fn implementations() -> Vec<Implementation> {
    if Reference.server_binary().is_ok() {
        return vec![Corvid, Reference];
    }
    peer::say_skipped("relays of the reference, and by it: it is not installed");
    vec![Corvid]
}

/// Waits until the nodes have equal rows.
pub(super) fn wait_until_equal(schema: &Value, nodes: &[&Node]) {
    wait_for("all nodes have the same rows", nodes, || {
        let rows = nodes[0].rows(schema);
        nodes[1..].iter().all(|node| node.rows(schema) == rows)
    });
}
