//! The contents of relays, which are those of the source at a depth of three levels; the updates
//! for every version of monitoring; and clients that move between servers.

use std::time::Duration;

use corvid_tests::client::{Client, Received};
use corvid_tests::ledger::{self, Contents, DATABASE, Ledger};
use corvid_tests::server::Implementation::{Corvid, Reference};
use serde_json::{Value, json};

use super::node::{
    Node, await_contents, begin, implementations, receive, row, serving, wait_until_equal, write,
};

/// Returns lists with the implementations of the source and of the relays. Each relay is a relay of
/// the server before it.
fn trees() -> Vec<Vec<corvid_tests::server::Implementation>> {
    match implementations().len() {
        1 => vec![vec![Corvid; 4]],
        _ => vec![
            vec![Corvid; 4],
            vec![Reference, Corvid, Corvid, Corvid],
            vec![Corvid, Reference, Corvid, Reference],
            vec![Reference, Corvid, Reference, Corvid],
        ],
    }
}

#[test]
fn relays_equal_their_source_three_levels_deep() {
    let schema = ledger::schema(1);
    for tree in trees() {
        let mut source = Node::started(tree[0], &schema, &[]);
        let mut ledger = Ledger::new(1, false, 500);
        begin(&source, &ledger, 1);
        ledger::fill(&mut source.client(), 3_000, 1_500).expect("filled");
        write(&source, &mut ledger, 20);
        let mut nodes: Vec<Node> = Vec::new();
        for implementation in &tree[1..] {
            let relay = serving(*implementation, nodes.last().unwrap_or(&source));
            nodes.push(relay);
        }
        let all = |nodes: &[Node], source: &Node| {
            let nodes: Vec<&Node> = std::iter::once(source).chain(nodes).collect();
            wait_until_equal(&schema, &nodes);
        };
        all(&nodes, &source);
        write(&source, &mut ledger, 20);
        all(&nodes, &source);
        // Writes are sent to each level. A session sees its own writes.
        for node in &nodes {
            let mut client = node.client();
            for _ in 0..10 {
                let request = ledger.request(true);
                client.send(request.as_bytes()).expect("sent");
                let reply = receive(&mut client).expect("a reply");
                let answer = ledger.apply_reply(&reply);
                assert_eq!(answer, Ok(ledger::Answer::Acknowledged), "{tree:?}");
            }
            let contents = Contents::read(&mut client).expect("contents");
            assert_eq!(ledger.check(&contents), Vec::<String>::new(), "{tree:?}");
        }
        all(&nodes, &source);
        // Commits that the source made while the connection was lost arrive afterwards.
        source.process.kill();
        source.process.start().expect("a server");
        write(&source, &mut ledger, 20);
        all(&nodes, &source);
        for node in &nodes {
            let row = row(node, DATABASE);
            assert_eq!(row["model"], "relay", "{tree:?}");
            assert_eq!(row["leader"], false, "{tree:?}");
            for column in ["cid", "sid", "index"] {
                assert_eq!(row[column], json!(["set", []]), "{tree:?} {column}");
            }
            let contents = Contents::read(&mut node.client()).expect("contents");
            assert_eq!(ledger.check(&contents), Vec::<String>::new(), "{tree:?}");
        }
        for (node, implementation) in nodes.iter_mut().zip(&tree[1..]) {
            if *implementation == Corvid {
                node.process.stop().expect("an orderly end");
            }
        }
    }
}

/// A client of each version gets each commit as one update, before the reply to its own write.
#[test]
fn every_commit_is_one_update_for_monitors_of_all_versions() {
    let schema = ledger::schema(1);
    for of in implementations() {
        let source = Node::started(of, &schema, &[]);
        let mut ledger = Ledger::new(1, false, 200);
        begin(&source, &ledger, 1);
        let relay = serving(Corvid, &source);
        let total = json!({"columns": ["serial"]});
        let zero = "00000000-0000-0000-0000-000000000000";
        let monitors = [
            (
                "monitor",
                "update",
                json!([DATABASE, "m", {"Total": total}]),
            ),
            (
                "monitor_cond",
                "update2",
                json!([DATABASE, "m", {"Total": [total]}]),
            ),
            (
                "monitor_cond_since",
                "update3",
                json!([DATABASE, "m", {"Total": [total]}, zero]),
            ),
        ];
        for (method, notification, params) in monitors {
            let mut client = relay.client();
            let reply = client.call(method, &params).expect("a reply");
            assert!(reply["error"].is_null(), "{reply}");
            for _ in 0..10 {
                let serial = ledger.count() + 1;
                let request = ledger.request(false);
                client.send(request.as_bytes()).expect("sent");
                let update = receive(&mut client).expect("an update");
                assert_eq!(update["method"], notification, "{update}");
                let changes = update["params"].as_array().expect("params");
                let rows = &changes[changes.len() - 1]["Total"];
                let rows = rows.as_object().expect("rows");
                assert_eq!(rows.len(), 1, "{update}");
                let row = rows.values().next().expect("a row");
                let new = row.get("new").or_else(|| row.get("insert"));
                assert_eq!(new, Some(&json!({"serial": serial})), "{update}");
                let reply = receive(&mut client).expect("a reply");
                assert_eq!(ledger.apply_reply(&reply), Ok(ledger::Answer::Acknowledged));
            }
        }
    }
}

