//! The commands on an undamaged file, and the texts of their errors.

use crate::tool::clustered::member;
use crate::tool::sandbox::{OURS, Sandbox, with_database};
use std::path::Path;

#[test]
fn schema_commands_print_the_schema_of_a_new_database() {
    let sandbox = with_database();
    assert_eq!(sandbox.ok(&["db-name", "a.db"]), "Demo\n");
    assert_eq!(sandbox.ok(&["db-version", "a.db"]), "1.2.3\n");
    assert_eq!(sandbox.ok(&["db-cksum", "a.db"]), "111 222\n");
    assert_eq!(sandbox.ok(&["schema-name", "demo.schema"]), "Demo\n");
    assert_eq!(sandbox.ok(&["schema-version", "demo.schema"]), "1.2.3\n");
    assert_eq!(sandbox.ok(&["schema-cksum", "demo.schema"]), "111 222\n");
    assert_eq!(sandbox.ok(&["db-is-standalone", "a.db"]), "");
    assert_eq!(sandbox.run(&["db-is-clustered", "a.db"]).status, Some(2));
    assert_eq!(
        sandbox.fails(&["db-cid", "a.db"]),
        "a.db: not a clustered database"
    );
    assert_eq!(
        sandbox.ok(&["needs-conversion", "a.db", "demo.schema"]),
        "no\n"
    );
    assert_eq!(
        sandbox.fails(&["create", "a.db", "demo.schema"]),
        "I/O error: a.db: create failed (File exists)"
    );
    assert_eq!(sandbox.list(), [".a.db.~lock~", "a.db", "demo.schema"]);
}

#[test]
fn transact_stores_its_changes() {
    let sandbox = with_database();
    let insert = r#"["Demo",{"op":"insert","table":"T","row":{"name":"x","eph":7},"uuid":"00000000-0000-4000-8000-000000000001"},{"op":"comment","comment":"why"}]"#;
    assert_eq!(
        sandbox.ok(&["transact", "a.db", insert]),
        "[{\"uuid\":[\"uuid\",\"00000000-0000-4000-8000-000000000001\"]},{}]\n"
    );
    let select = r#"["Demo",{"op":"select","table":"T","where":[],"columns":["name","eph"]}]"#;
    assert_eq!(
        sandbox.ok(&["query", "a.db", select]),
        "[{\"rows\":[{\"eph\":0,\"name\":\"x\"}]}]\n"
    );
    let file = sandbox.read("a.db");
    assert_eq!(file.lines().count(), 4);
    assert!(file.contains("\"_comment\":\"why\"") && file.contains("\"_is_diff\":true"));
}

#[test]
fn query_changes_nothing() {
    let sandbox = with_database();
    let before = sandbox.read("a.db");
    let run = sandbox.ok(&[
        "query",
        "a.db",
        r#"["Demo",{"op":"insert","table":"T","row":{}}]"#,
    ]);
    assert!(
        run.starts_with("[{\"uuid\":[\"uuid\",") && run.trim_end().ends_with("\"]}]"),
        "{run}"
    );
    assert_eq!(sandbox.read("a.db"), before);
}

#[test]
fn transaction_without_persistent_changes_writes_nothing() {
    let sandbox = with_database();
    sandbox.ok(&[
        "transact",
        "a.db",
        r#"["Demo",{"op":"insert","table":"T","row":{}}]"#,
    ]);
    let before = sandbox.read("a.db");
    for operation in [
        r#"{"op":"update","table":"T","where":[],"row":{"eph":4}}"#,
        r#"{"op":"update","table":"T","where":[],"row":{"n":0}}"#,
        r#"{"op":"comment","comment":"alone"}"#,
        r#"{"op":"commit","durable":true}"#,
        r#"{"op":"delete","table":"U","where":[]}"#,
    ] {
        sandbox.ok(&["transact", "a.db", &format!("[\"Demo\",{operation}]")]);
        assert_eq!(sandbox.read("a.db"), before, "{operation}");
    }
}

