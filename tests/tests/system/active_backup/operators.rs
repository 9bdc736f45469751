//! The operators' commands for a backup, and its status.

use std::io::Read;
use std::os::unix::net::UnixListener;

use corvid_tests::ledger::{self, DATABASE};
use corvid_tests::server::Implementation::{self, Corvid, Reference};
use corvid_tests::{http, peer};
use serde_json::{Value, json};

use super::node::{Node, TIME_LIMIT, wait_for};

#[test]
fn commands_answer_as_the_reference_does() {
    let schema = ledger::schema(1);
    let ours = told(Corvid, &schema);
    for line in ["state: backup", "exclude: Ledger:Filler", "state: active"] {
        assert!(
            ours.iter().any(|told| told.contains(line)),
            "{line}: {ours:?}"
        );
    }
    if Reference.server_binary().is_ok() {
        assert_eq!(ours, told(Reference, &schema));
    } else {
        peer::say_skipped("commands of replication beside the reference: it is not installed");
    }
}

/// Returns the replies of a server to all commands. The lines of the status are sorted, because
/// their order is that of newer releases, except for the state (63).
fn told(implementation: Implementation, schema: &Value) -> Vec<String> {
    let active = Node::started(Corvid, schema, &[]);
    let node = Node::started(implementation, schema, &[]);
    let mut told = Vec::new();
    let mut ask = |line: &str| {
        let answer = node.control(&line.replace("ACTIVE", &active.remote()));
        let answer = answer.replace(&active.remote(), "ACTIVE");
        let mut lines: Vec<&str> = answer.lines().filter(|line| !line.is_empty()).collect();
        lines.sort_unstable();
        told.push(format!("{line}: {}", lines.join("|")));
    };
    for line in [
        "sync-status",
        "get-active-ovsdb-server",
        "get-sync-exclude-tables",
        "connect-active-ovsdb-server",
        "connect-active-ovsdb-server x",
        "disconnect-active-ovsdb-server",
        "disconnect-active-ovsdb-server x",
        "set-active-ovsdb-server",
        "set-active-ovsdb-server a b",
        "get-active-ovsdb-server x",
        "sync-status x",
        "set-active-ovsdb-server-probe-interval",
        "set-active-ovsdb-server-probe-interval soon",
        "set-active-ovsdb-server-probe-interval 0x7",
        "set-active-ovsdb-server-probe-interval 99999999999",
        "set-active-ovsdb-server-probe-interval +5000",
        "set-active-ovsdb-server-probe-interval -1",
        "set-active-ovsdb-server-probe-interval 5000",
        "set-active-ovsdb-server ACTIVE",
        "get-active-ovsdb-server",
        "sync-status",
        "set-sync-exclude-tables a b",
        "get-sync-exclude-tables x",
        "connect-active-ovsdb-server",
    ] {
        ask(line);
    }
    let replicates = || node.control("sync-status").contains("replicating: ");
    wait_for("it replicates", &[&node], replicates);
    for line in [
        "sync-status",
        "set-active-ovsdb-server-probe-interval 0",
        // A source that is set now is only followed after the next connect command.
        "set-active-ovsdb-server tcp:127.0.0.1:1",
        "get-active-ovsdb-server",
        "sync-status",
        "set-active-ovsdb-server ACTIVE",
        "set-sync-exclude-tables Ledger:Filler",
        "get-sync-exclude-tables",
    ] {
        ask(line);
    }
    wait_for("it replicates", &[&node], replicates);
    for line in [
        "sync-status",
        "disconnect-active-ovsdb-server",
        "sync-status",
        "get-active-ovsdb-server",
    ] {
        ask(line);
    }
    // Newer releases and our server still name databases that were backups before.
    for line in &mut told {
        *line = line.replace(
            &format!("database: {DATABASE}|state: active"),
            "state: active",
        );
    }
    told
}

#[test]
fn metrics_show_the_state_of_a_backup() {
    let schema = ledger::schema(1);
    let mut active = Node::new(Corvid, &schema, &[]);
    let pages = tempfile::tempdir().expect("a directory");
    let socket = pages.path().join("http");
    let backup = Node::started(
        Corvid,
        &schema,
        &[
            format!("--sync-from={}", active.remote()),
            format!("--metrics-listen=unix:{}", socket.display()),
        ],
    );
    let get = |page: &str| http::get(&socket, page, "*/*").expect("an answer");
    let sample = |state: &str| {
        format!("corvid_database_replication_state{{database=\"Ledger\",state=\"{state}\"}} ")
    };
    let stands = |state: &str| get("/metrics").body.contains(&(sample(state) + "1\n"));
    assert!(stands("connecting"));
    let page = get("/readyz");
    let why =
        "[-]replication:Ledger failed: this backup has not received its source's contents yet";
    assert!(
        page.status == 503 && page.body.contains(why),
        "{}",
        page.body
    );
    assert_eq!(get("/readyz?exclude=replication").status, 200);
    active.process.start().expect("a server");
    wait_for("it replicates", &[&backup], || stands("replicating"));
    assert_eq!(get("/readyz").status, 200);
    active.process.kill();
    wait_for("it has lost its source", &[&backup], || stands("lost"));
    assert_eq!(get("/readyz").status, 200, "what it holds can be read");
    assert_eq!(backup.control("disconnect-active-ovsdb-server"), "");
    assert!(!get("/metrics").body.contains(&sample("lost")));
    assert_eq!(get("/readyz").status, 200);
}

#[test]
fn a_silent_source_is_probed_and_disconnected() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("silent");
    let listener = UnixListener::bind(&path).expect("a socket");
    listener.set_nonblocking(true).expect("set");
    let options = [format!("--sync-from=unix:{}", path.display())];
    let backup = Node::started(Corvid, &ledger::schema(1), &options);
    let mut calls = listener.incoming();
    let mut call = None;
    wait_for("it calls", &[&backup], || {
        call = calls.next().and_then(Result::ok);
        call.is_some()
    });
    assert_eq!(
        backup.control("set-active-ovsdb-server-probe-interval 1000"),
        ""
    );
    let mut source = call.expect("a connection");
    source.set_nonblocking(false).expect("set");
    source.set_read_timeout(Some(TIME_LIMIT)).expect("set");
    let mut said = String::new();
    source.read_to_string(&mut said).expect("it hangs up");
    assert_eq!(said.matches(r#""method":"echo""#).count(), 1, "{said}");
    let log = backup.process.log();
    let why = "no response to inactivity probe after ";
    let rest = log.split_once(why).expect("it says why").1;
    let seconds = rest.split(' ').next().expect("a word").parse::<f64>();
    // The limit is a minute unless another interval is set.
    assert!(seconds.is_ok_and(|seconds| seconds < 60.0), "{log}");
}

#[test]
fn two_servers_that_replicate_each_other_are_both_backups() {
    let schema = ledger::schema(1);
    for implementation in [Corvid, Reference] {
        if implementation.server_binary().is_err() {
            peer::say_skipped("the reference's servers that follow each other: not installed");
            continue;
        }
        let one = Node::started(implementation, &schema, &[]);
        let two = Node::backup(implementation, &schema, &one);
        one.follow(&two);
        for node in [&one, &two] {
            wait_for("it replicates", &[&one, &two], || {
                node.control("sync-status").contains("replicating: ")
            });
            let insertion = json!({"op": "insert", "table": "Filler", "row": {}});
            assert_eq!(node.transact(&insertion)["error"], "not allowed");
        }
    }
}
