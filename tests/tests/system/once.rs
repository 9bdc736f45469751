//! Transactions that are executed once although their connection or their server is lost: the
//! memory of a restarted server, files that name commits, and `ovsdb-client transact`.

use std::path::Path;
use std::process::Command;

use corvid_tests::client::Client;
use corvid_tests::process::Process;
use corvid_tests::server::Implementation;
use corvid_tests::{binary, database_file, limited, losing_proxy};
use serde_json::{Value, json};

const ZERO: &str = "00000000-0000-0000-0000-000000000000";

fn database(folder: &Path) {
    let schema = json!({"name": "D", "tables": {"T": {"isRoot": true, "columns": {"n": {"type": "integer"}}}}});
    database_file::create(&folder.join("D.db"), &schema).expect("a file");
}

fn server(implementation: Implementation, folder: &Path) -> Process {
    let program = implementation.server_binary().expect("built");
    let mut server = Process::new(&program, folder, &["D.db".into()]);
    server.start().expect("it starts");
    server
}

fn id(number: u32) -> String {
    format!("{number:08x}-0000-4a00-9c66-2f0d8e5b7a11")
}

/// Sends a transaction that inserts a row with this number, and reads its comment.
fn once(client: &mut Client, number: u32, after: &Value) -> Value {
    let operations = json!(["D", {"op": "insert", "table": "T", "row": {"n": number}},
        {"op": "comment", "comment": "a\nb"}]);
    let reply = client.call("transact_once", &json!([id(number), after, operations]));
    reply.expect("a reply")
}

fn rows(client: &mut Client) -> usize {
    let select = json!(["D", {"op": "select", "table": "T", "where": []}]);
    let reply = client.call("transact", &select).expect("a reply");
    reply["result"][0]["rows"].as_array().expect("rows").len()
}

/// The id of the last commit.
fn last_commit(client: &mut Client) -> String {
    let params = json!(["D", "last", {}, ZERO]);
    let reply = client.call("monitor_cond_since", &params);
    let reply = reply.expect("a reply");
    client
        .call("monitor_cancel", &json!(["last"]))
        .expect("a reply");
    reply["result"][1].as_str().expect("an id").to_owned()
}

fn restart(server: &mut Process) -> Client {
    server.kill();
    server.start().expect("it starts again");
    server.connect().expect("a connection")
}

#[test]
fn a_restarted_server_knows_what_it_has_executed() {
    let dir = tempfile::tempdir().expect("a directory");
    database(dir.path());
    let mut server = server(Implementation::Corvid, dir.path());
    let mut client = server.connect().expect("a connection");
    let first = once(&mut client, 1, &Value::Null)["result"].clone();
    assert!(first[0]["uuid"].is_array(), "{first}");
    let seen = last_commit(&mut client);
    let second = once(&mut client, 2, &Value::Null)["result"].clone();
    for is_compacted in [false, true, true] {
        if is_compacted {
            server
                .control("ovsdb-server/compact", &[])
                .expect("compacted");
        }
        let mut client = restart(&mut server);
        // Its results are told, whatever the client has seen.
        for after in [Value::Null, json!(seen), json!(ZERO)] {
            assert_eq!(once(&mut client, 1, &after)["result"], first);
            assert_eq!(once(&mut client, 2, &after)["result"], second);
        }
        // Nothing tells whether it was executed before this commit, which nobody knows.
        let unknown = once(&mut client, 9, &json!(id(77)));
        assert_eq!(unknown["error"], "canceled", "{unknown}");
        assert_eq!(once(&mut client, 9, &json!(ZERO))["error"], "canceled");
        assert_eq!(rows(&mut client), 2);
    }
    // It was certainly not executed since the first commit.
    let mut client = restart(&mut server);
    let third = once(&mut client, 3, &json!(seen));
    assert!(third["result"][0]["uuid"].is_array(), "{third}");
    assert_eq!(rows(&mut client), 3);
    server.kill();
    look_with_tools_of_the_reference(dir.path(), 3);
}

