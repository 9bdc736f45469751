//! The logs of servers, and the replies on their control sockets.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use corvid_tests::server::{Implementation, Server, Setup};
use serde_json::{Value, json};

use super::{HOSTILE, SHOWN, check_clean, check_shown};

/// The time limit for any event on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

fn schema() -> Value {
    json!({"name": "D", "tables": {
        "T": {"isRoot": true, "columns": {"s": {"type": "string"}}},
        "R": {"isRoot": true, "columns": {"target": {"type": "string"}, "is_connected": {"type": "boolean"}}}}})
}

fn setup(options: &[&str]) -> Setup {
    Setup {
        databases: vec![schema()],
        options: options.iter().map(|&option| option.to_owned()).collect(),
        ..Setup::default()
    }
}

/// Returns a transaction that has the text in its comment and takes longer than a millisecond.
fn long_transaction() -> Value {
    let mut params = vec![json!("D"), json!({"op": "comment", "comment": HOSTILE})];
    let insert = json!({"op": "insert", "table": "T", "row": {}});
    params.extend(std::iter::repeat_n(insert, 2000));
    Value::Array(params)
}

/// Sends the text in every place in which a client or a command can put it.
fn send_everything(server: &Server) {
    let control = |command: &str, arguments: &[&str]| {
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        server.control(command, &arguments).expect("a reply")
    };
    for (command, arguments) in [
        (
            "ovsdb-server/set-setting",
            &["slow-transaction-ms", "1"][..],
        ),
        ("ovsdb-server/tlog-set", &["D:T", "on"]),
        ("vlog/message", &[HOSTILE]),
        (HOSTILE, &[HOSTILE]),
        ("ovsdb-server/add-remote", &[HOSTILE]),
        ("ovsdb-server/add-remote", &["db:D,R,target"]),
        ("ovsdb-server/add-db", &[HOSTILE]),
        ("ovsdb-server/remove-db", &[HOSTILE]),
        ("ovsdb-server/tlog-set", &[HOSTILE, "on"]),
        ("vlog/set", &[HOSTILE]),
    ] {
        control(command, arguments);
    }
    let mut client = server.connect().expect("a connection");
    let insert = |row: Value| json!({"op": "insert", "table": "T", "row": row});
    for (method, params) in [
        ("transact", json!([HOSTILE])),
        (HOSTILE, json!([])),
        ("lock", json!([HOSTILE])),
        ("steal", json!(["a", HOSTILE])),
        ("monitor", json!(["D", HOSTILE, {"T": {}}])),
        ("monitor", json!(["D", "m", {HOSTILE: {}}])),
        ("transact", json!(["D", {"op": HOSTILE}])),
        (
            "transact",
            json!(["D", {"op": "select", "table": HOSTILE, "where": []}]),
        ),
        ("transact", json!(["D", insert(json!({HOSTILE: 1}))])),
        (
            "transact",
            json!(["D", {"op": "comment", "comment": HOSTILE}, insert(json!({"s": HOSTILE}))]),
        ),
        (
            "transact",
            json!(["D", {"op": "insert", "table": "R", "row": {"target": HOSTILE}}]),
        ),
        (
            "transact",
            json!(["D", {"op": "insert", "table": "R", "row": {"target": format!("tcp:{HOSTILE}")}}]),
        ),
        (
            "transact",
            json!(["D", {"op": "insert", "table": "R", "row": {"target": format!("unix:{HOSTILE}")}}]),
        ),
        (
            "convert",
            json!(["D", {"name": HOSTILE, "version": HOSTILE}]),
        ),
        ("transact", long_transaction()),
    ] {
        client.call(method, &params).expect("a reply");
    }
    // This is not a valid message.
    let mut client = server.connect().expect("a connection");
    let bad = json!({"id": 1, "method": "echo", HOSTILE: []}).to_string();
    client.send(bad.as_bytes()).expect("sent");
    let mut client = server.connect().expect("a connection");
    client.send(HOSTILE.as_bytes()).expect("sent");
}