/// Sends a monitor request that begins after transaction `last`. Returns whether that transaction
/// was found, the current id, and the number of rows.
fn since(client: &mut Client, last: &str) -> (bool, String, usize) {
    let params = json!([DATABASE, "m", {"Total": [{"columns": ["serial"]}]}, last]);
    let reply = client.call("monitor_cond_since", &params).expect("a reply");
    let result = &reply["result"];
    let rows = result[2]["Total"]
        .as_object()
        .map_or(0, serde_json::Map::len);
    (
        result[0].as_bool().expect("a flag"),
        result[1].as_str().expect("an id").to_owned(),
        rows,
    )
}

/// Returns the id in the next notification.
fn told(client: &mut Client) -> String {
    let Received::Text(text) = client.receive(Duration::from_secs(60)).expect("received") else {
        panic!("nothing is told");
    };
    let message: Value = serde_json::from_slice(&text).expect("JSON");
    assert_eq!(message["method"], "update3", "{message}");
    message["params"][1].as_str().expect("an id").to_owned()
}

#[test]
fn a_client_moves_between_relays_and_their_source_without_fetching_everything() {
    let schema = ledger::schema(1);
    let zero = "00000000-0000-0000-0000-000000000000";
    let source = Node::started(Corvid, &schema, &[]);
    let mut ledger = Ledger::new(1, false, 100);
    begin(&source, &ledger, 1);
    let relays = [serving(Corvid, &source), serving(Corvid, &source)];
    write(&source, &mut ledger, 50);
    wait_until_equal(&schema, &[&source, &relays[0], &relays[1]]);
    let mut client = relays[0].client();
    let (_, mut last, rows) = since(&mut client, zero);
    assert!(rows > 10, "{rows}");
    for node in [&relays[1], &source, &relays[0], &source, &relays[1]] {
        write(&source, &mut ledger, 1);
        wait_until_equal(&schema, &[&source, &relays[0], &relays[1]]);
        let (is_found, id, rows) = since(&mut node.client(), &last);
        assert!(is_found && rows <= 3, "{rows} rows");
        assert_ne!(id, last);
        last = id;
    }
}

/// The reference's standalone databases do not send transaction ids, so the relay makes its own
/// ids.
#[test]
fn a_relay_of_a_source_without_ids_keeps_a_history_of_its_own() {
    if !implementations().contains(&Reference) {
        return;
    }
    let schema = ledger::schema(1);
    let zero = "00000000-0000-0000-0000-000000000000";
    let mut source = Node::started(Reference, &schema, &[]);
    let mut ledger = Ledger::new(1, false, 100);
    begin(&source, &ledger, 1);
    let relay = serving(Corvid, &source);
    let mut client = relay.client();
    write(&source, &mut ledger, 10);
    wait_until_equal(&schema, &[&source, &relay]);
    let (_, first, _) = since(&mut client, zero);
    assert_ne!(first, zero);
    write(&source, &mut ledger, 1);
    let second = told(&mut client);
    assert!(second != zero && second != first);
    write(&source, &mut ledger, 1);
    wait_until_equal(&schema, &[&source, &relay]);
    let (is_found, third, rows) = since(&mut relay.client(), &second);
    assert!(is_found && rows <= 3 && third != second, "{rows} rows");
    // After a reconnection all rows are sent again, and the relay finds the difference.
    source.process.kill();
    source.process.start().expect("a server");
    await_contents(&relay, DATABASE);
    write(&source, &mut ledger, 1);
    wait_until_equal(&schema, &[&source, &relay]);
    let contents = Contents::read(&mut relay.client()).expect("contents");
    assert_eq!(ledger.check(&contents), Vec::<String>::new());
}
