//! Step 4: deletes rows of non-root tables to which no other row refers strongly. This releases
//! their own references, and so on recursively.
//!
//! Only rows whose counts may have changed are checked. Cycles of two or more rows are not
//! collected: their counts never reach zero.

use super::Commit;
use crate::journal::Effect;
use crate::page::Slot;
use crate::row_id::RowId;
use crate::table;
use crate::work_budget::{self, TooLong};

impl Commit<'_, '_> {
    /// Checks all suspects and deletes the garbage among them.
    ///
    /// # Errors
    /// There is more garbage than the budget allows to delete.
    pub(super) fn collect_garbage(&mut self) -> Result<(), TooLong> {
        while let Some(id) = self.suspects.pop() {
            if self.txn.table_schema(id.table).is_root {
                continue;
            }
            let table = self.txn.table(id.table);
            let found = table.find(id.uuid);
            let Some(slot) = found.filter(|slot| self.is_unreferenced(id, *slot)) else {
                continue;
            };
            let row = table.at(slot).clone();
            let steps = work_budget::CHANGE + table::row_atoms(&row);
            // The budget is spent per deleted row, because one transaction may release any number
            // of rows.
            self.txn.budget.spend(steps)?;
            self.txn.delete(id.table, slot);
            self.record_deletion(id);
            // The targets of the deleted row become suspects. Example: A -> B -> C, and the last
            // reference to A was dropped. Deleting A makes B a suspect, and deleting B makes C one.
            self.release(id, &row, None);
        }
        Ok(())
    }

    fn is_unreferenced(&self, id: RowId, slot: Slot) -> bool {
        let change = self.strong.get(&id).copied().unwrap_or(0);
        let left = i64::from(self.txn.table(id.table).strong_at(slot)) + change;
        assert!(left >= 0, "strong references are counted exactly");
        left == 0
    }

    /// Records in the journal that a touched row was deleted.
    fn record_deletion(&mut self, id: RowId) {
        let position = self.txn.journal.position(id).expect("deleting touches");
        let touched = &mut self.txn.journal.rows_mut()[position];
        touched.diffs.clear();
        touched.effect = if touched.old.is_some() {
            Effect::Deleted
        } else {
            Effect::None
        };
        self.deleted.push(id);
    }
}
