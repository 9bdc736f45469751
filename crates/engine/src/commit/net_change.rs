//! Step 1: what really changed. Rows that equal their originals, and rows that came and went, drop out.

use corvid_data::{ColumnDiff, ColumnId, Datum, Row, TableSchema};

use super::Commit;
use crate::journal::Effect;

impl Commit<'_, '_> {
    /// Settles the effect of every touched row; `false` when nothing changed. Unchanged rows get their old version back, so that
    /// their `_version` and everything that shares them stays.
    pub(super) fn find_net_changes(&mut self) -> bool {
        let database = &mut *self.txn.database;
        let mut any = false;
        for touched in self.txn.journal.rows_mut() {
            let id = touched.id;
            let schema = database.schema.table(id.table);
            let table = &mut database.tables[usize::from(id.table.0)];
            let slot = table.find(id.uuid);
            let known = std::mem::take(&mut touched.diffs);
            touched.effect = match (&touched.old, slot) {
                (None, None) => Effect::None,
                (None, Some(_)) => Effect::Inserted,
                (Some(_), None) => Effect::Deleted,
                (Some(old), Some(slot)) => {
                    touched.diffs = differences(schema, old, table.at(slot), known);
                    if touched.diffs.is_empty() {
                        table.replace(slot, old.clone());
                        Effect::None
                    } else {
                        Effect::Modified
                    }
                }
            };
            match touched.effect {
                Effect::None => continue,
                Effect::Deleted => self.deleted.push(id),
                Effect::Inserted | Effect::Modified => self.suspects.push(id),
            }
            any = true;
        }
        any
    }
}

/// The differing columns of two versions, in order. Columns that share their memory are not looked into, nor are those whose difference
/// is `known`.
fn differences(
    schema: &TableSchema,
    old: &Row,
    new: &Row,
    known: Vec<ColumnDiff>,
) -> Vec<ColumnDiff> {
    let mut known = known;
    let pairs = old.columns.iter().zip(&new.columns);
    (0u16..)
        .map(ColumnId)
        .zip(pairs)
        .filter_map(|(column, (old, new))| {
            match known.iter().position(|diff| diff.column == column) {
                Some(position) => Some(known.swap_remove(position)),
                None => difference(schema, column, old, new),
            }
        })
        .collect()
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
