//! The rows that changed since the program last cleared the list.

use corvid::data::Arc as SharedSchema;
use corvid::{Schema, TableId, Tracked};

use crate::client::{corvid_client, with};
use crate::config::{column_key, corvid_column, corvid_table, table_id};
use crate::error::{Failure, corvid_error, guard};
use crate::handle::{self, Kind};
use crate::pointer::Out;
use crate::reading::corvid_row;
use crate::value::{View, corvid_datum};

/// A row that changed.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct corvid_change {
    /// The row. A deleted one can be read until corvid_changes_clear.
    pub row: corvid_row,
    /// It was inserted. Together with `is_deleted`: it was inserted and deleted again.
    pub is_new: bool,
    /// It was deleted.
    pub is_deleted: bool,
    /// The change number of the last change of the row.
    pub seqno: u64,
}

/// Changes at one moment: a copy that does not change. Free it with corvid_changes_free.
pub struct corvid_changes {
    _private: [u8; 0],
}

/// The object behind the handle.
pub(crate) struct Changes {
    schema: SharedSchema<Schema>,
    table: TableId,
    shown: Vec<corvid_change>,
    tracked: Vec<Tracked>,
}

impl Kind for Changes {
    type Opaque = corvid_changes;
    const NAME: &'static str = "list of changes";
}

/// Lists the rows of a table with a change of a column of the mode CORVID_MODE_TRACK since
/// corvid_changes_clear, in the order of their first change. Free the list with
/// corvid_changes_free.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_changes_new(
    client: *const corvid_client,
    table: corvid_table,
    changes: *mut *mut corvid_changes,
) -> corvid_error {
    guard("corvid_changes_new", || {
        let out = Out::new(changes, "changes")?;
        let list = with(client, |client| {
            let id = table_id(client.schema(), table)?;
            let tracked = client.changes(id).to_vec();
            let shown = tracked.iter().map(|change| corvid_change {
                row: corvid_row {
                    table,
                    uuid: change.uuid.into(),
                },
                is_new: change.is_new,
                is_deleted: change.is_deleted,
                seqno: change.seqnos.into_iter().max().unwrap_or(0),
            });
            Ok(Changes {
                schema: client.schema().clone(),
                table: id,
                shown: shown.collect(),
                tracked,
            })
        })?;
        out.set(handle::store(list)?);
        Ok(())
    })
}

/// The number of changes in a list; 0 for a handle that is none.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_changes_count(changes: *const corvid_changes) -> usize {
    let mut count = 0;
    guard("corvid_changes_count", || {
        count = handle::get::<Changes>(changes)?.shown.len();
        Ok(())
    });
    count
}

/// The changes of a list: an array of corvid_changes_count elements, which belongs to the list and
/// stays valid until corvid_changes_free. Null for a handle that is none.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_changes_data(changes: *const corvid_changes) -> *const corvid_change {
    let mut data = std::ptr::null();
    guard("corvid_changes_data", || {
        data = handle::get::<Changes>(changes)?.shown.as_ptr();
        Ok(())
    });
    data
}

/// The change at a place of a list, and one of its columns.
fn tracked<R>(
    changes: *const corvid_changes,
    index: usize,
    column: corvid_column,
    work: impl FnOnce(&Tracked, corvid::ColumnId) -> R,
) -> Result<R, Failure> {
    let changes = handle::get::<Changes>(changes)?;
    let column = column_key(&changes.schema, column)?;
    if column.table != changes.table {
        return Err(corvid::Misuse::WrongTable.into());
    }
    let change = changes.tracked.get(index);
    let change = change.ok_or_else(|| Failure::argument("the list is shorter"))?;
    Ok(work(change, column.id))
}

/// Whether a column is among those that changed in the change at `index`. If none is, a row changed
/// that this row refers to.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_changes_is_updated(
    changes: *const corvid_changes,
    index: usize,
    column: corvid_column,
    updated: *mut bool,
) -> corvid_error {
    guard("corvid_changes_is_updated", || {
        let out = Out::new(updated, "updated")?;
        out.set(tracked(changes, index, column, |change, id| {
            change.is_updated(id)
        })?);
        Ok(())
    })
}

/// The value of a changed column before the change at `index`. Free it with corvid_datum_free.
/// CORVID_ERR_NONE: the column did not change, or the row is new.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_changes_old(
    changes: *const corvid_changes,
    index: usize,
    column: corvid_column,
    datum: *mut *mut corvid_datum,
) -> corvid_error {
    guard("corvid_changes_old", || {
        let out = Out::new(datum, "datum")?;
        let old = tracked(changes, index, column, |change, id| change.old(id).cloned())?;
        let old = old.ok_or_else(|| Failure::none("the column has no former value"))?;
        out.set(handle::store(View::of(&old))?);
        Ok(())
    })
}

/// Frees a list. Null is fine.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_changes_free(changes: *mut corvid_changes) -> corvid_error {
    guard("corvid_changes_free", || {
        handle::take::<Changes>(changes).map(drop)
    })
}

/// Clears the changes of all tables.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_changes_clear(client: *mut corvid_client) -> corvid_error {
    guard("corvid_changes_clear", || {
        with(client, |client| {
            client.idl_mut().clear_changes();
            Ok(())
        })
    })
}
