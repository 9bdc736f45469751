//! Step 1: the net changes. Rows that equal their originals, and rows that were inserted and
//! deleted again, drop out.

use corvid_data::{ColumnDiff, ColumnId, Datum, Row, TableSchema};

use smallvec::SmallVec;

use super::Commit;
use crate::journal::Effect;

/// The changed columns of one row, on their way into its journal entry.
type Differences = SmallVec<[ColumnDiff; 8]>;

impl Commit<'_, '_> {
    /// Determines the effect on every touched row; false if nothing changed. Unchanged rows get
    /// their old version back, so that their `_version` stays, and everything that shares them.
    pub(super) fn find_net_changes(&mut self) -> bool {
        let database = &mut *self.txn.database;
        let mut any = false;
        let mut diffs = Differences::new();
        for touched in self.txn.journal.rows_mut() {
            let id = touched.id;
            let schema = database.schema.table(id.table);
            let table = &mut database.tables[usize::from(id.table.0)];
            let known = std::mem::take(&mut touched.diffs);
            touched.effect = match (&touched.old, touched.slot) {
                (None, None) => Effect::None,
                (None, Some(_)) => Effect::Inserted,
                (Some(_), None) => Effect::Deleted,
                (Some(old), Some(slot)) => {
                    find_differences(&mut diffs, schema, (old, table.at(slot)), known);
                    if diffs.is_empty() {
                        table.replace(slot, old.clone());
                        Effect::None
                    } else {
                        // Allocated exactly: the delta keeps the differences as long as the
                        // monitors' history keeps it.
                        touched.diffs = Vec::with_capacity(diffs.len());
                        touched.diffs.extend(diffs.drain(..));
                        Effect::Modified
                    }
                }
            };
            // Rows of the database may still refer weakly to a deleted row. A new or modified row
            // outside the root set is checked for garbage even if its references did not change
            // (docs/spec/protocol.md 5.12, step 4).
            match touched.effect {
                Effect::None => continue,
                Effect::Deleted => self.deleted.push(id),
                Effect::Inserted | Effect::Modified if !schema.is_root => self.suspects.push(id),
                Effect::Inserted | Effect::Modified => {}
            }
            any = true;
        }
        any
    }
}

/// Adds the differing columns of two versions, in order. Skips the comparison for columns that
/// share their memory and for those whose difference is `known`.
fn find_differences(
    diffs: &mut Differences,
    schema: &TableSchema,
    (old, new): (&Row, &Row),
    mut known: Vec<ColumnDiff>,
) {
    for (column, (old, new)) in (0u16..).zip(old.columns.iter().zip(&new.columns)) {
        if old.ptr_eq(new) {
            continue;
        }
        let column = ColumnId(column);
        let found = known.iter().position(|diff| diff.column == column);
        diffs.extend(match found {
            Some(position) => Some(known.swap_remove(position)),
            None => difference(schema, column, old, new),
        });
    }
}

/// The difference of one column, if any.
pub(super) fn difference(
    schema: &TableSchema,
    column: ColumnId,
    old: &Datum,
    new: &Datum,
) -> Option<ColumnDiff> {
    if old.ptr_eq(new) {
        return None;
    }
    let diff = Datum::diff(old, new, &schema.column(column).column_type)?;
    Some(ColumnDiff { column, diff })
}
