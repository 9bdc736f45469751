//! The JSON notation of data: every rule and error of docs/spec/protocol.md 2, from a text file.

use corvid_data::{ColumnType, Datum, Symbols, Uuid, WireError, wire};
use corvid_json::{Reader, Value};

/// Records the names that it resolves.
#[derive(Default)]
struct Names(Vec<String>);

impl Symbols for Names {
    fn resolve(&mut self, name: &str) -> Uuid {
        self.0.push(name.to_owned());
        Uuid([7; 16])
    }
}

fn type_of(text: &str) -> ColumnType {
    let json = Value::parse(text.as_bytes()).expect("JSON");
    ColumnType::from_json(&json).expect("a type")
}

fn read(text: &str, column_type: &ColumnType) -> Result<Datum, WireError> {
    wire::read_datum(&mut Reader::new(text.as_bytes()), column_type, None)
}

fn written(datum: &Datum, column_type: &ColumnType) -> String {
    let mut out = Vec::new();
    wire::write_datum(&mut out, datum, column_type.is_map());
    String::from_utf8(out).expect("UTF-8")
}

#[test]
fn data_read_and_write_back_or_give_their_error() {
    let cases = include_str!("../../testdata/data.txt");
    let mut lines = cases
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut count = 0;
    while let (Some(type_text), Some(text), Some(expected)) =
        (lines.next(), lines.next(), lines.next())
    {
        let column_type = type_of(type_text);
        let mut names = Names::default();
        // Another value follows, where the reader must end up.
        let tail = format!("[{text} , 77]");
        let mut reader = Reader::new(tail.as_bytes());
        reader.begin_array().expect("array");
        assert!(reader.next_element().expect("element"));
        let outcome = wire::read_datum(&mut reader, &column_type, Some(&mut names));
        let found = match &outcome {
            Ok(_) if !names.0.is_empty() => format!("ok named-uuid {}", names.0.join(" ")),
            Ok(datum) => format!("ok {}", written(datum, &column_type)),
            Err(error) => {
                let mut out = b"error ".to_vec();
                error.write_json(&mut out);
                String::from_utf8(out).expect("UTF-8")
            }
        };
        assert_eq!(found, expected, "{text} for {type_text}");
        assert!(
            reader.next_element().expect("the tail"),
            "{text} not consumed"
        );
        if outcome.is_ok() {
            assert_eq!(reader.skip().expect("the tail"), b"77");
        }
        count += 1;
    }
    assert!(count > 180, "only {count} cases");
}

