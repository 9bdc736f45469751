//! Tracked rows: those that changed since the changes were cleared.

use std::ffi::{c_int, c_uint};

use corvid::{Kind, Uuid};

use super::cell::{State, Walk, idl as core};
use super::class::{corvid_idl_column, corvid_idl_row, corvid_idl_table_class};
use super::idl::{corvid_idl, with};
use super::rows::{row_or_null, with_row};
use crate::error::{Failure, guard};

/// Kinds of changes.
#[repr(C)]
pub enum corvid_row_change {
    /// The row was inserted.
    CORVID_ROW_INSERT = 0,
    /// The row changed.
    CORVID_ROW_MODIFY = 1,
    /// The row was deleted.
    CORVID_ROW_DELETE = 2,
}

/// The first tracked row from a place on.
fn from_place(state: &State, table: usize, place: usize) -> Option<*mut corvid_idl_row> {
    let rows = &state.tables[table];
    let order = state.walks.get(table)?.order.get(place..)?;
    order.iter().find_map(|uuid| {
        let record = rows.slots[*rows.by_uuid.get(uuid)?].as_ref()?;
        Some(record.row())
    })
}

/// The first row of a table that changed since corvid_idl_track_clear, in the order of first
/// changes, or null. A deleted row shows its last values until then.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_track_get_first(
    replica: *const corvid_idl,
    class: *const corvid_idl_table_class,
) -> *mut corvid_idl_row {
    row_or_null("corvid_idl_track_get_first", || {
        with(replica, |_, state| {
            let table = state.layout.table(class)?;
            let changes =
                core(state).map_or(&[][..], |idl| idl.changes(state.layout.tables[table].table));
            let order: Vec<Uuid> = changes.iter().map(|change| change.uuid).collect();
            let places = order.iter().copied().zip(0..).collect();
            state.walks.resize_with(state.tables.len(), Walk::default);
            state.walks[table] = Walk { order, places };
            Ok(from_place(state, table, 0))
        })
    })
}

/// The next one, or null.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_track_get_next(row: *const corvid_idl_row) -> *mut corvid_idl_row {
    row_or_null("corvid_idl_track_get_next", || {
        with_row(row, |_, state, known| {
            let walk = state.walks.get(known.table);
            let place = walk.and_then(|walk| walk.places.get(&known.uuid));
            let place = place.ok_or_else(|| Failure::argument("the row is not tracked"))?;
            Ok(from_place(state, known.table, place + 1))
        })
    })
}

/// Whether a column is among those that changed. If none is, a row changed that this row refers to.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_track_is_updated(
    row: *const corvid_idl_row,
    column: *const corvid_idl_column,
) -> bool {
    let mut is_updated = false;
    guard("corvid_idl_track_is_updated", || {
        is_updated = with_row(row, |_, state, known| {
            let column = state.column(state.layout.column(column)?);
            let change = core(state)?.change_of(known.id(state).table, known.uuid);
            Ok(change.is_some_and(|change| change.is_updated(column.id)))
        })?;
        Ok(())
    });
    is_updated
}

/// The change number of the last change of a kind since corvid_idl_track_clear; 0 for none.
/// `change` is a corvid_row_change.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_row_get_seqno(row: *const corvid_idl_row, change: c_int) -> c_uint {
    let mut seqno = 0;
    guard("corvid_idl_row_get_seqno", || {
        let kind = usize::try_from(change)
            .ok()
            .filter(|kind| *kind <= Kind::Delete as usize);
        let kind =
            kind.ok_or_else(|| Failure::argument(format!("unknown kind of change {change}")))?;
        seqno = with_row(row, |_, state, known| {
            let change = core(state)?.change_of(known.id(state).table, known.uuid);
            Ok(change.map_or(0, |change| change.seqnos[kind] as c_uint))
        })?;
        Ok(())
    });
    seqno
}

/// A number that grows with every change of rows of a table.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_table_get_seqno(
    replica: *const corvid_idl,
    class: *const corvid_idl_table_class,
) -> c_uint {
    let mut seqno = 0;
    guard("corvid_idl_table_get_seqno", || {
        seqno = with(replica, |_, state| {
            let table = state.layout.tables[state.layout.table(class)?].table;
            let seqnos = core(state).map_or([0; 3], |idl| idl.table_seqnos(table));
            Ok(seqnos.into_iter().max().unwrap_or(0) as c_uint)
        })?;
        Ok(())
    });
    seqno
}

/// Whether any column of a table is tracked.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_track_is_set(
    replica: *const corvid_idl,
    class: *const corvid_idl_table_class,
) -> bool {
    let mut is_set = false;
    guard("corvid_idl_track_is_set", || {
        is_set = with(replica, |_, state| {
            let table = &state.tables[state.layout.table(class)?];
            Ok(table.modes.iter().any(|mode| mode.is_tracked))
        })?;
        Ok(())
    });
    is_set
}

/// Clears the changes of all tables, and frees the structs of rows that are gone.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_track_clear(replica: *mut corvid_idl) {
    guard("corvid_idl_track_clear", || {
        with(replica, |_, state| {
            if let Some(client) = &mut state.client {
                client.idl_mut().clear_changes();
            }
            state.walks.clear();
            state.free_gone();
            Ok(())
        })
    });
}
