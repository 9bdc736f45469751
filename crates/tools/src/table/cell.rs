//! One cell of a table: empty, plain text, any JSON, or a datum with its type.

use std::rc::Rc;

use corvid_data::{AtomRef, ColumnType, Datum, text, wire};
use corvid_json::Value;

/// The form of data (`--data`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellStyle {
    /// `[a, "b c"]`
    String,
    /// `a b c`
    Bare,
    /// `["set",["a","b c"]]`
    Json,
}

impl CellStyle {
    /// The style named `name` on the command line.
    #[must_use]
    pub fn parse(name: &str) -> Option<CellStyle> {
        Some(match name {
            "string" => CellStyle::String,
            "bare" => CellStyle::Bare,
            "json" => CellStyle::Json,
            _ => return None,
        })
    }
}

/// The content of a cell.
#[derive(Clone, Debug)]
pub enum Cell {
    /// No value.
    Empty,
    /// Unchanged text.
    Text(String),
    /// JSON, in every style.
    Json(Value),
    /// A column's value.
    Datum(Datum, Rc<ColumnType>),
    /// A column's value, with the JSON that the server sent. In the JSON style, that JSON is
    /// printed: monitors print `1000000000000000` where a dump prints `1e+15`.
    Received(Value, Rc<ColumnType>),
}

impl Cell {
    /// Parses a value by its column's type, or as any JSON if it does not fit the type.
    #[must_use]
    pub fn from_json(value: &Value, column_type: &Rc<ColumnType>) -> Cell {
        let bytes = value.to_bytes();
        match wire::read_datum(&mut corvid_json::Reader::new(&bytes), column_type, None) {
            Ok(datum) => Cell::Datum(datum, column_type.clone()),
            Err(_) => Cell::Json(value.clone()),
        }
    }

    /// The printed text.
    #[must_use]
    pub fn to_text(&self, style: CellStyle) -> String {
        match self {
            Cell::Empty => String::new(),
            Cell::Text(text) => text.clone(),
            Cell::Json(value) => value.to_string(),
            Cell::Received(value, _) if style == CellStyle::Json => value.to_string(),
            Cell::Received(value, column_type) => {
                Cell::from_json(value, column_type).to_text(style)
            }
            Cell::Datum(datum, column_type) => {
                let mut out = String::new();
                match style {
                    CellStyle::String => text::write_datum(&mut out, datum, column_type),
                    CellStyle::Bare => text::write_datum_bare(&mut out, datum, column_type),
                    CellStyle::Json => out = self.to_json().to_string(),
                }
                out
            }
        }
    }

    /// The JSON value.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match self {
            Cell::Empty => Value::Null,
            Cell::Text(text) => Value::string(&**text),
            Cell::Json(value) | Cell::Received(value, _) => value.clone(),
            Cell::Datum(datum, column_type) => datum_json(datum, column_type.is_map()),
        }
    }
}

/// A datum as JSON. The tree is built from the datum rather than parsed from its wire form: parsing
/// would turn a real like `1e+15` into an integer, which would be printed as such.
fn datum_json(datum: &Datum, is_map: bool) -> Value {
    let mut members: Vec<Value> = datum
        .iter()
        .map(|(key, value)| match value {
            Some(value) => Value::Array(vec![atom_json(key), atom_json(value)]),
            None => atom_json(key),
        })
        .collect();
    if !is_map && members.len() == 1 {
        return members.remove(0);
    }
    let tag = if is_map { "map" } else { "set" };
    Value::Array(vec![Value::string(tag), Value::Array(members)])
}

fn atom_json(atom: AtomRef<'_>) -> Value {
    match atom {
        AtomRef::Integer(value) => Value::Integer(value),
        AtomRef::Real(value) => Value::Real(value.get()),
        AtomRef::Boolean(value) => Value::Bool(value),
        AtomRef::String(text) => Value::string(&**text),
        AtomRef::Uuid(uuid) => {
            Value::Array(vec![Value::string("uuid"), Value::string(uuid.to_text())])
        }
    }
}