/// A first copy of a transaction may lie unread in the socket of a stopped relay, while another one
/// is executed.
#[test]
fn a_restarted_member_knows_that_it_has_executed_a_transaction() {
    let dir = tempfile::tempdir().expect("a directory");
    database(dir.path());
    let tool = binary::bin("ovsdb-tool");
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&tool);
        let command = command.args(arguments).current_dir(dir.path());
        let output = limited::output(command).expect("it runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    let address = format!("unix:{}", dir.path().join("raft").display());
    run(&["create-cluster", "cluster.db", "D.db", &address]);
    let program = Implementation::Corvid.server_binary().expect("built");
    let mut server = Process::new(&program, dir.path(), &["cluster.db".into()]);
    server.start().expect("it starts");
    let mut client = server.connect().expect("a connection");
    // The last commit of the snapshot that the file begins with.
    let first = json!(last_commit(&mut client));
    assert_eq!(once(&mut client, 1, &Value::Null)["error"], Value::Null);
    let seen = json!(last_commit(&mut client));
    assert_eq!(once(&mut client, 2, &Value::Null)["error"], Value::Null);
    client = restart(&mut server);
    assert_eq!(once(&mut client, 4, &first)["error"], Value::Null);
    for is_compacted in [false, true, true] {
        if is_compacted {
            server
                .control("ovsdb-server/compact", &[])
                .expect("compacted");
        }
        client = restart(&mut server);
        for number in [1, 2] {
            for after in [&Value::Null, &seen, &json!(id(77))] {
                assert_eq!(once(&mut client, number, after)["error"], "canceled");
            }
        }
        // Nothing tells whether it was executed before this commit, which nobody knows.
        assert_eq!(once(&mut client, 9, &json!(id(77)))["error"], "canceled");
        assert_eq!(rows(&mut client), 3);
    }
    // It was certainly not executed since these commits.
    assert_eq!(once(&mut client, 3, &seen)["error"], Value::Null);
    assert_eq!(once(&mut client, 5, &first)["error"], Value::Null);
    assert_eq!(rows(&mut client), 5);
    server.kill();

    // The records of a standalone file with these rows do not name their commits.
    run(&["cluster-to-standalone", "alone.db", "cluster.db"]);
    let mut server = Process::new(&program, dir.path(), &["alone.db".into()]);
    server.start().expect("it starts");
    let mut client = server.connect().expect("a connection");
    assert_eq!(rows(&mut client), 5);
    assert_eq!(once(&mut client, 3, &seen)["error"], "canceled");
    assert_eq!(rows(&mut client), 5);
    server.kill();
    if let Some(tool) = binary::reference("ovsdb-tool") {
        for file in ["cluster.db", "alone.db"] {
            let mut command = Command::new(&tool);
            let command = command.args(["show-log", file]).current_dir(dir.path());
            let output = limited::output(command).expect("it runs");
            assert!(output.status.success(), "{output:?}");
        }
    }
}

/// The first record of a file is read in pieces if it is long.
#[test]
fn a_restarted_server_knows_a_long_first_transaction() {
    let dir = tempfile::tempdir().expect("a directory");
    let schema = json!({"name": "D", "tables": {"T": {"isRoot": true, "columns": {"s": {"type": "string"}}}}});
    database_file::create(&dir.path().join("D.db"), &schema).expect("a file");
    let mut server = server(Implementation::Corvid, dir.path());
    let mut client = server.connect().expect("a connection");
    let text = "long".repeat(1 << 20);
    let insert = json!(["D", {"op": "insert", "table": "T", "row": {"s": format!("{text}!")}},
        {"op": "insert", "table": "T", "row": {"s": text}}]);
    let params = json!([id(1), Value::Null, insert]);
    let sent = |client: &mut Client| client.call("transact_once", &params).expect("a reply");
    let first = sent(&mut client)["result"].clone();
    assert!(first[0]["uuid"].is_array(), "{first}");
    for _ in 0..2 {
        client = restart(&mut server);
        assert_eq!(sent(&mut client)["result"], first);
        assert_eq!(rows(&mut client), 2);
    }
}

