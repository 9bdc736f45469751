//! `show-log`: prints the records of a database file in readable form (docs/spec/storage.md 15).

mod cluster;
mod names;

use std::io::{self, Write};

use bstr::BStr;
use corvid_data::{ColumnType, Schema, TableSchema, text, wire};
use corvid_disk::log_file::OpenMode;
use corvid_json::shown::Shown;
use corvid_json::{Object, Reader, Value};
use corvid_log::decode::date_to_ms;
use corvid_log::{Magic, RecordReader};
use corvid_shell::date::utc_text;
use corvid_shell::output::{self, Output};

use super::{Invocation, Outcome};
use crate::failure::Failure;
use crate::tool::answer::Answer;
use crate::tool::database::DatabaseFile;
use names::Names;

/// Prints every record up to the first damaged one.
pub(super) fn show_log(invocation: &Invocation<'_>) -> Outcome {
    let path = invocation.database(0);
    let file = if output::is_terminal() {
        DatabaseFile::open_quietly(&path, OpenMode::ReadOnly)?
    } else {
        DatabaseFile::open(&path)?
    };
    let mut listing = Listing {
        out: Output,
        verbosity: invocation.options.verbosity,
        schema: None,
        names: Names::default(),
    };
    listing.all(file)?;
    Ok(Answer::Yes)
}

/// The state of a listing.
struct Listing<W> {
    out: W,
    /// 0: records; 1: rows too; 2: columns too.
    verbosity: u32,
    schema: Option<Schema>,
    names: Names,
}

impl<W: Write> Listing<W> {
    fn all(&mut self, file: DatabaseFile) -> Result<(), Failure> {
        match file.magic() {
            Magic::Standalone => self.standalone(file),
            Magic::Clustered => self.clustered(file),
        }
    }

    fn standalone(&mut self, file: DatabaseFile) -> Result<(), Failure> {
        let name = file.name().to_owned();
        let mut records = RecordReader::new(file, Magic::Standalone);
        let mut number = 0;
        while let Some(record) = records
            .next_object()
            .map_err(|error| Failure::read(&name, &error))?
        {
            if output::reader_is_gone() {
                break;
            }
            write!(self.out, "record {number}:").map_err(Failure::output)?;
            match &record {
                Value::Object(members) if number > 0 => self.transaction(members),
                _ => {
                    let schema = self.schema.insert(Schema::from_json(&record)?);
                    let Schema {
                        name,
                        version,
                        cksum,
                        ..
                    } = schema;
                    writeln!(
                        self.out,
                        " \"{name}\" schema, version=\"{version}\", cksum=\"{cksum}\"\n"
                    )
                }
            }
            .map_err(Failure::output)?;
            number += 1;
        }
        Ok(())
    }

    /// Lists a transaction: its date and comment on the current line, then rows and columns by
    /// verbosity.
    fn transaction(&mut self, members: &Object) -> io::Result<()> {
        let member = |name: &str| members.get(name.as_bytes());
        if let Some(date) = member("_date").and_then(Value::as_integer) {
            write!(self.out, " {}", utc_text(date_to_ms(date)))?;
        }
        if let Some(Value::String(comment)) = member("_comment") {
            self.out.write_all(b" \"")?;
            write_part(&mut self.out, comment)?;
            self.out.write_all(b"\"")?;
        }
        self.out.write_all(b"\n")?;
        if self.verbosity == 0 {
            return Ok(());
        }
        let is_diff = member("_is_diff").and_then(Value::as_bool) == Some(true);
        let tables = members
            .iter()
            .filter_map(|(name, rows)| Some((name, rows.as_object()?)));
        let mut any = false;
        for (name, rows) in tables {
            any = true;
            for (uuid, row) in rows {
                self.row(
                    &String::from_utf8_lossy(name),
                    &String::from_utf8_lossy(uuid),
                    row,
                    is_diff,
                )?;
            }
        }
        if any {
            self.out.write_all(b"\n")
        } else {
            Ok(())
        }
    }

    fn row(&mut self, table: &str, uuid: &str, row: &Value, is_diff: bool) -> io::Result<()> {
        let short: String = uuid.chars().take(8).collect();
        let short = output::part(&short);
        let named = row.get("name").map(Value::to_string);
        write!(self.out, "  table {} ", output::part(table))?;
        match (self.names.of(uuid), &named) {
            (Some(known), _) => {
                let diff = if is_diff { " diff" } else { "" };
                writeln!(
                    self.out,
                    "row {} ({short}){diff}:",
                    known.as_deref().unwrap_or(short.as_ref())
                )?;
            }
            (None, Some(name)) => writeln!(self.out, "insert row {name} ({short}):")?,
            (None, None) => writeln!(self.out, "insert row {short}:")?,
        }
        if *row == Value::Null {
            self.names.remove(uuid);
            return writeln!(self.out, "    delete row");
        }
        if row.as_object().is_some() {
            self.names.insert(uuid, named);
        }
        if self.verbosity < 2 {
            return Ok(());
        }
        let Listing { out, schema, .. } = self;
        let table = schema
            .as_ref()
            .and_then(|schema| Some(schema.table(schema.table_id(table)?)));
        for (column, value) in row.as_object().into_iter().flatten() {
            out.write_all(b"    ")?;
            write_part(out, column)?;
            let column_type = table.and_then(|table| column_type(table, column));
            writeln!(out, "={}", value_text(value, column_type))?;
        }
        Ok(())
    }
}

/// Writes a text that clients have chosen: exactly, except that its newlines cannot forge records
/// on a terminal.
fn write_part(out: &mut impl Write, text: &[u8]) -> io::Result<()> {
    match output::is_terminal() {
        true => write!(out, "{}", Shown(BStr::new(text))),
        false => out.write_all(text),
    }
}

fn column_type<'a>(table: &'a TableSchema, column: &[u8]) -> Option<&'a ColumnType> {
    let id = table.column_id(std::str::from_utf8(column).ok()?)?;
    Some(&table.column(id).column_type)
}

/// A value in the notation of command lines, or as JSON if it does not fit its column or the column
/// is unknown.
fn value_text(value: &Value, column_type: Option<&ColumnType>) -> String {
    let json = value.to_bytes();
    let typed = column_type.and_then(|column_type| {
        let datum = wire::read_datum(&mut Reader::new(&json), column_type, None).ok()?;
        let mut out = String::new();
        text::write_datum(&mut out, &datum, column_type);
        Some(out)
    });
    typed.unwrap_or_else(|| value.to_string())
}
