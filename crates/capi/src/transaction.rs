//! Transactions: at most one of a client is open, any number are outstanding.

use std::ffi::{c_char, c_int};
use std::sync::Arc;

use corvid::{Column, Element, Misuse, RowId, Status, TxnId, polled};

use crate::client::{Cell, Client, corvid_client, put_text};
use crate::config::{column_key, corvid_column, corvid_table, table_id};
use crate::error::{Failure, Outcome, corvid_error, guard};
use crate::handle::{self, Kind};
use crate::pointer::{self, Out};
use crate::reading::{corvid_row, row_id};
use crate::value::{corvid_atom, corvid_uuid, datum_of};

/// The status of a transaction.
#[repr(C)]
pub enum corvid_txn_status {
    /// It is open.
    CORVID_TXN_UNCOMMITTED = 0,
    /// There was nothing to send.
    CORVID_TXN_UNCHANGED = 1,
    /// It was sent; the answer is not there yet. Run the client and ask again.
    CORVID_TXN_INCOMPLETE = 2,
    /// It was given up before it was committed.
    CORVID_TXN_ABORTED = 3,
    /// It was committed, and the replica shows it.
    CORVID_TXN_SUCCESS = 4,
    /// It was not committed, or that is unknown, for a temporary reason. When corvid_client_seqno
    /// differs from what it was before the commit, make the transaction again.
    CORVID_TXN_TRY_AGAIN = 5,
    /// The lock is not held.
    CORVID_TXN_NOT_LOCKED = 6,
    /// It was refused; corvid_txn_error_text says why.
    CORVID_TXN_ERROR = 7,
}

/// The number of a status in C.
pub(crate) fn number_of(status: Status) -> c_int {
    match status {
        Status::Uncommitted => 0,
        Status::Unchanged => 1,
        Status::Incomplete => 2,
        Status::Aborted => 3,
        Status::Success => 4,
        Status::TryAgain => 5,
        Status::NotLocked => 6,
        Status::Error => 7,
    }
}

/// The name of a status, as the reference's tools print it: "try again". A constant of the library.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_txn_status_name(status: c_int) -> *const c_char {
    let names = [
        c"uncommitted",
        c"unchanged",
        c"incomplete",
        c"aborted",
        c"success",
        c"try again",
        c"not locked",
        c"error",
    ];
    let known = usize::try_from(status).ok().and_then(|at| names.get(at));
    known.unwrap_or(&c"unknown").as_ptr()
}

/// A transaction. Free it with corvid_txn_free.
pub struct corvid_txn {
    _private: [u8; 0],
}

/// The object behind the handle.
pub(crate) struct Txn {
    client: Arc<Cell>,
    id: TxnId,
}

impl Kind for Txn {
    type Opaque = corvid_txn;
    const NAME: &'static str = "transaction";
    const IS_CACHED: bool = true;
}

/// Does something with the client of a transaction, which must be open.
fn opened<R>(
    txn: *const corvid_txn,
    work: impl FnOnce(&mut polled::Client) -> Result<R, Failure>,
) -> Result<R, Failure> {
    handle::with::<Txn, R>(txn, |txn| {
        txn.client.with(|client| {
            if client.open_txn() != Some(txn.id) {
                return Err(Misuse::NoTransaction.into());
            }
            work(client)
        })
    })
}

/// As [`opened`], for a column of a row.
fn at_column(
    txn: *const corvid_txn,
    row: corvid_row,
    column: corvid_column,
    work: impl FnOnce(&mut polled::Client, RowId, Column) -> Outcome,
) -> Outcome {
    opened(txn, |client| {
        let row = row_id(client.schema(), row)?;
        let column = column_key(client.schema(), column)?;
        if row.table != column.table {
            return Err(Misuse::WrongTable.into());
        }
        work(client, row, column)
    })
}

/// Opens a transaction. Free it with corvid_txn_free. While it is open, all threads see its
/// changes, and corvid_client_run fails. CORVID_ERR_TXN_OPEN: one is open.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_txn_new(
    client: *mut corvid_client,
    txn: *mut *mut corvid_txn,
) -> corvid_error {
    guard("corvid_txn_new", || {
        let out = Out::new(txn, "txn")?;
        let client = handle::get::<Client>(client)?.0.clone();
        let id = client.with(|client| Ok(client.idl_mut().begin()?))?;
        let handle = handle::store(Txn {
            client: client.clone(),
            id,
        });
        if handle.is_err() {
            client.with(|client| {
                client.idl_mut().forget(id);
                Ok(())
            })?;
        }
        out.set(handle?);
        Ok(())
    })
}

/// Frees a transaction; aborts it if it is open. Null is fine. One that was sent may still be
/// committed.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_txn_free(txn: *mut corvid_txn) -> corvid_error {
    guard("corvid_txn_free", || {
        if let Some(txn) = handle::take::<Txn>(txn)? {
            // A client that was freed or has failed took its transactions along.
            let _ = txn.client.with(|client| {
                client.idl_mut().forget(txn.id);
                Ok(())
            });
        }
        Ok(())
    })
}