/// The client has been told that nothing changed. A late copy after a restart would change
/// something.
#[test]
fn a_restarted_server_knows_that_a_repeated_transaction_changed_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    database(dir.path());
    let mut server = server(Implementation::Corvid, dir.path());
    let mut client = server.connect().expect("a connection");
    once(&mut client, 1, &Value::Null);
    let seen = json!(last_commit(&mut client));
    let update = |client: &mut Client, number: u32, after: &Value| {
        let operations = json!(["D", {"op": "update", "table": "T", "where": [["n", "==", 5]],
            "row": {"n": 6}}]);
        let reply = client.call("transact_once", &json!([id(number), after, operations]));
        reply.expect("a reply")["result"].clone()
    };
    let length = || {
        std::fs::metadata(dir.path().join("D.db"))
            .expect("a file")
            .len()
    };
    let before = length();
    assert_eq!(update(&mut client, 2, &Value::Null), json!([{"count": 0}]));
    assert_eq!(length(), before, "a first copy needs no record");
    assert_eq!(update(&mut client, 3, &seen), json!([{"count": 0}]));
    assert!(length() > before);
    once(&mut client, 5, &Value::Null);
    for is_compacted in [false, true] {
        if is_compacted {
            server
                .control("ovsdb-server/compact", &[])
                .expect("compacted");
        }
        client = restart(&mut server);
        for after in [&Value::Null, &seen] {
            assert_eq!(update(&mut client, 3, after), json!([{"count": 0}]));
        }
        // The ids of commits are as before: the record counts as one of them.
        assert_eq!(once(&mut client, 5, &seen)["error"], Value::Null);
        assert_eq!(rows(&mut client), 2);
    }
    assert_eq!(
        update(&mut client, 2, &seen),
        json!([{"count": 1}]),
        "nobody knows its first copy any more"
    );
    server.kill();
    look_with_tools_of_the_reference(dir.path(), 2);
}

/// Other clients' transactions have no ids, and their commits no lines in the file.
#[test]
fn a_restarted_server_knows_commits_without_ids() {
    let dir = tempfile::tempdir().expect("a directory");
    let schema = |version: &str| {
        json!({"name": "D", "version": version, "tables": {"T": {"isRoot": true, "columns": {
            "n": {"type": "integer"}, "e": {"type": "integer", "ephemeral": true}}}}})
    };
    database_file::create(&dir.path().join("D.db"), &schema("1.0.0")).expect("a file");
    let mut server = server(Implementation::Corvid, dir.path());
    let mut client = server.connect().expect("a connection");
    let mut number = 1;
    once(&mut client, number, &Value::Null);
    let mut seen = Vec::new();
    for change in ["nothing", "a compaction", "a conversion", "another start"] {
        for _ in 0..3 {
            let insert = json!(["D", {"op": "insert", "table": "T", "row": {"n": 7}}]);
            client.call("transact", &insert).expect("a reply");
            seen.push(last_commit(&mut client));
            // This commit has no record.
            let ephemeral =
                json!(["D", {"op": "update", "table": "T", "where": [], "row": {"e": seen.len()}}]);
            client.call("transact", &ephemeral).expect("a reply");
        }
        match change {
            "a compaction" => {
                let done = server.control("ovsdb-server/compact", &[]);
                done.expect("compacted");
            }
            "a conversion" => {
                let params = json!(["D", schema("2.0.0")]);
                let reply = client.call("convert", &params).expect("a reply");
                assert!(reply["error"].is_null(), "{reply}");
            }
            _ => {}
        }
        client = restart(&mut server);
        if change == "a conversion" {
            // The records of earlier commits are gone, so nothing can be said.
            for commit in seen.drain(..) {
                number += 1;
                let unknown = once(&mut client, number, &json!(commit));
                assert_eq!(unknown["error"], "canceled", "{commit}: {unknown}");
            }
            let last = last_commit(&mut client);
            number += 1;
            once(&mut client, number, &json!(last));
        }
        for commit in &seen {
            number += 1;
            let done = once(&mut client, number, &json!(commit));
            assert!(
                done["result"][0]["uuid"].is_array(),
                "{change}: {commit}: {done}"
            );
        }
    }
    assert_eq!(seen.len(), 3, "those after the conversion");
}

