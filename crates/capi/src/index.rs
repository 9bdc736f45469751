//! Indexes and cursors: rows by their columns, and in their order.

use std::sync::{Arc, Mutex, PoisonError};

use corvid::{Column, Cursor, Datum, IndexColumn, IndexId, Key, RowId, polled};

use crate::abi::{Versioned, sized_array};
use crate::client::{Cell, Client, corvid_client};
use crate::config::{column_key, corvid_column, corvid_table, table_id};
use crate::error::{Failure, corvid_error, guard};
use crate::handle::{self, Kind};
use crate::pointer::{self, Out};
use crate::reading::{Rows, corvid_row, corvid_rows};
use crate::value::{corvid_atom, datum_of};

/// The rows of a table in the order of some of its columns. Free it with corvid_index_free.
pub struct corvid_index {
    _private: [u8; 0],
}

/// A position in an index that survives any change of its row. Free it with corvid_cursor_free.
pub struct corvid_cursor {
    _private: [u8; 0],
}

/// The object behind the handle of an index.
pub(crate) struct Index {
    client: Arc<Cell>,
    id: IndexId,
    columns: Vec<Column>,
}

/// The object behind the handle of a cursor.
pub(crate) struct CursorObject {
    client: Arc<Cell>,
    cursor: Mutex<Cursor>,
}

impl Kind for Index {
    type Opaque = corvid_index;
    const NAME: &'static str = "index";
    const IS_CACHED: bool = true;
}

impl Kind for CursorObject {
    type Opaque = corvid_cursor;
    const NAME: &'static str = "cursor";
}

/// One column of the key of an index: its elements, or its pairs. CORVID_KEY_PART sets all members.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct corvid_key_part {
    /// `sizeof(corvid_key_part)`, set by the caller.
    pub size: usize,
    /// The elements or keys.
    pub keys: *const corvid_atom,
    /// The values of a map; null for a set.
    pub values: *const corvid_atom,
    /// How many there are.
    pub count: usize,
}

// SAFETY: numbers and pointers only, the size first.
unsafe impl Versioned for corvid_key_part {
    const NAME: &'static str = "corvid_key_part";
    const LEAST: usize = 32;
}

/// Makes an index over `count` columns of a table, in ascending order, or in descending order of
/// those whose element of `descending` is true; `descending` may be null. The columns must be
/// replicated. The library keeps the index up to date until the client is freed. Free the handle
/// with corvid_index_free.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_index_new(
    client: *mut corvid_client,
    table: corvid_table,
    columns: *const corvid_column,
    descending: *const bool,
    count: usize,
    index: *mut *mut corvid_index,
) -> corvid_error {
    guard("corvid_index_new", || {
        let out = Out::new(index, "index")?;
        let columns = pointer::array(columns, count, "columns")?;
        // As bytes: C may pass a byte that is not a valid bool in Rust.
        let descending = if descending.is_null() {
            &[]
        } else {
            pointer::array(descending.cast::<u8>(), count, "descending")?
        };
        let client = handle::get::<Client>(client)?.0.clone();
        let index = client.with(|state| {
            let table = table_id(state.schema(), table)?;
            let mut keys = Vec::with_capacity(columns.len());
            for column in columns {
                keys.push(column_key(state.schema(), *column)?);
            }
            let of_index = keys
                .iter()
                .enumerate()
                .map(|(at, column)| match descending.get(at) {
                    None | Some(0) => IndexColumn::ascending(*column),
                    Some(_) => IndexColumn::descending(*column),
                });
            let of_index = of_index.collect();
            let id = state
                .idl_mut()
                .add_index(table, "", of_index)
                .map_err(|e| Failure::new(corvid_error::CORVID_ERR_COLUMN, e.to_string()))?;
            Ok(Index {
                client: client.clone(),
                id,
                columns: keys,
            })
        })?;
        out.set(handle::store(index)?);
        Ok(())
    })
}

/// Frees the handle of an index. Null is fine.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_index_free(index: *mut corvid_index) -> corvid_error {
    guard("corvid_index_free", || {
        handle::take::<Index>(index).map(drop)
    })
}

/// The values of a key from its parts, one for each column.
fn values_of(
    index: &Index,
    client: &polled::Client,
    parts: *const corvid_key_part,
) -> Result<impl Iterator<Item = Result<Datum, Failure>>, Failure> {
    let parts = sized_array(parts, index.columns.len(), "key")?;
    let values = index.columns.iter().zip(parts).map(|(column, part)| {
        let part = part?;
        let column_type = &client.column(*column).column_type;
        datum_of(part.keys, part.values, part.count, column_type)
    });
    Ok(values)
}

/// A key from its parts, one for each column.
fn key_of(
    index: &Index,
    client: &polled::Client,
    parts: *const corvid_key_part,
) -> Result<Key, Failure> {
    let mut key = client.key(index.id);
    for (column, value) in index.columns.iter().zip(values_of(index, client, parts)?) {
        key.set(*column, value?);
    }
    Ok(key)
}

