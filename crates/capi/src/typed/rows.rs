//! Rows by the addresses of their structs, and the walk over them.

use std::collections::HashMap;
use std::ptr;
use std::sync::{Arc, PoisonError, RwLock};

use corvid::{RowId, Uuid};

use super::cell::{Cell, State, idl};
use super::class::{corvid_idl_column, corvid_idl_row, corvid_idl_table, corvid_idl_table_class};
use super::idl::{corvid_idl, with};
use super::index;
use super::record::State as RowState;
use crate::error::{Failure, corvid_error, guard};
use crate::value::{View, corvid_datum, corvid_uuid};
use crate::{handle, pointer};

/// A struct that was made.
pub(crate) struct New {
    pub(crate) address: usize,
    pub(crate) table: usize,
    pub(crate) slot: usize,
}

/// The place of a struct.
#[derive(Clone)]
struct Location {
    cell: Arc<Cell>,
    table: usize,
    slot: usize,
}

/// All structs of the process.
static LOCATIONS: RwLock<Option<HashMap<usize, Location>>> = RwLock::new(None);

/// Makes structs known.
pub(crate) fn remember(cell: &Arc<Cell>, made: Vec<New>) {
    if made.is_empty() {
        return;
    }
    let mut places = LOCATIONS.write().unwrap_or_else(PoisonError::into_inner);
    let places = places.get_or_insert_default();
    places.extend(made.into_iter().map(|new| {
        let (table, slot) = (new.table, new.slot);
        let cell = cell.clone();
        (new.address, Location { cell, table, slot })
    }));
}

/// Makes structs unknown, before they are freed.
pub(crate) fn forget(addresses: impl Iterator<Item = usize>) {
    let mut addresses = addresses.peekable();
    if addresses.peek().is_none() {
        return;
    }
    let mut places = LOCATIONS.write().unwrap_or_else(PoisonError::into_inner);
    let mut taken = Vec::new();
    if let Some(places) = places.as_mut() {
        taken.extend(addresses.filter_map(|address| places.remove(&address)));
    }
    // The last count of a replica may be among them; it goes when the lock is free.
    drop(places);
}

/// A row that the program named.
#[derive(Clone, Copy)]
pub(crate) struct Known {
    pub(crate) table: usize,
    pub(crate) slot: usize,
    pub(crate) uuid: Uuid,
}

impl Known {
    pub(crate) fn id(self, state: &State) -> RowId {
        RowId {
            table: state.layout.tables[self.table].table,
            uuid: self.uuid,
        }
    }
}

/// The replica of a row. The row's struct is not touched before it is known.
pub(crate) fn with_row<R>(
    row: *const corvid_idl_row,
    work: impl FnOnce(&Arc<Cell>, &mut State, Known) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let unknown = || {
        let text = "the row is not of a replica, or is gone";
        Failure::new(corvid_error::CORVID_ERR_HANDLE, text)
    };
    let places = LOCATIONS.read().unwrap_or_else(PoisonError::into_inner);
    let place = places.as_ref().and_then(|places| places.get(&row.addr()));
    let place = place.cloned().ok_or_else(unknown)?;
    drop(places);
    place.cell.with(|state| {
        let record = state.tables[place.table].slots[place.slot].as_ref();
        let record = record.filter(|record| record.row().addr() == row.addr());
        let record = record.ok_or_else(unknown)?;
        let known = Known {
            table: place.table,
            slot: place.slot,
            uuid: record.uuid,
        };
        work(&place.cell, state, known)
    })
}

/// Runs the body of a function that returns a row; null after a failure.
pub(crate) fn row_or_null(
    name: &'static str,
    work: impl FnOnce() -> Result<Option<*mut corvid_idl_row>, Failure>,
) -> *mut corvid_idl_row {
    let mut row = ptr::null_mut();
    guard(name, || {
        row = work()?.unwrap_or(ptr::null_mut());
        Ok(())
    });
    row
}

/// The first shown row from a slot on.
fn from_slot(state: &State, table: usize, slot: usize) -> Option<*mut corvid_idl_row> {
    let slots = state.tables[table].slots.get(slot..)?;
    let mut shown = slots.iter().flatten();
    let found = shown.find(|record| record.state == RowState::Live)?;
    Some(found.row())
}

/// The first row of a table, or null. Rows come in no particular order. The struct belongs to the library: it is good until the row is gone and corvid_idl_run is called
/// after that.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_first_row(
    replica: *const corvid_idl,
    class: *const corvid_idl_table_class,
) -> *mut corvid_idl_row {
    row_or_null("corvid_idl_first_row", || {
        with(replica, |_, state| {
            let table = state.layout.table(class)?;
            Ok(from_slot(state, table, 0))
        })
    })
}

/// The next row behind one, or null.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_next_row(row: *const corvid_idl_row) -> *mut corvid_idl_row {
    row_or_null("corvid_idl_next_row", || {
        with_row(row, |_, state, known| {
            Ok(from_slot(state, known.table, known.slot + 1))
        })
    })
}

/// The row of a UUID, or null.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_get_row_for_uuid(
    replica: *const corvid_idl,
    class: *const corvid_idl_table_class,
    uuid: *const corvid_uuid,
) -> *mut corvid_idl_row {
    row_or_null("corvid_idl_get_row_for_uuid", || {
        let uuid = pointer::array(uuid, 1, "uuid")?[0];
        with(replica, |_, state| {
            let table = state.layout.table(class)?;
            Ok(state.find(table, uuid.into()))
        })
    })
}

/// The handle of a table, or null. It belongs to the library and lasts as long as the replica.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_table_get(
    replica: *const corvid_idl,
    class: *const corvid_idl_table_class,
) -> *const corvid_idl_table {
    let mut found = ptr::null();
    guard("corvid_idl_table_get", || {
        found = with(replica, |_, state| {
            let table = state.layout.table(class)?;
            Ok(&raw const *state.tables[table].handle)
        })?;
        Ok(())
    });
    found
}

/// Reads a column of a row as the open transaction has it, with changes of single elements, which members of the struct do not show. Free the datum with
/// corvid_datum_free.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_read(
    row: *const corvid_idl_row,
    column: *const corvid_idl_column,
    datum: *mut *mut corvid_datum,
) -> corvid_error {
    guard("corvid_idl_read", || {
        let out = pointer::Out::new(datum, "datum")?;
        let datum = with_row(row, |_, state, known| {
            let number = state.layout.column(column)?;
            let column = state.column(number);
            let read = idl(state)?.read(known.id(state), column);
            read.ok_or_else(crate::reading::row_gone)
        })?;
        out.set(handle::store(View::of(&datum))?);
        Ok(())
    })
}

/// Whether a column of a row may be written: it is mutable, or the open transaction inserted the row.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_is_mutable(
    row: *const corvid_idl_row,
    column: *const corvid_idl_column,
) -> bool {
    let mut is_mutable = false;
    guard("corvid_idl_is_mutable", || {
        is_mutable = with_row(row, |_, state, known| {
            let column = state.column(state.layout.column(column)?);
            Ok(idl(state)?.is_mutable(known.id(state), column))
        })?;
        Ok(())
    });
    is_mutable
}

/// Whether a row is a key of an index, which has no place in the database.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_row_is_synthetic(row: *const corvid_idl_row) -> bool {
    index::is_key(row)
}
