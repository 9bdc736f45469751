//! A transaction in progress: it changes the tables in place and keeps the old rows in its journal.
//!
//! Because it works in place, scans and index look-ups of later operations see the changes of
//! earlier ones without an overlay. Until the commit has passed all its checks, only rows, their
//! slots and their index entries differ from the last commit, so restoring the old rows is a full
//! rollback. Operations, replay and conversion change tables only through this file.

use corvid_data::{Arc, ColumnId, Datum, Row, Schema, TableId, TableSchema, Uuid};

use crate::database::Database;
use crate::journal::{Journal, Touched};
use crate::layout::Layout;
use crate::page::Slot;
use crate::row_id::RowId;
use crate::table::Table;
use crate::work_budget::WorkBudget;

/// Changes to a database that are not committed yet.
pub(crate) struct Transaction<'d> {
    pub(crate) database: &'d mut Database,
    pub(crate) journal: Journal,
    /// The work that the transaction may still do.
    pub(crate) budget: WorkBudget,
}

/// A new value of a column.
pub(crate) struct Written {
    pub(crate) column: ColumnId,
    pub(crate) datum: Datum,
    /// The difference from the current value, as [`Datum::diff`] returns it, if the writer knows
    /// it.
    pub(crate) diff: Option<Datum>,
}

impl From<(ColumnId, Datum)> for Written {
    fn from((column, datum): (ColumnId, Datum)) -> Written {
        Written {
            column,
            datum,
            diff: None,
        }
    }
}

impl<'d> Transaction<'d> {
    /// Begins a transaction with an unlimited budget.
    pub(crate) fn begin(database: &'d mut Database) -> Transaction<'d> {
        Transaction {
            journal: Journal::new(database.seed),
            database,
            budget: WorkBudget::unlimited(),
        }
    }

    /// The schema.
    pub(crate) fn schema(&self) -> &Arc<Schema> {
        self.database.schema()
    }

    /// A table's schema.
    pub(crate) fn table_schema(&self, table: TableId) -> &TableSchema {
        self.database.schema().table(table)
    }

    /// A table's layout.
    pub(crate) fn layout(&self, table: TableId) -> &Layout {
        &self.database.layouts[usize::from(table.0)]
    }

    /// A table as this transaction sees it.
    pub(crate) fn table(&self, table: TableId) -> &Table {
        &self.database.tables[usize::from(table.0)]
    }

    pub(crate) fn table_mut(&mut self, table: TableId) -> &mut Table {
        &mut self.database.tables[usize::from(table.0)]
    }

    /// A touched row as this transaction sees it.
    pub(crate) fn row(&self, touched: &Touched) -> Option<&Arc<Row>> {
        Some(self.table(touched.id.table).at(touched.slot?))
    }

    /// Whether `uuid` is unavailable for a new row: a row has it now, or this transaction deleted a
    /// row with it that existed before.
    pub(crate) fn is_uuid_used(&self, table: TableId, uuid: Uuid) -> bool {
        self.table(table).contains(uuid)
            || self
                .journal
                .find(RowId::new(table, uuid))
                .is_some_and(|touched| touched.old.is_some())
    }

    /// Adds a row whose UUID is not used.
    pub(crate) fn insert(&mut self, table: TableId, row: Row) -> Slot {
        let id = RowId::new(table, row.uuid);
        let slot = self.table_mut(table).insert(Arc::new(row), 0);
        // If the transaction inserted and deleted a row with this UUID before, the row keeps its
        // entry, and the entry gets the new slot.
        self.journal.touch(id, slot, || None).slot = Some(slot);
        slot
    }

    /// Writes columns of the row at `slot`.
    pub(crate) fn write(
        &mut self,
        table: TableId,
        slot: Slot,
        columns: impl Iterator<Item = Written>,
    ) {
        let content = &mut self.database.tables[usize::from(table.0)];
        let touched = touch(&mut self.journal, content, table, slot);
        for written in columns {
            let now = &content.at(slot).columns[usize::from(written.column.0)];
            touched.record_write(written.column, now, written.diff);
            content.write_column(slot, written.column, written.datum);
        }
    }

    /// Deletes the row at `slot`.
    pub(crate) fn delete(&mut self, table: TableId, slot: Slot) {
        let content = &mut self.database.tables[usize::from(table.0)];
        let touched = touch(&mut self.journal, content, table, slot);
        touched.slot = None;
        let removed = content.remove(touched.id.uuid);
        // A rollback restores the row with this count.
        assert_eq!(
            removed.map(|(_, strong)| strong),
            Some(touched.strong),
            "counts of references are those of the last commit"
        );
    }

    /// Restores every row to its version before the transaction.
    pub(crate) fn rollback(mut self) {
        for touched in self.journal.take().into_iter().rev() {
            let table = self.table_mut(touched.id.table);
            match (touched.slot, touched.old) {
                (Some(slot), Some(old)) => {
                    table.replace(slot, old);
                }
                (None, Some(old)) => {
                    table.insert(old, touched.strong);
                }
                (Some(_), None) => {
                    let removed = table.remove(touched.id.uuid);
                    assert!(removed.is_some(), "a row that was inserted is there");
                }
                (None, None) => {}
            }
        }
    }
}

/// Adds the row at `slot` to the journal before it is changed.
fn touch<'j>(
    journal: &'j mut Journal,
    content: &Table,
    table: TableId,
    slot: Slot,
) -> &'j mut Touched {
    let row = content.at(slot);
    let id = RowId::new(table, row.uuid);
    journal.touch(id, slot, || {
        Some((Arc::clone(row), content.strong_at(slot)))
    })
}
