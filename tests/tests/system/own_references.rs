//! Files in which a strong reference to another table contains the UUID of its own row. Release 3.1
//! accepts and writes such rows. They are served as they are, with a warning that names the row,
//! and the file is never truncated.

use std::fs;
use std::path::Path;
use std::process::Command;

use corvid_tests::process::Process;
use corvid_tests::server::Implementation;
use corvid_tests::{binary, database_file};
use serde_json::{Value, json};

const OWN: &str = "11111111-1111-4111-8111-111111111111";

fn schema() -> Value {
    let reference = json!({"key": {"type": "uuid", "refTable": "B"}, "min": 0, "max": 1});
    json!({"name": "D", "version": "1.0.0", "tables": {
        "A": {"isRoot": true, "columns": {"b": {"type": reference}, "n": {"type": "integer"}}},
        "B": {"columns": {"n": {"type": "integer"}}}}})
}

/// Writes a file with such a row and another row after it, using an `ovsdb-tool`.
fn write_file(tool: &Path, file: &Path) {
    database_file::create(file, &schema()).expect("a file");
    for row in [json!({"n": 1, "b": ["uuid", OWN]}), json!({"n": 2})] {
        let mut insert = json!({"op": "insert", "table": "A", "row": row});
        if insert["row"]["n"] == 1 {
            insert["uuid"] = json!(OWN);
        }
        let transaction = json!(["D", insert]).to_string();
        let mut command = Command::new(tool);
        let done = command.arg("transact").arg(file).arg(&transaction).output();
        let done = done.expect("a tool");
        assert!(done.status.success(), "{done:?}");
    }
}

fn rows(server: &Process) -> Value {
    let select = json!(["D", {"op": "select", "table": "A", "where": [], "columns": ["n", "b"],
        "sort": ["n"]}]);
    let mut client = server.connect().expect("a connection");
    let mut reply = client.call("transact", &select).expect("a reply");
    let rows = reply["result"][0]["rows"].take();
    let mut rows = rows.as_array().expect("rows").clone();
    rows.sort_by_key(|row| row["n"].as_i64());
    Value::Array(rows)
}

#[test]
fn rows_that_refer_to_themselves_are_served_and_named() {
    let ours = binary::bin("ovsdb-tool");
    let tools = binary::reference("ovsdb-tool").into_iter().chain([ours]);
    for tool in tools {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("d.db");
        write_file(&tool, &file);
        let written = fs::read(&file).expect("a file");
        let program = Implementation::Corvid.server_binary().expect("a server");
        let mut server = Process::new(&program, folder.path(), &[file.clone().into_os_string()]);
        let mut expected = vec![json!({"n": 1, "b": ["uuid", OWN]})];
        expected.push(json!({"n": 2, "b": ["set", []]}));
        for start in 0..3 {
            server.start().expect("it listens");
            assert_eq!(rows(&server), Value::Array(expected.clone()), "{tool:?}");
            let log = server.log();
            let warnings: Vec<&str> = log.lines().filter(|line| line.contains("|WARN|")).collect();
            assert_eq!(warnings.len(), start + 1, "{log}");
            let warning = format!(
                "table A column b row {OWN} holds the UUID of its own row as a strong reference to table B"
            );
            assert!(warnings[start].contains(&warning), "{log}");
            assert!(!log.contains("|ERR|"), "{log}");
            if start == 0 {
                assert_eq!(fs::read(&file).expect("a file"), written, "nothing is cut");
            }
            // The next commits are written after the row, or into a new file.
            let number = 3 + start;
            let insert = json!(["D", {"op": "insert", "table": "A", "row": {"n": number}}]);
            let mut client = server.connect().expect("a connection");
            let reply = client.call("transact", &insert).expect("a reply");
            assert!(reply["result"][0]["uuid"].is_array(), "{reply}");
            expected.push(json!({"n": number, "b": ["set", []]}));
            if start == 1 {
                let compacted = server.control("ovsdb-server/compact", &[]);
                assert_eq!(compacted.expect("a reply")["error"], Value::Null);
            }
            server.stop().expect("it exits");
        }
        let names = fs::read_dir(folder.path()).expect("a folder");
        let names = names.map(|entry| entry.expect("an entry").file_name());
        let is_copy = |name: &std::ffi::OsString| name.to_string_lossy().contains("d.db.");
        let copies: Vec<_> = names.filter(is_copy).collect();
        assert!(
            copies
                .iter()
                .all(|name| name.to_string_lossy().ends_with("~lock~")),
            "{copies:?}"
        );
        // The reference opens the file that our server has written.
        if let Some(reference) = binary::reference("ovsdb-tool") {
            let select =
                json!(["D", {"op": "select", "table": "A", "where": [], "columns": ["n"]}]);
            let mut query = Command::new(reference);
            let done = query
                .arg("query")
                .arg(&file)
                .arg(select.to_string())
                .output();
            let done = done.expect("a tool");
            let found: Value = serde_json::from_slice(&done.stdout).expect("JSON");
            let count = found[0]["rows"].as_array().map(Vec::len);
            assert_eq!(count, Some(expected.len()), "{done:?}");
        }
    }
}
