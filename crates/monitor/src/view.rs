//! How a table subscription sees a row change: which of the two versions are in view.
//!
//! Invariant: a version out of view is replaced by `None`. So all later code sees insertion,
//! deletion or modification, and never evaluates a condition (docs/spec/protocol.md 4.7, the table
//! of old and new matches). Used for commits and for the history.

use corvid_data::{Arc, Delta, HashSeed, Row, RowChange, Schema, TableSchema};

use crate::change_set::{ChangeSet, Entry};
use crate::subscription::{ColumnMask, Subscription, TableSubscription};

/// The knowledge about one version of a row before the condition is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Match {
    /// The version is absent or out of view.
    No,
    /// The condition must be evaluated.
    Maybe,
    /// The version is in view.
    Yes,
}

/// The change as `asked` sees it, given what is known about `old` and `new`; `None` if it is
/// invisible. `position` is the index of the change in its delta, and `changed` its columns.
pub(crate) fn of_change(
    asked: &TableSubscription,
    table: &TableSchema,
    (position, change): (usize, &RowChange),
    changed: &ColumnMask,
    (old, new): (Match, Match),
) -> Option<Entry> {
    let in_view = |row: &Option<Arc<Row>>, known: Match| {
        row.as_ref()
            .filter(|row| match known {
                Match::No => false,
                Match::Maybe => asked.condition.matches(table, row),
                Match::Yes => true,
            })
            .cloned()
    };
    let old = in_view(&change.old, old);
    let new = in_view(&change.new, new);
    // A row that stays in view is reported only if a subscribed column changed. Entering and
    // leaving the view are always visible, even if the client sees none of the changed columns.
    let is_seen = match (&old, &new) {
        (None, None) => false,
        (Some(_), Some(_)) => asked.concerns(changed),
        _ => true,
    };
    is_seen.then_some(Entry {
        uuid: change.uuid,
        old,
        new,
        change: position,
    })
}

/// The net change of consecutive commits as `subscription` sees it. O(rows changed).
pub(crate) fn of_commits<'a>(
    schema: &Schema,
    subscription: &Subscription,
    deltas: impl Iterator<Item = &'a Arc<Delta>>,
    seed: HashSeed,
) -> ChangeSet {
    let mut changes = ChangeSet::new(seed);
    for delta in deltas {
        for position in 0..delta.changes.len() {
            add_change(schema, subscription, (position, delta), &mut changes);
        }
    }
    changes
}

/// Adds one change of a commit, if `subscription` sees it.
pub(crate) fn add_change(
    schema: &Schema,
    subscription: &Subscription,
    (position, delta): (usize, &Delta),
    changes: &mut ChangeSet,
) {
    let change = &delta.changes[position];
    let Some(asked) = subscription.table(change.table) else {
        return;
    };
    let changed = ColumnMask::of_change(change);
    let unknown = (Match::Maybe, Match::Maybe);
    let table = schema.table(change.table);
    if let Some(entry) = of_change(asked, table, (position, change), &changed, unknown) {
        changes.merge(change.table, entry);
    }
}
