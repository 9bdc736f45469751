//! Transactions over typed rows. Members of structs show what was written as a whole; they do not
//! show changes of single elements, as in the reference's library.
//!
//! Setters return nothing, so a change that fails must not be left out of its transaction in
//! silence. Values that break a constraint of the schema are sent, and the server refuses the
//! transaction. A change that cannot be sent makes the commit fail ([`refuse`]).

use std::collections::LinkedList;
use std::ffi::{CString, c_char, c_int};
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use corvid::data::WireError;
use corvid::{Element, Misuse, Status, Tag, TxnId, Uuid};

use super::cell::{Cell, State};
use super::class::{corvid_idl_column, corvid_idl_row, corvid_idl_table_class};
use super::idl::{Replica, corvid_idl};
use super::record::State as RowState;
use super::rows::{self, Known, row_or_null, with_row};
use crate::error::{Failure, Outcome, guard};
use crate::handle::{self, Kind};
use crate::pointer;
use crate::poll_loop;
use crate::transaction::number_of;
use crate::value::{corvid_atom, corvid_uuid, unique_datum_of};

/// A transaction of a replica. Free it with corvid_idl_txn_destroy.
pub struct corvid_idl_txn {
    _private: [u8; 0],
}

/// The object behind the handle.
pub(crate) struct Txn {
    pub(super) cell: Arc<Cell>,
    pub(super) id: TxnId,
    replica: usize,
    /// Texts and UUIDs that were given to the program; they go with the transaction. Those of a
    /// list keep their addresses.
    error: Mutex<CString>,
    uuids: Mutex<LinkedList<corvid_uuid>>,
}

impl Kind for Txn {
    type Opaque = corvid_idl_txn;
    const NAME: &'static str = "transaction";
    const IS_CACHED: bool = true;
}

pub(super) fn is_final(status: c_int) -> bool {
    status != number_of(Status::Uncommitted) && status != number_of(Status::Incomplete)
}

/// Opens a transaction; null if one is open. Free it with corvid_idl_txn_destroy.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_txn_create(replica: *mut corvid_idl) -> *mut corvid_idl_txn {
    let mut made = ptr::null_mut();
    guard("corvid_idl_txn_create", || {
        let cell = handle::get::<Replica>(replica)?.0.clone();
        let id = cell.with(|state| {
            let idl = state.client()?.idl_mut();
            let id = idl.begin()?;
            idl.defer_checks_to_server()?;
            Ok(id)
        })?;
        let stored = handle::store(Txn {
            cell: cell.clone(),
            id,
            replica: replica.addr(),
            error: Mutex::default(),
            uuids: Mutex::default(),
        });
        cell.with(|state| {
            match &stored {
                Ok(handle) => state.txn = Some((id, handle.addr())),
                Err(_) => state.client()?.idl_mut().forget(id),
            }
            Ok(())
        })?;
        made = stored?;
        Ok(())
    });
    made
}

/// Frees a transaction; aborts it if it is open. Null is fine.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_txn_destroy(txn: *mut corvid_idl_txn) {
    guard("corvid_idl_txn_destroy", || {
        if let Some(txn) = handle::take::<Txn>(txn)? {
            // A replica that was destroyed took its transactions along.
            let _ = txn.cell.with(|state| {
                state.client()?.idl_mut().forget(txn.id);
                end(state, txn.id);
                Ok(())
            });
        }
        Ok(())
    });
}

/// Puts structs back if the transaction was the open one.
pub(super) fn end(state: &mut State, id: TxnId) {
    if state.txn.is_some_and(|(open, _)| open == id) {
        state.roll_back();
    }
}

/// Commits a transaction if it is open; returns its status, a corvid_txn_status. Call it again
/// after corvid_idl_run while it is CORVID_TXN_INCOMPLETE. Structs of rows that it inserted are
/// gone at the next run.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_txn_commit(txn: *mut corvid_idl_txn) -> c_int {
    let mut status = number_of(Status::Error);
    guard("corvid_idl_txn_commit", || {
        let txn = handle::get::<Txn>(txn)?;
        status = txn.cell.with(|state| commit(state, txn.id))?;
        Ok(())
    });
    status
}

fn commit(state: &mut State, id: TxnId) -> Result<c_int, Failure> {
    let client = state.client()?;
    if client.open_txn() == Some(id) {
        client.idl_mut().commit()?;
        end(state, id);
    }
    let status = state.client()?.status(id);
    Ok(number_of(status.unwrap_or(Status::Aborted)))
}

