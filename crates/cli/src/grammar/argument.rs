//! Arguments about a column: `COLUMN`, `COLUMN:KEY`, `COLUMN[:KEY]=VALUE`, and operators other than
//! `=` in conditions.

use corvid_data::text::read_word;
use corvid_data::{ColumnId, TableSchema};

use super::names;
use crate::failure::Failure;

/// A parsed argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Argument<'a> {
    /// The column.
    pub column: ColumnId,
    /// The text of the key.
    pub key: Option<String>,
    /// The index of the operator among those allowed.
    pub operator: usize,
    /// The text after the operator; empty if the argument has none.
    pub value: &'a str,
}

/// Parses `COLUMN[:KEY]`.
///
/// # Errors
/// The column is unknown, or more text follows.
pub(crate) fn without_value<'a>(
    table: &TableSchema,
    text: &'a str,
) -> Result<Argument<'a>, Failure> {
    let (argument, rest) = start(table, text)?;
    if !rest.is_empty() {
        return Err(Failure::usage(format!(
            "{text}: trailing garbage \"{rest}\" in argument"
        )));
    }
    Ok(argument)
}

/// Parses `COLUMN[:KEY]`, one of the operators, and a value.
///
/// # Errors
/// The column is unknown, or no operator with a value follows.
pub(crate) fn with_value<'a>(
    table: &TableSchema,
    text: &'a str,
    operators: &[&str],
) -> Result<Argument<'a>, Failure> {
    let (argument, rest) = start(table, text)?;
    let found = operators
        .iter()
        .enumerate()
        .filter(|(_, operator)| rest.starts_with(**operator) && rest.len() > operator.len())
        .max_by_key(|(_, operator)| operator.len());
    match found {
        Some((operator, name)) => Ok(Argument {
            operator,
            value: &rest[name.len()..],
            ..argument
        }),
        None => {
            let quoted: Vec<String> = operators.iter().map(|it| format!("\"{it}\"")).collect();
            let list = match quoted.as_slice() {
                [only] => only.clone(),
                [first, second] => format!("{first} or {second}"),
                [others @ .., last] => format!("{}, or {last}", others.join(", ")),
                [] => String::new(),
            };
            Err(Failure::usage(format!(
                "{text}: argument does not end in {list} followed by a value."
            )))
        }
    }
}

/// The column at the beginning of an argument.
///
/// # Errors
/// The column is unknown.
pub(crate) fn column(table: &TableSchema, text: &str) -> Result<ColumnId, Failure> {
    let mut rest = text;
    column_at(table, text, &mut rest)
}

fn column_at(table: &TableSchema, text: &str, rest: &mut &str) -> Result<ColumnId, Failure> {
    let name = read_word(rest).map_err(Failure::usage)?;
    if name.is_empty() {
        return Err(Failure::usage(format!("{text}: missing column name")));
    }
    names::column(table, &name)
}

/// Column and key, and the text after them.
fn start<'a>(table: &TableSchema, text: &'a str) -> Result<(Argument<'a>, &'a str), Failure> {
    let mut rest = text;
    let column = column_at(table, text, &mut rest)?;
    let key = match rest.strip_prefix(':') {
        None => None,
        Some(after) => {
            rest = after;
            let key = read_word(&mut rest).map_err(Failure::usage)?;
            Some(key)
        }
    };
    let argument = Argument {
        column,
        key,
        operator: 0,
        value: "",
    };
    Ok((argument, rest))
}