/// Sends the changes. `*status` is a corvid_txn_status, which corvid_txn_status_of returns from
/// then on; `status` may be null.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_txn_commit(txn: *mut corvid_txn, status: *mut c_int) -> corvid_error {
    guard("corvid_txn_commit", || {
        let out = (!status.is_null()).then(|| Out::new(status, "status"));
        let out = out.transpose()?;
        let status = opened(txn, |client| Ok(client.idl_mut().commit()?))?;
        if let Some(out) = out {
            out.set(number_of(status));
        }
        Ok(())
    })
}

/// Gives a transaction up. One that was sent may still be committed.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_txn_abort(txn: *mut corvid_txn) -> corvid_error {
    guard("corvid_txn_abort", || {
        let txn = handle::get::<Txn>(txn)?;
        txn.client.with(|client| {
            client.idl_mut().abort(txn.id);
            Ok(())
        })
    })
}

/// The status of a transaction, a corvid_txn_status; -1 for a handle that is none.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_txn_status_of(txn: *const corvid_txn) -> c_int {
    let mut status = -1;
    guard("corvid_txn_status_of", || {
        let txn = handle::get::<Txn>(txn)?;
        let found = txn.client.with(|client| Ok(client.status(txn.id)))?;
        status = number_of(found.unwrap_or(Status::Aborted));
        Ok(())
    });
    status
}

/// Copies the server's error, as JSON, into `buffer`, cut to `size` bytes with its NUL. `*length`
/// is the length of the whole text; `length` may be null. CORVID_ERR_NONE: the status is not
/// CORVID_TXN_ERROR.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_txn_error_text(
    txn: *const corvid_txn,
    buffer: *mut c_char,
    size: usize,
    length: *mut usize,
) -> corvid_error {
    guard("corvid_txn_error_text", || {
        let txn = handle::get::<Txn>(txn)?;
        let error = txn
            .client
            .with(|client| Ok(client.txn_error(txn.id).map(str::to_owned)))?;
        let error = error.ok_or_else(|| Failure::none("there is no error"))?;
        put_text(&error, buffer, size, length)
    })
}

/// Inserts a row with all columns at their defaults. It goes by a provisional UUID, until the
/// server gives it another (corvid_txn_inserted).
#[unsafe(no_mangle)]
pub extern "C" fn corvid_txn_insert(
    txn: *mut corvid_txn,
    table: corvid_table,
    row: *mut corvid_row,
) -> corvid_error {
    guard("corvid_txn_insert", || {
        let out = Out::new(row, "row")?;
        let row = opened(txn, |client| {
            let table = table_id(client.schema(), table)?;
            Ok(client.idl_mut().insert_new(table)?)
        })?;
        out.set(row.into());
        Ok(())
    })
}

/// Inserts a row that keeps the given UUID on the server; draw it at random. CORVID_ERR_TXN: the
/// UUID is in use.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_txn_insert_persistent(
    txn: *mut corvid_txn,
    table: corvid_table,
    uuid: corvid_uuid,
    row: *mut corvid_row,
) -> corvid_error {
    guard("corvid_txn_insert_persistent", || {
        let out = Out::new(row, "row")?;
        let row = opened(txn, |client| {
            let table = table_id(client.schema(), table)?;
            Ok(client.idl_mut().insert(table, uuid.into(), true)?)
        })?;
        out.set(row.into());
        Ok(())
    })
}

/// Deletes a row. Of a table that is not a root this only hides it here: the server deletes it when
/// the last strong reference goes.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_txn_delete(txn: *mut corvid_txn, row: corvid_row) -> corvid_error {
    guard("corvid_txn_delete", || {
        opened(txn, |client| {
            let row = row_id(client.schema(), row)?;
            Ok(client.idl_mut().delete(row)?)
        })
    })
}

/// Writes a column as a whole: `count` elements of a set, or `count` pairs of a map. `values` is
/// null for a set. References are the UUIDs of rows. Earlier changes of elements are gone; later
/// ones change what was written. The library copies everything.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_txn_write(
    txn: *mut corvid_txn,
    row: corvid_row,
    column: corvid_column,
    keys: *const corvid_atom,
    values: *const corvid_atom,
    count: usize,
) -> corvid_error {
    guard("corvid_txn_write", || {
        at_column(txn, row, column, |client, row, column| {
            let column_type = &client.column(column).column_type;
            let datum = datum_of(keys, values, count, column_type)?;
            Ok(client.idl_mut().write(row, column, datum)?)
        })
    })
}

/// Changes one element of a column.
fn change(
    name: &'static str,
    txn: *mut corvid_txn,
    (row, column): (corvid_row, corvid_column),
    key: corvid_atom,
    make: impl FnOnce(corvid::Atom, &corvid::data::ColumnType) -> Result<Element, Failure>,
) -> corvid_error {
    guard(name, || {
        at_column(txn, row, column, |client, row, column| {
            let column_type = &client.column(column).column_type;
            let element = make(key.to_atom(&column_type.key)?, column_type)?;
            client.idl_mut().change_element(row, column, &element)?;
            Ok(())
        })
    })
}

