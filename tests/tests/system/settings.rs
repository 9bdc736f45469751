//! Settings that can be changed while the server runs: `ovsdb-server/set-setting` and
//! `ovsdb-server/list-settings`.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use corvid_tests::client::Client;
use corvid_tests::http;
use corvid_tests::server::{Implementation, Server, Setup};
use serde_json::{Value, json};

/// The time limit for any event on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

fn serve(options: &[&str]) -> Server {
    let schema = json!({"name": "D", "tables": {
        "T": {"isRoot": true, "columns": {"n": {"type": "integer"}, "s": {"type": "string"}}},
        "Noise": {"isRoot": true, "columns": {"n": {"type": "integer"}}}}});
    let setup = Setup {
        databases: vec![schema],
        options: options.iter().map(|&option| option.to_owned()).collect(),
        ..Setup::default()
    };
    Server::start(Implementation::Corvid, &setup).expect("a server")
}

fn settings(server: &Server) -> String {
    let reply = server.control("ovsdb-server/list-settings", &[]);
    let reply = reply.expect("a reply");
    reply["result"].as_str().expect("a text").to_owned()
}

/// Changes a setting. Returns the error, or an empty text.
fn set(server: &Server, name: &str, value: &str) -> String {
    let arguments = [name, value].map(str::to_owned);
    let reply = server.control("ovsdb-server/set-setting", &arguments);
    let reply = reply.expect("a reply");
    let error = reply["error"].as_str().unwrap_or_default();
    error.trim_end().to_owned()
}

fn until(what: &str, server: &Server, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: {}", server.log());
        thread::sleep(Duration::from_millis(2));
    }
}

/// Opens a session. Returns it if the server serves it.
fn is_served(server: &Server) -> Option<Client> {
    let mut client = server.connect().expect("a connection");
    client.call("echo", &json!([])).ok().map(|_| client)
}

fn insert(client: &mut Client, table: &str, n: i64) {
    let insert = json!(["D", {"op": "insert", "table": table, "row": {"n": n}}]);
    let reply = client.call("transact", &insert).expect("a reply");
    assert!(reply["result"][0]["uuid"].is_array(), "{reply}");
}

#[test]
fn settings_are_listed_and_bad_ones_change_nothing() {
    let server = serve(&[
        "--max-sessions=50",
        "--max-message-size=2M",
        "--slow-transaction-ms=0",
    ]);
    let before = "audit-exclude=\naudit-log=none\nmax-client-memory=4294967296\nmax-message-size=2097152\nmax-reply-memory=1073741824\nmax-session-backlog=4294967296\nmax-sessions=50\nmetrics-listen=none\nslow-transaction-ms=0\ntrusted-relays=\n";
    assert!(settings(&server).starts_with("audit-exclude=\naudit-log=none\n"));
    for line in before.lines() {
        assert!(
            settings(&server).lines().any(|found| found == line),
            "{line}"
        );
    }
    let none = "no audit log: first set audit-log to an absolute file name";
    for (name, value, error) in [
        ("max-speed", "1", "no setting named max-speed"),
        ("max-message-size", "1", "1: too small; the minimum is 1K"),
        (
            "max-sessions",
            "0",
            "0: expected a number of sessions, 1 or more",
        ),
        (
            "slow-transaction-ms",
            "soon",
            "expected a number of milliseconds, not \"soon\"",
        ),
        ("audit-log", "on", none),
        (
            "audit-log",
            "audit.log",
            "audit.log: expected \"on\", \"off\" or an absolute file name",
        ),
        (
            "metrics-listen",
            "D=127.0.0.1",
            "expected HOST:PORT or unix:FILE",
        ),
        ("audit-exclude", "D:T", none),
        (
            "audit-exclude",
            "D",
            "expected DB:TABLE or DB:TABLE:COLUMN, not \"D\"",
        ),
    ] {
        assert_eq!(set(&server, name, value), error, "{name}");
    }
    for line in before.lines() {
        assert!(
            settings(&server).lines().any(|found| found == line),
            "{line}"
        );
    }
    assert_eq!(set(&server, "max-message-size", "4M"), "");
    assert!(settings(&server).contains("max-message-size=4194304\n"));
    let line = "|ovsdb_server|INFO|max-message-size set to \"4M\" by user request\n";
    assert_eq!(server.log().matches(line).count(), 1);
    let mut control = Client::connect(&server.control_socket()).expect("a connection");
    let format = json!(["--format", "json"]);
    control.call("set-options", &format).expect("a reply");
    let reply = control.call("ovsdb-server/list-settings", &json!([]));
    assert_eq!(
        reply.expect("a reply")["result"]["max-message-size"],
        "4194304"
    );
}

/// Returns the value of a metric on the page of a server.
fn metric(server: &Server, socket: &Path, name: &str) -> f64 {
    let page = http::get(socket, "/metrics", "*/*").expect("a page");
    let value = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok();
    let found = page.body.lines().find_map(value);
    found.unwrap_or_else(|| panic!("no {name} in\n{}\n{}", page.body, server.log()))
}

