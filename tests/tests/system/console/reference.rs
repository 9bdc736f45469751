//! A cluster of the reference's servers, and a relay of the reference, under the console: every
//! page works, and the page of servers says what it cannot know.

use corvid_tests::cluster::Cluster;
use corvid_tests::console::Console;
use corvid_tests::peer;
use corvid_tests::process::Process;
use corvid_tests::server::Implementation::Reference;
use serde_json::json;

use super::live::Viewer;
use super::servers::{LOCAL, part_until, word};
use super::{between, schema, text_of};
use crate::relay::node::{await_contents, relay_of};

/// Every page of a console whose database `net` has a switch `sw0` with a port `p0`.
fn look_at_every_page(console: &Console, switch: &str, add: &dyn Fn(&str)) {
    let current = |path: &str, wanted: &str| {
        let answer = console.get_until(path, |answer| {
            let is_current = !answer.body.contains("Not current: ");
            answer.status == 200 && is_current && answer.body.contains(wanted)
        });
        answer
            .unwrap_or_else(|error| panic!("{path}: {error}"))
            .body
    };
    current("/", "db-net");
    // The server tells no numbers of rows; they are read when somebody asks.
    let tables = current("/db/net/tables", "?count=1");
    assert!(tables.contains("table-Switch"), "{tables}");
    let counted = current("/db/net/tables?count=1", "table-Switch");
    let line = between(&counted, "id=\"table-Port\"", "</tr>");
    assert!(text_of(line).contains(" 1"), "{line}");
    let table = current("/db/net/table/Switch", "sw0");
    assert!(
        text_of(&table).contains("Rows 1 to 1 of 1"),
        "{}",
        text_of(&table)
    );
    let row = current(&format!("/db/net/table/Switch/row/{switch}"), "sw0");
    assert!(row.contains("id=\"as-json\""), "{row}");
    current("/db/net/table/Port/values/name", "p0");
    current("/db/net/network", "<svg");
    let query = current("/db/net/query", "form_token");
    let token = between(&query, "name=\"form_token\" value=\"", "\"");
    let select = "%7B%22op%22:%22select%22,%22table%22:%22Switch%22,%22where%22:%5B%5D%7D";
    let body = format!("form_token={token}&operations={select}");
    let answer = console.ask("POST", "/db/net/query", &[LOCAL], &body);
    let answer = text_of(&answer.expect("an answer").body);
    assert!(answer.contains("select Switch: 1 row"), "{answer}");
    // The server keeps no past. The page says so, and has the changes since it looks.
    let past = console
        .get("/db/net/table/Switch?at=HEAD~1")
        .expect("an answer");
    assert_ne!(past.status, 200, "{past:?}");
    let mut viewer = Viewer::at(console, "/db/net/table/Switch/events");
    add("sw1");
    assert_eq!(viewer.event()["rows"][0][1], json!("insert"));
    let changes = current("/db/net/changes", "sw1");
    assert!(
        text_of(&changes).contains("Switch"),
        "{}",
        text_of(&changes)
    );
}

fn insert(client: &mut corvid_tests::client::Client, switch: &str, port: &str) -> String {
    let inserted = json!(["Net",
        {"op": "insert", "table": "Port", "uuid-name": "p", "row": {"name": port, "tag": 1}},
        {"op": "insert", "table": "Switch", "row": {"name": switch, "ports": ["named-uuid", "p"]}}]);
    let reply = client.call("transact", &inserted).expect("a reply");
    let uuid = reply["result"][1]["uuid"][1].as_str().map(str::to_owned);
    uuid.unwrap_or_else(|| panic!("{reply}"))
}

#[test]
fn a_cluster_of_the_reference_has_every_page() {
    if Reference.server_binary().is_err() {
        peer::say_skipped("the reference is not installed: its clusters under the console");
        return;
    }
    let cluster = Cluster::joined(Reference, 3, &schema()).expect("joined");
    let (leader, _) = cluster.leader_among(&[0, 1, 2]).expect("a leader");
    let switch = insert(&mut cluster.connect(leader).expect("open"), "sw0", "p0");
    let sockets: Vec<_> = cluster.members().iter().map(Process::socket).collect();
    let sockets: Vec<_> = sockets.iter().map(AsRef::as_ref).collect();
    let console = Console::start(&[word("net", &sockets)]).expect("a console");
    look_at_every_page(&console, &switch, &|name| {
        insert(&mut cluster.connect(leader).expect("open"), name, "p1");
    });
    let page = part_until(&console, "net", |page| page.contains("id=\"members\""));
    let text = text_of(&page);
    assert!(text.contains("Model clustered"), "{text}");
    assert!(text.contains("3 members"), "{text}");
    assert!(text.contains("This server publishes no status"), "{text}");
    for number in 0..3 {
        assert!(page.contains(&cluster.address(number)), "{number}: {text}");
    }
    // The page makes nothing up.
    let members = text_of(between(&page, "id=\"members\"", "</section>"));
    for role in [" leader 1 ", " follower 1 "] {
        assert!(members.contains(role), "{members}");
    }
    assert!(
        text.contains("The server tells no more about them"),
        "{text}"
    );
    assert!(!page.contains("id=\"hour\""), "{text}");
}

#[test]
fn a_relay_of_the_reference_has_every_page() {
    if Reference.server_binary().is_err() {
        peer::say_skipped("the reference is not installed: its relays under the console");
        return;
    }
    let cluster = Cluster::joined(Reference, 1, &schema()).expect("joined");
    let switch = insert(&mut cluster.connect(0).expect("open"), "sw0", "p0");
    let source = format!("unix:{}", cluster.members()[0].socket().display());
    let relay = relay_of(Reference, "Net", &source);
    await_contents(&relay, "Net");
    let console = Console::start(&[word("net", &[&relay.process.socket()])]).expect("a console");
    look_at_every_page(&console, &switch, &|name| {
        insert(&mut cluster.connect(0).expect("open"), name, "p1");
    });
    let page = part_until(&console, "net", |page| page.contains("relay"));
    let text = text_of(&page);
    assert!(text.contains("Model relay"), "{text}");
    assert!(text.contains("This server publishes no status"), "{text}");
    assert!(
        text.contains("The server tells no more about them"),
        "{text}"
    );
    assert!(!page.contains("id=\"hour\""), "{text}");
}
