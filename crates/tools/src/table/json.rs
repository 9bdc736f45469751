//! `--format=json`: one object per table.

use std::io::{self, Write};

use bstr::BString;
use corvid_json::{Object, Value};

use super::{Cell, Style, Table};

pub(super) fn print(table: &Table, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let mut object = Object::new();
    if let Some(caption) = &table.caption {
        object.insert(BString::from("caption"), Value::string(caption));
    }
    if let Some(time) = &table.timestamp {
        object.insert(BString::from("time"), Value::string(time));
    }
    let headings = table.headings.iter().map(Value::string).collect();
    object.insert(BString::from("headings"), Value::Array(headings));
    let data = table
        .rows
        .iter()
        .map(|row| Value::Array(row.iter().map(Cell::to_json).collect()))
        .collect();
    object.insert(BString::from("data"), Value::Array(data));
    let mut bytes = Vec::new();
    if style.pretty {
        Value::Object(object).write_pretty(&mut bytes);
    } else {
        Value::Object(object).write(&mut bytes);
    }
    bytes.push(b'\n');
    out.write_all(&bytes)
}
