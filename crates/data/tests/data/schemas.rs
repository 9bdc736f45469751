//! Schemas: every error of docs/spec/protocol.md 3.5 and the canonical form, from a text file; and
//! the schemas that the packages install.

use corvid_data::{ColumnId, Schema};
use corvid_json::Value;

fn parse(text: &str) -> Result<Schema, String> {
    let json = Value::parse(text.as_bytes()).map_err(|error| error.to_string())?;
    Schema::from_json(&json).map_err(|error| error.to_string())
}

#[test]
fn schemas_give_their_canonical_form_or_their_error() {
    let cases = include_str!("../../testdata/schemas.txt");
    let mut lines = cases
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut count = 0;
    while let (Some(text), Some(expected)) = (lines.next(), lines.next()) {
        let found = match parse(text) {
            Ok(schema) => format!("ok {}", schema.to_json()),
            Err(error) => error.replace('\n', "\\n"),
        };
        assert_eq!(found, expected, "for {text}");
        count += 1;
    }
    assert!(count > 200, "only {count} cases");
}

#[test]
fn canonical_forms_parse_to_the_same_schema() {
    let cases = include_str!("../../testdata/schemas.txt");
    for canonical in cases.lines().filter_map(|line| line.strip_prefix("ok ")) {
        let schema = parse(canonical).expect("canonical forms parse");
        assert_eq!(schema.to_json().to_string(), canonical);
        assert!(parse(canonical).is_ok_and(|again| again.same_as(&schema)));
    }
}

/// The installed schemas are written in canonical form, except for white space and member order.
#[test]
fn installed_schemas_round_trip() {
    for folder in ["/usr/share/openvswitch", "/usr/share/ovn"] {
        let Ok(files) = std::fs::read_dir(folder) else {
            continue;
        };
        for path in files.flatten().map(|file| file.path()) {
            if path
                .extension()
                .is_none_or(|extension| extension != "ovsschema")
            {
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("readable");
            let schema = parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let canonical = schema.to_json().to_string();
            let again = parse(&canonical).expect("canonical");
            assert_eq!(again.to_json().to_string(), canonical);
            assert_eq!(schema.tables().len(), again.tables().len());
        }
    }
}

#[test]
fn names_find_tables_columns_and_references() {
    let schema = parse(
        r#"{"name":"net","version":"1.0.0","tables":{
            "Bridge":{"isRoot":true,"columns":{
                "ports":{"type":{"key":{"type":"uuid","refTable":"Port"},"min":0,"max":"unlimited"}},
                "name":{"type":"string","mutable":false}}, "indexes":[["name"]]},
            "Port":{"columns":{"name":{"type":"string"}}}}}"#,
    )
    .expect("valid");
    let bridge = schema.table(schema.table_id("Bridge").expect("there"));
    assert_eq!(bridge.columns()[0].name.as_str(), "name");
    let ports = bridge.column_id("ports").expect("there");
    let reference = bridge.column(ports).column_type.key.reference.as_ref();
    assert_eq!(
        reference.map(|reference| reference.table),
        schema.table_id("Port")
    );
    assert_eq!(
        bridge.indexes,
        [vec![bridge.column_id("name").expect("there")]]
    );
    assert_eq!(bridge.column_id("_uuid"), Some(ColumnId::UUID));
    assert_eq!(bridge.column(ColumnId::VERSION).name.as_str(), "_version");
    assert_eq!(bridge.column(ColumnId::UUID).name.as_str(), "_uuid");
    assert!(!bridge.column(ColumnId::UUID).mutable);
    assert_eq!(schema.table_id("port"), None);
}

#[test]
fn clustered_databases_refuse_ephemeral_columns() {
    let schema = parse(
        r#"{"name":"d","tables":{"T":{"columns":{"c":{"type":"integer","ephemeral":true}}}}}"#,
    )
    .expect("valid");
    assert_eq!(
        schema.check_clustered().expect_err("ephemeral").to_string(),
        "syntax error: Table T column c is ephemeral but clustered databases do not support ephemeral columns."
    );
}

#[test]
fn tables_and_columns_are_limited_in_number() {
    let many = |count: usize, value: &str| {
        let names = (0..count).map(|number| format!("\"n{number}\":{value}"));
        names.collect::<Vec<_>>().join(",")
    };
    for (count, fits) in [(65_000, true), (65_001, false)] {
        let columns = many(count, r#"{"type":"integer"}"#);
        let wide = format!(r#"{{"name":"d","tables":{{"T":{{"columns":{{{columns}}}}}}}}}"#);
        let tables = many(count, r#"{"columns":{"c":{"type":"integer"}}}"#);
        let long = format!(r#"{{"name":"d","tables":{{{tables}}}}}"#);
        for text in [wide, long] {
            let error = parse(&text).err();
            let expected = "syntax error: more than 65000 tables or columns";
            assert_eq!(error.as_deref(), (!fits).then_some(expected), "{count}");
        }
    }
}
