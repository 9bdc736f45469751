//! The content of records, case by case of docs/spec/storage.md 4.2 and 4.4.

use super::*;
use crate::fixture::{change, delta, row, schema};

/// The body of the record for `changes`; empty if there is no record.
fn body(changes: Vec<RowChange>, comment: &str, is_diff: bool) -> String {
    let mut out = Vec::new();
    let written = write_transaction(
        &mut out,
        &schema(),
        &delta(changes, comment),
        1_700_000_000_000,
        is_diff,
    );
    assert_eq!(written.unwrap_or(0), out.len());
    let text = String::from_utf8(out).expect("UTF-8");
    text.lines().nth(1).unwrap_or_default().to_owned()
}

const HEAD: &str = r#"{"_date":1700000000000,"_is_diff":true"#;
const ROW_1: &str = "00000000-0000-4000-8000-000000000001";
const ROW_2: &str = "00000000-0000-4000-8000-000000000002";

#[test]
fn inserted_row_has_its_persistent_columns_that_are_not_default() {
    let schema = schema();
    let t = schema.table(crate::fixture::table_id(&schema, "t"));
    let new = row(
        t,
        1,
        r#"{"i":7,"eph":9,"tags":["set",["b","a"]],"map":["map",[["k","v"]]]}"#,
    );
    assert_eq!(
        body(vec![change(&schema, "t", None, Some(&new))], "", true),
        format!(
            r#"{HEAD},"t":{{"{ROW_1}":{{"i":7,"map":["map",[["k","v"]]],"tags":["set",["a","b"]]}}}}}}"#
        )
    );
    let default = row(t, 1, r#"{"eph":9}"#);
    assert_eq!(
        body(
            vec![change(&schema, "t", None, Some(&default))],
            "why\n\"so\"",
            true
        ),
        format!(
            r#"{{"_comment":"why\n\"so\"","_date":1700000000000,"_is_diff":true,"t":{{"{ROW_1}":{{}}}}}}"#
        )
    );
}

#[test]
fn modified_row_has_differences_or_new_values() {
    let schema = schema();
    let t = schema.table(crate::fixture::table_id(&schema, "t"));
    let old = row(
        t,
        1,
        r#"{"i":5,"tags":["set",["a","b"]],"map":["map",[["k1","v1"],["k2","v2"]]]}"#,
    );
    let new = row(
        t,
        1,
        r#"{"i":6,"eph":1,"tags":["set",["b","c"]],"map":["map",[["k1","w"],["k3","v3"]]]}"#,
    );
    let changes = || vec![change(&schema, "t", Some(&old), Some(&new))];
    assert_eq!(
        body(changes(), "", true),
        format!(
            r#"{HEAD},"t":{{"{ROW_1}":{{"i":6,"map":["map",[["k1","w"],["k2","v2"],["k3","v3"]]],"tags":["set",["a","c"]]}}}}}}"#
        )
    );
    assert_eq!(
        body(changes(), "", false),
        format!(
            r#"{{"_date":1700000000000,"t":{{"{ROW_1}":{{"i":6,"map":["map",[["k1","w"],["k3","v3"]]],"tags":["set",["b","c"]]}}}}}}"#
        )
    );
}

#[test]
fn emptied_column_is_written_empty() {
    let schema = schema();
    let t = schema.table(crate::fixture::table_id(&schema, "t"));
    let old = row(t, 1, r#"{"map":["map",[["k","v"]]]}"#);
    let new = row(t, 1, "{}");
    assert_eq!(
        body(
            vec![change(&schema, "t", Some(&old), Some(&new))],
            "",
            false
        ),
        format!(r#"{{"_date":1700000000000,"t":{{"{ROW_1}":{{"map":["map",[]]}}}}}}"#)
    );
}

#[test]
fn deleted_row_is_null_and_tables_are_separated() {
    let schema = schema();
    let t = schema.table(crate::fixture::table_id(&schema, "t"));
    let u = schema.table(crate::fixture::table_id(&schema, "u"));
    let (first, second, other) = (
        row(t, 1, "{}"),
        row(t, 2, r#"{"i":1}"#),
        row(u, 1, r#"{"s":"x"}"#),
    );
    let changes = vec![
        change(&schema, "t", Some(&first), None),
        change(&schema, "t", None, Some(&second)),
        change(&schema, "u", None, Some(&other)),
    ];
    assert_eq!(
        body(changes, "", true),
        format!(
            r#"{HEAD},"t":{{"{ROW_1}":null,"{ROW_2}":{{"i":1}}}},"u":{{"{ROW_1}":{{"s":"x"}}}}}}"#
        )
    );
}

#[test]
fn nothing_persistent_makes_no_record() {
    let schema = schema();
    let t = schema.table(crate::fixture::table_id(&schema, "t"));
    let (old, new) = (row(t, 1, r#"{"eph":1}"#), row(t, 1, r#"{"eph":2}"#));
    assert_eq!(
        body(
            vec![change(&schema, "t", Some(&old), Some(&new))],
            "lost",
            true
        ),
        ""
    );
    assert_eq!(body(vec![], "lost", true), "");
}

#[test]
fn record_of_the_worked_example_has_its_hash() {
    let mut out = Vec::new();
    let body = r#"{"_comment":"first row","_date":1700000000000,"_is_diff":true,"t":{"00000000-0000-4000-8000-000000000001":{"i":7,"tags":["set",["a","b"]]}}}"#;
    crate::fixture::append(&mut out, body);
    assert!(out.starts_with(b"OVSDB JSON 141 b7c09d9d1fdead60f765b816c9cbf28f736c3631\n"));
}