#[test]
fn named_uuids_are_refused_outside_transactions() {
    let error = read(r#"["named-uuid","x"]"#, &type_of("\"uuid\"")).expect_err("no names here");
    assert_eq!(error.details, r#"expected ["uuid", <string>]"#);
}

#[test]
fn differences_have_any_number_of_elements() {
    let column_type = type_of(r#"{"key":"integer","max":2}"#);
    let text = br#"["set",[3,4,9]]"#;
    let diff = wire::read_diff(&mut Reader::new(text), &column_type, None).expect("unlimited");
    assert_eq!(diff.len(), 3);
    let mut datum = read("[\"set\",[3,4]]", &column_type).expect("fits");
    datum.apply_diff(&diff, &column_type).expect("result fits");
    assert_eq!(written(&datum, &column_type), "9");
    let error = datum
        .apply_diff(&diff, &column_type)
        .map(|()| datum.clone());
    assert_eq!(
        written(&error.expect("two again"), &column_type),
        r#"["set",[3,4]]"#
    );
    let before = datum.clone();
    let error = datum
        .apply_diff(&before, &column_type)
        .expect_err("nothing left");
    assert_eq!(
        error.to_string(),
        "ovsdb error: Datum crated by diff has size error"
    );
    assert_eq!(datum, before);
}

#[test]
fn unconstrained_reading_keeps_the_count() {
    let column_type = type_of(r#"{"key":{"type":"integer","maxInteger":5},"min":0}"#);
    let mut reader = Reader::new(b"77");
    let datum = wire::read_datum_unconstrained(&mut reader, &column_type, None).expect("no bound");
    assert_eq!(datum.as_integer(), Some(77));
    let mut reader = Reader::new(br#"["set",[1,2]]"#);
    assert!(wire::read_datum_unconstrained(&mut reader, &column_type, None).is_err());
}

/// The worked examples of docs/spec/storage.md 4.4.
#[test]
fn differences_are_symmetric_or_the_new_value() {
    for (type_text, old, new, diff) in [
        ("\"integer\"", "5", "6", Some("6")),
        (
            r#"{"key":"string","min":0,"max":"unlimited"}"#,
            r#"["set",["a","b"]]"#,
            r#"["set",["b","c"]]"#,
            Some(r#"["set",["a","c"]]"#),
        ),
        (
            r#"{"key":"string","value":"string","min":0,"max":"unlimited"}"#,
            r#"["map",[["k1","v1"],["k2","v2"]]]"#,
            r#"["map",[["k1","w"],["k3","v3"]]]"#,
            Some(r#"["map",[["k1","w"],["k2","v2"],["k3","v3"]]]"#),
        ),
        (
            r#"{"key":"string","value":"string","min":0,"max":"unlimited"}"#,
            r#"["map",[["k1","w"],["k3","v3"]]]"#,
            r#"["map",[]]"#,
            Some(r#"["map",[["k1","w"],["k3","v3"]]]"#),
        ),
        (
            r#"{"key":"integer","max":2}"#,
            "3",
            r#"["set",[3,4]]"#,
            Some("4"),
        ),
        (
            r#"{"key":"integer","max":2}"#,
            r#"["set",[3,4]]"#,
            "9",
            Some(r#"["set",[3,4,9]]"#),
        ),
        (
            r#"{"key":"integer","min":0}"#,
            "3",
            r#"["set",[]]"#,
            Some(r#"["set",[]]"#),
        ),
        (
            r#"{"key":"integer","value":"integer","min":0}"#,
            r#"["map",[[1,2]]]"#,
            r#"["map",[[1,3]]]"#,
            Some(r#"["map",[[1,3]]]"#),
        ),
        (r#"{"key":"integer","max":2}"#, "3", "3", None),
        ("\"integer\"", "3", "3", None),
    ] {
        let column_type = type_of(type_text);
        let old = read(old, &column_type).expect("old");
        let new = read(new, &column_type).expect("new");
        let found = Datum::diff(&old, &new, &column_type);
        assert_eq!(
            found
                .as_ref()
                .map(|found| written(found, &column_type))
                .as_deref(),
            diff
        );
        let mut applied = old.clone();
        if let Some(found) = found {
            applied.apply_diff(&found, &column_type).expect("fits");
        }
        assert_eq!(applied, new);
    }
}

#[test]
fn conversion_equals_reading_the_json_under_the_new_type() {
    for (from, value, to, expected) in [
        (
            "\"integer\"",
            "5",
            r#"{"key":"integer","min":0,"max":"unlimited"}"#,
            Ok("5"),
        ),
        (
            r#"{"key":"integer","min":0,"max":3}"#,
            "[\"set\",[5]]",
            "\"integer\"",
            Ok("5"),
        ),
        ("\"integer\"", "5", "\"real\"", Ok("5")),
        (
            "\"real\"",
            "5.0",
            "\"integer\"",
            Err("syntax \"5\": syntax error: expected integer"),
        ),
        (
            "\"real\"",
            "5.5",
            "\"integer\"",
            Err("syntax \"5.5\": syntax error: expected integer"),
        ),
        (
            "\"string\"",
            "\"5\"",
            "\"integer\"",
            Err("syntax \"\"5\"\": syntax error: expected integer"),
        ),
        (
            r#"{"key":"string","min":0}"#,
            r#"["set",[]]"#,
            r#"{"key":"string","value":"string","min":0}"#,
            Err(r#"syntax "["set",[]]": syntax error: expected ["map", <array>]"#),
        ),
        (
            r#"{"key":"string","value":"string","min":0}"#,
            r#"["map",[]]"#,
            "\"uuid\"",
            Err(r#"syntax "["map",[]]": syntax error: expected ["uuid", <string>]"#),
        ),
        (
            r#"{"key":"string","min":0,"max":2}"#,
            r#"["set",["a","b"]]"#,
            "\"string\"",
            Err(
                r#"syntax "["set",["a","b"]]": syntax error: set must have exactly one member but 2 are present"#,
            ),
        ),
        (
            "\"integer\"",
            "77",
            r#"{"key":{"type":"integer","maxInteger":10}}"#,
            Err("constraint violation: 77 is greater than maximum allowed value 10"),
        ),
    ] {
        let (from, to) = (type_of(from), type_of(to));
        let datum = read(value, &from).expect("fits the old type");
        let found = datum.convert(&from, &to);
        let found = found
            .map(|datum| written(&datum, &to))
            .map_err(|error| error.to_string());
        assert_eq!(found.as_deref().map_err(String::as_str), expected);
    }
}
