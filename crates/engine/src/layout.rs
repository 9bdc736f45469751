//! Facts that the engine derives once from a table schema: default columns, columns with
//! references, and columns that an insert must give.
//!
//! Derived from the schema alone, and shared by everything that holds the schema. Never changes.

use corvid_data::{ColumnId, Datum, RefType, Schema, TableSchema, WireError};

use crate::reference::ReferenceColumn;

/// The derived facts of one table.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// The contents of a row for which an insert gives no columns.
    pub(crate) defaults: Box<[Datum]>,
    /// Columns whose default violates their own constraints, each with the error of an `insert`
    /// that omits it.
    pub(crate) required: Box<[(ColumnId, WireError)]>,
    /// Columns with strong references.
    pub(crate) strong: Box<[ReferenceColumn]>,
    /// Columns with weak references.
    pub(crate) weak: Box<[ReferenceColumn]>,
}

impl Layout {
    /// The layouts of all tables, in the order of their ids.
    pub(crate) fn of_schema(schema: &Schema) -> Box<[Layout]> {
        schema.tables().iter().map(Layout::of_table).collect()
    }

    fn of_table(table: &TableSchema) -> Layout {
        let defaults: Box<[Datum]> = table
            .columns()
            .iter()
            .map(|column| Datum::default_for(&column.column_type))
            .collect();
        let required = table
            .iter()
            .zip(&defaults)
            .filter(|(_, default)| default.len() == 1)
            .filter_map(|((id, column), default)| {
                let error = column.column_type.check(default).err()?;
                Some((id, error))
            })
            .collect();
        Layout {
            defaults,
            required,
            strong: ReferenceColumn::of(table, RefType::Strong),
            weak: ReferenceColumn::of(table, RefType::Weak),
        }
    }
}
