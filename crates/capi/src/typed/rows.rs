//! Rows by the addresses of their structs, and iteration over them.

use std::cell::RefCell;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use corvid::{RowId, Uuid};

use super::cell::{Cell, Map, State, idl};
use super::class::{corvid_idl_column, corvid_idl_row, corvid_idl_table, corvid_idl_table_class};
use super::idl::{corvid_idl, with};
use super::index;
use super::record::{Record, State as RowState};
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
static LOCATIONS: RwLock<Option<Map<usize, Location>>> = RwLock::new(None);

/// Grows whenever structs become unknown, which invalidates the caches of all threads.
static EPOCH: AtomicU64 = AtomicU64::new(0);

/// A struct that a thread has cached: the current one of an iteration.
struct Recent {
    address: usize,
    epoch: u64,
    location: Location,
}

/// Nested iterations for which a thread caches the current row.
const RECENT_MAX: usize = 4;

thread_local! {
    static RECENT: RefCell<Vec<Recent>> = const { RefCell::new(Vec::new()) };
}

/// The cached location of a struct.
fn at_hand(address: usize) -> Option<Location> {
    RECENT
        .try_with(|recent| {
            let recent = recent.borrow();
            let epoch = EPOCH.load(Ordering::Acquire);
            let found = recent
                .iter()
                .find(|entry| entry.address == address && entry.epoch == epoch);
            found.map(|entry| entry.location.clone())
        })
        .ok()
        .flatten()
}

/// Caches a struct in place of the one that the iteration came from.
fn keep_at_hand(cell: &Arc<Cell>, former: usize, address: usize, table: usize, slot: usize) {
    let epoch = EPOCH.load(Ordering::Acquire);
    let _ = RECENT.try_with(|recent| {
        let mut recent = recent.borrow_mut();
        let of_walk = recent
            .iter_mut()
            .find(|entry| entry.address == former && Arc::ptr_eq(&entry.location.cell, cell));
        if let Some(entry) = of_walk {
            (entry.address, entry.epoch) = (address, epoch);
            (entry.location.table, entry.location.slot) = (table, slot);
            return;
        }
        if recent.len() == RECENT_MAX {
            recent.remove(0);
        }
        let cell = cell.clone();
        recent.push(Recent {
            address,
            epoch,
            location: Location { cell, table, slot },
        });
    });
}

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
    EPOCH.fetch_add(1, Ordering::Release);
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
        let text = "the row is not in the replica";
        Failure::new(corvid_error::CORVID_ERR_HANDLE, text)
    };
    let place = match at_hand(row.addr()) {
        Some(place) => place,
        None => {
            let places = LOCATIONS.read().unwrap_or_else(PoisonError::into_inner);
            let place = places.as_ref().and_then(|places| places.get(&row.addr()));
            place.cloned().ok_or_else(unknown)?
        }
    };
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

/// The first shown row at or after a slot, in an iteration that came from a row or begins.
fn from_slot(
    (cell, state): (&Arc<Cell>, &State),
    table: usize,
    slot: usize,
    former: usize,
) -> Option<*mut corvid_idl_row> {
    let slots = state.tables[table].slots.get(slot..)?;
    let is_shown = |record: &Record| record.state == RowState::Live;
    let offset = slots
        .iter()
        .position(|record| record.as_deref().is_some_and(is_shown))?;
    let row = slots[offset].as_ref()?.row();
    keep_at_hand(cell, former, row.addr(), table, slot + offset);
    Some(row)
}

/// The first row of a table, or null. Rows come in no particular order. The struct belongs to the
/// library: it is good until the row is gone and corvid_idl_run is called after that.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_first_row(
    replica: *const corvid_idl,
    class: *const corvid_idl_table_class,
) -> *mut corvid_idl_row {
    row_or_null("corvid_idl_first_row", || {
        with(replica, |cell, state| {
            let table = state.layout.table(class)?;
            Ok(from_slot((cell, state), table, 0, 0))
        })
    })
}

/// The row after another one, or null.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_next_row(row: *const corvid_idl_row) -> *mut corvid_idl_row {
    row_or_null("corvid_idl_next_row", || {
        with_row(row, |cell, state, known| {
            Ok(from_slot(
                (cell, state),
                known.table,
                known.slot + 1,
                row.addr(),
            ))
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

/// Reads a column of a row as the open transaction has it, with changes of single elements, which
/// members of the struct do not show. Free the datum with corvid_datum_free.
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

/// Whether a column of a row may be written: it is mutable, or the open transaction inserted the
/// row.
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
