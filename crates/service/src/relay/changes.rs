//! An update of the source as the database takes it: a change of rows, or new contents.
//!
//! Invariant: nothing is lost on the way. The session reads strictly, so an update is either here as a whole or the source is left. Whether
//! the change fits the rows is checked by the database, which has them.

use corvid_data::{HashSeed, Recorded, RecordedRow, UuidSource, WireError};
use corvid_engine::Database;
use corvid_log::cluster::{Eid, Index};
use corvid_session::{RowChange, TableUpdates, Update};

use crate::upstream::SourceChange;

/// The change of an update.
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

/// The contents of an update that replaces everything.
///
/// # Errors
/// They break a rule of their own schema.
pub(super) fn contents(
    update: Update,
    seed: HashSeed,
    uuids: &mut dyn UuidSource,
) -> Result<Database, WireError> {
    let mut database = Database::new(update.plan.schema().clone(), seed);
    add(&mut database, update, uuids)?;
    Ok(database)
}

/// Adds a change to contents that are not served yet.
///
/// # Errors
/// It does not fit them.
pub(super) fn add(
    database: &mut Database,
    update: Update,
    uuids: &mut dyn UuidSource,
) -> Result<(), WireError> {
    let (recorded, _) = recorded(update.updates);
    database.apply_recorded(recorded, uuids)?;
    Ok(())
}

/// The rows of an update, and for each of them whether it exists before.
fn recorded(updates: TableUpdates) -> (Recorded, Vec<bool>) {
    let mut recorded = Recorded::default();
    let mut exists = Vec::new();
    for of_table in updates.tables {
        let table = of_table.table;
        for row in of_table.rows {
            // One message has one encoding, so its values and its differences never mix.
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
