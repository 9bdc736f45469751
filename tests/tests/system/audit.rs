//! The audit log (`--audit-log`): its records, the count of missing records, and its rotation.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use corvid_tests::client::Client;
use corvid_tests::http;
use corvid_tests::server::{Implementation, Server, Setup};
use serde_json::{Value, json};

/// The time limit for any event on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

fn setup(options: &[&str]) -> Setup {
    let conf = json!({"name": "Conf", "tables": {
        "Top": {"isRoot": true, "columns": {
            "remotes": {"type": {"key": {"type": "uuid", "refTable": "Remote"}, "min": 0, "max": "unlimited"}}}},
        "Remote": {"columns": {"target": {"type": "string"}, "role": {"type": "string"},
            "read_only": {"type": {"key": "boolean", "min": 0}}}}}});
    let data = json!({"name": "Data", "version": "1.0.0", "tables": {
        "T": {"isRoot": true, "columns": {
            "n": {"type": "integer"}, "secret": {"type": "string"},
            "tags": {"type": {"key": "integer", "min": 0, "max": "unlimited"}},
            "names": {"type": {"key": "string", "value": "string", "min": 0, "max": "unlimited"}}}},
        "Noise": {"isRoot": true, "columns": {"n": {"type": "integer"}}},
        "RBAC_Role": {"isRoot": true, "columns": {"name": {"type": "string"},
            "permissions": {"type": {"key": "string", "value": {"type": "uuid", "refTable": "RBAC_Permission"},
                "min": 0, "max": "unlimited"}}}},
        "RBAC_Permission": {"isRoot": true, "columns": {"table": {"type": "string"},
            "authorization": {"type": {"key": "string", "min": 0, "max": "unlimited"}},
            "insert_delete": {"type": "boolean"},
            "update": {"type": {"key": "string", "min": 0, "max": "unlimited"}}}}}});
    Setup {
        databases: vec![conf, data],
        options: options.iter().map(|&option| option.to_owned()).collect(),
        ..Setup::default()
    }
}

fn start(options: &[&str]) -> Server {
    Server::start(Implementation::Corvid, &setup(options)).expect("a server")
}

/// Returns the results of a transaction.
fn transact(client: &mut Client, params: &Value) -> Value {
    let reply = client.call("transact", params).expect("a reply");
    assert_eq!(reply["error"], Value::Null, "{reply}");
    reply["result"].clone()
}

