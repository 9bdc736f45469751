//! Readers of output that stop early, output that cannot be written, and error messages that nobody
//! can read. No program panics, and the exit statuses are those of the work itself.

use std::fs::{File, OpenOptions};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use corvid_tests::binary;
use corvid_tests::server::{Implementation, Server, Setup};
use serde_json::{Map, Value, json};

/// The time limit for any event on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// Returns a schema whose list of columns does not fit into a pipe.
fn wide_schema() -> Value {
    let columns: Map<String, Value> = (0..100)
        .map(|number| (format!("column{number}"), json!({"type": "string"})))
        .collect();
    let tables: Map<String, Value> = (0..100)
        .map(|number| (format!("Table{number}"), json!({"columns": columns})))
        .collect();
    json!({"name": "Wide", "tables": tables})
}

/// Returns the write end of a pipe whose reader is gone.
fn pipe_without_reader() -> Stdio {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

fn full() -> Stdio {
    let file = OpenOptions::new().write(true).open("/dev/full");
    file.map(Stdio::from).expect("/dev/full")
}

/// Returns command lines of each program whose result is text, with their exit statuses.
fn answers(file: &Path) -> Vec<(&'static str, Vec<String>, i32)> {
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    let file = file.to_str().expect("a name of UTF-8");
    let mut lines = vec![
        ("ovsdb-tool", words(&["list-commands"]), 0),
        ("ovsdb-tool", words(&["help"]), 0),
        ("ovsdb-client", words(&["help"]), 0),
        ("ovsdb-tool", words(&["no-such-command"]), 1),
        ("ovsdb-client", words(&["no-such-command"]), 1),
        ("ovsdb-tool", words(&["db-name", "/no/such/file"]), 1),
        ("ovsdb-tool", words(&["db-is-clustered", file]), 2),
        ("ovs-appctl", words(&["--target=/no/such", "version"]), 1),
        ("ovsdb-idlc", words(&["no-such-command"]), 1),
        ("corvid", words(&["help"]), 0),
        ("corvid", words(&["no-such-command"]), 2),
    ];
    for program in [
        "ovsdb-server",
        "ovsdb-client",
        "ovsdb-tool",
        "ovs-appctl",
        "ovsdb-idlc",
        "corvid",
        "corvid-console",
    ] {
        for option in ["--help", "--version"] {
            lines.push((program, words(&[option]), 0));
        }
        let usage = if program == "corvid" { 2 } else { 1 };
        lines.push((program, words(&["--no-such-option"]), usage));
    }
    lines
}

/// Runs a command line and returns its exit status. If a signal ends the program, the test fails.
fn status(program: &str, words: &[String], stdout: Stdio, stderr: Stdio) -> i32 {
    let mut command = Command::new(binary::bin(program));
    command.args(words).stdin(Stdio::null());
    let status = command.stdout(stdout).stderr(stderr).status();
    let status = status.expect("the program runs");
    assert_eq!(status.signal(), None, "{program} {words:?}");
    status.code().expect("an exit status")
}

#[test]
fn output_that_nobody_reads_changes_no_exit_status() {
    let folder = tempfile::tempdir().expect("a directory");
    let schema = folder.path().join("schema");
    std::fs::write(&schema, wide_schema().to_string()).expect("a schema");
    let file = folder.path().join("db");
    let made = ["create", file.to_str().unwrap(), schema.to_str().unwrap()].map(str::to_owned);
    assert_eq!(status("ovsdb-tool", &made, Stdio::null(), Stdio::null()), 0);
    for (program, words, expected) in answers(&file) {
        let gone = status(
            program,
            &words,
            pipe_without_reader(),
            pipe_without_reader(),
        );
        assert_eq!(gone, expected, "{program} {words:?}: no reader");
        let is_full = status(program, &words, full(), full());
        let allowed = match words[0].as_str() {
            // If results are lost, the command fails.
            "list-commands" | "help" if program == "ovsdb-tool" => 1,
            _ => expected,
        };
        assert_eq!(is_full, allowed, "{program} {words:?}: /dev/full");
    }
}

#[test]
fn commands_whose_reader_stops_early_succeed() {
    let setup = Setup {
        databases: vec![wide_schema()],
        ..Setup::default()
    };
    let server = Server::start(Implementation::Corvid, &setup).expect("a server");
    let remote = format!("unix:{}", server.socket().display());
    let file = server.dir().join("Wide.db").display().to_string();
    let lines = [
        format!("ovsdb-client list-dbs {remote}"),
        format!("ovsdb-client list-tables {remote} Wide"),
        format!("ovsdb-client list-columns {remote} Wide"),
        format!("ovsdb-client get-schema {remote} Wide"),
        format!("ovsdb-client dump {remote} Wide"),
        format!("ovsdb-client backup {remote} Wide"),
        format!("ovsdb-client ping {remote} Wide"),
        format!("ovsdb-tool show-log -m {file}"),
        format!("ovsdb-tool db-name {file}"),
    ];
    for line in lines {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let gone = status(
            &words[0],
            &words[1..],
            pipe_without_reader(),
            Stdio::inherit(),
        );
        assert_eq!(gone, 0, "{line}");
        let lost = status(&words[0], &words[1..], full(), Stdio::null());
        assert_eq!(lost, 1, "{line}: output on a full disk is lost");
    }
}

#[test]
fn a_monitor_ends_when_its_reader_is_gone() {
    let schema = json!({"name": "D", "tables": {"T": {"columns": {"n": {"type": "integer"}}, "isRoot": true}}});
    let setup = Setup {
        databases: vec![schema],
        ..Setup::default()
    };
    let server = Server::start(Implementation::Corvid, &setup).expect("a server");
    let remote = format!("unix:{}", server.socket().display());
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let mut monitor = Command::new(binary::bin("ovsdb-client"))
        .args(["monitor", &remote, "D", "T"])
        .stdin(Stdio::null())
        .stdout(writer)
        .spawn()
        .expect("a monitor");
    drop(reader);
    let mut client = server.connect().expect("a connection");
    let deadline = Instant::now() + LIMIT;
    let ended = loop {
        if let Some(status) = monitor.try_wait().expect("a child") {
            break status;
        }
        if Instant::now() > deadline {
            monitor.kill().expect("a child");
            panic!("the monitor runs on without a reader");
        }
        let insert = json!(["D", {"op": "insert", "table": "T", "row": {"n": 1}}]);
        client.call("transact", &insert).expect("a reply");
        thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(ended.code(), Some(0));
}

/// The reference exits with status 0 where it ignores SIGPIPE, as commands do that use a
/// connection.
#[test]
fn exit_statuses_are_those_of_the_reference() {
    let Some(client) = binary::reference("ovsdb-client") else {
        return;
    };
    let schema = json!({"name": "D", "tables": {"T": {"columns": {"n": {"type": "integer"}}}}});
    let setup = Setup {
        databases: vec![schema],
        ..Setup::default()
    };
    let server = Server::start(Implementation::Corvid, &setup).expect("a server");
    let remote = format!("unix:{}", server.socket().display());
    for line in [
        "list-dbs",
        "list-tables",
        "dump",
        "transact [\"D\"]",
        "transact {}",
    ] {
        let (command, argument) = line.split_once(' ').unwrap_or((line, ""));
        let of = |program: &Path| {
            let mut run = Command::new(program);
            run.args([command, &remote]);
            run.args(Some(argument).filter(|argument| !argument.is_empty()));
            run.stdin(File::open("/dev/null").expect("/dev/null"));
            let status = run
                .stdout(pipe_without_reader())
                .stderr(Stdio::null())
                .status();
            status.expect("the program runs").code()
        };
        assert_eq!(of(&binary::bin("ovsdb-client")), of(&client), "{line}");
    }
}
