//! The last steps: fresh versions, the delta, and the update of counts and back references. Nothing
//! here can fail.

use corvid_data::uuid::UuidSource;
use corvid_data::{Delta, RowChange};

use super::Commit;
use super::references;
use crate::journal::{Effect, Touched};

impl Commit<'_, '_> {
    /// Turns the checked state into the committed one.
    pub(super) fn finish(self, uuids: &mut dyn UuidSource) -> Delta {
        let Commit {
            txn,
            strong,
            deleted,
            suspects,
            ..
        } = self;
        assert!(
            deleted.is_empty() && suspects.is_empty(),
            "no garbage and no reference to a deleted row are committed"
        );
        // From here on nothing can fail, so nothing needs the journal for a rollback.
        let touched = txn.journal.take();
        let database = &mut *txn.database;
        let mut changes = Vec::with_capacity(touched.len());
        for row in touched {
            let table = &mut database.tables[usize::from(row.id.table.0)];
            if row.effect == Effect::Modified
                && let Some(slot) = row.slot
            {
                if row.diffs.is_empty() {
                    // The row lost a dangling reference that this transaction had added, so it
                    // equals its original.
                    table.replace(slot, row.old.expect("a modified row was there before"));
                    continue;
                }
                table.set_version(slot, uuids.fresh());
            }
            let new = row.slot.map(|slot| table.at(slot).clone());
            changes.extend(row_change(row, new));
        }
        // Stable, so within a table rows stay in the order of their first touch.
        changes.sort_by_key(|change| change.table);
        // Counts and back references change only now. Until here a rollback had only rows to
        // restore.
        references::apply_strong(database, &strong);
        for change in &changes {
            references::apply_weak(database, change);
        }
        Delta {
            changes,
            ..Delta::default()
        }
    }
}

fn row_change(row: Touched, new: Option<corvid_data::Arc<corvid_data::Row>>) -> Option<RowChange> {
    if row.effect == Effect::None {
        return None;
    }
    let versions = match row.effect {
        Effect::None | Effect::Inserted => (false, true),
        Effect::Modified => (true, true),
        Effect::Deleted => (true, false),
    };
    // Undo and every reader of the delta rely on this.
    assert_eq!(
        (row.old.is_some(), new.is_some()),
        versions,
        "a change has the versions of its kind"
    );
    debug_assert!(
        row.diffs.is_sorted_by_key(|diff| diff.column),
        "differences are in the order of columns"
    );
    Some(RowChange {
        table: row.id.table,
        uuid: row.id.uuid,
        old: row.old,
        new,
        diffs: row.diffs.into_boxed_slice(),
    })
}
