//! Options of the server whose effect clients cannot see: its exit status, its files and its log.
//!
//! If the reference is installed, the options that it also has are compared with it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use corvid_tests::server::{Implementation, Server, Setup};
use serde_json::{Value, json};

/// Returns our server, and also the reference if it is installed.
fn implementations() -> Vec<Implementation> {
    let mut found = vec![Implementation::Corvid];
    if Implementation::Reference.server_binary().is_ok() {
        found.push(Implementation::Reference);
    }
    found
}

/// Runs a server without databases for as long as `command` runs.
fn run(implementation: Implementation, dir: &Path, command: &str) -> Output {
    let program = implementation.server_binary().expect("built");
    Command::new(program)
        .args(["--no-dbs", "--unixctl=none", "-vconsole:off"])
        .arg(format!("--remote=punix:{}", dir.join("run.sock").display()))
        .args(["--run", command])
        .stdin(Stdio::null())
        .output()
        .expect("started")
}

#[test]
fn a_server_ends_with_the_command_that_it_runs() {
    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().join("run.sock");
    let present = format!("test -S {}", socket.display());
    for implementation in implementations() {
        for (command, status, message) in [
            ("exit 0", 0, ""),
            // The command runs when the server listens.
            (present.as_str(), 0, ""),
            ("exit 3", 1, "child exited, exit status 3"),
            ("kill -KILL $$", 1, "child exited, killed (Killed)"),
        ] {
            let output = run(implementation, dir.path(), command);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(
                output.status.code(),
                Some(status),
                "{implementation:?} {command}: {said}"
            );
            let expected = match message {
                "" => String::new(),
                _ => format!("ovsdb-server: {command}: {message}\n"),
            };
            assert_eq!(said, expected, "{implementation:?}");
            assert!(
                !socket.exists(),
                "{implementation:?} left its socket behind"
            );
        }
    }
}

/// Returns the row in the last record of a database's file, after a set of one element has got a
/// second one.
fn recorded_change(implementation: Implementation, options: &[&str]) -> Value {
    let schema = json!({"name": "D", "tables": {"T": {"isRoot": true, "columns": {
        "tags": {"type": {"key": "string", "min": 0, "max": "unlimited"}}}}}});
    let setup = Setup {
        databases: vec![schema],
        options: options.iter().map(|&option| option.to_owned()).collect(),
        ..Setup::default()
    };
    let server = Server::start(implementation, &setup).expect("a server");
    let mut client = server.connect().expect("a connection");
    for operation in [
        json!({"op": "insert", "table": "T", "row": {"tags": "a"}}),
        json!({"op": "mutate", "table": "T", "where": [], "mutations": [["tags", "insert", "b"]]}),
    ] {
        // The transaction is durable, so that the record is in the file when the reply comes.
        let params = json!(["D", operation, {"op": "commit", "durable": true}]);
        let reply = client.call("transact", &params).expect("a reply");
        assert_eq!(reply["error"], Value::Null);
    }
    let file = fs::read_to_string(server.dir().join("D.db")).expect("a file");
    let record = file.lines().last().unwrap_or_default();
    let record: Value = serde_json::from_str(record).expect("a record");
    let rows = record["T"].as_object().expect("rows");
    let mut row = rows.values().next().expect("a row").clone();
    if let Some(row) = row.as_object_mut() {
        row.insert("_is_diff".into(), record["_is_diff"].clone());
    }
    row
}

#[test]
fn files_hold_differences_unless_disabled() {
    for implementation in implementations() {
        assert_eq!(
            recorded_change(implementation, &[]),
            json!({"_is_diff": true, "tags": "b"}),
            "{implementation:?}"
        );
        assert_eq!(
            recorded_change(implementation, &["--disable-file-column-diff"]),
            json!({"_is_diff": null, "tags": ["set", ["a", "b"]]}),
            "{implementation:?}"
        );
    }
}

/// The reference is not tested here, because it logs every attempt within a rate limit.
#[test]
fn a_listener_that_keeps_failing_is_logged_once() {
    let remotes =
        ["never", "first", "second"].map(|name| format!("--remote=punix:<dir>/{name}/db.sock"));
    let setup = Setup {
        options: [&["--no-dbs".to_owned()][..], &remotes].concat(),
        ..Setup::default()
    };
    let server = Server::start(Implementation::Corvid, &setup).expect("a server");
    // The socket appears at the next attempt after its folder was made. Between the first and the
    // second socket, all listeners that fail have been tried again.
    for name in ["first", "second"] {
        let place = server.dir().join(name);
        fs::create_dir(&place).expect("made");
        let limit = Instant::now() + Duration::from_secs(30);
        while !place.join("db.sock").exists() {
            assert!(Instant::now() < limit, "{name}: {}", server.log());
            thread::sleep(Duration::from_millis(20));
        }
    }
    let log = server.log();
    let failed = "never/db.sock: listen failed: No such file or directory";
    assert_eq!(log.matches(failed).count(), 1, "{log}");
}

