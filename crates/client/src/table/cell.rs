//! One cell: nothing, plain text, any JSON, or a datum with its type.

use std::rc::Rc;

use corvid_data::{ColumnType, Datum, text, wire};
use corvid_json::Value;

/// How data become text (`--data`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CellStyle {
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
    pub(crate) fn parse(name: &str) -> Option<CellStyle> {
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
pub(crate) enum Cell {
    /// No value.
    Empty,
    /// Text as it is.
    Text(String),
    /// JSON in every style.
    Json(Value),
    /// A column's value.
    Datum(Datum, Rc<ColumnType>),
}

impl Cell {
    /// A value read as a column type, or as JSON where it does not fit.
    #[must_use]
    pub(crate) fn from_json(value: &Value, column_type: &Rc<ColumnType>) -> Cell {
        let bytes = value.to_bytes();
        match wire::read_datum(&mut corvid_json::Reader::new(&bytes), column_type, None) {
            Ok(datum) => Cell::Datum(datum, column_type.clone()),
            Err(_) => Cell::Json(value.clone()),
        }
    }

    /// The text that is printed.
    #[must_use]
    pub(crate) fn to_text(&self, style: CellStyle) -> String {
        match self {
            Cell::Empty => String::new(),
            Cell::Text(text) => text.clone(),
            Cell::Json(value) => value.to_string(),
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
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Cell::Empty => Value::Null,
            Cell::Text(text) => Value::string(text),
            Cell::Json(value) => value.clone(),
            Cell::Datum(datum, column_type) => {
                let mut bytes = Vec::new();
                wire::write_datum(&mut bytes, datum, column_type.is_map());
                Value::parse(&bytes).unwrap_or(Value::Null)
            }
        }
    }
}