#[test]
fn metrics_are_switched_on_and_off() {
    let server = serve(&[]);
    let mut client = is_served(&server).expect("a session");
    insert(&mut client, "T", 1);
    let directory = format!("unix:{}/", server.dir().display());
    let socket = server.dir().join("D.metrics.sock");
    assert_eq!(set(&server, "metrics-listen", &directory), "");
    assert!(settings(&server).contains(&format!("metrics-listen={directory}\n")));
    let transactions = "corvid_database_transaction_seconds_count{database=\"D\"}";
    let before = metric(&server, &socket, transactions);
    for n in 2..5 {
        insert(&mut client, "T", n);
    }
    until("its transactions are counted", &server, || {
        metric(&server, &socket, transactions) == before + 3.0
    });
    assert_eq!(metric(&server, &socket, "corvid_ready"), 1.0);
    // If the new address cannot be used, the pages stay at the old one.
    let taken = set(&server, "metrics-listen", "unix:/nonexistent/metrics");
    assert!(taken.starts_with("could not listen ("), "{taken}");
    assert_eq!(metric(&server, &socket, "corvid_ready"), 1.0);
    let other = server.dir().join("other");
    let address = format!("X=:1,D=unix:{}", other.display());
    assert_eq!(set(&server, "metrics-listen", &address), "");
    assert!(!socket.exists(), "it has moved");
    insert(&mut client, "T", 5);
    until("counts go on", &server, || {
        metric(&server, &other, transactions) == before + 4.0
    });
    assert_eq!(set(&server, "metrics-listen", "none"), "");
    assert!(!other.exists());
    assert!(settings(&server).contains("metrics-listen=none\n"));
    insert(&mut client, "T", 6);
}

#[test]
fn servers_that_are_started_with_the_same_options_have_sockets_of_their_own() {
    let directory = tempfile::tempdir().expect("a directory");
    let option = format!("--metrics-listen=unix:{}/", directory.path().display());
    let server_of = |name: &str| {
        let columns = json!({"n": {"type": "integer"}});
        let schema = json!({"name": name, "tables": {"T": {"columns": columns}}});
        let setup = Setup {
            databases: vec![schema],
            options: vec![option.clone()],
            ..Setup::default()
        };
        Server::start(Implementation::Corvid, &setup).expect("a server")
    };
    for name in ["North", "South"].map(|name| (name, server_of(name))) {
        let (name, server) = name;
        let socket = directory.path().join(format!("{name}.metrics.sock"));
        let atoms = format!("corvid_database_atoms{{database=\"{name}\"}}");
        assert_eq!(metric(&server, &socket, &atoms), 0.0);
    }
}

#[test]
fn an_audit_log_begins_while_the_server_runs() {
    let server = serve(&[]);
    let mut client = is_served(&server).expect("a session");
    insert(&mut client, "T", 1);
    let file = server.dir().join("audit.log");
    let name = file.display().to_string();
    assert_eq!(
        set(&server, "audit-log", "/nonexistent/audit.log"),
        "/nonexistent/audit.log: cannot open audit log (No such file or directory)"
    );
    assert!(settings(&server).contains("audit-log=none\n"));
    assert_eq!(set(&server, "audit-log", &name), "");
    assert!(settings(&server).contains("audit-log=on\n"));
    insert(&mut client, "T", 2);
    let records = || fs::read_to_string(&file).unwrap_or_default();
    until("the second row is recorded", &server, || {
        records().contains("\"n\":2")
    });
    assert!(!records().contains("\"n\":1"), "{}", records());
    assert_eq!(
        set(&server, "audit-log", "/tmp/other.log"),
        format!(
            "the audit log is {name}; to start a new one, rename that file and run vlog/reopen"
        )
    );
    let moved = server.dir().join("audit.log.1");
    fs::rename(&file, &moved).expect("moved");
    let reply = server.control("ovsdb-server/reopen-audit-log", &[]);
    assert!(reply.expect("a reply")["error"].is_null());
    insert(&mut client, "T", 3);
    until("the third row is in the new file", &server, || {
        records().contains("\"n\":3")
    });
    assert_eq!(set(&server, "audit-log", "off"), "");
    assert!(settings(&server).contains("audit-log=off\n"));
}

#[test]
fn the_memory_of_replies_is_limited_anew() {
    let server = serve(&[]);
    let mut client = is_served(&server).expect("a session");
    let long = json!(["D", {"op": "insert", "table": "T", "row": {"s": "x".repeat(1 << 20)}}]);
    client.call("transact", &long).expect("a reply");
    let select = json!({"op": "select", "table": "T", "where": []});
    let often = json!(["D", select, select, select, select]);
    let reply = client.call("transact", &often).expect("a reply");
    assert!(reply["result"][3]["rows"].is_array());
    assert_eq!(set(&server, "max-reply-memory", "1M"), "");
    let reply = client.call("transact", &often).expect("a reply");
    assert_eq!(reply["result"][1]["error"], json!("resources exhausted"));
    assert_eq!(set(&server, "max-reply-memory", "64M"), "");
    let reply = client.call("transact", &often).expect("a reply");
    assert!(reply["result"][3]["rows"].is_array());
}

