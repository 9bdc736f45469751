//! The messages of the protocol in the debug log of server and client: their lines are those of the
//! reference, and no lines appear at the usual log levels.

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use corvid_tests::binary;
use corvid_tests::numbered_rows;
use corvid_tests::server::{Implementation, Server, Setup};
use serde_json::{Value, json};

use crate::active_backup::node::Node;
use crate::relay::node::await_contents;

/// The time limit for any event on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// Returns the lines of `jsonrpc` at DBG, without times, numbers and names of sessions. All JSON is
/// printed in the same form.
fn messages(log: &str) -> Vec<String> {
    let lines = log
        .lines()
        .filter_map(|line| line.split_once("|jsonrpc|DBG|"));
    lines.map(|(_, text)| normal(text)).collect()
}

/// Returns a line without the name of its session and with all its JSON values in the same form.
fn normal(line: &str) -> String {
    let verbs = ["send ", "received "];
    let start = verbs.iter().filter_map(|verb| line.find(verb)).min();
    let line = &line[start.expect("a direction")..];
    let parts = line.split(", ").collect::<Vec<_>>().join(", ");
    let mut text = String::new();
    let mut rest = parts.as_str();
    while let Some((before, after)) = rest.split_once('=') {
        text.push_str(before);
        text.push('=');
        let mut values = serde_json::Deserializer::from_str(after).into_iter::<Value>();
        let Some(Ok(value)) = values.next() else {
            text.push_str(after);
            return text;
        };
        text.push_str(&value.to_string());
        rest = &after[values.byte_offset()..];
    }
    text + rest
}