/// The reference's tools and server read the file, with the lines as comments.
fn look_with_tools_of_the_reference(folder: &Path, count: usize) {
    let Some(tool) = binary::reference("ovsdb-tool") else {
        return;
    };
    let log = limited::output(Command::new(tool).arg("show-log").arg(folder.join("D.db")));
    let log = log.expect("it runs");
    let text = String::from_utf8_lossy(&log.stdout);
    assert!(log.status.success(), "{log:?}");
    assert!(text.contains("corvid: txn="), "{text}");
    let mut theirs = server(Implementation::Reference, folder);
    let mut client = theirs.connect().expect("a connection");
    assert_eq!(rows(&mut client), count);
    theirs.stop().expect("it stops");
}

#[test]
fn a_server_without_a_history_executes_transactions_with_ids() {
    let dir = tempfile::tempdir().expect("a directory");
    database(dir.path());
    let program = Implementation::Corvid.server_binary().expect("built");
    let options = ["--no-standalone-history".into(), "D.db".into()];
    let mut server = Process::new(&program, dir.path(), &options);
    server.start().expect("it starts");
    let mut client = server.connect().expect("a connection");
    let insert = json!(["D", {"op": "insert", "table": "T", "row": {"n": 0}}]);
    client.call("transact", &insert).expect("a reply");
    // The id of that commit is zero, which proves nothing about later transactions.
    assert_eq!(last_commit(&mut client), ZERO);
    let first = once(&mut client, 1, &Value::Null)["result"].clone();
    assert!(first[0]["uuid"].is_array(), "{first}");
    assert_eq!(once(&mut client, 1, &json!(ZERO))["result"], first);
    assert_eq!(once(&mut client, 2, &json!(ZERO))["error"], "canceled");
    assert_eq!(rows(&mut client), 2);
}

#[test]
fn a_comment_of_a_client_speaks_for_no_transaction() {
    let dir = tempfile::tempdir().expect("a directory");
    database(dir.path());
    let mut server = server(Implementation::Corvid, dir.path());
    let mut client = server.connect().expect("a connection");
    let result = once(&mut client, 1, &Value::Null)["result"].clone();
    let commit = last_commit(&mut client);
    // Everybody sees the id of the commit. A forged line would replace its result.
    let forged = format!("corvid: txn={commit} results=7");
    let operations = json!(["D", {"op": "insert", "table": "T", "row": {"n": 5}},
        {"op": "comment", "comment": forged}]);
    client.call("transact", &operations).expect("a reply");
    let mut client = restart(&mut server);
    assert_eq!(once(&mut client, 1, &json!(ZERO))["result"], result);
}

#[test]
fn ovsdb_client_finds_out_what_became_of_its_transaction() {
    for implementation in [Implementation::Corvid, Implementation::Reference] {
        if implementation == Implementation::Reference
            && binary::reference("ovsdb-server").is_none()
        {
            continue;
        }
        let dir = tempfile::tempdir().expect("a directory");
        database(dir.path());
        let server = server(implementation, dir.path());
        let socket = dir.path().join("proxy");
        // The second connection asks, and its reply is lost too.
        losing_proxy::start(&socket, &server.socket(), 2);
        let transaction = r#"["D",{"op":"insert","table":"T","row":{"n":1}}]"#;
        let remote = format!("unix:{}", socket.display());
        let mut command = Command::new(binary::bin("ovsdb-client"));
        let output = limited::output(command.args(["transact", &remote, transaction]));
        let output = output.expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout);
        let mut client = server.connect().expect("a connection");
        assert_eq!(rows(&mut client), 1);
        match implementation {
            Implementation::Corvid => {
                assert!(said.contains(r#"[{"uuid":["uuid""#), "{output:?}");
            }
            Implementation::Reference => {
                let error = String::from_utf8_lossy(&output.stderr);
                assert!(!output.status.success(), "{output:?}");
                assert!(
                    error.contains("transaction failed (End of file)"),
                    "{error}"
                );
            }
        }
    }
}
