//! An update of the source in the form that the database takes: a change of rows, or new contents.
//!
//! Invariant: nothing is lost on the way. The session reads strictly: either an update is complete,
//! or the relay leaves the source. The database checks whether the change fits its rows.

use corvid_data::{HashSeed, Recorded, RecordedRow, UuidSource, WireError};
use corvid_engine::Database;
use corvid_log::cluster::{Eid, Index};
use corvid_session::{RowChange, TableUpdates, Update};

use crate::message::SourceChange;

/// An update as a change of rows.
pub(super) fn change(index: Index, eid: Eid, update: Update) -> SourceChange {
    let bytes = update.bytes;
    let (recorded, exists) = recorded(update.updates);
    SourceChange {
        index,
        eid,
        recorded,
        exists,
        bytes,
    }
}

/// An update that replaces everything, as contents.
///
/// # Errors
/// The contents break a rule of their own schema.
pub(super) fn contents(
    update: Update,
    seed: HashSeed,
    uuids: &mut dyn UuidSource,
) -> Result<Database, WireError> {
    let mut database = Database::new(update.plan.schema().clone(), seed);
    add(&mut database, update, uuids)?;
    Ok(database)
}

/// Applies an update to contents that are not served yet.
///
/// # Errors
/// The update does not fit them.
pub(super) fn add(
    database: &mut Database,
    update: Update,
    uuids: &mut dyn UuidSource,
) -> Result<(), WireError> {
    let (recorded, _) = recorded(update.updates);
    database.apply_recorded(recorded, uuids)?;
    Ok(())
}

/// The rows of an update, and for each of them whether it must exist already.
fn recorded(updates: TableUpdates) -> (Recorded, Vec<bool>) {
    let mut recorded = Recorded::default();
    let mut exists = Vec::new();
    for of_table in updates.tables {
        let table = of_table.table;
        for row in of_table.rows {
            // A message has one encoding, so values and differences never mix in it.
            recorded.is_diff |= matches!(row.change, RowChange::Diff(_));
            exists.push(!matches!(row.change, RowChange::Insert(_)));
            let columns = match row.change {
                RowChange::Insert(columns)
                | RowChange::Replace(columns)
                | RowChange::Diff(columns) => Some(columns),
                RowChange::Delete => None,
            };
            recorded.rows.push(RecordedRow {
                table,
                uuid: row.uuid,
                columns,
            });
        }
    }
    (recorded, exists)
}
