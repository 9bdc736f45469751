//! Every rule of docs/spec/storage.md 4.1 and the reader's tolerance of 1.2, with the reference's
//! texts.

use super::*;
use crate::fixture::{schema, uuid};

/// Decodes a body in which `U1` and `U2` stand for row names.
fn decoded(body: &str) -> Result<Recorded, String> {
    let body = body
        .replace("U1", "00000000-0000-4000-8000-000000000001")
        .replace("U2", "00000000-0000-4000-8000-000000000002");
    decode(body.as_bytes(), &schema(), &mut FieldOrderCache::default()).map_err(|error| match error
    {
        DecodeError::Body(reason) => format!("{reason:?}"),
        DecodeError::Content(error) => error.to_string(),
    })
}

/// The decoded rows in wire notation.
fn rows(body: &str) -> Vec<String> {
    let schema = schema();
    let recorded = decoded(body).expect("a transaction");
    recorded
        .rows
        .iter()
        .map(|row| {
            let table = schema.table(row.table);
            let mut out = format!(
                "{} {}",
                table.name,
                row.uuid
                    .to_string()
                    .trim_start_matches("00000000-0000-4000-8000-")
            );
            match &row.columns {
                None => out.push_str(" null"),
                Some(columns) => {
                    for (id, datum) in columns {
                        let column = table.column(*id);
                        let mut text = Vec::new();
                        wire::write_datum(&mut text, datum, column.column_type.is_map());
                        out.push_str(&format!(
                            " {}={}",
                            column.name,
                            String::from_utf8_lossy(&text)
                        ));
                    }
                }
            }
            out
        })
        .collect()
}

