//! `list` and `find`: tables of records.

use std::rc::Rc;

use corvid_data::{ColumnId, TableId, TableSchema, Uuid};
use corvid_tools::rows::{self, Column};
use corvid_tools::table::{Cell, Table};

use super::{Context, Output};
use crate::failure::{Failure, Kind};
use crate::grammar::chain::Invocation;
use crate::grammar::condition::Conditions;
use crate::grammar::{names, record, where_form};

pub(super) fn list(context: &mut Context<'_>, invocation: &Invocation) -> Result<Output, Failure> {
    let (table, schema) = context.table(invocation)?;
    if invocation.has("--where") {
        let columns = names::listed(schema, invocation)?;
        let rows = matching(context, table, invocation, &[], &columns)?;
        return print(context, (table, schema), &columns, &rows, true);
    }
    let columns = names::columns(schema, invocation.value("--columns"))?;
    let words = &invocation.args[1..];
    if words.is_empty() {
        let rows = matching(context, table, invocation, &[], &columns)?;
        return print(context, (table, schema), &columns, &rows, true);
    }
    let is_optional = invocation.has("--if-exists");
    let mut rows = Vec::new();
    for word in words {
        let found = record::get(&mut context.contents, table, word, is_optional);
        rows.extend(found.map_err(|failure| match failure.kind {
            Kind::NoMatch => suggesting_columns(failure, schema, words),
            _ => failure,
        })?);
    }
    // In the order of the command line.
    print(context, (table, schema), &columns, &rows, false)
}

/// Suggests `--columns` if the words are columns instead of records.
fn suggesting_columns(failure: Failure, schema: &TableSchema, words: &[String]) -> Failure {
    match words.iter().all(|word| names::column(schema, word).is_ok()) {
        true => failure.meaning(format!("--columns={}", words.join(","))),
        false => failure,
    }
}

pub(super) fn find(context: &mut Context<'_>, invocation: &Invocation) -> Result<Output, Failure> {
    let (table, schema) = context.table(invocation)?;
    let columns = names::columns(schema, invocation.value("--columns"))?;
    let rows = matching(context, table, invocation, &invocation.args[1..], &columns)?;
    print(context, (table, schema), &columns, &rows, true)
}

/// The rows that satisfy the conditions and `--where`, with these columns read.
pub(super) fn matching(
    context: &mut Context<'_>,
    table: TableId,
    invocation: &Invocation,
    conditions: &[String],
    columns: &[ColumnId],
) -> Result<Vec<Uuid>, Failure> {
    let schema = context.contents.schema().table(table);
    let expression = invocation
        .value("--where")
        .map(|text| where_form::parse(&mut context.contents, table, text))
        .transpose()?;
    let conditions = Conditions::parse(schema, conditions, &mut context.names);
    let mut clauses = conditions.clauses();
    let mut needed: Vec<ColumnId> = conditions
        .columns()
        .chain(columns.iter().copied())
        .collect();
    if let Some(expression) = &expression {
        clauses.extend(expression.clauses());
        needed.extend(expression.columns());
    }
    let mut rows = Vec::new();
    for row in context.contents.rows(table, &clauses, &needed)? {
        let mut read = |column| context.contents.read(table, row, column);
        let is_selected = match &expression {
            Some(expression) => expression.holds(&mut read)?,
            None => true,
        };
        if is_selected && conditions.hold(read)? {
            rows.push(row);
        }
    }
    Ok(rows)
}

/// The rows as a table, sorted by their contents if their order is not the user's.
fn print(
    context: &mut Context<'_>,
    (table, schema): (TableId, &TableSchema),
    columns: &[ColumnId],
    rows: &[Uuid],
    is_sorted: bool,
) -> Result<Output, Failure> {
    let columns_of: Vec<Column> = columns
        .iter()
        .map(|id| {
            let column = schema.column(*id);
            Column {
                name: column.name.to_string(),
                column_type: Rc::new(column.column_type.clone()),
            }
        })
        .collect();
    let mut cells = Vec::with_capacity(rows.len());
    for row in rows {
        let values = context.values(table, *row, columns)?;
        let row = values.into_iter().zip(&columns_of);
        cells.push(
            row.map(|(value, column)| Cell::Datum(value, column.column_type.clone()))
                .collect::<Vec<Cell>>(),
        );
    }
    if is_sorted {
        cells.sort_by(|a, b| rows::compare(a, b, &columns_of));
    }
    Ok(Output::Table(Table {
        headings: columns_of.into_iter().map(|column| column.name).collect(),
        rows: cells,
        ..Table::default()
    }))
}
