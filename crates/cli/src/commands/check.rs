//! The names in a chain, checked before the first command runs.
//!
//! So a wrong name in any command is reported rather than what an earlier command finds, as by the
//! reference, which asks the server for the named columns alone.

use corvid_data::Schema;

use crate::contents::Contents;
use crate::failure::Failure;
use crate::grammar::chain::Invocation;
use crate::grammar::{argument, names};

/// Which arguments of a command begin with the name of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Columns {
    /// The command has no table.
    NoTable,
    /// The first argument is a table; no argument is about a column.
    None,
    /// This one is the name alone.
    At(usize),
    /// From this one on they are names alone.
    WordsFrom(usize),
    /// From this one on they are `COLUMN[:KEY]`, with or without a value.
    From(usize),
}

/// Lets the columns that a command reads of rows which it names be read together with the names.
///
/// # Errors
/// As for [`check`].
pub(crate) fn want(contents: &mut Contents<'_>, invocation: &Invocation) -> Result<(), Failure> {
    let args = &invocation.args;
    let is_reading = matches!(invocation.command.name, "get" | "wait-until" | "list");
    if !is_reading || args.len() < 2 || invocation.has("--where") {
        return Ok(());
    }
    let schema = contents.schema();
    let id = names::table(schema, &args[0])?;
    let table = schema.table(id);
    let columns = match invocation.command.columns {
        Columns::From(first) => args[first..]
            .iter()
            .filter(|text| !text.eq_ignore_ascii_case("_uuid"))
            .map(|text| argument::column(table, text))
            .collect::<Result<_, _>>()?,
        _ => names::columns(table, invocation.value("--columns"))?,
    };
    contents.want(id, &columns);
    Ok(())
}

/// Checks the names of tables and columns of a command.
///
/// # Errors
/// A name is unknown or ambiguous.
pub(crate) fn check(schema: &Schema, invocation: &Invocation) -> Result<(), Failure> {
    let columns = invocation.command.columns;
    let args = &invocation.args;
    if columns == Columns::NoTable {
        return Ok(());
    }
    let table = schema.table(names::table(schema, &args[0])?);
    // With `--where`, the words of `list` are columns.
    match columns == Columns::None && invocation.has("--where") {
        true => names::listed(table, invocation)?,
        false => names::columns(table, invocation.value("--columns"))?,
    };
    match columns {
        Columns::NoTable | Columns::None => {}
        Columns::At(at) => {
            names::column(table, &args[at])?;
        }
        Columns::WordsFrom(first) => {
            for word in &args[first..] {
                names::column(table, word)?;
            }
        }
        Columns::From(first) => {
            for text in &args[first..] {
                if !text.eq_ignore_ascii_case("_uuid") {
                    argument::column(table, text)?;
                }
            }
        }
    }
    Ok(())
}
