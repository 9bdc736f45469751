//! Undoes a commit whose record could not be stored: applies its delta backwards.

use corvid_data::{Delta, RowChange};

use crate::commit::references;
use crate::database::Database;
use crate::hash::Map;

/// Restores the state before `delta`, which must be the newest commit not yet undone.
pub(crate) fn undo(database: &mut Database, delta: &Delta) {
    let mut strong = Map::with_hasher(database.seed);
    for change in delta.changes.iter().rev() {
        restore(database, change);
        let backwards = RowChange {
            table: change.table,
            uuid: change.uuid,
            old: change.new.clone(),
            new: change.old.clone(),
            diffs: change.diffs.clone(),
        };
        references::count_strong(database, &backwards, &mut strong);
        references::apply_weak(database, &backwards);
    }
    references::apply_strong(database, &strong);
}

fn restore(database: &mut Database, change: &RowChange) {
    let table = &mut database.tables[usize::from(change.table.0)];
    let slot = table.find(change.uuid);
    assert_eq!(
        slot.is_some(),
        change.new.is_some(),
        "deltas are undone newest first"
    );
    match (slot, &change.old) {
        (Some(slot), Some(old)) => {
            table.replace(slot, old.clone());
        }
        (Some(_), None) => {
            table.remove(change.uuid);
        }
        (None, Some(old)) => {
            // No row referred to it when it was deleted; references that are restored with it are counted below.
            table.insert(old.clone(), 0);
        }
        (None, None) => unreachable!("a change has at least one version"),
    }
}
