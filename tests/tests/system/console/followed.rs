//! A cluster whose leader dies while the console reads from it: every page is current again, and
//! streams of events go on.

use corvid_tests::client::Client;
use corvid_tests::cluster::Cluster;
use corvid_tests::console::Console;
use corvid_tests::process::Process;
use serde_json::{Value, json};

use super::live::Viewer;
use super::servers::{LOCAL, part_until, status_of, word};
use super::{between, schema, text_of};

/// The member with a session of this process that monitors.
fn source_of(console: &Console, members: &[Process]) -> Option<usize> {
    members.iter().position(|member| {
        // A member that has died has no control socket.
        if Client::connect(&member.control_socket()).is_err() {
            return false;
        }
        let status = status_of(&member.control_socket());
        let sessions = status["sessions"].as_array().cloned().unwrap_or_default();
        let is_its = |session: &Value| {
            session["pid"] == json!(console.pid()) && session["monitors"] != json!(0)
        };
        sessions.iter().any(is_its)
    })
}

#[test]
fn pages_follow_when_the_leader_that_is_read_dies() {
    let mut cluster = Cluster::of(3, &schema()).expect("made");
    cluster.start().expect("started");
    let (leader, _) = cluster.leader_among(&[0, 1, 2]).expect("a leader");
    let insert = |cluster: &Cluster, member: usize, name: &str| {
        let port = json!({"op": "insert", "table": "Port", "uuid-name": "p",
            "row": {"name": format!("port-{name}"), "tag": 1}});
        let switch = json!({"op": "insert", "table": "Switch",
            "row": {"name": name, "ports": ["named-uuid", "p"]}});
        let mut client = cluster.connect(member).expect("a connection");
        let reply = client.call("transact", &json!(["Net", port, switch]));
        let reply = reply.expect("a reply");
        let uuid = reply["result"][1]["uuid"][1].as_str().map(str::to_owned);
        uuid.unwrap_or_else(|| panic!("{reply}"))
    };
    let early = insert(&cluster, leader, "early");
    let sockets: Vec<_> = cluster.members().iter().map(Process::socket).collect();
    let sockets: Vec<_> = sockets.iter().map(AsRef::as_ref).collect();
    let console = Console::start(&[word("net", &sockets)]).expect("a console");
    let row = format!("/db/net/table/Switch/row/{early}");
    // The page, what it has now, and what it has after the change.
    let pages = [
        ("/db/net/table/Switch", "early", "late"),
        ("/db/net/table/Port?sort=-name", "port-early", "port-late"),
        (row.as_str(), "early", "the label is late"),
        ("/db/net/changes", "Net", "late"),
        ("/db/net/tables", "id=\"table-Switch\"", ">2<"),
        ("/db/net/network", "1 row", "2 rows"),
    ];
    let current = |path: &str, wanted: &str| {
        let answer = console.get_until(path, |answer| {
            let is_current = !answer.body.contains("Not current: ");
            answer.status == 200 && is_current && answer.body.contains(wanted)
        });
        answer.unwrap_or_else(|error| panic!("{path} without {wanted}: {error}"))
    };
    for (path, now, _) in pages {
        current(path, now);
    }
    let mut viewer = Viewer::at(&console, "/db/net/table/Switch/events");

    // The member that is read leads, and dies.
    cluster
        .wait_until("the console reads from a member", || {
            source_of(&console, cluster.members()).is_some()
        })
        .expect("it reads");
    let source = source_of(&console, cluster.members()).expect("a member");
    cluster.move_leadership(source).expect("it leads");
    assert_eq!(source_of(&console, cluster.members()), Some(source));
    assert!(cluster.leads(source).expect("a row"));
    cluster.member(source).kill();
    let others: Vec<usize> = (0..3).filter(|number| *number != source).collect();
    let (next, _) = cluster.leader_among(&others).expect("a leader");

    // A stream of events goes on, although the server is another one. If that took long, it has
    // ended, so that the page is read anew.
    insert(&cluster, next, "late");
    let update = json!(["Net", {"op": "update", "table": "Switch", "where": [["name", "==", "early"]],
        "row": {"labels": ["map", [["note", "the label is late"]]]}}]);
    let mut client = cluster.connect(next).expect("a connection");
    client.call("transact", &update).expect("a reply");
    if let Some(told) = viewer.change() {
        assert!(
            !told["rows"].is_null() || told["total"] == json!(2),
            "{told}"
        );
    }
    for (path, _, later) in pages {
        current(path, later);
    }
    let page = current("/db/net/query", "form_token");
    let token = between(&page.body, "name=\"form_token\" value=\"", "\"");
    let select = "%7B%22op%22:%22select%22,%22table%22:%22Switch%22,%22where%22:%5B%5D%7D";
    let body = format!("form_token={token}&operations={select}");
    let answer = console.ask("POST", "/db/net/query", &[LOCAL], &body);
    let answer = text_of(&answer.expect("an answer").body);
    assert!(answer.contains("select Switch: 2 rows"), "{answer}");
    // The page of servers names the new leader, and the console's own connection.
    let status = status_of(&cluster.members()[next].control_socket());
    let id = status["databases"][0]["cluster"]["server_id"].clone();
    let named = format!("led by {}", &id.as_str().expect("an id")[..4]);
    part_until(&console, "net", |page| {
        page.contains(&named) && page.contains("corvid-console")
    });
    assert_ne!(source_of(&console, cluster.members()), None);
}
