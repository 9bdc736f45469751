//! The notations of data, and schemas.

use std::sync::OnceLock;

use corvid_data::{Arc, ColumnType, Datum, Schema, TableSchema, text, wire};
use corvid_json::{Reader, Value};

/// The schema of the targets that need one. It contains every kind of column, strong and weak
/// references, limits and indexes.
pub(super) fn fixture() -> Arc<Schema> {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    let parse = || {
        let json = Value::parse(include_bytes!("../../corpus/schema/fixture"))
            .expect("the fixture is JSON");
        Schema::from_json(&json).expect("the fixture is a schema")
    };
    Arc::new(SCHEMA.get_or_init(parse).clone())
}

/// Returns the types of all columns, in schema order.
fn column_types(schema: &Schema) -> Vec<&ColumnType> {
    schema
        .tables()
        .iter()
        .flat_map(TableSchema::columns)
        .map(|column| &column.column_type)
        .collect()
}

/// The notations of data under every column type of the fixture. A datum that can be read can be
/// written, and its text reads back as the same datum.
///
/// # Panics
/// If one of these invariants is broken.
pub fn notation(input: &[u8]) {
    let schema = fixture();
    let mut whole = Reader::new(input);
    // The argument of a command cannot contain a NUL.
    let as_text = std::str::from_utf8(input)
        .ok()
        .filter(|text| !text.contains('\0'));
    let is_json = whole.skip().and_then(|_| whole.end()).is_ok();
    for column_type in column_types(&schema) {
        if is_json && let Ok(datum) = wire::read_datum(&mut Reader::new(input), column_type, None) {
            read_back(&datum, column_type);
        }
        if is_json && let Ok(datum) = wire::read_diff(&mut Reader::new(input), column_type, None) {
            assert!(wire_text(&datum, column_type).starts_with(|first| first != ' '));
        }
        if let Some(as_text) = as_text
            && let Ok(datum) = text::read_datum(as_text, column_type, &mut |_| None)
        {
            let mut shown = String::new();
            text::write_datum(&mut shown, &datum, column_type);
            let again = text::read_datum(&shown, column_type, &mut |_| None);
            let again = again.unwrap_or_else(|error| panic!("{shown} does not read back: {error}"));
            assert_eq!(
                wire_text(&again, column_type),
                wire_text(&datum, column_type)
            );
        }
    }
}

fn wire_text(datum: &Datum, column_type: &ColumnType) -> String {
    let mut out = Vec::new();
    wire::write_datum(&mut out, datum, column_type.is_map());
    String::from_utf8(out).expect("data are UTF-8")
}

/// A datum that is written, read and written again gives the same text. The datum itself may
/// differ, because reals lose digits.
fn read_back(datum: &Datum, column_type: &ColumnType) {
    let first = wire_text(datum, column_type);
    // Two reals that are written with the same text are duplicates when they are read back.
    if let Ok(again) = wire::read_datum(&mut Reader::new(first.as_bytes()), column_type, None) {
        assert_eq!(wire_text(&again, column_type), first);
    } else {
        assert!(first.contains(['.', 'e']), "{first} does not read back");
    }
}

/// Schemas: an accepted schema has a canonical form, which is accepted as the same schema.
///
/// # Panics
/// If one of these invariants is broken.
pub fn schema(input: &[u8]) {
    let Ok(json) = Value::parse_text(input) else {
        return;
    };
    let Ok(schema) = Schema::from_json(&json) else {
        return;
    };
    let canonical = schema.to_json();
    // Bounds lose digits when they are written, so the text is compared only after it has been read
    // back once.
    let text = canonical.to_bytes();
    let again =
        Schema::from_json(&Value::parse(&text).expect("canonical text")).expect("canonical schema");
    assert_eq!(again.to_json().to_bytes(), text);
    assert!(again.same_as(&Schema::from_json(&again.to_json()).expect("canonical schema")));
}
