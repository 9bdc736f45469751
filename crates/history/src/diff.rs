//! The difference between two states, which may have different schemas.

use std::collections::{BTreeMap, BTreeSet};

use corvid_data::{Arc, ColumnType, TableId, Uuid};
use corvid_engine::Database;

use crate::change::{Columns, RowChange};

/// The changes from one state to another, in the order of tables and UUIDs. The rows of a table
/// that only one schema has are inserted or deleted. Tables that differ in their columns are not
/// compared; they are returned by name.
#[must_use]
pub fn diff(from: &Database, to: &Database) -> (Vec<RowChange>, Vec<String>) {
    let mut changes = Vec::new();
    let mut incomparable = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for database in [from, to] {
        names.extend(database.schema().tables().iter().map(|table| &*table.name));
    }
    names.sort_unstable();
    names.dedup();
    for name in names {
        let old_table = from.schema().table_id(name);
        let new_table = to.schema().table_id(name);
        let (schema, table) = match (old_table, new_table) {
            (Some(old), Some(new)) if columns(from, old) != columns(to, new) => {
                incomparable.push(name.to_owned());
                continue;
            }
            (_, Some(new)) => (to.schema(), new),
            (Some(old), None) => (from.schema(), old),
            (None, None) => continue,
        };
        let old = old_table.map_or_else(BTreeMap::new, |table| rows(from, table));
        let new = new_table.map_or_else(BTreeMap::new, |table| rows(to, table));
        let keys: BTreeSet<Uuid> = old.keys().chain(new.keys()).copied().collect();
        for uuid in keys {
            let (old, new) = (old.get(&uuid).cloned(), new.get(&uuid).cloned());
            if old != new {
                changes.push(RowChange {
                    schema: schema.clone(),
                    table,
                    uuid,
                    old,
                    new,
                });
            }
        }
    }
    (changes, incomparable)
}

/// The names and types of a table's columns.
fn columns(database: &Database, table: TableId) -> Vec<(&str, &ColumnType)> {
    let columns = database.schema().table(table).columns().iter();
    columns
        .map(|column| (&*column.name, &column.column_type))
        .collect()
}

fn rows(database: &Database, table: TableId) -> BTreeMap<Uuid, Columns> {
    let columns = |row: &corvid_data::Row| Arc::from(row.columns.to_vec());
    database
        .rows(table)
        .map(|row| (row.uuid, columns(row)))
        .collect()
}
