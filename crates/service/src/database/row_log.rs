//! Tables whose rows are written to the log as they change (`ovsdb-server/tlog-set`): one line a row, all columns.
//!
//! Tables are chosen by name, so the choice outlives a conversion. A commit that touches none of them costs one look at each change.

use std::collections::BTreeSet;
use std::fmt::Write;

use corvid_data::{Delta, Row, RowChange, TableSchema, text};

use super::DatabaseService;
use crate::message::Event;

/// The chosen tables.
#[derive(Debug, Default)]
pub(super) struct RowLog {
    tables: BTreeSet<String>,
}

impl RowLog {
    pub(super) fn set(&mut self, table: String, is_logged: bool) {
        if is_logged {
            self.tables.insert(table);
        } else {
            self.tables.remove(&table);
        }
    }

    pub(super) fn contains(&self, table: &str) -> bool {
        self.tables.contains(table)
    }
}

impl DatabaseService {
    /// Reports the changed rows of logged tables.
    pub(super) fn log_rows(&mut self, delta: &Delta) {
        if self.row_log.tables.is_empty() {
            return;
        }
        let schema = self.database.schema();
        for change in &delta.changes {
            let table = schema.table(change.table);
            if self.row_log.contains(&table.name) {
                let line = line(table, change);
                self.outputs.events.push(Event::RowLogged(line));
            }
        }
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