fn play(implementation: Implementation) -> Vec<String> {
    let schema = json!({"name": "D", "tables": {"T": {"isRoot": true, "columns": {"n": {"type": "integer"}}}}});
    let setup = Setup {
        databases: vec![schema],
        ..Setup::default()
    };
    let server = Server::start(implementation, &setup).expect("a server");
    let level = |level: &str| {
        let spec = [format!("jsonrpc:file:{level}")];
        server.control("vlog/set", &spec).expect("a reply");
    };
    let mut client = server.connect().expect("a connection");
    let quiet = client.call("echo", &json!(["quiet"])).expect("a reply");
    assert_eq!(quiet["result"], json!(["quiet"]));
    level("dbg");
    for (method, params) in [
        ("echo", json!(["a", {"b": [1, null]}])),
        ("list_dbs", json!([])),
        ("get_schema", json!(["nosuch"])),
        (
            "transact",
            json!(["D", {"op": "select", "table": "T", "where": []}]),
        ),
        ("monitor", json!(["D", "m", {"T": {}}])),
        ("no_such_method", json!([])),
        (
            "transact",
            json!(["D", {"op": "comment", "comment": "x".repeat(200_000)}]),
        ),
    ] {
        client.call(method, &params).expect("a reply");
    }
    let deadline = Instant::now() + LIMIT;
    loop {
        let lines = messages(&server.log());
        // The messages of the control socket are left out, because its commands begin and end the
        // test.
        let lines: Vec<String> = lines
            .into_iter()
            .filter(|line| {
                !line.contains("vlog/set") && !line.starts_with("send reply, result=\"\", id=")
            })
            .collect();
        if lines.len() >= 14 {
            assert!(!lines.iter().any(|line| line.contains("quiet")));
            return lines;
        }
        assert!(Instant::now() < deadline, "{lines:?}");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_server_logs_messages_in_the_form_of_the_reference() {
    let mut ours = play(Implementation::Corvid);
    let long = ours.iter().position(|line| line.contains("xxxxxxxx"));
    let long = ours.remove(long.expect("the long message"));
    assert!(
        long.starts_with("received request, method=\"transact\", params="),
        "{long}"
    );
    assert!(long.len() < 4096, "{} bytes", long.len());
    assert!(
        long.ends_with("bytes in all)"),
        "{}",
        &long[long.len() - 60..]
    );
    if Implementation::Reference.server_binary().is_ok() {
        let mut reference = play(Implementation::Reference);
        reference.retain(|line| !line.contains("xxxxxxxx"));
        // The texts of errors differ between releases.
        let kind = |line: &String| {
            line.split_once("error=")
                .map_or(line.clone(), |it| it.0.to_owned())
        };
        let ours: Vec<String> = ours.iter().map(kind).collect();
        let reference: Vec<String> = reference.iter().map(kind).collect();
        assert_eq!(ours, reference);
    }
}

#[test]
fn a_client_logs_messages_in_the_form_of_the_reference() {
    let schema = json!({"name": "D", "tables": {"T": {"columns": {"n": {"type": "integer"}}}}});
    let setup = Setup {
        databases: vec![schema],
        ..Setup::default()
    };
    let server = Server::start(Implementation::Corvid, &setup).expect("a server");
    let remote = format!("unix:{}", server.socket().display());
    let mut programs = vec![binary::bin("ovsdb-client")];
    programs.extend(binary::reference("ovsdb-client"));
    for program in programs {
        let output = Command::new(&program)
            .args(["-vjsonrpc:dbg", "list-dbs", &remote])
            .stdin(Stdio::null())
            .output()
            .expect("the client runs");
        let said = String::from_utf8_lossy(&output.stderr);
        let lines: Vec<&str> = said
            .lines()
            .map(|line| line.split_once("|jsonrpc|DBG|").expect("a message").1)
            .collect();
        assert_eq!(
            lines,
            [
                format!("{remote}: send request, method=\"list_dbs\", params=[], id=0"),
                format!("{remote}: received reply, result=[\"D\",\"_Server\"], id=0"),
            ],
            "{}",
            program.display()
        );
    }
}

/// Returns the lines of `jsonrpc` at DBG in a text, with the names of their connections.
fn named(text: &str) -> Vec<String> {
    let lines = text.lines();
    let messages = lines.filter_map(|line| line.split_once("|jsonrpc|DBG|"));
    messages.map(|(_, message)| message.to_owned()).collect()
}

#[test]
fn the_control_socket_logs_messages_in_the_form_of_the_reference() {
    let lines = |implementation: Implementation, program: &std::path::Path| -> Vec<String> {
        let schema = json!({"name": "D", "tables": {"T": {"columns": {"n": {"type": "integer"}}}}});
        let setup = Setup {
            databases: vec![schema],
            ..Setup::default()
        };
        let server = Server::start(implementation, &setup).expect("a server");
        let level = ["jsonrpc:file:dbg".to_owned()];
        server.control("vlog/set", &level).expect("a reply");
        let path = server.control_socket().display().to_string();
        let mut lines = Vec::new();
        for command in [
            &["ovsdb-server/list-dbs"][..],
            &["ovsdb-server/remove-db", "X"],
        ] {
            let output = Command::new(program)
                .args(["-vjsonrpc:console:dbg", "-t", &path])
                .args(command)
                .stdin(Stdio::null())
                .output()
                .expect("ovs-appctl runs");
            let said = String::from_utf8_lossy(&output.stderr);
            let said = named(&said).into_iter();
            lines.extend(said.map(|line| line.replace(&path, "PATH")));
        }
        let is_of_commands =
            |line: &String| !line.contains("vlog/set") && !line.contains("result=\"\"");
        lines.extend(messages(&server.log()).into_iter().filter(is_of_commands));
        lines
    };
    let appctl = binary::bin("ovs-appctl");
    let ours = lines(Implementation::Corvid, &appctl);
    assert_eq!(ours.len(), 8, "{ours:?}");
    assert_eq!(
        ours[0],
        "unix:PATH: send request, method=\"ovsdb-server/list-dbs\", params=[], id=0"
    );
    // Programs end as soon as they have printed the reply. So the server's lines may come after
    // theirs, but must not be missing.
    let answers = ours.iter().filter(|line| line.starts_with("send reply"));
    assert_eq!(answers.count(), 2, "{ours:?}");
    if let Some(appctl) = binary::reference("ovs-appctl") {
        assert_eq!(ours, lines(Implementation::Reference, &appctl));
    }
}

/// Waits until a log contains a message of each kind. A kind is given by the name of the connection
/// and the beginning of the message.
fn await_messages(log: impl Fn() -> String, kinds: &[(&str, &str)]) {
    let deadline = Instant::now() + LIMIT;
    let is_there = |lines: &[String], (name, message): &(&str, &str)| {
        let mut lines = lines.iter();
        lines.any(|line| line.starts_with(name) && line.contains(message))
    };
    loop {
        let lines = named(&log());
        let missing: Vec<_> = kinds
            .iter()
            .filter(|kind| !is_there(&lines, kind))
            .collect();
        if missing.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "{missing:?} in {lines:#?}");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn members_log_their_messages() {
    let (cluster, leader) = numbered_rows::three();
    let follower = (leader + 1) % 3;
    for member in [leader, follower] {
        let before = named(&cluster.members()[member].log());
        assert!(before.is_empty(), "{before:?}");
        let level = ["jsonrpc:file:dbg"];
        cluster
            .control(member, "vlog/set", &level)
            .expect("a reply");
    }
    let mut client = cluster.connect(follower).expect("a connection");
    numbered_rows::add(&mut client, 1).expect("inserted");
    let address = cluster.peer_address(leader).expect("an address");
    let log = |member: usize| cluster.members()[member].log();
    await_messages(
        || log(leader),
        &[
            ("unix", ": send notification, method=\""),
            ("unix", ": received notification, method=\""),
        ],
    );
    await_messages(
        || log(follower),
        &[
            ("unix", ": send notification, method=\""),
            ("unix", ": received notification, method=\""),
            (&address, "method=\""),
        ],
    );
    cluster
        .control(leader, "vlog/set", &["jsonrpc:file:info"])
        .expect("a reply");
}

#[test]
fn relays_and_backups_log_messages_with_their_sources() {
    let dbg = "-vjsonrpc:file:dbg".to_owned();
    let source = Node::started(Implementation::Corvid, &numbered_rows::schema(), &[]);
    let remote = source.remote();
    let relay = format!("relay:{}:{remote}", numbered_rows::DATABASE);
    let relay = Node::with_arguments(Implementation::Corvid, &[dbg.clone(), relay]);
    let options = [dbg, format!("--sync-from={remote}")];
    let backup = Node::started(Implementation::Corvid, &numbered_rows::schema(), &options);
    await_contents(&relay, numbered_rows::DATABASE);
    numbered_rows::add(&mut relay.client(), 1).expect("inserted");
    await_messages(
        || relay.process.log(),
        &[
            (&remote, "send request, method=\"monitor_cond_since\""),
            (&remote, "received reply, result="),
            (&remote, "send request, method=\"transact"),
            (&remote, "received notification, method=\"update3\""),
        ],
    );
    await_messages(
        || backup.process.log(),
        &[
            (&remote, "send request, method=\"monitor"),
            (&remote, "received reply, result="),
        ],
    );
    numbered_rows::add(&mut relay.client(), 2).expect("inserted");
    let update = "received notification, method=\"update";
    await_messages(|| backup.process.log(), &[(&remote, update)]);
}
