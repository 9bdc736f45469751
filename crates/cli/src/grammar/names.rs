//! Names of tables and columns: any case, `-` for `_`, and every abbreviation that is unique.

use corvid_data::{ColumnId, Schema, TableId, TableSchema};

use super::chain::Invocation;
use crate::failure::Failure;

/// How well a word names something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// The word is a beginning of the name.
    Beginning,
    /// The same letters in another spelling.
    Spelling,
    /// The name itself.
    Exact,
}

/// How well `word` names `name`; `None` if it does not.
fn fit(name: &str, word: &str) -> Option<Fit> {
    if name == word {
        return Some(Fit::Exact);
    }
    let normal = |byte: &u8| match byte {
        b'-' => b'_',
        other => other.to_ascii_lowercase(),
    };
    let (name, word) = (name.as_bytes(), word.as_bytes());
    let is_beginning = !word.is_empty()
        && word.len() <= name.len()
        && name.iter().zip(word).all(|(a, b)| normal(a) == normal(b));
    is_beginning.then_some(match name.len() == word.len() {
        true => Fit::Spelling,
        false => Fit::Beginning,
    })
}

/// The names that fit best.
fn best<'a, T>(named: impl Iterator<Item = (&'a str, T)>, word: &str) -> Vec<(&'a str, T)> {
    let mut best = Vec::new();
    let mut best_fit = None;
    for (name, item) in named {
        let Some(fit) = fit(name, word) else {
            continue;
        };
        if Some(fit) > best_fit {
            best.clear();
            best_fit = Some(fit);
        }
        if Some(fit) == best_fit {
            best.push((name, item));
        }
    }
    best
}

/// The table that a word names.
///
/// # Errors
/// No table or several tables fit.
pub(crate) fn table(schema: &Schema, word: &str) -> Result<TableId, Failure> {
    let named = || schema.iter().map(|(id, table)| (table.name.as_str(), id));
    match best(named(), word).as_slice() {
        [(_, id)] => Ok(*id),
        [] => {
            let failure = Failure::usage(format!("unknown table \"{word}\""));
            Err(failure.suggesting(word, named().map(|(name, _)| name)))
        }
        several => {
            let names: Vec<&str> = several.iter().map(|(name, _)| *name).collect();
            Err(Failure::usage(format!(
                "\"{word}\" matches multiple table names: {}",
                names.join(", ")
            )))
        }
    }
}

/// The column that a word names. `_uuid` is not among them.
///
/// # Errors
/// No column or several columns fit.
pub(crate) fn column(table: &TableSchema, word: &str) -> Result<ColumnId, Failure> {
    let named = || table.iter().map(|(id, column)| (column.name.as_str(), id));
    let name = &table.name;
    match best(named(), word).as_slice() {
        [(_, id)] => Ok(*id),
        [] => {
            let failure = Failure::usage(format!(
                "{name} does not contain a column whose name matches \"{word}\""
            ));
            Err(failure.suggesting(word, named().map(|(name, _)| name)))
        }
        several => {
            let names: Vec<&str> = several.iter().map(|(name, _)| *name).collect();
            Err(Failure::usage(format!(
                "{name} contains more than one column whose name matches \"{word}\": {}",
                names.join(", ")
            )))
        }
    }
}

/// The columns of `--columns`, or all: `_uuid`, then the table's own by name.
///
/// # Errors
/// There is no column, or one is unknown.
pub(crate) fn columns(table: &TableSchema, words: Option<&str>) -> Result<Vec<ColumnId>, Failure> {
    let Some(words) = words else {
        let own = table.iter().map(|(id, _)| id);
        return Ok(std::iter::once(ColumnId::UUID).chain(own).collect());
    };
    let words = words.split([',', ' ']).filter(|word| !word.is_empty());
    let columns: Vec<ColumnId> = words
        .map(|word| match word.eq_ignore_ascii_case("_uuid") {
            true => Ok(ColumnId::UUID),
            false => column(table, word),
        })
        .collect::<Result<_, _>>()?;
    match columns.is_empty() {
        true => Err(Failure::usage("must specify at least one column name")),
        false => Ok(columns),
    }
}

/// The columns that a command prints of which the words after the table are columns: these, else
/// those of `--columns`, else all.
///
/// # Errors
/// A column is unknown, or the columns are given twice.
pub(crate) fn listed(
    table: &TableSchema,
    invocation: &Invocation,
) -> Result<Vec<ColumnId>, Failure> {
    let (words, option) = (&invocation.args[1..], invocation.value("--columns"));
    match (words.is_empty(), option) {
        (true, option) => columns(table, option),
        (false, None) => columns(table, Some(&words.join(","))),
        (false, Some(_)) => Err(Failure::usage(
            "--columns and columns after the table should not be specified together",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_by_abbreviations_and_spellings() {
        let names = ["CT_Zone", "Controller", "NetFlow", "Port", "Port_Set"];
        let found = |word| {
            let found = best(names.into_iter().map(|name| (name, ())), word);
            found.into_iter().map(|(name, ())| name).collect::<Vec<_>>()
        };
        assert_eq!(found("n"), ["NetFlow"]);
        assert_eq!(found("c"), ["CT_Zone", "Controller"]);
        assert_eq!(found("ct-zone"), ["CT_Zone"]);
        // A whole name wins over a longer one.
        assert_eq!(found("port"), ["Port"]);
        assert_eq!(found("port-"), ["Port_Set"]);
        assert_eq!(found(""), [""; 0]);
        assert_eq!(found("ports"), [""; 0]);
    }
}
