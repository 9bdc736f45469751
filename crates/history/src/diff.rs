//! The difference between two states, which may have different schemas.

use std::collections::BTreeMap;

use corvid_data::{Arc, TableId, Uuid};
use corvid_engine::Database;

use crate::change::{Columns, RowChange};

/// The changes from one state to another, in the order of tables and UUIDs. Tables that only one
/// schema has, or that differ in their columns, are compared as far as both have them: such tables
/// are returned by name.
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
        let tables = (from.schema().table_id(name), to.schema().table_id(name));
        let is_same = match tables {
            (Some(old), Some(new)) => {
                let columns = |database: &Database, table| {
                    let columns = database.schema().table(table).columns().iter();
                    columns
                        .map(|column| (column.name.clone(), column.column_type.clone()))
                        .collect::<Vec<_>>()
                };
                columns(from, old) == columns(to, new)
            }
            _ => false,
        };
        if !is_same {
            incomparable.push(name.to_owned());
            continue;
        }
        let (Some(old_table), Some(table)) = tables else {
            continue;
        };
        let old = rows(from, old_table);
        let new = rows(to, table);
        let keys: std::collections::BTreeSet<Uuid> =
            old.keys().chain(new.keys()).copied().collect();
        for uuid in keys {
            let (old, new) = (old.get(&uuid).cloned(), new.get(&uuid).cloned());
            if old != new {
                changes.push(RowChange {
                    schema: to.schema().clone(),
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

fn rows(database: &Database, table: TableId) -> BTreeMap<Uuid, Columns> {
    let columns = |row: &corvid_data::Row| Arc::from(row.columns.to_vec());
    database
        .rows(table)
        .map(|row| (row.uuid, columns(row)))
        .collect()
}