#[test]
fn decoding_does_not_depend_on_earlier_records() {
    let row = |table: &str, columns: &str| {
        format!(r#"{{"{table}":{{"00000000-0000-4000-8000-000000000001":{{{columns}}}}}}}"#)
    };
    let bodies = [
        row("t", r#""i":1,"map":["map",[["a","b"]]],"tags":"x""#),
        row("t", r#""i":2,"map":["map",[["a","c"]]],"tags":"y""#),
        row("t", r#""map":["map",[["a","b"],["c","d"]]],"i":3"#),
        row("u", r#""s":"i""#),
        row(
            "u",
            r#""_uuid":["uuid","00000000-0000-4000-8000-000000000002"],"s":"i""#,
        ),
        row("u", r#""i":1"#),
        row("t", r#""s":"i""#),
        row("t", r#""i":1,"i":2,"two":3"#),
        row("t", r#""two":3,"i":1,"tags":"x""#),
        r#"{"t":{},"u":{},"t":{}}"#.to_owned(),
        row("v", r#""i":1"#),
        row("u", ""),
    ];
    let schema = schema();
    let mut order = FieldOrderCache::default();
    for body in bodies.iter().chain(bodies.iter().rev()) {
        let [alone, after] = [&mut FieldOrderCache::default(), &mut order]
            .map(|order| format!("{:?}", decode(body.as_bytes(), &schema, order)));
        assert_eq!(alone, after, "{body}");
    }
}

#[test]
fn special_members_are_read_in_any_place() {
    let recorded = decoded(r#"{"t":{},"_is_diff":true,"_comment":"c","_date":1700000000000}"#)
        .expect("a transaction");
    assert_eq!(recorded.date_ms, Some(1_700_000_000_000));
    assert_eq!(recorded.comment.as_deref(), Some("c"));
    assert!(recorded.is_diff);
    let bare = decoded("{}\n").expect("a transaction");
    assert_eq!(
        (bare.date_ms, bare.comment, bare.is_diff),
        (None, None, false)
    );
    let odd = decoded(r#"{"_comment":[1],"_date":1}"#).expect("a transaction");
    assert_eq!((odd.date_ms, odd.comment), (Some(1000), None));
}

#[test]
fn rows_keep_values_without_size_limits_in_diffs() {
    assert_eq!(
        rows(r#"{"_is_diff":true,"t":{"U1":{"two":["set",[3,4,9]],"i":2},"U2":null}}"#),
        [
            "t 000000000001 two=[\"set\",[3,4,9]] i=2",
            "t 000000000002 null"
        ]
    );
    assert_eq!(
        rows(r#"{"t":{"U1":{"two":["set",[3,4,9]]}},"_is_diff":true}"#).len(),
        1
    );
}

#[test]
fn values_have_the_size_of_their_column_in_plain_records() {
    let error =
        r#"syntax "["set",[1,2,3]]": syntax error: set must have 1 to 2 members but 3 are present"#;
    for body in [
        r#"{"t":{"U1":{"two":["set",[1,2,3]]}}}"#,
        r#"{"_is_diff":false,"t":{"U1":{"two":["set",[1,2,3]]}}}"#,
        r#"{"t":{"U1":{"two":["set",[1,2,3]]}},"_is_diff":false}"#,
    ] {
        assert_eq!(decoded(body).map(|_| ()), Err(error.into()), "{body}");
    }
}

#[test]
fn last_of_repeated_members_wins() {
    assert_eq!(
        rows(r#"{"t":5,"t":{"U1":{"i":4}}}"#),
        ["t 000000000001 i=4"]
    );
    assert_eq!(
        rows(r#"{"t":{"U2":{}},"t":{"U1":{"i":4}}}"#),
        ["t 000000000001 i=4"]
    );
    assert_eq!(
        rows(r#"{"t":{"U1":{"i":4},"U1":{"two":9}}}"#),
        ["t 000000000001 two=9"]
    );
    assert_eq!(
        rows(r#"{"t":{"U2":{},"U1":{"i":4},"U2":null}}"#),
        ["t 000000000001 i=4", "t 000000000002 null"]
    );
    assert_eq!(
        rows(r#"{"t":{"U1":{"i":"x","i":4}}}"#),
        ["t 000000000001 i=4"]
    );
    assert_eq!(
        decoded(r#"{"_date":5,"_date":7}"#).map(|recorded| recorded.date_ms),
        Ok(Some(7000))
    );
}

#[test]
fn standard_columns_are_ignored() {
    assert_eq!(
        rows(r#"{"t":{"U1":{"_uuid":["uuid","U2"],"_version":5,"i":4}}}"#),
        ["t 000000000001 i=4"]
    );
}

#[test]
fn row_names_are_uuids_in_either_case() {
    let recorded =
        decoded(r#"{"t":{"ABCDEF00-0000-4000-8000-000000000001":{}}}"#).expect("a transaction");
    assert_eq!(
        recorded.rows[0].uuid.to_string(),
        "abcdef00-0000-4000-8000-000000000001"
    );
    assert_ne!(recorded.rows[0].uuid, uuid(1));
}

#[test]
fn errors_name_the_part_that_does_not_fit_the_schema() {
    for (body, error) in [
        (
            r#"{"_date":1,"b":{},"a":[]}"#,
            r#"syntax "{"_date":1,"a":[],"b":{}}": unknown table: No table named a."#,
        ),
        (
            r#"{"_date":"x"}"#,
            r#"syntax "{"_date":"x"}": unknown table: No table named _date."#,
        ),
        (
            r#"{"_date":1.5}"#,
            r#"syntax "{"_date":1.5}": unknown table: No table named _date."#,
        ),
        (
            r#"{"_is_diff":1}"#,
            r#"syntax "{"_is_diff":1}": unknown table: No table named _is_diff."#,
        ),
        (
            r#"{"t":[{"b":1,"a":2}]}"#,
            r#"syntax "[{"a":2,"b":1}]": syntax error: object expected"#,
        ),
        (
            r#"{"t":{"U1":[{"b":1,"a":2}]}}"#,
            r#"syntax "[{"a":2,"b":1}]": syntax error: row must be JSON object"#,
        ),
        (
            r#"{"t":{"xyz":{"i":1}}}"#,
            r#"syntax "{"xyz":{"i":1}}": syntax error: "xyz" is not a valid UUID"#,
        ),
        (
            r#"{"t":{"xyz":null}}"#,
            r#"syntax "{"xyz":null}": syntax error: "xyz" is not a valid UUID"#,
        ),
        (
            r#"{"t":{"U1":{"z":1,"b":3}}}"#,
            r#"syntax "{"b":3,"z":1}": unknown column: No column b in table t."#,
        ),
        (
            r#"{"t":{"U1":{"i":"x"}}}"#,
            r#"syntax ""x"": syntax error: expected integer"#,
        ),
        (
            r#"{"t":{"U1":{"tags":["set",["a",{"z":1,"b":2}]]}}}"#,
            r#"syntax "{"b":2,"z":1}": syntax error: expected string"#,
        ),
        (
            r#"{"t":{"U1":{"tags":["set",["a","a"]]}}}"#,
            "ovsdb error: set contains duplicate",
        ),
    ] {
        assert_eq!(decoded(body).map(|_| ()), Err(error.into()), "{body}");
    }
}
