//! Long work on a terminal shows its progress, whichever part of it takes long. Scripts do not see
//! the progress.
//!
//! Long work is simulated by a server that is stopped, and by a file that arrives slowly through a
//! pipe. `script` of util-linux provides the terminal.

use std::path::Path;
use std::process::{Command, Stdio};

use corvid_tests::binary;
use corvid_tests::daemon::Daemon;
use corvid_tests::server::{Implementation, Server, Setup};
use serde_json::{Value, json};

fn schema() -> Value {
    json!({"name": "D", "version": "1.0.0", "tables": {"T": {"isRoot": true, "columns": {"n": {"type": "integer"}}}}})
}

/// Runs a shell command on a terminal and returns what the terminal shows.
fn on_terminal(folder: &Path, line: &str) -> String {
    let output = Command::new("script")
        .args(["-qec", line, "/dev/null"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("script of util-linux");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn tool() -> String {
    binary::bin("ovsdb-tool").display().to_string()
}

/// Makes a standalone file, and the file of a cluster's only member with the same contents.
fn files(folder: &Path) {
    std::fs::write(folder.join("schema"), schema().to_string()).expect("a schema");
    for words in [
        &["create", "one.db", "schema"][..],
        &[
            "transact",
            "one.db",
            r#"["D",{"op":"insert","table":"T","row":{"n":1}}]"#,
        ],
        &[
            "create-cluster",
            "member.db",
            "one.db",
            "unix:/tmp/nobody.peers",
        ],
    ] {
        let status = Command::new(tool())
            .args(words)
            .current_dir(folder)
            .status();
        assert!(status.expect("ovsdb-tool").success(), "{words:?}");
    }
}

#[test]
fn reading_a_file_shows_its_progress() {
    let folder = tempfile::tempdir().expect("a directory");
    files(folder.path());
    let tool = tool();
    let query = r#"'["D",{"op":"select","table":"T","where":[]}]'"#;
    for (file, command, shown) in [
        (
            "one.db",
            format!("{tool} query /dev/stdin {query}"),
            "Reading",
        ),
        (
            "one.db",
            format!("{tool} show-log /dev/stdin >log"),
            "Reading",
        ),
        (
            "one.db",
            format!("{tool} compact /dev/stdin compact.db"),
            "Reading",
        ),
        (
            "one.db",
            format!("{tool} convert /dev/stdin schema convert.db"),
            "Reading",
        ),
        (
            "one.db",
            format!("{tool} db-name /dev/stdin >name"),
            "Reading",
        ),
        (
            "member.db",
            format!("{tool} show-log /dev/stdin >log"),
            "Reading",
        ),
        (
            "member.db",
            format!("{tool} check-cluster /dev/stdin"),
            "Checking",
        ),
        (
            "member.db",
            format!("{tool} cluster-to-standalone s.db /dev/stdin"),
            "Reading",
        ),
    ] {
        // The pipe yields the beginning of the file, and then nothing for three seconds. In this
        // time, only another thread can draw.
        let line = format!("(head -c 60 {file}; sleep 3; tail -c +61 {file}) | {command}");
        let screen = on_terminal(folder.path(), &line);
        assert!(screen.contains(shown), "{command}: {screen}");
        let quiet = format!("({command}) <{file} 2>said; cat said");
        let screen = on_terminal(folder.path(), &quiet);
        assert!(!screen.contains(shown), "{command}: {screen}");
    }
}

#[test]
fn waiting_for_a_server_shows_its_progress() {
    let setup = Setup {
        databases: vec![schema()],
        ..Setup::default()
    };
    let server = Server::start(Implementation::Corvid, &setup).expect("a server");
    let folder = tempfile::tempdir().expect("a directory");
    files(folder.path());
    let client = binary::bin("ovsdb-client").display().to_string();
    let remote = format!("unix:{}", server.socket().display());
    let pid = server.pid();
    for command in [
        format!("{client} dump {remote} D >out"),
        format!("{client} backup {remote} D >out"),
        format!("{client} restore {remote} D <one.db"),
        format!("{client} restore --keep-uuids {remote} D <one.db"),
        format!("{client} convert {remote} schema"),
        format!("{client} transact {remote} '[\"D\"]' >out"),
    ] {
        // A stopped server does not answer any request.
        Daemon::signal(pid, "STOP").expect("kill");
        let line = format!("(sleep 3; kill -CONT {pid}) & {command}; wait");
        let screen = on_terminal(folder.path(), &line);
        assert!(
            screen.contains("Waiting for the server"),
            "{command}: {screen}"
        );
        let quiet = format!("({command}) 2>said; cat said");
        assert!(
            !on_terminal(folder.path(), &quiet).contains("Waiting"),
            "{command}"
        );
    }
}
