//! Rows whose names have changed, and the cells that show these names.
//!
//! The replica lists the rows that refer to a changed row among the changes of their own table, so
//! nothing is searched: the cost follows the change. Of a cell, only the elements that a page of a
//! table shows are looked at.

use std::collections::HashSet;

use corvid::data::{AtomRef, ColumnId, Reference, TableId, Uuid};
use corvid::{Column, Idl, RowId, Tracked};

use super::cell::ELEMENTS_MAX;
use super::naming::Naming;

/// The rows that have another name since the changes were cleared.
pub(super) struct Renamed(HashSet<(TableId, Uuid)>);

impl Renamed {
    /// The rows among the changes that are listed now.
    pub(super) fn of(idl: &Idl, naming: &Naming) -> Renamed {
        let tables = (0..).map(TableId).take(idl.schema().tables().len());
        let rows = tables.flat_map(|table| {
            let changes = idl.changes(table).iter();
            let renamed = changes.filter(move |change| naming.is_renamed(idl, table, change));
            renamed.map(move |change| (table, change.uuid))
        });
        Renamed(rows.collect())
    }

    /// The columns of a row that have not changed, but show another name now.
    pub(super) fn columns(&self, idl: &Idl, table: TableId, change: &Tracked) -> Vec<ColumnId> {
        // A page reads new rows itself.
        if self.0.is_empty() || change.is_new || change.is_deleted {
            return Vec::new();
        }
        let row = RowId {
            table,
            uuid: change.uuid,
        };
        let columns = idl.schema().table(table).iter();
        let columns = columns.filter(|(id, column)| {
            let column_type = &column.column_type;
            let references = [
                column_type.key.reference.as_ref(),
                column_type
                    .value
                    .as_ref()
                    .and_then(|base| base.reference.as_ref()),
            ];
            if references == [None, None] || change.is_updated(*id) {
                return false;
            }
            let value = idl.read(row, Column { table, id: *id });
            let value = value.unwrap_or_default();
            let mut elements = value.iter().take(ELEMENTS_MAX);
            elements.any(|(key, value)| {
                let shown = [(Some(key), references[0]), (value, references[1])];
                shown
                    .into_iter()
                    .any(|(atom, reference)| self.names(atom, reference))
            })
        });
        columns.map(|(id, _)| id).collect()
    }

    /// Whether an element is a reference to a row with another name.
    fn names(&self, atom: Option<AtomRef<'_>>, reference: Option<&Reference>) -> bool {
        match (atom, reference) {
            (Some(AtomRef::Uuid(uuid)), Some(reference)) => {
                self.0.contains(&(reference.table, uuid))
            }
            _ => false,
        }
    }
}
