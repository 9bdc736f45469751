//! Files in which a strong reference to another table holds the UUID of its own row. The reference
//! writes such files.

use crate::tool::sandbox::{Sandbox, record};

const SCHEMA: &str = r#"{"name":"D","tables":{"A":{"columns":{"b":{"type":{"key":{"type":"uuid","refTable":"B"},"min":0,"max":2}},"n":{"type":"integer"}},"isRoot":true},"B":{"columns":{"n":{"type":"integer"}}}}}"#;
const NEWER: &str = r#"{"name":"D","version":"2.0.0","tables":{"A":{"columns":{"b":{"type":{"key":{"type":"uuid","refTable":"B"},"min":0,"max":9}},"n":{"type":"integer"}},"isRoot":true},"B":{"columns":{"n":{"type":"integer"}}}}}"#;
const OWN: &str = "11111111-1111-4111-8111-111111111111";
const LATER: &str = "22222222-2222-4222-8222-222222222222";
const SELECT: &str =
    r#"["D",{"op":"select","table":"A","where":[],"columns":["n","b"],"sort":["n"]}]"#;

#[test]
fn rows_that_refer_to_themselves_are_kept() {
    let sandbox = Sandbox::new();
    let records = [
        record(SCHEMA),
        record(&format!(
            r#"{{"_is_diff":true,"A":{{"{OWN}":{{"b":["uuid","{OWN}"],"n":1}}}}}}"#
        )),
        record(&format!(
            r#"{{"_is_diff":true,"A":{{"{LATER}":{{"n":2}}}}}}"#
        )),
    ];
    sandbox.write("a.db", &records.concat());
    sandbox.write("new.schema", NEWER.as_bytes());
    let rows =
        format!(r#"[{{"rows":[{{"b":["uuid","{OWN}"],"n":1}},{{"b":["set",[]],"n":2}}]}}]"#) + "\n";
    assert_eq!(sandbox.ok(&["query", "a.db", SELECT]), rows);
    let update = r#"["D",{"op":"update","table":"A","where":[["n","==",2]],"row":{"n":3}}]"#;
    sandbox.ok(&["transact", "a.db", update]);
    let rows = rows.replace("\"n\":2", "\"n\":3");
    sandbox.ok(&["compact", "a.db", "b.db"]);
    sandbox.ok(&["compact", "a.db"]);
    sandbox.ok(&["convert", "b.db", "new.schema"]);
    for file in ["a.db", "b.db"] {
        assert_eq!(sandbox.ok(&["query", file, SELECT]), rows, "{file}");
    }
    assert_eq!(sandbox.ok(&["db-version", "b.db"]), "2.0.0\n");
}
