//! `list-dbs`, `get-schema*`, `list-tables`, `list-columns`.

use std::io::Write;

use corvid_data::Schema;
use corvid_json::Value;
use corvid_shell::output::{self, Output};
use corvid_shell::program;

use super::{Invocation, print_json, print_line, table_names};
use crate::failure::Failure;
use crate::session::Session;
use crate::suggestion;
use crate::table::{Cell, Printer, Table};

pub(crate) fn list_dbs(session: &mut Session, _invocation: &Invocation<'_>) -> Result<(), Failure> {
    let mut out = Output;
    for name in session.list_dbs()? {
        writeln!(out, "{}", output::part(&name))?;
    }
    Ok(())
}

pub(crate) fn get_schema(
    session: &mut Session,
    invocation: &Invocation<'_>,
) -> Result<(), Failure> {
    let schema = session.schema(&invocation.database)?.to_json();
    print_json(&schema, invocation.settings)
}

pub(crate) fn get_schema_version(
    session: &mut Session,
    invocation: &Invocation<'_>,
) -> Result<(), Failure> {
    print_line(&session.schema(&invocation.database)?.version)
}

pub(crate) fn get_schema_cksum(
    session: &mut Session,
    invocation: &Invocation<'_>,
) -> Result<(), Failure> {
    print_line(&session.schema(&invocation.database)?.cksum)
}

pub(crate) fn list_tables(
    session: &mut Session,
    invocation: &Invocation<'_>,
) -> Result<(), Failure> {
    let schema = session.schema(&invocation.database)?;
    let rows = schema
        .tables()
        .iter()
        .map(|table| vec![Cell::Text(table.name.to_string())])
        .collect();
    let table = Table {
        headings: vec!["Table".to_owned()],
        rows,
        ..Table::default()
    };
    Ok(Printer::new(invocation.settings.style).print(&table, &mut Output)?)
}

pub(crate) fn list_columns(
    session: &mut Session,
    invocation: &Invocation<'_>,
) -> Result<(), Failure> {
    let schema = session.schema(&invocation.database)?;
    let only = invocation.args.first();
    let mut headings = vec!["Column".to_owned(), "Type".to_owned()];
    if only.is_none() {
        headings.insert(0, "Table".to_owned());
    }
    if let Some(name) = only
        && schema.table_id(name).is_none()
        && let Some(meant) = suggestion::nearest(name, table_names(&schema))
    {
        // The reference prints an empty listing.
        let question = suggestion::question(meant);
        output::error_line(format_args!("{}: {question}", program::prefix()));
    }
    let mut rows = Vec::new();
    for table in schema
        .tables()
        .iter()
        .filter(|table| only.is_none_or(|name| **name == *table.name))
    {
        for (column, type_json) in columns(&schema, &table.name) {
            let mut row = vec![Cell::Text(column), Cell::Json(type_json)];
            if only.is_none() {
                row.insert(0, Cell::Text(table.name.to_string()));
            }
            rows.push(row);
        }
    }
    let table = Table {
        headings,
        rows,
        ..Table::default()
    };
    Ok(Printer::new(invocation.settings.style).print(&table, &mut Output)?)
}

/// The names and types of a table's columns in name order, including the standard columns.
fn columns(schema: &Schema, table: &str) -> Vec<(String, Value)> {
    let json = schema.to_json();
    let uuid = || Value::string("uuid");
    let mut columns = vec![
        ("_uuid".to_owned(), uuid()),
        ("_version".to_owned(), uuid()),
    ];
    let own = json
        .get("tables")
        .and_then(|tables| tables.get(table))
        .and_then(|table| table.get("columns"));
    for (name, column) in own.and_then(Value::as_object).into_iter().flatten() {
        columns.push((
            name.to_string(),
            column.get("type").cloned().unwrap_or(Value::Null),
        ));
    }
    columns.sort_by(|a, b| a.0.cmp(&b.0));
    columns
}
