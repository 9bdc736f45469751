//! The output of the tools: it is escaped on a terminal and on standard error, and exact in a pipe,
//! as the reference prints it.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use corvid_tests::binary;
use corvid_tests::server::{Implementation, Server, Setup};
use serde_json::{Value, json};

use super::{HOSTILE, check_clean, check_shown};

fn schema() -> Value {
    json!({"name": "D", "version": "1.0.0", "tables": {"T": {"isRoot": true, "columns": {"s": {"type": "string"}}}}})
}

/// Makes a file with the text in a comment and in a row.
fn file(folder: &Path) {
    std::fs::write(folder.join("schema"), schema().to_string()).expect("a schema");
    let transaction = json!(["D", {"op": "comment", "comment": HOSTILE},
        {"op": "insert", "table": "T", "row": {"s": HOSTILE}}]);
    for words in [
        &["create", "a.db", "schema"][..],
        &["transact", "a.db", &transaction.to_string()],
    ] {
        let tool = Command::new(binary::bin("ovsdb-tool"))
            .args(words)
            .current_dir(folder)
            .output();
        assert!(tool.expect("ovsdb-tool").status.success(), "{words:?}");
    }
}

fn run(program: &Path, words: &[&str], folder: &Path) -> Output {
    let output = Command::new(program)
        .args(words)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output();
    output.expect("a program")
}

/// Runs a program on a terminal, which `script` of util-linux provides. Returns what the terminal
/// gets.
fn on_terminal(program: &Path, words: &[&str], folder: &Path) -> Vec<u8> {
    let words = words.iter().map(|word| format!("'{word}'"));
    let line = format!(
        "{} {}",
        program.display(),
        words.collect::<Vec<_>>().join(" ")
    );
    let output = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("script of util-linux");
    output.stdout
}

/// Checks that the text of a command is escaped on a terminal, and that in a pipe it is what the
/// reference prints.
fn check(program: &str, words: &[&str], folder: &Path) {
    let ours = binary::bin(program);
    let screen = on_terminal(&ours, words, folder);
    check_shown(&format!("{words:?} on a terminal"), &screen);
    let piped = run(&ours, words, folder);
    let text = String::from_utf8(piped.stdout).expect("UTF-8");
    assert!(
        text.contains('\u{9b}') && text.contains('\u{202e}'),
        "{words:?}: {text:?}"
    );
    if let Some(reference) = binary::reference(program) {
        let expected = run(&reference, words, folder).stdout;
        assert_eq!(text, String::from_utf8_lossy(&expected), "{words:?}");
    }
}

#[test]
fn values_are_escaped_on_a_terminal_and_exact_in_a_pipe() {
    let folder = tempfile::tempdir().expect("a directory");
    let setup = Setup {
        databases: vec![schema()],
        ..Setup::default()
    };
    let server = Server::start(Implementation::Corvid, &setup).expect("a server");
    let insert = json!(["D", {"op": "insert", "table": "T", "row": {"s": HOSTILE}}]);
    let mut client = server.connect().expect("a connection");
    client.call("transact", &insert).expect("a reply");
    let remote = format!("unix:{}", server.socket().display());
    let select = r#"["D",{"op":"select","table":"T","where":[],"columns":["s"]}]"#;
    for words in [
        &["dump", &remote, "D", "T", "s"][..],
        &["--data=bare", "dump", &remote, "D", "T", "s"],
        &["--data=json", "dump", &remote, "D", "T", "s"],
        &[
            "--format=list",
            "--data=bare",
            "dump",
            &remote,
            "D",
            "T",
            "s",
        ],
        &["--format=json", "dump", &remote, "D", "T", "s"],
        &["transact", &remote, select],
        &["query", &remote, select],
    ] {
        check("ovsdb-client", words, folder.path());
    }
    // In these formats, quoted values may contain line ends.
    for format in ["--format=csv", "--format=html"] {
        let words = [format, "--data=string", "dump", &remote, "D", "T", "s"];
        check("ovsdb-client", &words, folder.path());
    }
}

#[test]
fn comments_of_a_file_are_escaped_on_a_terminal_and_exact_in_a_pipe() {
    let folder = tempfile::tempdir().expect("a directory");
    file(folder.path());
    for words in [&["show-log", "a.db"][..], &["-mm", "show-log", "a.db"]] {
        check("ovsdb-tool", words, folder.path());
    }
    // The file of a member names its rows and its comments differently.
    let words = ["create-cluster", "c.db", "a.db", "unix:/tmp/nobody.peers"];
    assert!(
        run(&binary::bin("ovsdb-tool"), &words, folder.path())
            .status
            .success()
    );
    check("ovsdb-tool", &["-mm", "show-log", "c.db"], folder.path());
}

/// Starts a server that answers each request first with this error and then with this result.
fn hostile_server(folder: &Path, error: &Value, result: &Value) -> PathBuf {
    let path = folder.join("hostile.sock");
    // The socket of an earlier server may still exist.
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).expect("a socket");
    let (error, result) = (error.clone(), result.clone());
    std::thread::spawn(move || {
        // This thread runs until the test's process ends.
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let mut text = Vec::new();
            let mut byte = [0];
            while matches!(stream.read(&mut byte), Ok(1)) {
                text.push(byte[0]);
                let Ok(request) = serde_json::from_slice::<Value>(&text) else {
                    continue;
                };
                text.clear();
                let reply = json!({"id": request["id"], "error": error, "result": result});
                if stream.write_all(reply.to_string().as_bytes()).is_err() {
                    break;
                }
            }
        }
    });
    path
}

#[test]
fn errors_of_servers_are_escaped_on_standard_error() {
    let folder = tempfile::tempdir().expect("a directory");
    let error = json!({"error": HOSTILE, "syntax": HOSTILE, "details": HOSTILE});
    let path = hostile_server(folder.path(), &error, &Value::Null);
    let remote = format!("unix:{}", path.display());
    let client = binary::bin("ovsdb-client");
    for words in [
        &["list-dbs", &remote][..],
        &["get-schema", &remote, "D"],
        &["transact", &remote, r#"["D"]"#],
        &["lock", &remote, "l"],
        &["-vjsonrpc:dbg", "list-dbs", &remote],
    ] {
        let output = run(&client, words, folder.path());
        check_shown(&format!("{words:?}"), &output.stderr);
    }
    // The names on a command line may also be chosen by others, because scripts pass them on.
    let output = run(
        &client,
        &["list-dbs", &format!("unix:{HOSTILE}")],
        folder.path(),
    );
    check_shown("a server's name", &output.stderr);

    let path = hostile_server(folder.path(), &json!(HOSTILE), &Value::Null);
    let words = ["-t", path.to_str().expect("UTF-8"), "list-commands"];
    let output = run(&binary::bin("ovs-appctl"), &words, folder.path());
    // Errors of commands may contain line ends.
    let text = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(
        text.contains(r"F\u001b]0;o\u0007\u009b1m\u202e"),
        "{text:?}"
    );
    check_clean("ovs-appctl", &text.replace('\n', " "));
}

#[test]
fn names_that_a_server_lists_forge_no_line_on_a_terminal() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = hostile_server(folder.path(), &Value::Null, &json!([HOSTILE]));
    let remote = format!("unix:{}", path.display());
    let client = binary::bin("ovsdb-client");
    let screen = on_terminal(&client, &["list-dbs", &remote], folder.path());
    check_shown("list-dbs on a terminal", &screen);
    let piped = run(&client, &["list-dbs", &remote], folder.path());
    assert_eq!(
        String::from_utf8_lossy(&piped.stdout),
        format!("{HOSTILE}\n")
    );
}
