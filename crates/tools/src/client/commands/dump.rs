//! `dump`: prints whole tables with their rows in a stable order (docs/spec/cli.md 3.4).

use std::io::{IsTerminal, Write};
use std::rc::Rc;

use bstr::BString;
use corvid_data::{AtomType, ColumnType, Schema, TableSchema};
use corvid_json::{Object, Value};
use corvid_shell::output::Output;
use corvid_shell::progress::Spinner;

use super::{Invocation, column_names, table_names};
use crate::failure::Failure;
use crate::past::Contents;
use crate::rows::{Column, all_columns, compare};
use crate::session::Session;
use crate::table::{Cell, Printer, Table};

pub(crate) fn dump(session: &mut Session, invocation: &Invocation<'_>) -> Result<(), Failure> {
    let mut contents = Contents::at(
        session,
        &invocation.database,
        invocation.settings.history.at.as_deref(),
        "ovsdb-tool --at=MOMENT dump FILE",
    )?;
    let schema = contents.schema()?;
    let selected = selection(&schema, invocation.args)?;
    let operations = selected
        .iter()
        .map(|(table, columns)| select(table, columns));
    let result = contents.select(operations.collect())?;
    let results = result.as_array().unwrap_or_default();
    if results.len() != selected.len() {
        return Err(Failure::new(format!(
            "`transact' reply has {} results but {} were expected",
            results.len(),
            selected.len()
        )));
    }
    // On a terminal the rows themselves are the progress.
    let _progress = (!std::io::stdout().is_terminal()).then(|| Spinner::new("Writing rows"));
    let mut out = Output;
    let mut printer = Printer::new(invocation.settings.style);
    for ((table, columns), result) in selected.iter().zip(results) {
        let Some(rows) = result.get("rows").and_then(Value::as_array) else {
            let name = &table.name;
            return Err(Failure::new(format!(
                "{name} table reply is not an object with a \"rows\" member array: {result}"
            )));
        };
        let mut printed = Table {
            caption: Some(format!("{} table", table.name)),
            timestamp: None,
            headings: columns.iter().map(|column| column.name.clone()).collect(),
            rows: rows.iter().map(|row| cells(row, columns)).collect(),
        };
        printed.rows.sort_by(|a, b| compare(a, b, columns));
        printer.print(&printed, &mut out)?;
    }
    Ok(out.flush()?)
}

/// The tables and columns that the arguments select: all, one table, or some columns of one table.
fn selection<'a>(
    schema: &'a Schema,
    args: &[String],
) -> Result<Vec<(&'a TableSchema, Vec<Column>)>, Failure> {
    let Some((name, columns)) = args.split_first() else {
        return Ok(schema
            .tables()
            .iter()
            .map(|table| (table, all_columns(table)))
            .collect());
    };
    let id = schema.table_id(name).ok_or_else(|| {
        Failure::new(format!("No table \"{name}\" found.")).suggesting(name, table_names(schema))
    })?;
    let table = schema.table(id);
    if columns.is_empty() {
        return Ok(vec![(table, all_columns(table))]);
    }
    let mut chosen: Vec<Column> = columns
        .iter()
        .map(|column| named(table, column))
        .collect::<Result<_, _>>()?;
    // A row version has no meaning beyond one run of the server, so a dump omits it.
    chosen.retain(|column| column.name != "_version");
    chosen.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(vec![(table, chosen)])
}

fn named(table: &TableSchema, name: &str) -> Result<Column, Failure> {
    let id = table.column_id(name).ok_or_else(|| {
        let failure = Failure::new(format!("Table \"{}\" has no column {name}.", table.name));
        failure.suggesting(name, column_names(table))
    })?;
    let column_type = if id.is_standard() {
        ColumnType::scalar(AtomType::Uuid)
    } else {
        table.column(id).column_type.clone()
    };
    Ok(Column {
        name: name.to_owned(),
        column_type: Rc::new(column_type),
    })
}

fn select(table: &TableSchema, columns: &[Column]) -> Value {
    let columns = columns
        .iter()
        .map(|column| Value::string(&column.name))
        .collect();
    let members = [
        ("op", Value::string("select")),
        ("table", Value::string(&*table.name)),
        ("where", Value::Array(Vec::new())),
        ("columns", Value::Array(columns)),
    ];
    Value::Object(
        members
            .into_iter()
            .map(|(name, value)| (BString::from(name), value))
            .collect::<Object>(),
    )
}

fn cells(row: &Value, columns: &[Column]) -> Vec<Cell> {
    columns
        .iter()
        .map(|column| match row.get(&column.name) {
            None => Cell::Empty,
            Some(value) => Cell::from_json(value, &column.column_type),
        })
        .collect()
}
