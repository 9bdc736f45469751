//! Damaged and invalid files: a message, exit status 1, and the file unchanged.

use crate::tool::clustered::member;
use crate::tool::sandbox::{Sandbox, record, with_database};

const SCHEMA: &str =
    r#"{"name":"D","tables":{"t":{"columns":{"i":{"type":"integer"}},"indexes":[["i"]]}}}"#;
const TRANSACTION: &str = r#"["D",{"op":"insert","table":"t","row":{"i":77}}]"#;

/// The message of every command that replays a file with a schema record and this tail. The file
/// must not change.
fn complaint(tail: &[u8]) -> String {
    let sandbox = Sandbox::new();
    let bytes = [record(SCHEMA), tail.to_vec()].concat();
    sandbox.write("a.db", &bytes);
    let message = sandbox.fails(&["query", "a.db", TRANSACTION]);
    assert_eq!(sandbox.fails(&["transact", "a.db", TRANSACTION]), message);
    assert_eq!(sandbox.fails(&["compact", "a.db"]), message);
    assert_eq!(sandbox.fails(&["compact", "a.db", "b.db"]), message);
    assert_eq!(std::fs::read(sandbox.path("a.db")).expect("a file"), bytes);
    assert_eq!(
        sandbox.list(),
        [".a.db.tmp.~lock~", ".a.db.~lock~", ".b.db.~lock~", "a.db"]
    );
    message
}

#[test]
fn torn_tail_is_left_for_a_server_to_repair() {
    let at = record(SCHEMA).len();
    assert_eq!(
        complaint(b"OVSDB JSON 5"),
        format!("syntax error: a.db: parse error at offset {at} in header line \"OVSDB JSON\"")
    );
}

#[test]
fn record_that_is_not_a_transaction_is_reported() {
    assert_eq!(
        complaint(&record(r#"{"x":{}}"#)),
        r#"syntax "{"x":{}}": unknown table: No table named x."#
    );
    assert_eq!(
        complaint(&record(
            r#"{"t":{"00000000-0000-4000-8000-000000000001":null}}"#
        )),
        "syntax error: transaction deletes row 00000000-0000-4000-8000-000000000001 that does not exist"
    );
    assert_eq!(
        complaint(&record(
            r#"{"_is_diff":true,"t":{"00000000-0000-4000-8000-000000000001":{"i":["set",[1,2]]}}}"#
        )),
        r#"syntax "["set",[1,2]]": syntax error: set must have exactly one member but 2 are present"#
    );
}

#[test]
fn record_that_does_not_commit_is_an_error() {
    let insert = |last: u8| {
        record(&format!(
            r#"{{"t":{{"00000000-0000-4000-8000-00000000000{last}":{{"i":1}}}}}}"#
        ))
    };
    let message = complaint(&[insert(1), insert(2), record("{}")].concat());
    let at = record(SCHEMA).len() + insert(1).len();
    assert!(
        message.starts_with(&format!(
            "a.db: record 2 at offset {at} cannot be used: constraint violation: "
        )),
        "{message}"
    );
}

#[test]
fn files_that_are_not_databases_are_distinguished() {
    let sandbox = Sandbox::new();
    sandbox.write("empty", b"");
    sandbox.write("text", b"hello\n");
    assert_eq!(
        sandbox.fails(&["db-name", "empty"]),
        "ovsdb error: empty: cannot identify file type"
    );
    assert_eq!(
        sandbox.fails(&["db-is-clustered", "text"]),
        "ovsdb error: text: unexpected file format"
    );
    assert_eq!(
        sandbox.fails(&["db-name", "none"]),
        "I/O error: none: open failed (No such file or directory)"
    );
}

/// Checks the messages of a command while another process holds the lock of `held`.
fn refused(held: &str, args: &[&str]) {
    let sandbox = with_database();
    sandbox.write("c.db", &member('A', &[]));
    let before = sandbox.read("a.db");
    let _held = corvid_disk::lockfile::Lockfile::lock(&sandbox.path(held)).expect("the lock");
    let run = sandbox.run(args);
    assert_eq!(run.status, Some(1), "{args:?}");
    let lines: Vec<&str> = run.stderr.lines().collect();
    let holder = format!("already locked by pid {}", std::process::id());
    // The file is unchanged, and there is no new one.
    let without_tag = matches!(args[0], "compact" | "convert");
    let tag = if without_tag { "" } else { "I/O error: " };
    let warning = format!("|lockfile|WARN|.{held}.~lock~: cannot lock file because it is ");
    let (last, first) = lines.split_last().expect("a message");
    let first = first.last().expect("a warning");
    assert!(
        first.contains(&warning) && first.ends_with(&holder),
        "{lines:?}"
    );
    assert_eq!(
        *last,
        format!(
            "ovsdb-tool: {tag}{held}: failed to lock lockfile (Resource temporarily unavailable)"
        )
    );
    assert_eq!(sandbox.read("a.db"), before);
    assert!(!sandbox.list().contains(&"b.db".to_owned()));
}

#[test]
fn locked_file_is_not_written() {
    for (held, args) in [
        ("a.db", &["transact", "a.db", r#"["Demo"]"#][..]),
        ("a.db", &["compact", "a.db"]),
        ("a.db", &["convert", "a.db", "demo.schema"]),
        // The temporary name is locked too: a database could have that name.
        ("a.db.tmp", &["compact", "a.db"]),
        ("a.db.tmp", &["convert", "a.db", "demo.schema"]),
        ("b.db", &["compact", "a.db", "b.db"]),
        ("b.db", &["convert", "a.db", "demo.schema", "b.db"]),
        ("b.db", &["create", "b.db", "demo.schema"]),
        ("b.db", &["create-cluster", "b.db", "demo.schema", "unix:x"]),
        (
            "b.db",
            &["join-cluster", "b.db", "Demo", "unix:x", "unix:y"],
        ),
        ("b.db", &["cluster-to-standalone", "b.db", "c.db"]),
    ] {
        refused(held, args);
    }
}

#[test]
fn readers_need_no_lock() {
    let sandbox = with_database();
    sandbox.write("c.db", &member('A', &[r#"{"term":1,"index":2}"#]));
    let locks: Vec<_> = ["a.db", "c.db"]
        .map(|name| corvid_disk::lockfile::Lockfile::lock(&sandbox.path(name)).expect("the lock"))
        .into();
    assert_eq!(sandbox.ok(&["query", "a.db", r#"["Demo"]"#]), "[]\n");
    for args in [
        &["show-log", "a.db"][..],
        &["db-name", "a.db"],
        &["db-is-standalone", "a.db"],
        &["needs-conversion", "a.db", "demo.schema"],
        &["check-cluster", "c.db"],
        &["db-cid", "c.db"],
        // Only files that are written are locked.
        &["compact", "a.db", "b.db"],
        &["convert", "a.db", "demo.schema", "d.db"],
        &["create-cluster", "e.db", "b.db", "unix:x"],
        &["cluster-to-standalone", "f.db", "c.db"],
    ] {
        let run = sandbox.run(args);
        assert_eq!(run.status, Some(0), "{args:?}: {run:?}");
    }
    drop(locks);
}