/// Waits until an audit log has at least `count` records. Returns its records.
fn records(path: &Path, count: usize) -> Vec<Value> {
    let deadline = Instant::now() + LIMIT;
    loop {
        let text = fs::read_to_string(path).unwrap_or_default();
        if text.ends_with('\n') && text.lines().count() >= count {
            let read = |line| serde_json::from_str(line).expect("an object");
            return text.lines().map(read).collect();
        }
        assert!(Instant::now() < deadline, "{count} records wanted:\n{text}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_commit_is_recorded_with_client_changes_and_transaction() {
    let server = start(&["--audit-log=<dir>/audit.log"]);
    let path = server.dir().join("audit.log");
    let mut client = server.connect().expect("a connection");
    let insert = json!({"op": "insert", "table": "T", "row": {
        "n": 1, "tags": ["set", [1, 2]], "names": ["map", [["a", "\"b\"\n"]]]}});
    let result = transact(
        &mut client,
        &json!(["Data", insert, {"op": "comment", "comment": "first"}]),
    );
    let uuid = result[0]["uuid"][1].clone();
    let everything: Vec<i64> = (0..100).collect();
    for operation in [
        json!({"op": "update", "table": "T", "where": [], "row": {"n": 2, "tags": ["set", everything]}}),
        json!({"op": "mutate", "table": "T", "where": [], "mutations": [
            ["tags", "delete", 7], ["tags", "insert", ["set", [500, 501]]], ["names", "insert", ["map", [["c", "d"]]]]]}),
        // Transactions that only read or change nothing are not recorded.
        json!({"op": "select", "table": "T", "where": []}),
        json!({"op": "update", "table": "T", "where": [], "row": {"n": 2}}),
        json!({"op": "delete", "table": "T", "where": []}),
    ] {
        transact(&mut client, &json!(["Data", operation]));
    }
    let told = records(&path, 4);
    assert_eq!(told.len(), 4, "{told:?}");
    for record in &told {
        let time = record["time"].as_str().expect("a time");
        assert!(time.len() == 24 && time.ends_with('Z'), "{time}");
        assert_eq!(record["outcome"], "committed");
        assert_eq!(record["database"], "Data");
        let who = &record["who"];
        assert!(who["peer"].as_str().expect("a peer").starts_with("unix#"));
        let remote = format!("punix:{}", server.socket().display());
        assert_eq!(who["remote"], remote);
        assert_eq!(who["session"], told[0]["who"]["session"]);
        assert_eq!(record["rows"][0]["uuid"], uuid);
        assert_eq!(record["rows"][0]["table"], "T");
    }
    assert_eq!(told[0]["comment"], "first");
    let names = json!(["map", [["a", "\"b\"\n"]]]);
    assert_eq!(
        told[0]["rows"],
        json!([{"table": "T", "uuid": uuid, "op": "insert",
            "after": {"n": 1, "names": names, "tags": ["set", [1, 2]]}}])
    );
    assert_eq!(told[1]["comment"], Value::Null);
    // For a large column, the record contains the added and removed elements, not all elements.
    let added: Vec<i64> = std::iter::once(0).chain(3..100).collect();
    assert_eq!(
        told[1]["rows"][0]["columns"],
        json!({"n": {"before": 1, "after": 2},
            "tags": {"removed": ["set", []], "added": ["set", added]}})
    );
    assert_eq!(
        told[2]["rows"][0]["columns"],
        json!({"names": {"before": names, "after": ["map", [["a", "\"b\"\n"], ["c", "d"]]]},
            "tags": {"removed": ["set", [7]], "added": ["set", [500, 501]]}})
    );
    assert_eq!(told[3]["rows"][0]["op"], "delete");
    assert_eq!(told[3]["rows"][0]["before"]["n"], 2);

    // The id is the same that clients get.
    let monitor = json!(["Data", "m", {"T": [{"columns": ["n"]}]}, told[2]["txn"]]);
    let reply = client
        .call("monitor_cond_since", &monitor)
        .expect("a reply");
    assert_eq!(reply["result"][1], told[3]["txn"], "{reply}");

    let mode = fs::metadata(&path).expect("a file").permissions().mode();
    assert_eq!(mode & 0o137, 0, "nobody else may read it: {mode:o}");
}

#[test]
fn refused_transactions_are_recorded() {
    let server = start(&[
        "--audit-log=<dir>/audit.log",
        "--audit-exclude=Conf:Top,Conf:Remote",
        "--remote=db:Conf,Top,remotes",
    ]);
    let path = server.dir().join("audit.log");
    let at = |name: &str| server.dir().join(name);
    let remote = |name: &str| format!("punix:{}", at(name).display());
    let mut client = server.connect().expect("a connection");
    let top = json!({"remotes": ["set", [["named-uuid", "a"], ["named-uuid", "b"]]]});
    transact(
        &mut client,
        &json!(["Conf",
            {"op": "insert", "table": "Top", "row": top},
            {"op": "insert", "table": "Remote", "uuid-name": "a", "row": {"target": remote("role.sock"), "role": "r"}},
            {"op": "insert", "table": "Remote", "uuid-name": "b", "row": {"target": remote("ro.sock"), "read_only": true}}]),
    );
    let insert = json!({"op": "insert", "table": "T", "row": {"n": 1}});
    let mut limited = Client::connect_within(&at("role.sock"), LIMIT).expect("a connection");
    let comment = json!({"op": "comment", "comment": "let me in"});
    transact(&mut limited, &json!(["Data", comment, insert]));
    let mut reader = Client::connect_within(&at("ro.sock"), LIMIT).expect("a connection");
    transact(&mut reader, &json!(["Data", insert]));
    // Other failures do not count as rejections.
    transact(&mut reader, &json!(["Data", {"op": "abort"}]));
    let schema = json!({"name": "Data", "version": "2.0.0", "tables": {"T": {"columns": {"n": {"type": "integer"}}}}});
    let convert = json!(["Data", schema]);
    let refused = limited.call("convert", &convert).expect("a reply");
    assert_eq!(refused["error"]["error"], "permission error");
    let reply = client.call("convert", &convert).expect("a reply");
    assert_eq!(reply["error"], Value::Null, "{reply}");

    let told = records(&path, 4);
    let brief: Vec<(&Value, &Value)> = told
        .iter()
        .map(|record| (&record["outcome"], &record["error"]))
        .collect();
    assert_eq!(
        json!(brief),
        json!([
            ["denied", "permission error"],
            ["denied", "not allowed"],
            ["denied", "permission error"],
            ["converted", null]
        ])
    );
    assert_eq!(told[0]["who"]["role"], "r");
    assert_eq!(told[0]["who"]["remote"], remote("role.sock"));
    assert_eq!(told[0]["comment"], "let me in");
    assert_eq!(
        told[0]["details"],
        "RBAC rules for client \"(null)\" role \"r\" prohibit row insertion into table \"T\"."
    );
    assert_eq!(
        told[0]["operations"],
        json!([{"op": "comment", "table": ""}, {"op": "insert", "table": "T"}])
    );
    assert_eq!(told[1]["who"]["remote"], remote("ro.sock"));
    assert_eq!(
        told[2]["operations"],
        json!([{"op": "convert", "table": ""}])
    );
    assert_eq!(told[3]["version"], "2.0.0");
}

#[test]
fn excluded_columns_are_left_out_and_counted() {
    let server = start(&[
        "--audit-log=<dir>/audit.log",
        "--audit-exclude=Data:Noise,Data:T:secret",
        "--audit-exclude=Data:Later",
    ]);
    let mut client = server.connect().expect("a connection");
    let noise = json!({"op": "insert", "table": "Noise", "row": {"n": 1}});
    let secret = json!({"op": "insert", "table": "T", "row": {"n": 1, "secret": "hush"}});
    let change =
        json!({"op": "update", "table": "T", "where": [], "row": {"n": 2, "secret": "quiet"}});
    transact(&mut client, &json!(["Data", noise]));
    transact(&mut client, &json!(["Data", noise, secret]));
    transact(&mut client, &json!(["Data", change]));
    let told = records(&server.dir().join("audit.log"), 2);
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(told[0]["excluded"], 1);
    assert_eq!(told[0]["rows"].as_array().map(Vec::len), Some(1));
    assert_eq!(told[0]["rows"][0]["after"], json!({"n": 1}));
    assert_eq!(told[1]["excluded"], Value::Null);
    assert_eq!(
        told[1]["rows"][0]["columns"],
        json!({"n": {"before": 1, "after": 2}})
    );
}

#[test]
fn large_transactions_are_recorded_in_parts() {
    let server = start(&["--audit-log=<dir>/audit.log"]);
    let mut client = server.connect().expect("a connection");
    let mut params = vec![json!("Data")];
    params.extend((0..2500).map(|n| json!({"op": "insert", "table": "T", "row": {"n": n}})));
    transact(&mut client, &Value::from(params));
    let told = records(&server.dir().join("audit.log"), 3);
    let mut rows = 0;
    for (place, record) in told.iter().enumerate() {
        assert_eq!(record["txn"], told[0]["txn"]);
        assert_eq!(
            (&record["part"], &record["parts"]),
            (&json!(place + 1), &json!(3))
        );
        rows += record["rows"].as_array().map_or(0, Vec::len);
    }
    assert_eq!(rows, 2500);
}

#[test]
fn rotation_begins_a_new_file() {
    let server = start(&["--audit-log=<dir>/audit.log"]);
    let path = server.dir().join("audit.log");
    let mut client = server.connect().expect("a connection");
    let insert = json!(["Data", {"op": "insert", "table": "T", "row": {}}]);
    // One is the command that scripts for log rotation call, the other reopens only the audit log.
    for (number, command) in ["vlog/reopen", "ovsdb-server/reopen-audit-log"]
        .iter()
        .enumerate()
    {
        transact(&mut client, &insert);
        let rotated = server.dir().join(format!("audit.log.{number}"));
        fs::rename(&path, &rotated).expect("renamed");
        transact(&mut client, &insert);
        let reply = server.control(command, &[]).expect("a reply");
        assert_eq!(reply["error"], Value::Null);
        // Everything that happened before the command is in the old file.
        let text = fs::read_to_string(&rotated).expect("a file");
        assert_eq!(text.lines().count(), 2, "{text}");
        assert_eq!(fs::read(&path).expect("a new file"), b"");
    }
    transact(&mut client, &insert);
    records(&path, 1);

    let without = start(&[]);
    let reply = without.control("ovsdb-server/reopen-audit-log", &[]);
    let error = &reply.expect("a reply")["error"];
    assert!(error.is_string(), "there is no such command");
}

#[test]
fn a_failing_trail_delays_no_transaction_and_counts_missing_records() {
    let folder = tempfile::tempdir().expect("a directory");
    let link = folder.path().join("audit.log");
    symlink("/dev/full", &link).expect("linked");
    let server = start(&[
        &format!("--audit-log={}", link.display()),
        &format!("--metrics-listen=unix:{}/http", folder.path().display()),
    ]);
    let mut client = server.connect().expect("a connection");
    let insert = json!(["Data", {"op": "insert", "table": "T", "row": {}}]);
    for _ in 0..3 {
        transact(&mut client, &insert);
    }
    let reply = server
        .control("ovsdb-server/reopen-audit-log", &[])
        .expect("a reply");
    assert_eq!(reply["error"], Value::Null);
    let log = server.log();
    let complaint = "write failed (No space left on device)";
    assert!(log.contains("|ovsdb_server|WARN|audit log "), "{log}");
    assert!(log.contains(complaint), "{log}");

    let lost = "corvid_audit_records_dropped_total 3\n";
    let pages = http::get(&folder.path().join("http"), "/metrics", "*/*").expect("an answer");
    assert!(pages.body.contains(lost), "{}", pages.body);

    // There is space again.
    fs::remove_file(&link).expect("removed");
    server.control("vlog/reopen", &[]).expect("a reply");
    transact(&mut client, &insert);
    let told = records(&link, 2);
    assert_eq!(told[0]["outcome"], "lost");
    assert_eq!(told[0]["records"], 3);
    assert_eq!(told[1]["outcome"], "committed");
}

#[test]
fn a_server_does_not_start_without_its_trail() {
    let mut setup = setup(&["--audit-log=<dir>/nowhere/audit.log"]);
    let failed = Server::start(Implementation::Corvid, &setup).expect_err("no server");
    let said = failed.to_string();
    assert!(
        said.contains("nowhere/audit.log: cannot open audit log (No such file or directory)\n"),
        "{said}"
    );
    setup.options = vec!["--audit-exclude=T".to_owned()];
    let failed = Server::start(Implementation::Corvid, &setup).expect_err("no server");
    let said = failed.to_string();
    let expected = "--audit-exclude: expected DB:TABLE or DB:TABLE:COLUMN, not \"T\"\n";
    assert!(said.contains(expected), "{said}");
}

/// Small transactions are executed by any thread that finds the database free. The records must
/// nevertheless be in the order of the commits.
#[test]
fn records_are_in_the_order_of_commits_on_every_executing_thread() {
    const CLIENTS: usize = 6;
    const EACH: usize = 300;
    let server = start(&["--audit-log=<dir>/audit.log"]);
    let mut client = server.connect().expect("a connection");
    let insert = json!({"op": "insert", "table": "T", "row": {"n": 0}});
    transact(&mut client, &json!(["Data", insert]));
    let more = json!({"op": "mutate", "table": "T", "where": [], "mutations": [["n", "+=", 1]]});
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let (server, more) = (&server, &more);
            scope.spawn(move || {
                let mut client = server.connect().expect("a connection");
                for count in 0..EACH {
                    // Some of the commits are durable. They wait for the disk, which delays the
                    // replies after them.
                    let durable = json!({"op": "commit", "durable": (count + number) % 50 == 0});
                    transact(&mut client, &json!(["Data", more, durable]));
                }
            });
        }
    });
    let told = records(&server.dir().join("audit.log"), 1 + CLIENTS * EACH);
    for (n, record) in told.iter().skip(1).enumerate() {
        let change = json!({"n": {"before": n, "after": n + 1}});
        assert_eq!(record["rows"][0]["columns"], change, "record {n}");
    }
    let sessions: BTreeSet<String> = told
        .iter()
        .map(|record| record["who"]["session"].to_string())
        .collect();
    assert_eq!(sessions.len(), 1 + CLIENTS);
}

