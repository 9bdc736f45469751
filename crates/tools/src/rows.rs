//! The rows of a dump: their columns, and their order (docs/spec/cli.md 3.4).

use std::cmp::Ordering;
use std::rc::Rc;

use corvid_data::{AtomType, ColumnType, Datum, TableSchema};

use crate::table::Cell;

/// A column to dump.
pub struct Column {
    /// The name.
    pub name: String,
    /// The type.
    pub column_type: Rc<ColumnType>,
}

/// All columns except `_version`, in name order.
pub fn all_columns(table: &TableSchema) -> Vec<Column> {
    let uuid = Column {
        name: "_uuid".to_owned(),
        column_type: Rc::new(ColumnType::scalar(AtomType::Uuid)),
    };
    let own = table.columns().iter().map(|column| Column {
        name: column.name.to_string(),
        column_type: Rc::new(column.column_type.clone()),
    });
    let mut columns: Vec<Column> = std::iter::once(uuid).chain(own).collect();
    columns.sort_by(|a, b| a.name.cmp(&b.name));
    columns
}

/// Orders rows first by their columns without UUID keys, in order, then by the other columns.
pub fn compare(a: &[Cell], b: &[Cell], columns: &[Column]) -> Ordering {
    let by = |uuid_keyed: bool| {
        columns
            .iter()
            .enumerate()
            .filter(move |(_, column)| {
                (column.column_type.key.atom == AtomType::Uuid) == uuid_keyed
            })
            .map(|(index, _)| datum(&a[index]).cmp(&datum(&b[index])))
            .find(|order| order.is_ne())
    };
    by(false).or_else(|| by(true)).unwrap_or(Ordering::Equal)
}

fn datum(cell: &Cell) -> Datum {
    match cell {
        Cell::Datum(datum, _) => datum.clone(),
        _ => Datum::empty(),
    }
}
