//! More connections than the limits allow.

use std::fs;
use std::os::unix::net::UnixStream;
use std::process::Command;

use corvid_tests::client::{Client, Received};
use corvid_tests::process::Process;
use corvid_tests::server::{Implementation, Server};
use serde_json::json;

use super::scene::{TIME_LIMIT, attack, logged, server, sessions, wait_for};

/// Returns how many files this process may open.
fn descriptors() -> usize {
    let limits = fs::read_to_string("/proc/self/limits").expect("limits");
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let soft = line.and_then(|line| line.split_whitespace().nth(3));
    soft.and_then(|soft| soft.parse().ok()).unwrap_or(1024)
}

#[test]
fn thousands_of_idle_connections_cost_little() {
    let server = server(&[]);
    let count = (descriptors() / 2).min(4000);
    let (connections, memory) = attack(&server, || {
        let connections: Vec<UnixStream> = (0..count)
            .map(|_| Client::connect_within(&server.socket(), TIME_LIMIT).map(drop))
            .map(|_| UnixStream::connect(server.socket()).expect("a connection"))
            .collect();
        wait_for(|| sessions(&server) >= count, "all are accepted");
        connections
    });
    assert!(
        memory < count as u64 * 16 * 1024,
        "{memory} bytes for {count}"
    );
    drop(connections);
    wait_for(|| sessions(&server) == 0, "all are closed");
}

/// Opens a connection. Returns it if the server keeps it.
fn is_kept(server: &Server) -> Option<Client> {
    let mut client = server.connect().expect("a connection");
    // If the server rejects the connection, it may be closed before this is written.
    let _ = client.send(br#"{"id":1,"method":"echo","params":[]}"#);
    match client.receive(TIME_LIMIT).expect("received") {
        Received::Text(_) => Some(client),
        Received::Closed => None,
        Received::Nothing => panic!("neither answered nor closed"),
    }
}

#[test]
fn connections_beyond_the_limit_are_closed_at_once() {
    let server = server(&["--max-sessions=20"]);
    wait_for(|| sessions(&server) == 0, "the first look is over");
    let mut kept: Vec<Client> = (0..20).map_while(|_| is_kept(&server)).collect();
    assert_eq!(kept.len(), 20);
    for _ in 0..100 {
        assert!(is_kept(&server).is_none());
    }
    logged(&server, "the limit of 20 sessions is reached");
    let lines = server.log().matches("the limit of 20 sessions").count();
    assert!(lines < 20, "{lines} lines");
    kept.pop();
    wait_for(|| is_kept(&server).is_some(), "a place is free again");
    for client in &mut kept {
        assert_eq!(
            client.call("echo", &json!([])).expect("an answer")["result"],
            json!([])
        );
    }
}

#[test]
fn descriptors_are_never_used_up_by_sessions() {
    let program = Implementation::Corvid.server_binary().expect("built");
    let dir = tempfile::tempdir().expect("a directory");
    let (plain, script) = (dir.path().join("plain"), dir.path().join("few-files"));
    let text = format!(
        "#!/bin/sh\nulimit -n 100\nexec {} \"$@\"\n",
        program.display()
    );
    fs::write(&plain, text).expect("written");
    // A child process copies the script. If this process had the file open for writing while
    // another test forks, the script could not be executed.
    let mut install = Command::new("install");
    let installed = install.args(["-m", "755"]).args([&plain, &script]).status();
    assert!(installed.expect("install").success());
    let options = ["--no-dbs".into(), "--max-sessions=90".into()];
    let mut process = Process::new(&script, dir.path(), &options);
    process.start().expect("started");
    assert!(
        process
            .log()
            .contains("--max-sessions=90 exceeds the limit of 100 open files")
    );
    let connections: Vec<UnixStream> = (0..300)
        .map(|_| UnixStream::connect(process.socket()).expect("a connection"))
        .collect();
    let schema = json!({"name": "E", "tables": {}});
    corvid_tests::database_file::create(&dir.path().join("E.db"), &schema).expect("made");
    // The control socket answers, and files can be opened and replaced.
    for (command, arguments) in [
        ("ovsdb-server/add-db", vec!["E.db".to_owned()]),
        ("ovsdb-server/compact", vec![]),
        ("list-commands", vec![]),
    ] {
        let reply = process.control(command, &arguments).expect("an answer");
        assert!(reply["error"].is_null(), "{command}: {reply}");
    }
    drop(connections);
    wait_for(
        || {
            let mut client = process.connect().expect("a connection");
            client.call("echo", &json!([])).is_ok()
        },
        "a place is free again",
    );
    process.stop().expect("it exits");
}

#[test]
fn a_program_that_the_server_runs_gets_the_limit_back() {
    let program = Implementation::Corvid.server_binary().expect("built");
    let dir = tempfile::tempdir().expect("a directory");
    let script = format!(
        "ulimit -S -n 77; exec {} --no-dbs --unixctl=none --run='ulimit -S -n > {}/limit; ulimit -S -n'",
        program.display(),
        dir.path().display()
    );
    let output = Command::new("/bin/sh")
        .args(["-c", &script])
        .output()
        .expect("run");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        fs::read_to_string(dir.path().join("limit"))
            .expect("written")
            .trim(),
        "77"
    );
}

#[test]
fn bad_limits_are_reported() {
    let program = Implementation::Corvid.server_binary().expect("built");
    for (option, reason) in [
        (
            "--max-sessions=0",
            "expected a number of sessions, 1 or more",
        ),
        (
            "--max-sessions=many",
            "expected a number of sessions, 1 or more",
        ),
        (
            "--max-message-size=1T",
            "expected a size: a number of bytes, or one with suffix K, M or G",
        ),
        (
            "--max-session-backlog=",
            "expected a size: a number of bytes, or one with suffix K, M or G",
        ),
        ("--max-session-backlog=12", "too small; the minimum is 1K"),
        ("--max-reply-memory=12", "too small; the minimum is 1K"),
    ] {
        let output = Command::new(&program).arg(option).output().expect("run");
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(said, format!("ovsdb-server: {option}: {reason}\n"));
    }
}
