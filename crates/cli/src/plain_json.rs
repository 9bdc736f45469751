//! Records as plain JSON objects, for `--json` and `--jsonl`: sets are arrays, maps are objects,
//! optional values are `null` or the value, UUIDs are strings.
//!
//! Unlike the notation of the protocol, it does not tell a UUID from a string.

use bstr::BString;
use corvid_data::{AtomRef, ColumnType, Datum, text};
use corvid_json::{Object, Value};
use corvid_tools::table::{Cell, Table};

/// The rows of a table as objects.
pub(crate) fn objects(table: &Table) -> Vec<Value> {
    let object = |row: &Vec<Cell>| {
        let members = table.headings.iter().zip(row);
        Value::Object(
            members
                .map(|(heading, cell)| (BString::from(heading.as_str()), value(cell)))
                .collect::<Object>(),
        )
    };
    table.rows.iter().map(object).collect()
}

fn value(cell: &Cell) -> Value {
    match cell {
        Cell::Datum(datum, column_type) => datum_value(datum, column_type),
        other => other.to_json(),
    }
}

fn datum_value(datum: &Datum, column_type: &ColumnType) -> Value {
    if column_type.is_map() {
        let members = datum.iter().map(|(key, value)| {
            let mut name = String::new();
            text::write_atom_bare(&mut name, key);
            (BString::from(name), value.map_or(Value::Null, atom_value))
        });
        return Value::Object(members.collect::<Object>());
    }
    if column_type.max == 1 {
        return datum.first().map_or(Value::Null, atom_value);
    }
    Value::Array(datum.keys().map(atom_value).collect())
}

fn atom_value(atom: AtomRef<'_>) -> Value {
    match atom {
        AtomRef::Integer(value) => Value::Integer(value),
        AtomRef::Real(value) => Value::Real(value.get()),
        AtomRef::Boolean(value) => Value::Bool(value),
        AtomRef::String(text) => Value::string(&**text),
        AtomRef::Uuid(uuid) => Value::string(uuid.to_text()),
    }
}
