//! Undoes a commit whose record could not be stored, or that must be hidden for a moment: applies
//! its delta backwards. Redoing applies the inverse delta backwards.

use corvid_data::{Delta, RowChange};

use crate::commit::references;
use crate::database::Database;
use crate::hash::Map;

/// Restores the state before `delta`, which must be the newest commit that is not undone.
pub(crate) fn undo(database: &mut Database, delta: &Delta) {
    let mut strong = Map::with_hasher(database.seed);
    for change in delta.changes.iter().rev() {
        restore(database, change);
        let backwards = backwards(change);
        references::count_strong(database, &backwards, &mut strong);
        references::apply_weak(database, &backwards);
    }
    // Counts come last, when every target exists again: a count for a missing row would be lost.
    references::apply_strong(database, &strong);
}

/// Restores the state after `delta`, which must be the commit that was undone last and not redone
/// yet.
pub(crate) fn redo(database: &mut Database, delta: &Delta) {
    let changes = delta.changes.iter().rev().map(backwards).collect();
    let inverse = Delta {
        changes,
        ..Delta::default()
    };
    undo(database, &inverse);
}

/// The change from the new version of a row to the old one.
fn backwards(change: &RowChange) -> RowChange {
    RowChange {
        table: change.table,
        uuid: change.uuid,
        old: change.new.clone(),
        new: change.old.clone(),
        diffs: change.diffs.clone(),
    }
}

fn restore(database: &mut Database, change: &RowChange) {
    let table = &mut database.tables[usize::from(change.table.0)];
    let slot = table.find(change.uuid);
    assert_eq!(
        slot.is_some(),
        change.new.is_some(),
        "deltas are undone newest first"
    );
    if let (Some(slot), Some(new)) = (slot, &change.new) {
        assert_eq!(
            table.at(slot).version,
            new.version,
            "the newest version of a row is undone"
        );
    }
    match (slot, &change.old) {
        (Some(slot), Some(old)) => {
            table.replace(slot, old.clone());
        }
        (Some(_), None) => {
            table.remove(change.uuid);
        }
        (None, Some(old)) => {
            // No row referred to this one when it was deleted. References that are restored with it
            // are counted later.
            table.insert(old.clone(), 0);
        }
        (None, None) => unreachable!("a change has at least one version"),
    }
}
