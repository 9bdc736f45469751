//! Updates counts of strong references and back references after a commit, and reverts them when
//! the commit is undone.

use corvid_data::RowChange;

use crate::database::Database;
use crate::hash::Map;
use crate::own_reference::is_own;
use crate::row_id::RowId;

/// Adds these changes to the counts of strong references. Deleted targets have no count.
pub(crate) fn apply_strong(database: &mut Database, counts: &Map<RowId, i64>) {
    for (target, change) in counts.iter().filter(|(_, change)| **change != 0) {
        database.tables[usize::from(target.table.0)].adjust_strong(target.uuid, *change);
    }
}

/// Adds the changes in strong references that a row's change brings. A row's references to itself
/// do not count: they keep nothing alive.
pub(crate) fn count_strong(database: &Database, change: &RowChange, counts: &mut Map<RowId, i64>) {
    let id = RowId::new(change.table, change.uuid);
    for column in &*database.layouts[usize::from(id.table.0)].strong {
        column.changes(
            change.old.as_deref(),
            change.new.as_deref(),
            Some(&change.diffs),
            &mut |table, uuid, sign| {
                if !is_own(id, uuid) {
                    *counts.entry(RowId::new(table, uuid)).or_default() += sign;
                }
            },
        );
    }
}

/// Updates the back references after a row's change.
pub(crate) fn apply_weak(database: &mut Database, change: &RowChange) {
    let id = RowId::new(change.table, change.uuid);
    let Database {
        layouts, tables, ..
    } = database;
    for column in &*layouts[usize::from(id.table.0)].weak {
        column.changes(
            change.old.as_deref(),
            change.new.as_deref(),
            Some(&change.diffs),
            &mut |table, uuid, sign| {
                tables[usize::from(table.0)].backrefs.adjust(uuid, id, sign);
            },
        );
    }
}