/// Gives a transaction up. One that was sent may still be committed.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_txn_abort(txn: *mut corvid_idl_txn) {
    guard("corvid_idl_txn_abort", || {
        let txn = handle::get::<Txn>(txn)?;
        txn.cell.with(|state| {
            state.client()?.idl_mut().abort(txn.id);
            end(state, txn.id);
            Ok(())
        })
    });
}

/// Lets the next corvid_poll_block of this thread return at once if the status is final.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_txn_wait(txn: *const corvid_idl_txn) {
    guard("corvid_idl_txn_wait", || {
        let txn = handle::get::<Txn>(txn)?;
        let status = txn.cell.with(|state| Ok(state.client()?.status(txn.id)))?;
        if status.is_none_or(|status| is_final(number_of(status))) {
            poll_loop::corvid_poll_timer(0);
        }
        Ok(())
    });
}

/// The server's error as JSON, or the name of the status. It belongs to the transaction and is good
/// until the next call.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_txn_get_error(txn: *const corvid_idl_txn) -> *const c_char {
    let mut text = c"no error details available".as_ptr();
    guard("corvid_idl_txn_get_error", || {
        let txn = handle::get::<Txn>(txn)?;
        let found = txn.cell.with(|state| {
            let client = state.client()?;
            let status = client.status(txn.id).unwrap_or(Status::Aborted);
            let error = client.txn_error(txn.id).map(str::to_owned);
            Ok(match status {
                Status::Error => error,
                status => Some(status.name().to_owned()),
            })
        })?;
        if let Some(found) = found {
            let found = CString::new(found.replace('\0', " ")).unwrap_or_default();
            let mut kept = txn.error.lock().unwrap_or_else(PoisonError::into_inner);
            *kept = found;
            text = kept.as_ptr();
        }
        Ok(())
    });
    text
}

/// The sum that corvid_idl_txn_increment made, once the transaction has succeeded; else 0.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_txn_get_increment_new_value(txn: *const corvid_idl_txn) -> i64 {
    let mut value = 0;
    guard("corvid_idl_txn_get_increment_new_value", || {
        let txn = handle::get::<Txn>(txn)?;
        value = txn
            .cell
            .with(|state| Ok(state.client()?.incremented_to(txn.id).unwrap_or(0)))?;
        Ok(())
    });
    value
}

/// The UUID that the server gave an inserted row, once the transaction has succeeded; else null. It
/// belongs to the transaction.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_txn_get_insert_uuid(
    txn: *const corvid_idl_txn,
    provisional: *const corvid_uuid,
) -> *const corvid_uuid {
    let mut found = ptr::null();
    guard("corvid_idl_txn_get_insert_uuid", || {
        let txn = handle::get::<Txn>(txn)?;
        let provisional = Uuid::from(pointer::array(provisional, 1, "provisional")?[0]);
        let uuid = txn.cell.with(|state| {
            let tables: Vec<_> = state
                .layout
                .tables
                .iter()
                .map(|table| table.table)
                .collect();
            let client = state.client()?;
            Ok(tables.into_iter().find_map(|table| {
                let row = corvid::RowId {
                    table,
                    uuid: provisional,
                };
                client.inserted_uuid(txn.id, row)
            }))
        })?;
        if let Some(uuid) = uuid {
            let mut kept = txn.uuids.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push_back(uuid.into());
            found = kept.back().map_or(ptr::null(), ptr::from_ref);
        }
        Ok(())
    });
    found
}

/// The replica of a transaction, or null.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_txn_get_idl(txn: *const corvid_idl_txn) -> *mut corvid_idl {
    let mut replica = ptr::null_mut();
    guard("corvid_idl_txn_get_idl", || {
        replica = ptr::without_provenance_mut(handle::get::<Txn>(txn)?.replica);
        Ok(())
    });
    replica
}

/// The open transaction of the replica of a row, or null.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_txn_get(row: *const corvid_idl_row) -> *mut corvid_idl_txn {
    let mut txn = ptr::null_mut();
    guard("corvid_idl_txn_get", || {
        let open = with_row(row, |_, state, _| Ok(state.txn))?;
        txn = open.map_or(ptr::null_mut(), |(_, handle)| {
            ptr::without_provenance_mut(handle)
        });
        Ok(())
    });
    txn
}

/// Does something with an open transaction.
fn opened(
    name: &'static str,
    txn: *const corvid_idl_txn,
    work: impl FnOnce(&mut State) -> Outcome,
) {
    guard(name, || {
        let txn = handle::get::<Txn>(txn)?;
        txn.cell.with(|state| {
            if state.txn.is_none_or(|(open, _)| open != txn.id) {
                return Err(Misuse::NoTransaction.into());
            }
            work(state)
        })
    });
}

