//! `tables` and `describe`: the schema in words.

use std::fmt::Display;

use corvid_data::types::Bounds;
use corvid_data::{BaseType, ColumnSchema, ColumnType, RefType, TableSchema, text};
use corvid_tools::table::{Cell, Table};

use super::{Context, Output};
use crate::failure::Failure;
use crate::grammar::chain::Invocation;

pub(super) fn tables(
    context: &mut Context<'_>,
    _invocation: &Invocation,
) -> Result<Output, Failure> {
    let tables = context.contents.schema().tables().iter();
    let rows = tables.map(|table| {
        vec![
            Cell::Text(table.name.to_string()),
            Cell::Text(table.columns().len().to_string()),
            Cell::Text(indexes(table)),
            Cell::Text(kind(table)),
        ]
    });
    Ok(listing(
        ["table", "columns", "indexes", "records"],
        rows.collect(),
    ))
}

pub(super) fn describe(
    context: &mut Context<'_>,
    invocation: &Invocation,
) -> Result<Output, Failure> {
    let (_, table) = context.table(invocation)?;
    let rows = table.columns().iter().map(|column| {
        vec![
            Cell::Text(column.name.to_string()),
            Cell::Text(type_in_words(&column.column_type)),
            Cell::Text(notes(table, column).join(", ")),
        ]
    });
    Ok(listing(["column", "type", "notes"], rows.collect()))
}

/// The properties of a column besides its type.
pub(super) fn notes(table: &TableSchema, column: &ColumnSchema) -> Vec<&'static str> {
    let mut notes = Vec::new();
    if !column.mutable {
        notes.push("not mutable");
    }
    if !column.persistent {
        notes.push("not stored on disk");
    }
    let is_index = table.indexes.iter().any(|index| {
        let [only] = index.as_slice() else {
            return false;
        };
        table.column(*only).name == column.name
    });
    if is_index {
        notes.push("unique");
    }
    notes
}

fn listing<const N: usize>(headings: [&str; N], rows: Vec<Vec<Cell>>) -> Output {
    Output::Listing(Table {
        headings: headings.map(str::to_owned).to_vec(),
        rows,
        ..Table::default()
    })
}

/// The indexes of a table: `name`, `datapath+tunnel_key`.
pub(super) fn indexes(table: &TableSchema) -> String {
    let names = table.indexes.iter().map(|index| {
        let columns = index.iter().map(|id| table.column(*id).name.as_str());
        columns.collect::<Vec<_>>().join("+")
    });
    names.collect::<Vec<_>>().join(", ")
}

/// How long the records of a table stay, and how many there may be.
pub(super) fn kind(table: &TableSchema) -> String {
    let lifetime = match table.is_root {
        true => "root",
        false => "while referred to",
    };
    match table.max_rows {
        u32::MAX => lifetime.to_owned(),
        max => format!("{lifetime}, at most {max}"),
    }
}

/// A type: `optional string`, `set of references to Port`, `map of string to integer 0 to 4095`.
pub(crate) fn type_in_words(column_type: &ColumnType) -> String {
    let key = base_in_words(&column_type.key);
    let ColumnType { min, max, .. } = *column_type;
    if let Some(value) = &column_type.value {
        return format!(
            "map of {key} to {}{}",
            base_in_words(value),
            count(min, max)
        );
    }
    match (min, max) {
        (1, 1) => key,
        (0, 1) => format!("optional {key}"),
        _ => format!("set of {key}{}", count(min, max)),
    }
}

fn count(min: u32, max: u32) -> String {
    match (min, max) {
        (0, ColumnType::UNLIMITED) => String::new(),
        (min, ColumnType::UNLIMITED) => format!(", at least {min}"),
        (0, max) => format!(", at most {max}"),
        (min, max) => format!(", {min} to {max}"),
    }
}

fn base_in_words(base: &BaseType) -> String {
    if let Some(reference) = &base.reference {
        let strength = match reference.ref_type {
            RefType::Strong => "",
            RefType::Weak => "weak ",
        };
        return format!("{strength}reference to {}", reference.table_name);
    }
    if let Some(choices) = &base.enumeration {
        let choices = choices.keys().map(|choice| {
            let mut shown = String::new();
            text::write_atom(&mut shown, choice);
            shown
        });
        return choices.collect::<Vec<_>>().join("|");
    }
    let name = base.atom.name();
    match base.bounds {
        Bounds::None => name.to_owned(),
        Bounds::Integer { min, max } => range(name, &min, &max, (min != i64::MIN, max != i64::MAX)),
        Bounds::Real { min, max } => range(name, &min, &max, (min != f64::MIN, max != f64::MAX)),
        Bounds::Length { min, max } => match max {
            u32::MAX => format!("{name} of at least {min} letters"),
            max => format!("{name} of {min} to {max} letters"),
        },
    }
}

fn range(name: &str, min: &dyn Display, max: &dyn Display, bounded: (bool, bool)) -> String {
    match bounded {
        (true, true) => format!("{name} {min} to {max}"),
        (true, false) => format!("{name} from {min}"),
        (false, true) => format!("{name} up to {max}"),
        (false, false) => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corvid_data::AtomType;

    #[test]
    fn types_are_described_in_words() {
        let integer = BaseType {
            bounds: Bounds::Integer { min: 0, max: 4095 },
            ..BaseType::plain(AtomType::Integer)
        };
        let words = |value: bool, min, max| {
            type_in_words(&ColumnType {
                key: integer.clone(),
                value: value.then(|| BaseType::plain(AtomType::String)),
                min,
                max,
            })
        };
        assert_eq!(words(false, 1, 1), "integer 0 to 4095");
        assert_eq!(words(false, 0, 1), "optional integer 0 to 4095");
        assert_eq!(words(false, 0, 3), "set of integer 0 to 4095, at most 3");
        let unlimited = ColumnType::UNLIMITED;
        assert_eq!(
            words(true, 0, unlimited),
            "map of integer 0 to 4095 to string"
        );
    }
}