/// The audit log depends neither on the working directory of a daemon nor on how the daemon ends.
#[test]
fn a_daemon_writes_its_trail_where_it_was_started_until_it_exits() {
    const COMMITS: usize = 200;
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("Data.db");
    corvid_tests::database_file::create(&file, &setup(&[]).databases[1]).expect("a file");
    let program = Implementation::Corvid.server_binary().expect("built");
    let output = Command::new(program)
        .args([
            "--detach",
            "--pidfile=pid",
            "--unixctl=none",
            "--audit-log=audit.log",
            "-vconsole:off",
        ])
        .args(["--remote=punix:socket", "Data.db"])
        .env("OVS_RUNDIR", home.path())
        .current_dir(home.path())
        .output()
        .expect("run");
    assert!(output.status.success(), "{output:?}");
    let mut client =
        Client::connect_within(&home.path().join("socket"), LIMIT).expect("a connection");
    let insert = json!(["Data", {"op": "insert", "table": "T", "row": {"names": ["map", [["k", "x".repeat(10_000)]]]}}]);
    for _ in 0..COMMITS {
        transact(&mut client, &insert);
    }
    let pid = fs::read_to_string(home.path().join("pid")).expect("a pidfile");
    let killed = Command::new("kill").arg(pid.trim()).status();
    assert!(killed.expect("run").success());
    let deadline = Instant::now() + LIMIT;
    while home.path().join("pid").exists() {
        assert!(Instant::now() < deadline, "it does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
    // The last records are written before the pidfile is removed.
    let text = fs::read_to_string(home.path().join("audit.log")).expect("a trail");
    assert_eq!(text.lines().count(), COMMITS);
    assert!(text.ends_with("}\n"));
}