/// Adds a value to a set. Other clients may change other elements at the same time.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_txn_add_value(
    txn: *mut corvid_txn,
    row: corvid_row,
    column: corvid_column,
    value: corvid_atom,
) -> corvid_error {
    change(
        "corvid_txn_add_value",
        txn,
        (row, column),
        value,
        |value, _| Ok(Element::Add(value)),
    )
}

/// Removes a value from a set.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_txn_remove_value(
    txn: *mut corvid_txn,
    row: corvid_row,
    column: corvid_column,
    value: corvid_atom,
) -> corvid_error {
    change(
        "corvid_txn_remove_value",
        txn,
        (row, column),
        value,
        |value, _| Ok(Element::Remove(value)),
    )
}

/// Sets the value at a key of a map.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_txn_set_key(
    txn: *mut corvid_txn,
    row: corvid_row,
    column: corvid_column,
    key: corvid_atom,
    value: corvid_atom,
) -> corvid_error {
    change(
        "corvid_txn_set_key",
        txn,
        (row, column),
        key,
        |key, column_type| {
            let base = column_type.value.as_ref().ok_or(Misuse::WrongType)?;
            Ok(Element::Set(key, value.to_atom(base)?))
        },
    )
}

/// Removes a key from a map.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_txn_remove_key(
    txn: *mut corvid_txn,
    row: corvid_row,
    column: corvid_column,
    key: corvid_atom,
) -> corvid_error {
    change(
        "corvid_txn_remove_key",
        txn,
        (row, column),
        key,
        |key, _| Ok(Element::RemoveKey(key)),
    )
}

/// Commits only if a column still holds what it holds here; else the status becomes
/// CORVID_TXN_TRY_AGAIN. Call it before writing the column.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_txn_verify(
    txn: *mut corvid_txn,
    row: corvid_row,
    column: corvid_column,
) -> corvid_error {
    guard("corvid_txn_verify", || {
        at_column(txn, row, column, |client, row, column| {
            Ok(client.idl_mut().verify(row, column)?)
        })
    })
}

/// Adds one to an integer column at the end of the transaction, if anything else changes or if
/// `force`. One of a transaction is possible.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_txn_increment(
    txn: *mut corvid_txn,
    row: corvid_row,
    column: corvid_column,
    force: bool,
) -> corvid_error {
    guard("corvid_txn_increment", || {
        at_column(txn, row, column, |client, row, column| {
            Ok(client.idl_mut().increment(row, column, force)?)
        })
    })
}

/// The sum that corvid_txn_increment made. CORVID_ERR_NONE: the transaction has not succeeded or
/// incremented nothing.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_txn_incremented(txn: *const corvid_txn, value: *mut i64) -> corvid_error {
    guard("corvid_txn_incremented", || {
        let out = Out::new(value, "value")?;
        let txn = handle::get::<Txn>(txn)?;
        let value = txn
            .client
            .with(|client| Ok(client.incremented_to(txn.id)))?;
        out.set(value.ok_or_else(|| Failure::none("there is no sum"))?);
        Ok(())
    })
}

/// The row that an inserted row has become on the server. CORVID_ERR_NONE: the transaction has not
/// succeeded or did not insert it.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_txn_inserted(
    txn: *const corvid_txn,
    row: corvid_row,
    inserted: *mut corvid_row,
) -> corvid_error {
    guard("corvid_txn_inserted", || {
        let out = Out::new(inserted, "inserted")?;
        let txn = handle::get::<Txn>(txn)?;
        let uuid = txn.client.with(|client| {
            let row = row_id(client.schema(), row)?;
            Ok(client.inserted_uuid(txn.id, row))
        })?;
        let uuid = uuid.ok_or_else(|| Failure::none("the row was not inserted"))?;
        out.set(corvid_row {
            uuid: uuid.into(),
            ..row
        });
        Ok(())
    })
}

/// Adds a line to the comment that the server logs.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_txn_add_comment(
    txn: *mut corvid_txn,
    text: *const c_char,
) -> corvid_error {
    guard("corvid_txn_add_comment", || {
        let text = pointer::text(text, "text")?;
        opened(txn, |client| Ok(client.idl_mut().add_comment(text)?))
    })
}

/// Has the server execute the transaction and roll it back; reported as success.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_txn_set_dry_run(txn: *mut corvid_txn) -> corvid_error {
    guard("corvid_txn_set_dry_run", || {
        opened(txn, |client| Ok(client.idl_mut().set_dry_run()?))
    })
}

/// Refuses changes from now on, or accepts them again.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_txn_set_read_only(txn: *mut corvid_txn, read_only: bool) -> corvid_error {
    guard("corvid_txn_set_read_only", || {
        opened(txn, |client| {
            Ok(client.idl_mut().set_read_only(read_only)?)
        })
    })
}