/// The first row whose columns equal the values of a key.
fn find(
    index: &Index,
    client: &polled::Client,
    parts: *const corvid_key_part,
) -> Result<Option<RowId>, Failure> {
    let mut values = values_of(index, client, parts)?;
    // Most indexes have one column, whose value needs no vector.
    let found = if index.columns.len() == 1 {
        let value = values.next().unwrap_or_else(|| Ok(Datum::empty()))?;
        client.find_values(index.id, &[value])
    } else {
        let values: Vec<Datum> = values.collect::<Result<_, _>>()?;
        client.find_values(index.id, &values)
    };
    Ok(found.map(|(row, _)| row))
}

/// Finds the first row whose columns equal a key, which has one part for each column of the index.
/// CORVID_ERR_NONE: there is none.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_index_find(
    index: *const corvid_index,
    key: *const corvid_key_part,
    row: *mut corvid_row,
) -> corvid_error {
    guard("corvid_index_find", || {
        let out = Out::new(row, "row")?;
        let found = handle::with::<Index, _>(index, |index| {
            index.client.with(|client| find(index, client, key))
        })?;
        let found = found.ok_or_else(|| Failure::none("there is no such row"))?;
        out.set(found.into());
        Ok(())
    })
}

/// Lists the rows from one key to another, both included, in the order of the index; a null key is
/// without bound. Free the list with corvid_rows_free.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_index_range(
    index: *const corvid_index,
    from: *const corvid_key_part,
    to: *const corvid_key_part,
    rows: *mut *mut corvid_rows,
) -> corvid_error {
    guard("corvid_index_range", || {
        let out = Out::new(rows, "rows")?;
        let index = handle::get::<Index>(index)?;
        let rows = index.client.with(|client| {
            let bound = |parts: *const corvid_key_part| {
                let is_there = !parts.is_null();
                is_there.then(|| key_of(&index, client, parts)).transpose()
            };
            let (from, to) = (bound(from)?, bound(to)?);
            let rows = client.range_of(index.id, from.as_ref(), to.as_ref());
            Ok(rows.map(corvid_row::from).collect())
        })?;
        out.set(handle::store(Rows(rows))?);
        Ok(())
    })
}

/// Makes a cursor at the first row that is not before a key; with a null key at the first row. Free
/// it with corvid_cursor_free.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_cursor_new(
    index: *const corvid_index,
    from: *const corvid_key_part,
    cursor: *mut *mut corvid_cursor,
) -> corvid_error {
    guard("corvid_cursor_new", || {
        let out = Out::new(cursor, "cursor")?;
        let index = handle::get::<Index>(index)?;
        let cursor = index.client.with(|client| {
            if from.is_null() {
                return Ok(client.cursor_first(index.id));
            }
            let key = key_of(&index, client, from)?;
            Ok(client.cursor_at_least(&key))
        })?;
        out.set(handle::store(CursorObject {
            client: index.client.clone(),
            cursor: Mutex::new(cursor),
        })?);
        Ok(())
    })
}

/// Does something with a cursor. The lock of the client comes first, so that two calls cannot wait
/// for one another.
fn at<R>(
    cursor: *const corvid_cursor,
    work: impl FnOnce(&polled::Client, &mut Cursor) -> R,
) -> Result<R, Failure> {
    let object = handle::get::<CursorObject>(cursor)?;
    object.client.with(|client| {
        let cursor = object.cursor.lock();
        let mut cursor = cursor.unwrap_or_else(PoisonError::into_inner);
        Ok(work(client, &mut cursor))
    })
}

/// The row that a cursor is at. CORVID_ERR_NONE: it is at the end, or the row was deleted.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_cursor_row(
    cursor: *const corvid_cursor,
    row: *mut corvid_row,
) -> corvid_error {
    guard("corvid_cursor_row", || {
        let out = Out::new(row, "row")?;
        let found: Option<RowId> = at(cursor, |client, cursor| client.cursor_row(cursor))?;
        let found = found.ok_or_else(|| Failure::none("the cursor is at no row"))?;
        out.set(found.into());
        Ok(())
    })
}

/// Goes to the row after the position that the cursor's row had, even if that row has moved or was
/// deleted.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_cursor_next(cursor: *mut corvid_cursor) -> corvid_error {
    guard("corvid_cursor_next", || {
        at(cursor, |client, cursor| client.cursor_next(cursor))
    })
}

/// Goes to the next row if its key is the same, else to the end.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_cursor_next_equal(cursor: *mut corvid_cursor) -> corvid_error {
    guard("corvid_cursor_next_equal", || {
        at(cursor, |client, cursor| client.cursor_next_equal(cursor))
    })
}

/// Frees a cursor. Null is fine.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_cursor_free(cursor: *mut corvid_cursor) -> corvid_error {
    guard("corvid_cursor_free", || {
        handle::take::<CursorObject>(cursor).map(drop)
    })
}