#[test]
fn malformed_request_prints_an_error_object() {
    let sandbox = with_database();
    assert_eq!(
        sandbox.ok(&["query", "a.db", "{}"]),
        "{\"details\":\"array expected\",\"error\":\"syntax error\",\"syntax\":\"{}\"}\n"
    );
    assert_eq!(
        sandbox.ok(&["transact", "a.db", r#"["Z"]"#]),
        "{\"details\":\"database name expected as first parameter\",\"error\":\"syntax error\",\"syntax\":\"[\\\"Z\\\"]\"}\n"
    );
    assert_eq!(
        sandbox.fails(&["query", "a.db", "xx"]),
        "\"xx\": line 0, column 2, byte 2: invalid keyword 'xx'"
    );
}

#[test]
fn compaction_keeps_rows_and_drops_history() {
    let sandbox = with_database();
    for n in 0..5 {
        let request = format!(r#"["Demo",{{"op":"insert","table":"U","row":{{"x":{n}}}}}]"#);
        sandbox.ok(&["transact", "a.db", &request]);
    }
    sandbox.ok(&[
        "transact",
        "a.db",
        r#"["Demo",{"op":"delete","table":"U","where":[["x",">",2]]}]"#,
    ]);
    let select = r#"["Demo",{"op":"select","table":"U","where":[],"columns":["_uuid","x"]}]"#;
    let rows = |file: &str| {
        let out = sandbox.ok(&["query", file, select]);
        let json = corvid_json::Value::parse(out.as_bytes()).expect("JSON");
        let mut rows: Vec<String> = json.as_array().expect("results")[0]
            .get("rows")
            .and_then(corvid_json::Value::as_array)
            .expect("rows")
            .iter()
            .map(ToString::to_string)
            .collect();
        rows.sort();
        rows
    };
    let before = rows("a.db");
    assert_eq!(before.len(), 3);
    assert_eq!(sandbox.ok(&["compact", "a.db", "b.db"]), "");
    assert_eq!(rows("b.db"), before);
    assert_eq!(sandbox.ok(&["compact", "a.db"]), "");
    assert_eq!(rows("a.db"), before);
    let file = sandbox.read("a.db");
    assert_eq!(file.lines().count(), 4);
    assert!(
        file.contains("\"_comment\":\"compacted by ovsdb-tool 3.7.0\"")
            && !file.contains("_is_diff")
    );
    assert_eq!(
        sandbox.fails(&["compact", "a.db", "b.db"]),
        "I/O error: b.db: create failed (File exists)"
    );
    assert!(!sandbox.list().contains(&"a.db.tmp".to_owned()));
}

#[test]
fn left_over_temporary_file_is_replaced() {
    let sandbox = with_database();
    sandbox.write("a.db.tmp", b"left over by a crash");
    assert_eq!(sandbox.ok(&["compact", "a.db"]), "");
    assert!(!sandbox.list().contains(&"a.db.tmp".to_owned()));
}

#[test]
fn replacing_a_file_through_a_link_keeps_the_link() {
    let sandbox = with_database();
    std::os::unix::fs::symlink("a.db", sandbox.path("link.db")).expect("a link");
    assert_eq!(sandbox.ok(&["compact", "link.db"]), "");
    assert!(sandbox.path("link.db").is_symlink());
    assert!(sandbox.read("a.db").contains("compacted by"));
}

#[test]
fn commands_read_pipes() {
    let sandbox = with_database();
    sandbox.ok(&[
        "transact",
        "a.db",
        r#"["Demo",{"op":"insert","table":"U","row":{"x":7}}]"#,
    ]);
    let database = std::fs::read(sandbox.path("a.db")).expect("a database");
    let member = member('A', &[r#"{"term":1,"index":2}"#]);
    let select = r#"["Demo",{"op":"select","table":"U","where":[],"columns":["x"]}]"#;
    for (input, args, stdout) in [
        (&database, &["db-name", "/dev/stdin"][..], "Demo\n"),
        (&database, &["db-is-standalone", "/dev/stdin"], ""),
        (
            &database,
            &["needs-conversion", "/dev/stdin", "demo.schema"],
            "no\n",
        ),
        (
            &database,
            &["query", "/dev/stdin", select],
            "[{\"rows\":[{\"x\":7}]}]\n",
        ),
        (&database, &["compact", "/dev/stdin", "b.db"], ""),
        (
            &database,
            &["convert", "/dev/stdin", "demo.schema", "c.db"],
            "",
        ),
        (&member, &["db-is-clustered", "/dev/stdin"], ""),
        (
            &member,
            &["db-local-address", "/dev/stdin"],
            "tcp:127.0.0.1:1\n",
        ),
        (&member, &["check-cluster", "/dev/stdin"], ""),
        (
            &member,
            &["cluster-to-standalone", "d.db", "/dev/stdin"],
            "",
        ),
    ] {
        let run = sandbox.run_tool(Path::new(OURS), args, Some(input));
        assert_eq!(
            (run.status, run.stdout.as_str(), run.stderr.as_str()),
            (Some(0), stdout, ""),
            "{args:?}"
        );
    }
    for name in ["b.db", "c.db"] {
        assert_eq!(
            sandbox.ok(&["query", name, select]),
            "[{\"rows\":[{\"x\":7}]}]\n"
        );
    }
    let listing = sandbox.run_tool(
        Path::new(OURS),
        &["-mm", "show-log", "/dev/stdin"],
        Some(&database),
    );
    assert_eq!(listing.stdout, sandbox.ok(&["-mm", "show-log", "a.db"]));
}

#[test]
fn existing_target_is_not_overwritten() {
    let sandbox = with_database();
    sandbox.write("empty", b"");
    sandbox.ok(&["create", "b.db", "demo.schema"]);
    let before = sandbox.read("b.db");
    for target in ["b.db", "empty", "a.db"] {
        let message = format!("I/O error: {target}: create failed (File exists)");
        assert_eq!(sandbox.fails(&["compact", "a.db", target]), message);
        assert_eq!(
            sandbox.fails(&["convert", "a.db", "demo.schema", target]),
            message
        );
    }
    assert_eq!(sandbox.read("b.db"), before);
    assert_eq!(sandbox.read("empty"), "");
    // A dangling link is not a file: the file that it points to is created.
    std::os::unix::fs::symlink("made.db", sandbox.path("link.db")).expect("a link");
    assert_eq!(sandbox.ok(&["compact", "a.db", "link.db"]), "");
    assert!(sandbox.path("link.db").is_symlink());
    assert_eq!(sandbox.ok(&["db-name", "made.db"]), "Demo\n");
}

#[test]
fn query_does_not_wait() {
    let sandbox = with_database();
    let wait = |timeout: &str| {
        format!(
            r#"["Demo",{{"op":"wait","table":"T","where":[],"columns":["n"],"until":"==","rows":[{{"n":77}}]{timeout}}}]"#
        )
    };
    for command in ["query", "transact"] {
        assert_eq!(
            sandbox.ok(&[command, "a.db", &wait(r#","timeout":0"#)]),
            "[{\"details\":\"\\\"where\\\" clause test failed\",\"error\":\"timed out\"}]\n"
        );
        for timeout in ["", r#","timeout":5000"#] {
            assert_eq!(
                sandbox.ok(&[command, "a.db", &wait(timeout)]),
                "[{\"details\":\"triggers not supported\",\"error\":\"not supported\"}]\n"
            );
        }
    }
}

#[test]
fn versions_are_compared_as_numbers() {
    let sandbox = Sandbox::new();
    for (words, status) in [
        (["1.9.9", "<", "1.10.0"], 0),
        (["1.9.9", ">=", "1.10.0"], 2),
        (["1.2.3", "==", "01.2.3"], 0),
        (["1.2.3", "!=", "1.2.3"], 2),
        (["1.2", "==", "1.2.3"], 1),
        (["1.2.3", "=", "1.2.3"], 1),
    ] {
        let args = ["compare-versions", words[0], words[1], words[2]];
        assert_eq!(sandbox.run(&args).status, Some(status), "{words:?}");
    }
}

#[test]
fn wrong_command_lines_are_explained() {
    let sandbox = Sandbox::new();
    assert_eq!(
        sandbox.fails(&[]),
        "missing command name; use --help for help"
    );
    assert_eq!(
        sandbox.fails(&["x"]),
        "unknown command 'x'; use --help for help"
    );
    assert_eq!(
        sandbox.fails(&["revert", "a.db", "HEAD"]),
        "unknown command 'revert'; use --help for help\n\
         ovsdb-tool: \"revert\" is a command of ovsdb-client, which asks a server"
    );
    assert_eq!(
        sandbox.fails(&["create", "a", "b", "c"]),
        "'create' command takes at most 2 arguments"
    );
    assert_eq!(
        sandbox.fails(&["db-cid"]),
        "'db-cid' command requires at least 1 arguments"
    );
    assert_eq!(
        sandbox.fails(&["db-name"]),
        "I/O error: /nonexistent/dbdir/conf.db: open failed (No such file or directory)"
    );
    let help = sandbox.ok(&["--help"]);
    assert!(
        help.contains("/nonexistent/dbdir/conf.db")
            && help.contains("/nonexistent/pkgdatadir/vswitch.ovsschema")
    );
    assert_eq!(sandbox.ok(&["help"]), help);
    assert_eq!(
        sandbox.ok(&["-V"]),
        concat!(
            "ovsdb-tool (Open vSwitch) 3.7.0\nCorvid ",
            env!("CARGO_PKG_VERSION"),
            "\n"
        )
    );
}