/// Adds a line to the comment that the server logs.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_txn_add_comment(txn: *mut corvid_idl_txn, text: *const c_char) {
    opened("corvid_idl_txn_add_comment", txn, |state| {
        let text = String::from_utf8_lossy(pointer::bytes(text, "text")?);
        Ok(state.client()?.idl_mut().add_comment(&text)?)
    });
}

/// Has the server execute the transaction and roll it back.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_txn_set_dry_run(txn: *mut corvid_idl_txn) {
    opened("corvid_idl_txn_set_dry_run", txn, |state| {
        Ok(state.client()?.idl_mut().set_dry_run()?)
    });
}

/// Refuses changes from now on, or accepts them again.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_txn_assert_read_only(txn: *mut corvid_idl_txn, read_only: bool) {
    if !txn.is_null() {
        opened("corvid_idl_txn_assert_read_only", txn, |state| {
            Ok(state.client()?.idl_mut().set_read_only(read_only)?)
        });
    }
}

/// Adds one to an integer column at the end of the transaction, if anything else changes or if
/// `force`.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_txn_increment(
    txn: *mut corvid_idl_txn,
    row: *const corvid_idl_row,
    column: *const corvid_idl_column,
    force: bool,
) {
    // The transaction is that of the row; the argument is there for programs that name it.
    let _ = txn;
    changed(
        "corvid_idl_txn_increment",
        row,
        column,
        |state, known, column| {
            let (id, column) = (known.id(state), state.column(column));
            Ok(state.client()?.idl_mut().increment(id, column, force)?)
        },
    );
}

/// Inserts a row into a table, with all columns at their defaults. With `persist` it keeps the UUID
/// on the server; a null UUID lets the library choose. Null after a failure.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_txn_insert(
    txn: *mut corvid_idl_txn,
    class: *const corvid_idl_table_class,
    uuid: *const corvid_uuid,
    persist: bool,
) -> *mut corvid_idl_row {
    row_or_null("corvid_idl_txn_insert", || {
        let txn = handle::get::<Txn>(txn)?;
        let uuid = if uuid.is_null() {
            None
        } else {
            Some(Uuid::from(pointer::array(uuid, 1, "uuid")?[0]))
        };
        txn.cell.with(|state| {
            if state.txn.is_none_or(|(open, _)| open != txn.id) {
                return Err(Misuse::NoTransaction.into());
            }
            let table = state.layout.table(class)?;
            let id = state.layout.tables[table].table;
            let idl = state.client()?.idl_mut();
            let inserted = match uuid {
                None => idl.insert_new(id),
                Some(uuid) => idl.insert(id, uuid, persist),
            };
            let row = inserted.map_err(|misuse| {
                let is_in_use = misuse == Misuse::UuidInUse;
                let failure = if is_in_use {
                    Failure::constraint(duplicate_uuid())
                } else {
                    misuse.into()
                };
                let subject = format!("a new row of table {}", state.layout.schema.table(id).name);
                refuse(state, &subject, failure)
            })?;
            state.inserted.insert((table, row.uuid));
            let made = state.show(table, row.uuid);
            rows::remember(&txn.cell, made.into_iter().collect());
            state.fill_row(table, row.uuid);
            Ok(state.find(table, row.uuid))
        })
    })
}

/// Deletes a row. Walks over the table do not show it any more; its struct stays until the next
/// run.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_txn_delete(row: *const corvid_idl_row) {
    guard("corvid_idl_txn_delete", || {
        with_row(row, |_, state, known| {
            let id = known.id(state);
            let deleted = state.client()?.idl_mut().delete(id);
            deleted.map_err(|misuse| match misuse {
                // The row is gone already, as the program wants it.
                Misuse::RowGone => misuse.into(),
                misuse => {
                    let table = state.layout.schema.table(id.table);
                    let subject = format!("a row of table {}", table.name);
                    refuse(state, &subject, misuse.into())
                }
            })?;
            let place = (known.table, known.uuid);
            if state.inserted.remove(&place) {
                state.remove(known.table, known.uuid);
            } else {
                state.tables[known.table].take_out_of_sight(known.slot, RowState::Hidden);
                state.hidden.push(place);
            }
            Ok(())
        })
    });
}

/// Does something with a column of a row.
fn changed(
    name: &'static str,
    row: *const corvid_idl_row,
    column: *const corvid_idl_column,
    work: impl FnOnce(&mut State, Known, (usize, usize)) -> Outcome,
) {
    guard(name, || {
        with_row(row, |_, state, known| {
            let place = state.layout.column(column)?;
            let changed = if place.0 == known.table {
                work(state, known, place)
            } else {
                Err(Misuse::WrongTable.into())
            };
            changed.map_err(|failure| {
                let column = state.column(place);
                let table = state.layout.schema.table(column.table);
                let name = &table.column(column.id).name;
                let subject = format!("column {name} of table {}", table.name);
                refuse(state, &subject, failure)
            })
        })
    });
}

