//! `dump`: prints whole tables, as `ovsdb-client dump` does, now or at a moment.

use std::io::Write;
use std::rc::Rc;

use corvid_data::{Atom, ColumnType, Datum, Row};
use corvid_engine::Database;
use corvid_shell::output::{self, Output};

use super::{Invocation, Outcome};
use crate::failure::Failure;
use crate::rows::{Column, all_columns, compare};
use crate::table::{Cell, Format, Printer, Style, Table};
use crate::tool::answer::Answer;
use crate::tool::history;
use crate::uuids::RandomUuids;

/// Prints one table or all of them.
pub(super) fn dump(invocation: &Invocation<'_>) -> Outcome {
    let mut uuids = RandomUuids::new()?;
    let moment = invocation.options.history.at.as_deref().unwrap_or("HEAD");
    let database = history::state_at(&invocation.database(0), moment, &mut uuids)?;
    let tables = database.schema().iter();
    let chosen: Vec<_> = match invocation.args.get(1) {
        None => tables.collect(),
        Some(name) => {
            let chosen: Vec<_> = tables.filter(|(_, table)| *table.name == **name).collect();
            if chosen.is_empty() {
                let names = database.schema().tables().iter().map(|table| &*table.name);
                let failure = Failure::new(format!("No table \"{name}\" found."));
                return Err(failure.suggesting(name, names));
            }
            chosen
        }
    };
    let mut printer = Printer::new(Style {
        format: if invocation.options.history.json {
            Format::Json
        } else {
            Format::Table
        },
        is_shown: output::is_terminal(),
        ..Style::default()
    });
    let mut out = Output;
    for (id, table) in chosen {
        let columns = all_columns(table);
        let mut printed = Table {
            caption: Some(format!("{} table", table.name)),
            timestamp: None,
            headings: columns.iter().map(|column| column.name.clone()).collect(),
            rows: database
                .rows(id)
                .map(|row| cells(&database, id, row, &columns))
                .collect(),
        };
        printed.rows.sort_by(|a, b| compare(a, b, &columns));
        printer.print(&printed, &mut out).map_err(Failure::output)?;
    }
    out.flush().map_err(Failure::output)?;
    Ok(Answer::Yes)
}

fn cells(
    database: &Database,
    table: corvid_data::TableId,
    row: &Row,
    columns: &[Column],
) -> Vec<Cell> {
    let described = database.schema().table(table);
    let cell = |column: &Column| {
        let id = described.column_id(&column.name)?;
        let datum = match id.is_standard() {
            true => Datum::one(Atom::Uuid(row.uuid)),
            false => row.columns.get(usize::from(id.0))?.clone(),
        };
        let column_type: Rc<ColumnType> = column.column_type.clone();
        Some(Cell::Datum(datum, column_type))
    };
    columns
        .iter()
        .map(|column| cell(column).unwrap_or(Cell::Empty))
        .collect()
}
