//! `schema check`, `schema diff` and `schema doc`: schemas in files, without a server if both are.

use std::fs;
use std::rc::Rc;

use corvid_data::{ColumnId, ColumnType, Schema, TableSchema};
use corvid_net::errno;
use corvid_shell::output;

use super::schema_check::{self, Fault};
use super::schema_diff::{self, Loss};
use super::schema_doc;
use crate::contents::Source;
use crate::failure::Failure;
use crate::grammar::chain::Invocation;
use crate::server::{self, Server};
use crate::settings::Settings;

/// The forms of the command, with the numbers of their arguments.
const FORMS: [(&str, std::ops::RangeInclusive<usize>); 3] =
    [("check", 1..=1), ("diff", 1..=2), ("doc", 0..=1)];

pub(super) fn schema(invocation: &Invocation, settings: &Settings) -> Result<(), Failure> {
    let (form, files) = (invocation.args[0].as_str(), &invocation.args[1..]);
    let Some((_, counts)) = FORMS.iter().find(|(name, _)| *name == form) else {
        let failure = Failure::usage(format!("unknown command 'schema {form}'"));
        return Err(failure.suggesting(form, FORMS.iter().map(|(name, _)| *name)));
    };
    if !counts.contains(&files.len()) {
        return Err(Failure::usage(format!(
            "'schema {form}' takes {} to {} files",
            counts.start(),
            counts.end()
        )));
    }
    match (form, files) {
        ("check", [file]) => check(file),
        ("diff", [old, new]) => print_losses(&schema_diff::losses(&read(old)?, &read(new)?)),
        ("diff", [new]) => diff_with_server(&read(new)?, settings),
        ("doc", [file]) => {
            output::print(schema_doc::markdown(&read(file)?));
            Ok(())
        }
        _ => {
            let mut server = Server::connect(settings)?;
            server.choose(settings.database.as_deref())?;
            output::print(schema_doc::markdown(&server.schema()?));
            Ok(())
        }
    }
}

/// The text of a file.
///
/// # Errors
/// The file cannot be read.
fn text_of(file: &str) -> Result<Vec<u8>, Failure> {
    fs::read(file).map_err(|error| Failure::no_match(format!("{file}: {}", errno::text(&error))))
}

/// The schema in a file, which must be valid.
fn read(file: &str) -> Result<Schema, Failure> {
    schema_check::parse(&text_of(file)?).map_err(|faults| {
        let fault = faults.first().map(Fault::to_string).unwrap_or_default();
        Failure::no_match(format!("{file}:{fault}"))
    })
}

fn check(file: &str) -> Result<(), Failure> {
    let schema = match schema_check::parse(&text_of(file)?) {
        Ok(schema) => schema,
        Err(faults) => {
            for fault in &faults {
                output::line(output::part(&format!("{file}:{fault}")));
            }
            return Err(Failure::no_match(format!(
                "{file}: not a valid schema ({} faults)",
                faults.len()
            )));
        }
    };
    let columns: usize = schema.tables().iter().map(|it| it.columns().len()).sum();
    output::line(output::part(&format!(
        "{file}: schema {} {}, {} tables, {columns} columns",
        schema.name,
        schema.version,
        schema.tables().len()
    )));
    for warning in schema_check::warnings(&schema) {
        output::line(output::part(&format!("{file}: warning: {warning}")));
    }
    Ok(())
}

fn print_losses(losses: &[Loss]) -> Result<(), Failure> {
    for loss in losses {
        output::line(output::part(&loss.to_string()));
    }
    Ok(())
}

/// Compares the schema of the server's database with a new one, on the present rows.
fn diff_with_server(new: &Schema, settings: &Settings) -> Result<(), Failure> {
    let mut server = Server::connect(settings)?;
    let database = settings.database.as_deref().unwrap_or(new.name.as_str());
    server.choose(Some(database))?;
    let old = server.schema()?;
    for loss in schema_diff::losses(&old, new) {
        let found = rows_of(&mut server, &old, new, &loss)?;
        output::line(output::part(&format!("{loss}{found}")));
    }
    Ok(())
}

/// The number of present rows that a loss concerns.
fn rows_of(
    server: &mut Server,
    old: &Schema,
    new: &Schema,
    loss: &Loss,
) -> Result<String, Failure> {
    let Some(table) = loss.table().and_then(|name| old.table_id(name)) else {
        return Ok(String::new());
    };
    let table = old.table(table);
    let column = loss.column().and_then(|name| table.column_id(name));
    let wanted: Vec<ColumnId> = column.into_iter().collect();
    let rows = server.select(table, &[], &wanted)?;
    let count = |does_count: &dyn Fn(&corvid_data::Datum) -> bool| {
        let values = rows.iter().filter_map(|row| row.values.first());
        values.filter(|value| does_count(value)).count()
    };
    Ok(match (loss, column) {
        (Loss::Table(_), _) => format!(": {} rows", rows.len()),
        (Loss::Column(..), Some(id)) => {
            let column_type = &table.column(id).column_type;
            let used = count(&|value| !value.is_default(column_type));
            format!(": {used} of {} rows have a value", rows.len())
        }
        (Loss::Type { .. }, Some(id)) => {
            let Some(new_type) = type_in(new, table, id) else {
                return Ok(String::new());
            };
            let is_map = table.column(id).column_type.is_map();
            let misfits = count(&|value| !server::fits(value, is_map, &new_type));
            format!(": {misfits} of {} rows do not fit", rows.len())
        }
        _ => String::new(),
    })
}

/// The type of the same column in another schema.
fn type_in(schema: &Schema, table: &TableSchema, column: ColumnId) -> Option<Rc<ColumnType>> {
    let same = schema.table(schema.table_id(&table.name)?);
    let id = same.column_id(&table.column(column).name)?;
    Some(Rc::new(same.column(id).column_type.clone()))
}
