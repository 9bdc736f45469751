//! `convert`: all rows fit and are kept, or the file is unchanged (docs/spec/storage.md 11.1).

use crate::tool::sandbox::{Sandbox, record};

fn schema(columns: &str, more: &str) -> String {
    format!(r#"{{"name":"D","tables":{{"t":{{"columns":{{{columns}}}{more}}}}}}}"#)
}

/// A database whose column `v` had these values one after another, converted to another schema.
fn converted(old: &str, values: &[&str], new: &str) -> (Sandbox, Option<i32>, String) {
    let sandbox = Sandbox::new();
    sandbox.write("old.schema", old.as_bytes());
    sandbox.write("new.schema", new.as_bytes());
    sandbox.ok(&["create", "a.db", "old.schema"]);
    sandbox.ok(&[
        "transact",
        "a.db",
        r#"["D",{"op":"insert","table":"t","row":{}}]"#,
    ]);
    for value in values {
        let request =
            format!(r#"["D",{{"op":"update","table":"t","where":[],"row":{{"v":{value}}}}}]"#);
        sandbox.ok(&["transact", "a.db", &request]);
    }
    let run = sandbox.run(&["convert", "a.db", "new.schema"]);
    (sandbox, run.status, run.stderr)
}

const SELECT: &str = r#"["D",{"op":"select","table":"t","where":[],"columns":["v"]}]"#;

#[test]
fn differences_are_read_under_the_old_type() {
    let set = schema(
        r#""v":{"type":{"key":"integer","min":0,"max":"unlimited"}}"#,
        "",
    );
    let scalar = schema(r#""v":{"type":"integer"}"#, "");
    let (sandbox, status, stderr) = converted(&scalar, &["1", "2"], &set);
    assert_eq!((status, stderr.as_str()), (Some(0), ""));
    assert_eq!(
        sandbox.ok(&["query", "a.db", SELECT]),
        "[{\"rows\":[{\"v\":2}]}]\n"
    );
    assert!(
        sandbox
            .read("a.db")
            .contains("\"_comment\":\"converted by ovsdb-tool 3.7.0\"")
    );

    let (sandbox, status, stderr) = converted(&set, &["1", r#"["set",[1,2]]"#], &scalar);
    assert_eq!(
        (status, stderr.as_str()),
        (
            Some(1),
            "ovsdb-tool: syntax \"[\"set\",[1,2]]\": syntax error: set must have exactly one member but 2 are present\n"
        )
    );
    assert_eq!(
        sandbox.ok(&["query", "a.db", SELECT]),
        "[{\"rows\":[{\"v\":[\"set\",[1,2]]}]}]\n"
    );
}

#[test]
fn value_outside_the_new_range_leaves_the_file_unchanged() {
    let old = schema(r#""v":{"type":"integer"}"#, "");
    let new = schema(
        r#""v":{"type":{"key":{"type":"integer","maxInteger":2}}}"#,
        "",
    );
    let (sandbox, status, stderr) = converted(&old, &["3"], &new);
    assert_eq!(
        (status, stderr.as_str()),
        (
            Some(1),
            "ovsdb-tool: constraint violation: 3 is greater than maximum allowed value 2\n"
        )
    );
    assert_eq!(sandbox.read("a.db").lines().count(), 6);
    assert!(!sandbox.list().contains(&"a.db.tmp".to_owned()));
}

#[test]
fn violated_index_is_an_error() {
    let sandbox = Sandbox::new();
    let columns = r#""v":{"type":"integer"}"#;
    sandbox.write("old.schema", schema(columns, "").as_bytes());
    sandbox.write(
        "new.schema",
        schema(columns, r#","indexes":[["v"]]"#).as_bytes(),
    );
    sandbox.ok(&["create", "a.db", "old.schema"]);
    let insert =
        r#"["D",{"op":"insert","table":"t","row":{}},{"op":"insert","table":"t","row":{}}]"#;
    sandbox.ok(&["transact", "a.db", insert]);
    let before = sandbox.read("a.db");
    let message = sandbox.fails(&["convert", "a.db", "new.schema"]);
    assert!(
        message
            .starts_with("constraint violation: Transaction causes multiple rows in \"t\" table"),
        "{message}"
    );
    assert_eq!(sandbox.read("a.db"), before);
}

#[test]
fn row_unreferenced_in_the_past_is_kept() {
    let sandbox = Sandbox::new();
    let tables = |root: &str| {
        format!(
            r#"{{"name":"D","tables":{{"t":{{"columns":{{"v":{{"type":{{"key":{{"type":"uuid","refTable":"u"}},"min":0}}}}}},"isRoot":true}},
            "u":{{"columns":{{"x":{{"type":"integer"}}}}{root}}}}}}}"#
        )
    };
    sandbox.write("old.schema", tables(r#","isRoot":true"#).as_bytes());
    sandbox.write("new.schema", tables("").as_bytes());
    sandbox.ok(&["create", "a.db", "old.schema"]);
    let uuid = "00000000-0000-4000-8000-000000000001";
    let insert = format!(r#"["D",{{"op":"insert","table":"u","row":{{"x":5}},"uuid":"{uuid}"}}]"#);
    sandbox.ok(&["transact", "a.db", &insert]);
    let refer = format!(r#"["D",{{"op":"insert","table":"t","row":{{"v":["uuid","{uuid}"]}}}}]"#);
    sandbox.ok(&["transact", "a.db", &refer]);
    assert_eq!(sandbox.ok(&["convert", "a.db", "new.schema", "b.db"]), "");
    let select = r#"["D",{"op":"select","table":"u","where":[],"columns":["x"]}]"#;
    assert_eq!(
        sandbox.ok(&["query", "b.db", select]),
        "[{\"rows\":[{\"x\":5}]}]\n"
    );
}

#[test]
fn new_schema_may_have_another_name() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "a.db",
        &record(r#"{"name":"Old","tables":{"t":{"columns":{"v":{"type":"integer"}}}}}"#),
    );
    sandbox.write(
        "new.schema",
        schema(r#""v":{"type":"integer"}"#, "").as_bytes(),
    );
    assert_eq!(
        sandbox.ok(&["needs-conversion", "a.db", "new.schema"]),
        "yes\n"
    );
    assert_eq!(sandbox.ok(&["convert", "a.db", "new.schema"]), "");
    assert_eq!(
        sandbox.ok(&["needs-conversion", "a.db", "new.schema"]),
        "no\n"
    );
    assert_eq!(sandbox.ok(&["db-name", "a.db"]), "D\n");
}
