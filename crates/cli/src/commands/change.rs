//! `set`, `add`, `remove` and `clear`: changes of columns of one record.

use corvid_data::{ColumnId, ColumnType, Datum, TableId, TableSchema, Uuid};

use super::{Context, Output};
use crate::contents::Step;
use crate::failure::Failure;
use crate::grammar::chain::Invocation;
use crate::grammar::{argument, names, record};

const NOTHING: Output = Output::Text(String::new());

pub(super) fn set(context: &mut Context<'_>, invocation: &Invocation) -> Result<Output, Failure> {
    let (table, schema) = context.table(invocation)?;
    let Some(row) = record_of(context, table, invocation)? else {
        return Ok(NOTHING);
    };
    for text in &invocation.args[2..] {
        set_column(context, (table, schema), row, text)?;
    }
    Ok(NOTHING)
}

/// Makes the change of one argument `COLUMN[:KEY]=VALUE`.
pub(super) fn set_column(
    context: &mut Context<'_>,
    (table, schema): (TableId, &TableSchema),
    row: Uuid,
    text: &str,
) -> Result<(), Failure> {
    let argument = argument::with_value(schema, text, &["="])?;
    let column = argument.column;
    context.check_mutable(table, row, column)?;
    let column_type = &schema.column(column).column_type;
    let Some(key) = &argument.key else {
        let value = context.names.read_datum(argument.value, column_type);
        let value = value.map_err(Failure::usage)?;
        context.contents.write(table, row, column, value);
        return Ok(());
    };
    let Some(value_type) = &column_type.value else {
        return Err(Failure::usage(format!(
            "cannot specify key to set for non-map column {}",
            schema.column(column).name
        )));
    };
    let key = context
        .names
        .read_atom(key, &column_type.key)
        .map_err(Failure::usage)?;
    let value = context
        .names
        .read_atom(argument.value, value_type)
        .map_err(Failure::usage)?;
    if context.contents.takes_steps(table, row, column) {
        let keys = Datum::one(key.clone());
        let pair = Datum::pair(key, value);
        for step in [Step::RemoveKeys(keys), Step::Insert(pair)] {
            context.contents.step(table, row, column, step);
        }
        return Ok(());
    }
    let mut datum = context.contents.rely_on(table, row, column)?;
    datum.replace(key, value);
    context.contents.write(table, row, column, datum);
    Ok(())
}

pub(super) fn add(context: &mut Context<'_>, invocation: &Invocation) -> Result<Output, Failure> {
    change_elements(context, invocation, |context, text, many| {
        let added = context.names.read_datum(text, many);
        added.map(Step::Insert).map_err(Failure::usage)
    })
}

pub(super) fn remove(
    context: &mut Context<'_>,
    invocation: &Invocation,
) -> Result<Output, Failure> {
    change_elements(context, invocation, |context, text, many| {
        match context.names.read_datum(text, many) {
            Ok(removed) => Ok(Step::Remove(removed)),
            // Keys alone.
            Err(_) if many.is_map() => {
                let keys = ColumnType {
                    value: None,
                    ..many.clone()
                };
                let keys = context.names.read_datum(text, &keys);
                keys.map(Step::RemoveKeys).map_err(Failure::usage)
            }
            Err(error) => Err(Failure::usage(error)),
        }
    })
}

/// Makes the change of one argument, which may have any number of elements of the type.
type Parse = fn(&mut Context<'_>, &str, &ColumnType) -> Result<Step, Failure>;

/// Changes the elements of one column, by one argument after another.
fn change_elements(
    context: &mut Context<'_>,
    invocation: &Invocation,
    parse: Parse,
) -> Result<Output, Failure> {
    let (table, schema) = context.table(invocation)?;
    let column = names::column(schema, &invocation.args[2])?;
    let Some(row) = record_of(context, table, invocation)? else {
        return Ok(NOTHING);
    };
    context.check_mutable(table, row, column)?;
    let column_type = &schema.column(column).column_type;
    let many = ColumnType {
        min: 1,
        max: u32::MAX,
        ..column_type.clone()
    };
    if context.contents.takes_steps(table, row, column) {
        for text in &invocation.args[3..] {
            let step = parse(context, text, &many)?;
            context.contents.step(table, row, column, step);
        }
        return Ok(NOTHING);
    }
    let mut datum = context.contents.rely_on(table, row, column)?;
    for text in &invocation.args[3..] {
        parse(context, text, &many)?.apply(&mut datum);
    }
    check_count(invocation.command.name, schema, column, &datum)?;
    // A value that this chain sets is replaced as a whole, and may be added to.
    if column_type.is_scalar()
        && invocation.command.name == "add"
        && !context.contents.is_written(table, row, column)
    {
        return Err(Failure::usage(format!(
            "\"add\" operation cannot be applied to column {} of table {}, which has exactly one value",
            schema.column(column).name,
            schema.name
        )));
    }
    context.contents.write(table, row, column, datum);
    Ok(NOTHING)
}

/// Checks the number of elements after a change.
fn check_count(
    command: &str,
    table: &TableSchema,
    column: ColumnId,
    datum: &Datum,
) -> Result<(), Failure> {
    let column = table.column(column);
    let ColumnType { min, max, .. } = column.column_type;
    let count = datum.len();
    if column.column_type.admits(count) {
        return Ok(());
    }
    let noun = match column.column_type.is_map() {
        true => "pairs",
        false => "values",
    };
    let (bound, limit) = match count < min as usize {
        true => ("minimum", min),
        false => ("maximum", max),
    };
    Err(Failure::usage(format!(
        "\"{command}\" operation would put {count} {noun} in column {} of table {} but the {bound} number is {limit}",
        column.name, table.name
    )))
}

pub(super) fn clear(context: &mut Context<'_>, invocation: &Invocation) -> Result<Output, Failure> {
    let (table, schema) = context.table(invocation)?;
    let columns = invocation.args[2..]
        .iter()
        .map(|word| names::column(schema, word))
        .collect::<Result<Vec<_>, _>>()?;
    let Some(row) = record_of(context, table, invocation)? else {
        return Ok(NOTHING);
    };
    for id in columns {
        context.check_mutable(table, row, id)?;
        let column = schema.column(id);
        if column.column_type.min > 0 {
            return Err(Failure::usage(format!(
                "\"clear\" operation cannot be applied to column {} of table {}, which is not allowed to be empty",
                column.name, schema.name
            )));
        }
        context.contents.write(table, row, id, Datum::empty());
    }
    Ok(NOTHING)
}

/// The record that the second argument names; `None` only with `--if-exists`.
fn record_of(
    context: &mut Context<'_>,
    table: TableId,
    invocation: &Invocation,
) -> Result<Option<Uuid>, Failure> {
    let is_optional = invocation.has("--if-exists");
    record::get(
        &mut context.contents,
        table,
        &invocation.args[1],
        is_optional,
    )
}
