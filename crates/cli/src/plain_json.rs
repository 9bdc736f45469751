//! Records as plain JSON objects, for `--json` and `--jsonl`: sets are arrays, maps are objects,
//! optional values are `null` or the value, UUIDs are strings. Members have the order of the
//! columns.
//!
//! Unlike the notation of the protocol, it does not tell a UUID from a string.

use bstr::BString;
use corvid_data::{AtomRef, ColumnType, Datum, text};
use corvid_json::writer::ObjectWriter;
use corvid_json::{Object, Value};
use corvid_tools::table::{Cell, Table};

/// The rows of a table as texts of objects.
pub(crate) fn objects(table: &Table) -> Vec<String> {
    let object = |row: &Vec<Cell>| {
        let mut bytes = Vec::new();
        let mut object = ObjectWriter::new(&mut bytes);
        for (heading, cell) in table.headings.iter().zip(row) {
            value(cell).write(object.member(heading));
        }
        object.end();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    table.rows.iter().map(object).collect()
}

/// Objects as one array. With `is_pretty`, each member has a line of its own.
pub(crate) fn array(tables: &[Table], is_pretty: bool) -> String {
    if !is_pretty {
        let all: Vec<String> = tables.iter().flat_map(objects).collect();
        return format!("[{}]", all.join(","));
    }
    let object = |headings: &[String], row: &[Cell]| {
        let members = headings.iter().zip(row).map(|(heading, cell)| {
            let mut bytes = Vec::new();
            Value::string(heading.as_str()).write(&mut bytes);
            bytes.extend_from_slice(b": ");
            value(cell).write_pretty(&mut bytes);
            // The newlines are all between values: strings have theirs escaped.
            let text = String::from_utf8_lossy(&bytes);
            format!("    {}", text.trim_end().replace('\n', "\n    "))
        });
        format!("  {{\n{}\n  }}", members.collect::<Vec<_>>().join(",\n"))
    };
    let all: Vec<String> = tables
        .iter()
        .flat_map(|table| table.rows.iter().map(|row| object(&table.headings, row)))
        .collect();
    match all.is_empty() {
        true => "[]".to_owned(),
        false => format!("[\n{}\n]", all.join(",\n")),
    }
}

fn value(cell: &Cell) -> Value {
    match cell {
        Cell::Datum(datum, column_type) => datum_value(datum, column_type),
        other => other.to_json(),
    }
}

/// A datum as plain JSON.
pub(crate) fn datum_value(datum: &Datum, column_type: &ColumnType) -> Value {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let text = |text: &str| Cell::Text(text.to_owned());
        Table {
            headings: ["z", "a"].map(str::to_owned).to_vec(),
            rows: vec![vec![
                text("1\n"),
                Cell::Json(Value::Array(vec![Value::Null])),
            ]],
            ..Table::default()
        }
    }

    #[test]
    fn members_have_the_order_of_the_columns() {
        assert_eq!(objects(&table()), [r#"{"z":"1\n","a":[null]}"#]);
        assert_eq!(
            array(&[table(), table()], false).matches("{\"z\"").count(),
            2
        );
        assert_eq!(array(&[], true), "[]");
    }

    #[test]
    fn pretty_objects_are_the_same_values() {
        let pretty = array(&[table(), table()], true);
        assert!(
            pretty.starts_with("[\n  {\n    \"z\": \"1\\n\",\n    \"a\": ["),
            "{pretty}"
        );
        let parse = |text: &str| Value::parse_text(text.as_bytes()).unwrap();
        assert_eq!(parse(&pretty), parse(&array(&[table(), table()], false)));
    }
}