#[test]
fn recordings_of_streams_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for (program, option) in [
        ("ovsdb-client", "--record=there"),
        ("ovsdb-client", "--replay"),
    ] {
        let mut command = Command::new(corvid_tests::binary::bin(program));
        command.args([option, "list-dbs", "unix:nowhere"]);
        command.current_dir(folder.path());
        let output = command.output().expect("started");
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let name = option.split('=').next().unwrap_or_default();
        assert_eq!(said, format!("{program}: {name} is not supported\n"));
    }
}

#[test]
fn a_relay_without_remotes_is_the_name_of_a_file() {
    let folder = tempfile::tempdir().expect("a directory");
    for database in ["relay:D:", "relay:D", "relay:"] {
        let mut command = Command::new(corvid_tests::binary::bin("ovsdb-server"));
        command.args(["--unixctl=none", database]);
        command
            .current_dir(folder.path())
            .env("OVS_DBDIR", folder.path());
        let output = command.output().expect("started");
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let refusal = format!("{database}: open failed (No such file or directory)");
        assert!(said.contains(&refusal), "{said}");
    }
}

/// The reference is not tested here, because the packaged version does not know `pfd:`.
#[test]
fn descriptors_that_are_not_listening_sockets_are_reported() {
    let schema = json!({"name": "D", "tables": {"T": {"isRoot": true, "columns": {"c": {"type": "string"}}}}});
    let setup = Setup {
        databases: vec![schema],
        // Standard input is /dev/null, and the second descriptor is larger than any open one.
        options: ["--remote=pfd:0", "--remote=pfd:999", "--remote=db:D,T,c"]
            .map(str::to_owned)
            .to_vec(),
        ..Setup::default()
    };
    let server = Server::start(Implementation::Corvid, &setup).expect("a server");
    let mut client = server.connect().expect("a connection");
    let insert = json!({"op": "insert", "table": "T", "row": {"c": "pfd:3"}});
    let another = json!({"op": "insert", "table": "T", "row": {"c": "punix:none.sock"}});
    for operation in [insert, another] {
        let reply = client.call("transact", &json!(["D", operation]));
        assert!(reply.expect("a reply")["result"][0]["uuid"].is_array());
    }
    let log = server.log();
    for line in [
        "|stream_unix|ERR|pfd:0: not a socket (Socket operation on non-socket)\n",
        "|stream_unix|ERR|pfd:999: not a socket (Bad file descriptor)\n",
        "|ovsdb_server|WARN|pfd: remotes can only be specified on the command line; ignoring \"pfd:3\" from database\n",
    ] {
        assert_eq!(log.matches(line).count(), 1, "{line}{log}");
    }
}

/// The server name that a client asks for is logged at the debug level, as in newer releases.
#[test]
fn the_server_name_that_a_client_asks_for_is_logged() {
    let dir = tempfile::tempdir().expect("a directory");
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt"])
        .args(["ec_paramgen_curve:P-256", "-nodes", "-days", "1", "-subj"])
        .args(["/CN=server", "-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(dir.path())
        .stderr(Stdio::null())
        .status();
    if !made.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: openssl, which makes the certificate, is not installed");
        return;
    }
    let file = |option: &str, name: &str| format!("--{option}={}", dir.path().join(name).display());
    let identity = [
        file("private-key", "key.pem"),
        file("certificate", "cert.pem"),
        "--ca-cert=none".to_owned(),
    ];
    let options = [
        "--no-dbs",
        "--remote=pssl:0:127.0.0.1",
        "-vfile:stream_ssl:dbg",
    ];
    let setup = Setup {
        options: [&options.map(str::to_owned)[..], &identity].concat(),
        ..Setup::default()
    };
    let server = Server::start(Implementation::Corvid, &setup).expect("a server");
    let port = server.port().expect("a port");
    let output = Command::new(corvid_tests::binary::bin("ovsdb-client"))
        .args(&identity)
        .args(["--ssl-server-name=db.example", "list-dbs"])
        .arg(format!("ssl:127.0.0.1:{port}"))
        .stdin(Stdio::null())
        .output()
        .expect("started");
    assert!(output.status.success(), "{output:?}");
    let line = "|stream_ssl|DBG|connection indicated server name db.example\n";
    assert!(server.log().contains(line), "{}", server.log());
}
