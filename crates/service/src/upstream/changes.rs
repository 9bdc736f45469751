//! Changes of a relay's source.
//!
//! Each is applied like a record of a file, and shown at once. Invariant: a change that does not
//! fit the rows changes nothing, and the relay asks for all contents again.

use corvid_data::{Arc, Delta, Recorded, Tag, WireError};
use corvid_log::cluster::Index;

use super::Parts;
use super::contents::Contents;
use super::steps::{Action, Steps, Task};
use crate::message::{RELAY_TERM, SourceChange};

/// Applies the next one of these changes, then the rest.
pub(super) fn apply_next(
    through: Index,
    mut changes: std::vec::IntoIter<SourceChange>,
    contents: &mut Contents,
    steps: &mut Steps,
) {
    match changes.next() {
        None => {
            contents.mark_reached(through, steps);
            steps.plan(Task::EndEvent(through, RELAY_TERM));
        }
        Some(change) => {
            // Outcomes based on the changes before, which a client sees before this one.
            contents.mark_reached(change.index.previous(), steps);
            let change = Box::new(change);
            steps.plan(Task::ApplyChange(through, change, changes));
        }
    }
}

/// Applies a change, and plans the rest.
///
/// # Errors
/// It does not fit the rows, and nothing has changed.
pub(super) fn apply(
    change: SourceChange,
    (through, rest): (Index, std::vec::IntoIter<SourceChange>),
    contents: &mut Contents,
    steps: &mut Steps,
    parts: &mut Parts<'_>,
) -> Result<(), WireError> {
    let SourceChange {
        index,
        eid,
        recorded,
        exists,
        ..
    } = change;
    let delta = match apply_fitting(recorded, &exists, parts) {
        Ok(delta) => Arc::new(delta),
        Err(error) => {
            contents.break_silently();
            return Err(error);
        }
    };
    contents.mark_applied(index, eid);
    let reply = None;
    steps.push(Action::Publish { eid, delta, reply });
    steps.plan(Task::ApplyChanges(through, rest));
    Ok(())
}

/// Applies rows to the tables.
///
/// # Errors
/// A row exists, or does not, although the source says otherwise. Nothing has changed.
fn apply_fitting(
    recorded: Recorded,
    exists: &[bool],
    parts: &mut Parts<'_>,
) -> Result<Delta, WireError> {
    let database = &mut *parts.database;
    for (row, exists) in recorded.rows.iter().zip(exists) {
        if database.get(row.table, row.uuid).is_some() != *exists {
            let table = &database.schema().table(row.table).name;
            let what = match exists {
                true => "changed and does not exist",
                false => "inserted and exists",
            };
            let details = format!("row {} of table {table} is {what}", row.uuid);
            return Err(WireError::new(Tag::ConsistencyViolation, details));
        }
    }
    database.apply_recorded(recorded, parts.environment.uuids())
}
