//! SIGHUP: the server reopens its logs, and rereads certificates and the configuration file. The
//! reference dies of this signal.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use corvid_tests::daemon::Daemon;
use corvid_tests::database_file;
use corvid_tests::process::Process;
use corvid_tests::server::Implementation;
use serde_json::{Map, Value, json};

/// The time limit for any event on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

fn database(folder: &Path, name: &str) {
    let schema = json!({"name": name, "tables": {"T": {"isRoot": true, "columns": {"n": {"type": "integer"}}}}});
    database_file::create(&folder.join(format!("{name}.db")), &schema).expect("a file");
}

/// Writes a configuration file that names these databases.
fn serve(folder: &Path, names: &[&str]) {
    let entries = names.iter().map(|name| (format!("{name}.db"), json!({})));
    let databases: Map<String, Value> = entries.collect();
    let config = json!({"remotes": {"punix:db.sock": null}, "databases": databases});
    fs::write(folder.join("config.json"), config.to_string()).expect("written");
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn logs_certificates_and_the_configuration_file_are_read_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let folder = dir.path();
    for name in ["A", "B"] {
        database(folder, name);
    }
    serve(folder, &["A"]);
    for file in ["key.pem", "cert.pem"] {
        fs::write(folder.join(file), "nothing").expect("written");
    }
    let options = [
        "--config-file=config.json",
        "--audit-log=audit.log",
        "--private-key=key.pem",
        "--certificate=cert.pem",
        "--ca-cert=none",
    ];
    let program = Implementation::Corvid.server_binary().expect("built");
    let mut server = Process::without_remote(&program, folder, &options.map(Into::into));
    server.start().expect("a server");
    let mut client = server.connect().expect("a connection");
    let aware = client.call("set_db_change_aware", &json!([true]));
    assert_eq!(aware.expect("a reply")["error"], Value::Null);
    let insert = json!(["A", {"op": "insert", "table": "T", "row": {}}]);
    client.call("transact", &insert).expect("a reply");
    let lists = |server: &Process| {
        let reply = server.control("ovsdb-server/list-dbs", &[]);
        reply.expect("a reply")["result"].clone()
    };
    for file in ["server.log", "audit.log"] {
        fs::rename(folder.join(file), folder.join(format!("{file}.1"))).expect("renamed");
    }
    fs::write(folder.join("cert.pem"), "nothing, but longer").expect("written");
    serve(folder, &["A", "B"]);
    Daemon::signal(server.pid(), "HUP").expect("sent");
    until("the second database", || {
        lists(&server) == "A\nB\n_Server\n"
    });
    until("new logs", || {
        let new = ["server.log", "audit.log"];
        new.iter().all(|file| folder.join(file).exists())
    });
    let loading = "|ovsdb_server|INFO|loading configuration from";
    until("the configuration in the new log", || {
        server.log().contains(loading)
    });
    until("the certificate", || {
        server.log().contains("SSL_use_certificate_file")
    });
    let old = fs::read_to_string(folder.join("server.log.1")).expect("a log");
    assert!(
        old.contains("|ovsdb_server|INFO|received SIGHUP, "),
        "{old}"
    );

    // A file that cannot be used changes nothing, and no process ends.
    fs::write(folder.join("config.json"), "[]").expect("written");
    Daemon::signal(server.pid(), "HUP").expect("sent");
    let refused = "configuration in a file must be a JSON object";
    until("the refusal", || server.log().contains(refused));
    assert_eq!(lists(&server), "A\nB\n_Server\n");
    let reply = client.call("transact", &insert).expect("a reply");
    assert_eq!(reply["error"], Value::Null, "the session goes on");
    server.stop().expect("a clean end");
}

fn parent_of(pid: u32) -> u32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    line.expect("a parent").trim().parse().expect("a number")
}

/// This also applies to a server that the supervisor has restarted.
#[test]
fn a_supervisor_passes_the_hangup_on() {
    let dir = tempfile::tempdir().expect("a directory");
    let folder = dir.path();
    for name in ["A", "B", "C"] {
        database(folder, name);
    }
    serve(folder, &["A"]);
    let program = Implementation::Corvid.server_binary().expect("built");
    let option = format!("--config-file={}/config.json", folder.display());
    let daemon = Daemon::start(&program, folder, &[&option, "--monitor"]).expect("a server");
    let lists = |names: &str| {
        let reply = daemon.control("ovsdb-server/list-dbs", &[]);
        reply.is_ok_and(|reply| reply["result"] == names)
    };
    let first = daemon.pid().expect("a number");
    let supervisor = parent_of(first);
    assert_ne!(supervisor, std::process::id());
    serve(folder, &["A", "B"]);
    Daemon::signal(supervisor, "HUP").expect("sent");
    until("the second database", || lists("A\nB\n_Server\n"));
    assert_eq!((daemon.pid(), parent_of(first)), (Some(first), supervisor));
    serve(folder, &["B"]);
    Daemon::signal(first, "HUP").expect("sent");
    until("the second alone", || lists("B\n_Server\n"));

    Daemon::signal(first, "SEGV").expect("sent");
    until("another server", || {
        daemon.pid().is_some_and(|pid| pid != first) && lists("B\n_Server\n")
    });
    assert_eq!(daemon.pid().map(parent_of), Some(supervisor));
    serve(folder, &["C"]);
    // A supervisor forwards the signal as soon as the new server is ready, which may be a moment
    // after the new server answers.
    until("the third database", || {
        Daemon::signal(supervisor, "HUP").expect("sent");
        lists("C\n_Server\n")
    });
}