/// Makes the open transaction fail, because a change that the program asked for is not part of it.
/// `subject` says what was to be changed. Without a transaction nothing could be changed, and the
/// failure is all.
fn refuse(state: &mut State, subject: &str, failure: Failure) -> Failure {
    if let Some(client) = &mut state.client {
        // Fails without an open transaction only.
        let _ = client.idl_mut().refuse(failure.to_wire_error(subject));
    }
    failure
}

fn duplicate_uuid() -> WireError {
    let details = "This UUID would duplicate a UUID already present within the table or deleted within the \
                   same transaction.";
    WireError::new(Tag::DuplicateUuid, details)
}

/// Commits only if a column still holds what it holds here. Call it before writing the column.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_txn_verify(
    row: *const corvid_idl_row,
    column: *const corvid_idl_column,
) {
    changed(
        "corvid_idl_txn_verify",
        row,
        column,
        |state, known, column| {
            let (id, column) = (known.id(state), state.column(column));
            Ok(state.client()?.idl_mut().verify(id, column)?)
        },
    );
}

/// Writes a column as a whole, as corvid_txn_write does; elements that are given twice count once.
/// A value that breaks a constraint of the schema makes the commit fail with the server's error. A
/// value that cannot be sent, and any other failure, makes the commit fail too, and is logged.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_txn_write(
    row: *const corvid_idl_row,
    column: *const corvid_idl_column,
    keys: *const corvid_atom,
    values: *const corvid_atom,
    count: usize,
) {
    changed(
        "corvid_idl_txn_write",
        row,
        column,
        |state, known, place| {
            let (id, column) = (known.id(state), state.column(place));
            if state.writes_only_silent && state.tables[place.0].modes[place.1].alerts {
                let text = "the program promised to write only columns without alerts \
                            (corvid_idl_verify_write_only)";
                return Err(Failure::argument(text));
            }
            let idl = state.client()?.idl_mut();
            let column_type = &idl.column(column).column_type;
            let datum = unique_datum_of(keys, values, count, column_type)?;
            idl.write(id, column, datum)?;
            state.written.insert((known.table, known.uuid, place.1));
            state.fill(known.table, known.uuid, place.1);
            Ok(())
        },
    );
}

/// Changes one element.
fn element(
    name: &'static str,
    row: *const corvid_idl_row,
    column: *const corvid_idl_column,
    key: corvid_atom,
    make: impl FnOnce(corvid::Atom, &corvid::data::ColumnType) -> Result<Element, Failure>,
) {
    changed(name, row, column, |state, known, place| {
        let (id, column) = (known.id(state), state.column(place));
        let idl = state.client()?.idl_mut();
        let column_type = &idl.column(column).column_type;
        let element = make(key.to_atom(&column_type.key)?, column_type)?;
        idl.change_element(id, column, &element)?;
        Ok(())
    });
}

/// Adds a value to a set.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_txn_add_value(
    row: *const corvid_idl_row,
    column: *const corvid_idl_column,
    value: corvid_atom,
) {
    element(
        "corvid_idl_txn_add_value",
        row,
        column,
        value,
        |value, _| Ok(Element::Add(value)),
    );
}

/// Removes a value from a set.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_txn_remove_value(
    row: *const corvid_idl_row,
    column: *const corvid_idl_column,
    value: corvid_atom,
) {
    element(
        "corvid_idl_txn_remove_value",
        row,
        column,
        value,
        |value, _| Ok(Element::Remove(value)),
    );
}

/// Sets the value at a key of a map.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_txn_set_key(
    row: *const corvid_idl_row,
    column: *const corvid_idl_column,
    key: corvid_atom,
    value: corvid_atom,
) {
    element(
        "corvid_idl_txn_set_key",
        row,
        column,
        key,
        |key, column_type| {
            let base = column_type.value.as_ref().ok_or(Misuse::WrongType)?;
            Ok(Element::Set(key, value.to_atom(base)?))
        },
    );
}

/// Removes a key from a map.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_txn_remove_key(
    row: *const corvid_idl_row,
    column: *const corvid_idl_column,
    key: corvid_atom,
) {
    element("corvid_idl_txn_remove_key", row, column, key, |key, _| {
        Ok(Element::RemoveKey(key))
    });
}
