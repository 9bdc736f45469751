//! Tables whose rows are written to the log as they change (`ovsdb-server/tlog-set`): one line a
//! row, all columns.
//!
//! Tables are chosen by name, so the choice outlives a conversion. A commit that touches none of
//! them costs one look at each change.

use std::collections::BTreeSet;
use std::fmt::Write;

use corvid_data::{Delta, Row, RowChange, Schema, TableSchema, text};
use corvid_engine::Database;

use crate::message::{Event, TableReport};

/// The chosen tables.
#[derive(Debug, Default)]
pub(crate) struct RowLog {
    tables: BTreeSet<String>,
}

impl RowLog {
    /// Chooses a table, or drops it.
    pub(crate) fn set(&mut self, table: String, is_logged: bool) {
        if is_logged {
            self.tables.insert(table);
        } else {
            self.tables.remove(&table);
        }
    }

    /// Whether a table is chosen.
    fn contains(&self, table: &str) -> bool {
        self.tables.contains(table)
    }

    /// The tables of a database, and which of them are chosen.
    pub(crate) fn report(&self, database: &Database) -> Vec<TableReport> {
        let tables = database.schema().iter().map(|(id, table)| {
            let name = table.name.to_string();
            TableReport {
                is_logged: self.contains(&name),
                rows: database.row_count(id) as u64,
                name,
            }
        });
        tables.collect()
    }

    /// The changed rows of chosen tables.
    pub(super) fn lines<'a>(
        &'a self,
        schema: &'a Schema,
        delta: &'a Delta,
    ) -> impl Iterator<Item = Event> + 'a {
        let is_on = !self.tables.is_empty();
        let changes = delta.changes.iter().filter(move |_| is_on);
        changes.filter_map(move |change| {
            let table = schema.table(change.table);
            let is_chosen = self.contains(&table.name);
            is_chosen.then(|| Event::RowLogged(line(table, change)))
        })
    }
}

fn line(table: &TableSchema, change: &RowChange) -> String {
    let (operation, row) = match (&change.old, &change.new) {
        (None, Some(new)) => ("inserted", new),
        (Some(_), Some(new)) => ("updated", new),
        (Some(old), None) => ("deleted", old),
        (None, None) => unreachable!("a change has one version at least"),
    };
    format!("table:{},op:{operation},{}", table.name, cells(table, row))
}

/// `_uuid:…,_version:…,COLUMN:VALUE,…`
fn cells(table: &TableSchema, row: &Row) -> String {
    let mut out = format!("_uuid:{},_version:{}", row.uuid, row.version);
    for (id, column) in table.iter() {
        let _ = write!(out, ",{}:", column.name);
        let datum = &row.columns[usize::from(id.0)];
        text::write_datum(&mut out, datum, &column.column_type);
    }
    out
}
