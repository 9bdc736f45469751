//! `ovsdb-client restore --keep-uuids`: rows are restored with the UUIDs of the backup, into a
//! database that has changed since and into an empty one, on our server and on the reference's.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use corvid_tests::binary;
use corvid_tests::server::{Implementation, Server, Setup};
use serde_json::{Value, json};

fn schema() -> Value {
    json!({"name": "D", "version": "1.0.0", "tables": {
        "Node": {"isRoot": true, "indexes": [["name"]], "columns": {
            "name": {"type": "string"},
            "kind": {"type": "string", "mutable": false},
            "online": {"type": "boolean", "ephemeral": true},
            "ports": {"type": {"key": {"type": "uuid", "refTable": "Port"}, "min": 0, "max": "unlimited"}},
            "notes": {"type": {"key": "string", "value": "string", "min": 0, "max": "unlimited"}}}},
        "Port": {"columns": {
            "number": {"type": "integer"},
            "peer": {"type": {"key": {"type": "uuid", "refTable": "Port", "refType": "weak"}, "min": 0}}}}}})
}

fn client(server: &Server, words: &[&str], input: Stdio) -> Output {
    let remote = format!("unix:{}", server.socket().display());
    let (command, rest) = words.split_last().expect("a command");
    Command::new(binary::bin("ovsdb-client"))
        .args(rest)
        .args([command, &remote as &str, "D"])
        .stdin(input)
        .output()
        .expect("the client runs")
}

fn dump(server: &Server) -> String {
    let output = client(server, &["dump"], Stdio::null());
    assert!(output.status.success());
    String::from_utf8(output.stdout).expect("text")
}

fn restore(server: &Server, backup: &Path, options: &[&str]) -> Output {
    let mut words = options.to_vec();
    words.push("restore");
    let file = File::open(backup).expect("a backup");
    client(server, &words, file.into())
}

fn transact(server: &Server, operations: &[Value]) {
    let mut params = vec![json!("D")];
    params.extend_from_slice(operations);
    let mut connection = server.connect().expect("a connection");
    let reply = connection.call("transact", &Value::Array(params));
    let reply = reply.expect("a reply");
    let is_good = |result: &Value| result.get("error").is_none();
    let results = reply["result"].as_array().expect("results");
    assert!(results.iter().all(is_good), "{reply}");
}

fn setup() -> Setup {
    Setup {
        databases: vec![schema()],
        ..Setup::default()
    }
}

fn play(implementation: Implementation) {
    let server = Server::start(implementation, &setup()).expect("a server");
    transact(
        &server,
        &[
            json!({"op": "insert", "table": "Port", "uuid-name": "p", "row": {"number": 1, "peer": ["named-uuid", "q"]}}),
            json!({"op": "insert", "table": "Port", "uuid-name": "q", "row": {"number": 2}}),
            json!({"op": "insert", "table": "Node", "row": {"name": "a", "kind": "x", "online": true,
                "ports": ["set", [["named-uuid", "p"], ["named-uuid", "q"]]], "notes": ["map", [["k", "v"]]]}}),
            json!({"op": "insert", "table": "Node", "row": {"name": "b"}}),
        ],
    );
    let folder = tempfile::tempdir().expect("a directory");
    let backup = folder.path().join("backup");
    let written = client(&server, &["backup"], Stdio::null());
    assert!(written.status.success());
    std::fs::write(&backup, written.stdout).expect("a backup");
    // Ephemeral columns are not part of a backup.
    let expected = dump(&server).replace("true   ", "false  ");
    // One row is changed and one is deleted. One row is new, and has the same name as a row of the
    // backup.
    transact(
        &server,
        &[
            json!({"op": "update", "table": "Node", "where": [["name", "==", "a"]], "row": {"name": "c", "notes": ["map", []], "ports": ["set", []]}}),
            json!({"op": "delete", "table": "Node", "where": [["name", "==", "b"]]}),
            json!({"op": "insert", "table": "Node", "row": {"name": "b"}}),
        ],
    );
    let kept = restore(&server, &backup, &["--keep-uuids"]);
    assert!(kept.status.success(), "{kept:?}");
    assert!(kept.stderr.is_empty(), "{kept:?}");
    assert_eq!(dump(&server), expected, "{implementation:?}");
    // Restoring twice gives the same result.
    assert!(
        restore(&server, &backup, &["--keep-uuids"])
            .status
            .success()
    );
    assert_eq!(dump(&server), expected, "{implementation:?}");
    let empty = Server::start(implementation, &setup()).expect("a server");
    assert!(restore(&empty, &backup, &["--keep-uuids"]).status.success());
    assert_eq!(dump(&empty), expected, "{implementation:?}");
    // Without the option, rows get new UUIDs. The warning about this is only shown on a terminal,
    // not to a script.
    let renewed = restore(&empty, &backup, &[]);
    assert!(renewed.status.success() && renewed.stderr.is_empty());
    assert_ne!(dump(&empty), expected);
}

#[test]
fn rows_get_the_uuids_of_the_backup() {
    play(Implementation::Corvid);
}

#[test]
fn rows_get_the_uuids_of_the_backup_on_the_reference() {
    if Implementation::Reference.server_binary().is_ok() {
        play(Implementation::Reference);
    }
}

#[test]
fn another_value_in_an_immutable_column_is_refused_and_nothing_changes() {
    let server = Server::start(Implementation::Corvid, &setup()).expect("a server");
    let uuid = "11111111-2222-4333-8444-555555555555";
    let insert = |kind: &str| json!({"op": "insert", "table": "Node", "uuid": uuid, "row": {"name": "a", "kind": kind}});
    transact(&server, &[insert("x")]);
    let folder = tempfile::tempdir().expect("a directory");
    let backup = folder.path().join("backup");
    let written = client(&server, &["backup"], Stdio::null()).stdout;
    std::fs::write(&backup, written).expect("a backup");
    transact(
        &server,
        &[json!({"op": "delete", "table": "Node", "where": []})],
    );
    transact(&server, &[insert("y")]);
    let before = dump(&server);
    let refused = restore(&server, &backup, &["--keep-uuids"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(
        said.contains(uuid) && said.contains("column kind, which is immutable"),
        "{said}"
    );
    assert_eq!(dump(&server), before);
}

#[test]
fn a_terminal_shows_that_rows_get_new_uuids() {
    let server = Server::start(Implementation::Corvid, &setup()).expect("a server");
    let folder = tempfile::tempdir().expect("a directory");
    let backup = folder.path().join("backup");
    let written = client(&server, &["backup"], Stdio::null()).stdout;
    std::fs::write(&backup, written).expect("a backup");
    let line = format!(
        "{} restore unix:{} D < {}",
        binary::bin("ovsdb-client").display(),
        server.socket().display(),
        backup.display()
    );
    let output = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .stdin(Stdio::null())
        .output()
        .expect("script of util-linux");
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{shown}");
    assert!(shown.contains("warning: all rows get new UUIDs"), "{shown}");
}
