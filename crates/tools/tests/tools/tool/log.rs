//! `show-log` at all verbosities.

use crate::tool::sandbox::{Sandbox, record, with_database};

/// The examples of docs/spec/storage.md 1.1 and 15.
#[test]
fn worked_example_is_listed() {
    let sandbox = Sandbox::new();
    let row = "00000000-0000-4000-8000-000000000001";
    let file = [
        record(
            r#"{"name":"Demo","tables":{"t":{"columns":{"i":{"type":"integer"},"tags":{"type":{"key":"string","max":"unlimited","min":0}}}}},"version":"1.0.0"}"#,
        ),
        record(&format!(
            r#"{{"_comment":"first row","_date":1700000000000,"_is_diff":true,"t":{{"{row}":{{"i":7,"tags":["set",["a","b"]]}}}}}}"#
        )),
        record(&format!(
            r#"{{"_date":1700000001000,"_is_diff":true,"t":{{"{row}":{{"tags":["set",["a","c"]]}}}}}}"#
        )),
        record(&format!(
            r#"{{"_date":1700000002000,"_is_diff":true,"t":{{"{row}":null}}}}"#
        )),
    ];
    sandbox.write("a.db", &file.concat());
    assert_eq!(
        sandbox.ok(&["show-log", "a.db"]),
        "\
record 0: \"Demo\" schema, version=\"1.0.0\", cksum=\"\"

record 1: 2023-11-14 22:13:20.000 \"first row\"
record 2: 2023-11-14 22:13:21.000
record 3: 2023-11-14 22:13:22.000
"
    );
    assert_eq!(
        sandbox.ok(&["-mm", "show-log", "a.db"]),
        "\
record 0: \"Demo\" schema, version=\"1.0.0\", cksum=\"\"

record 1: 2023-11-14 22:13:20.000 \"first row\"
  table t insert row 00000000:
    i=7
    tags=[a, b]

record 2: 2023-11-14 22:13:21.000
  table t row 00000000 (00000000) diff:
    tags=[a, c]

record 3: 2023-11-14 22:13:22.000
  table t row 00000000 (00000000) diff:
    delete row

"
    );
}

#[test]
fn rows_are_listed_by_their_name_before_the_record() {
    let sandbox = with_database();
    let insert = r#"["Demo",{"op":"insert","table":"T","row":{"name":"x","m":["map",[["k 2","v2"],["k1","v1"]]]},"uuid":"5db740cf-0000-4000-8000-000000000001"}]"#;
    sandbox.ok(&["transact", "a.db", insert]);
    sandbox.ok(&["transact", "a.db", r#"["Demo",{"op":"update","table":"T","where":[],"row":{"name":"yy","om":["map",[["a","c"]]]}}]"#]);
    sandbox.ok(&[
        "transact",
        "a.db",
        r#"["Demo",{"op":"delete","table":"T","where":[]}]"#,
    ]);
    let listing = sandbox.ok(&["-m", "-m", "show-log", "a.db"]);
    let lines: Vec<&str> = listing
        .lines()
        .filter(|line| !line.starts_with("record") && !line.is_empty())
        .collect();
    assert_eq!(
        lines,
        [
            "  table T insert row \"x\" (5db740cf):",
            "    m={\"k 2\"=v2, k1=v1}",
            "    name=x",
            "  table T row \"x\" (5db740cf) diff:",
            "    name=yy",
            "    om=a=c",
            "  table T row \"yy\" (5db740cf) diff:",
            "    delete row",
        ]
    );
}

#[test]
fn listing_stops_at_damage_with_its_message() {
    let sandbox = with_database();
    let mut file = std::fs::read(sandbox.path("a.db")).expect("a database");
    let at = file.len();
    file.extend_from_slice(b"OVSDB JSON 5");
    sandbox.write("a.db", &file);
    let run = sandbox.run(&["show-log", "a.db"]);
    assert_eq!(run.status, Some(1));
    assert_eq!(
        run.stdout,
        "record 0: \"Demo\" schema, version=\"1.2.3\", cksum=\"111 222\"\n\n"
    );
    assert_eq!(
        run.stderr,
        format!(
            "ovsdb-tool: syntax error: a.db: parse error at offset {at} in header line \"OVSDB JSON\"\n"
        )
    );
}