/// Waits until the log ends with what was sent last.
fn log_after(server: &Server) -> String {
    server
        .control("vlog/message", &["the end".to_owned()])
        .expect("a reply");
    let deadline = Instant::now() + LIMIT;
    loop {
        let log = server.log();
        if log.contains("user-message: the end") {
            return log;
        }
        assert!(Instant::now() < deadline, "{log}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_log_of_a_server_has_no_control_characters_of_clients() {
    let server = Server::start(Implementation::Corvid, &setup(&["-vany:file:dbg"]));
    let server = server.expect("a server");
    send_everything(&server);
    let log = log_after(&server);
    check_shown("the log", log.as_bytes());
    for module in [
        "vlog",
        "jsonrpc",
        "unixctl",
        "transaction",
        "reconnect",
        "socket_util",
        "stream_tcp",
    ] {
        let lines = log.lines();
        let of_module = lines.filter(|line| line.contains(&format!("|{module}|")));
        let mut with_text = of_module.filter(|line| line.contains(r"x\n2026"));
        let has_text = with_text.next().is_some();
        assert!(has_text, "{module}: {}", log.get(..20_000).unwrap_or(&log));
    }
}

#[test]
fn lines_of_json_keep_the_exact_text_and_have_no_control_characters() {
    let options = ["--log-format=json", "-vany:file:dbg"];
    let server = Server::start(Implementation::Corvid, &setup(&options)).expect("a server");
    send_everything(&server);
    let log = log_after(&server);
    check_clean("the log", &log);
    let lines = log
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    let messages: Vec<Value> = lines.map(|line: Value| line["message"].clone()).collect();
    let exact = format!("user-message: {HOSTILE}");
    assert!(messages.contains(&Value::String(exact)), "{messages:?}");
}

/// Makes a key, and a certificate for it with the hostile text in its name.
fn make_identity(dir: &std::path::Path) -> bool {
    let subject = format!("/CN={HOSTILE}");
    let made = Command::new("openssl")
        .args([
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-utf8",
        ])
        .args(["-subj", &subject, "-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(dir)
        .output();
    matches!(made, Ok(output) if output.status.success())
}

#[test]
fn the_name_of_a_certificate_is_shown_without_control_characters() {
    let dir = tempfile::tempdir().expect("a directory");
    if !make_identity(dir.path()) {
        eprintln!("SKIPPED: openssl, which makes the certificate, is not installed");
        return;
    }
    let at = |name: &str| dir.path().join(name).display().to_string();
    let server = Server::start(
        Implementation::Corvid,
        &setup(&[
            "-vany:file:dbg",
            "--slow-transaction-ms=1",
            "--remote=pssl:0:127.0.0.1",
            &format!("--private-key={}", at("key.pem")),
            &format!("--certificate={}", at("cert.pem")),
            &format!("--ca-cert={}", at("cert.pem")),
        ]),
    )
    .expect("a server");
    let deadline = Instant::now() + LIMIT;
    while server.port().is_none() {
        assert!(Instant::now() < deadline, "it listens");
        std::thread::sleep(Duration::from_millis(5));
    }
    let remote = format!("ssl:127.0.0.1:{}", server.port().expect("it listens"));
    // The client trusts the server at first use. Then it executes a slow transaction with this
    // name.
    let client = Command::new(corvid_tests::binary::bin("ovsdb-client"))
        .args(["-vany:console:dbg", "--timeout=60"])
        .arg(format!("--private-key={}", at("key.pem")))
        .arg(format!("--certificate={}", at("cert.pem")))
        .arg(format!("--bootstrap-ca-cert={}", at("learnt.pem")))
        .args(["list-dbs", &remote])
        .output()
        .expect("a client");
    check_shown("trust on first use", &client.stderr);
    assert!(fs::exists(dir.path().join("learnt.pem")).expect("a directory"));
    let client = Command::new(corvid_tests::binary::bin("ovsdb-client"))
        .arg("--timeout=60")
        .arg(format!("--private-key={}", at("key.pem")))
        .arg(format!("--certificate={}", at("cert.pem")))
        .arg(format!("--ca-cert={}", at("cert.pem")))
        .args(["transact", &remote, &long_transaction().to_string()])
        .output()
        .expect("a client");
    assert!(client.status.success(), "{client:?}");
    let log = log_after(&server);
    check_clean("the log", &log);
    let mut lines = log.lines();
    let client = format!("(client \"{SHOWN}\")");
    let named = lines.find(|line| line.contains("took") && line.contains(&client));
    assert!(named.is_some(), "{log}");
}