#[test]
fn limits_hold_from_the_change_on() {
    let server = serve(&[]);
    let mut first = is_served(&server).expect("a session");
    until("others are gone", &server, || {
        let reply = server.control("ovsdb-server/list-sessions", &[]);
        let reply = reply.expect("a reply");
        reply["result"].as_str().expect("a text").lines().count() == 1
    });
    assert_eq!(set(&server, "max-sessions", "1"), "");
    assert!(is_served(&server).is_none(), "no place is left");
    first.call("echo", &json!([])).expect("it stays");
    assert_eq!(set(&server, "max-sessions", "3"), "");
    let mut second = is_served(&server).expect("a session");

    let text = json!([{"s": "x".repeat(5000)}]);
    first.call("echo", &text).expect("short enough");
    assert_eq!(set(&server, "max-message-size", "2K"), "");
    assert!(first.call("echo", &text).is_err(), "too long now");
    assert_eq!(set(&server, "max-message-size", "32M"), "");

    let long = json!(["D", {"op": "insert", "table": "T", "row": {"s": "x".repeat(8 << 20)}}]);
    second.call("transact", &long).expect("a reply");
    assert_eq!(set(&server, "max-session-backlog", "1M"), "");
    let select = json!({"id": 1, "method": "transact", "params": ["D", {"op": "select", "table": "T", "where": []}]});
    second.send(select.to_string().as_bytes()).expect("sent");
    until("the end of who does not read", &server, || {
        server
            .log()
            .contains("|jsonrpc|WARN|sending backlog exceeded maximum size (")
    });
}

#[test]
fn slow_transactions_are_logged_from_the_change_on() {
    let server = serve(&["--slow-transaction-ms=0"]);
    let mut client = server.connect().expect("a connection");
    let mut many = vec![json!("D")];
    many.extend((0..5000).map(|n| json!({"op": "insert", "table": "T", "row": {"n": n}})));
    let many = Value::from(many);
    client.call("transact", &many).expect("a reply");
    assert_eq!(set(&server, "slow-transaction-ms", "1"), "");
    client.call("transact", &many).expect("a reply");
    let told = |server: &Server| server.log().matches("transaction on D took ").count();
    until("a slow transaction", &server, || told(&server) > 0);
    assert_eq!(told(&server), 1, "the first was not told");
    assert_eq!(set(&server, "slow-transaction-ms", "0"), "");
    client.call("transact", &many).expect("a reply");
    insert(&mut client, "T", 1);
    assert_eq!(told(&server), 1);
    assert!(settings(&server).contains("slow-transaction-ms=0\n"));
}

#[test]
fn the_audit_log_is_turned_off_and_on_and_leaves_out_other_tables() {
    let server = serve(&["--audit-log=<dir>/audit.log"]);
    let mut client = server.connect().expect("a connection");
    insert(&mut client, "T", 1);
    assert_eq!(set(&server, "audit-log", "off"), "");
    assert!(settings(&server).contains("audit-log=off\n"));
    insert(&mut client, "T", 2);
    assert_eq!(
        set(&server, "audit-log", "maybe"),
        "maybe: expected \"on\", \"off\" or an absolute file name"
    );
    assert_eq!(set(&server, "audit-log", "on"), "");
    insert(&mut client, "T", 3);
    let records = || -> Vec<Value> {
        let text = fs::read_to_string(server.dir().join("audit.log")).unwrap_or_default();
        let lines = text.lines();
        lines
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect()
    };
    let values = || -> Vec<Value> {
        let records = records().into_iter();
        let committed = records.filter(|record| record["outcome"] == "committed");
        committed
            .map(|record| record["rows"][0]["after"]["n"].clone())
            .collect()
    };
    until("two records", &server, || values().len() == 2);
    assert_eq!(set(&server, "audit-exclude", "D:T"), "");
    insert(&mut client, "T", 4);
    insert(&mut client, "Noise", 5);
    until("a record of the other table", &server, || {
        values().last() == Some(&json!(5))
    });
    assert_eq!(set(&server, "audit-exclude", ""), "");
    insert(&mut client, "T", 6);
    until("the last record", &server, || {
        values().last() == Some(&json!(6))
    });
    assert_eq!(values(), [1, 3, 5, 6]);
    let outcomes: Vec<Value> = records()
        .iter()
        .map(|record| record["outcome"].clone())
        .collect();
    assert_eq!(
        outcomes[..4],
        ["committed", "off", "on", "committed"],
        "it says so"
    );
}
