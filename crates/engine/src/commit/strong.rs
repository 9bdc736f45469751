//! Steps 2 and 3: every added strong reference must refer to an existing row, and no strong
//! reference to a deleted row may remain.

use corvid_data::{ColumnId, Row, Tag, WireError};

use super::Commit;
use crate::journal::Effect;
use crate::own_reference::{is_misplaced, is_own};
use crate::row_id::RowId;
use crate::transaction::Transaction;

impl Commit<'_, '_> {
    /// Counts the changes in strong references of every changed row.
    ///
    /// # Errors
    /// An added reference to a missing row. A reference to a row that existed before and is deleted
    /// by this transaction passes here; the next step refuses it.
    pub(super) fn count_strong_references(&mut self) -> Result<(), WireError> {
        let Commit {
            txn,
            strong,
            suspects,
            ..
        } = self;
        let mut has_own_references = false;
        for touched in txn.journal.rows() {
            if touched.effect == Effect::None {
                continue;
            }
            let (id, old) = (touched.id, touched.old.as_deref());
            let new = txn.row(touched).map(|row| &**row);
            for reference in &*txn.layout(id.table).strong {
                let mut dangling = None;
                reference.changes(old, new, Some(&touched.diffs), &mut |table, uuid, sign| {
                    let target = RowId::new(table, uuid);
                    if is_own(id, uuid) {
                        has_own_references |= sign > 0 && is_misplaced(id, target);
                        return;
                    }
                    if sign > 0 && !txn.is_uuid_used(table, uuid) {
                        dangling.get_or_insert(target);
                    }
                    // In the order of their first mention: the map's own order depends on its seed.
                    *strong.entry(target).or_insert_with(|| {
                        suspects.push(target);
                        0
                    }) += sign;
                });
                if let Some(target) = dangling {
                    return Err(dangling_reference(txn, id, reference.column, target));
                }
            }
        }
        txn.database.has_own_references |= has_own_references;
        Ok(())
    }

    /// Refuses deletions of rows to which others still refer. Runs before garbage is collected, so
    /// references from rows that are about to be collected count.
    pub(super) fn refuse_referenced_deletions(&mut self) -> Result<(), WireError> {
        for touched in self.txn.journal.rows() {
            if touched.effect != Effect::Deleted {
                continue;
            }
            let change = self.strong.get(&touched.id).copied().unwrap_or(0);
            let left = i64::from(touched.strong) + change;
            assert!(left >= 0, "strong references are counted exactly");
            if left > 0 {
                return Err(WireError::new(
                    Tag::ReferentialIntegrityViolation,
                    format!(
                        "cannot delete {} row {} because of {left} remaining reference(s)",
                        self.txn.table_schema(touched.id.table).name,
                        touched.id.uuid,
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Counts the references that a row lost after the first count, and makes their targets
    /// suspects.
    pub(super) fn release(&mut self, id: RowId, old: &Row, new: Option<&Row>) {
        let Commit {
            txn,
            strong,
            suspects,
            ..
        } = self;
        for reference in &*txn.layout(id.table).strong {
            reference.changes(Some(old), new, None, &mut |table, uuid, sign| {
                if !is_own(id, uuid) {
                    let target = RowId::new(table, uuid);
                    *strong.entry(target).or_default() += sign;
                    suspects.push(target);
                }
            });
        }
    }
}

fn dangling_reference(
    txn: &Transaction<'_>,
    source: RowId,
    column: ColumnId,
    target: RowId,
) -> WireError {
    let schema = txn.table_schema(source.table);
    WireError::new(
        Tag::ReferentialIntegrityViolation,
        format!(
            "Table {} column {} row {} references nonexistent row {} in table {}.",
            schema.name,
            schema.column(column).name,
            source.uuid,
            target.uuid,
            txn.table_schema(target.table).name,
        ),
    )
}
