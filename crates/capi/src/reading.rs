//! Reading the replica: rows and values. While a transaction is open, reads see its changes.

use std::ffi::c_char;

use corvid::data::{AtomRef, AtomType};
use corvid::{Column, Datum, RowId, Schema, TableId, Uuid, polled};

use crate::client::{corvid_client, put_text, with};
use crate::config::{column_key, corvid_column, corvid_table, table_id};
use crate::error::{Failure, corvid_error, guard};
use crate::handle::{self, Kind};
use crate::pointer::{self, Out, OutArray};
use crate::value::{View, corvid_atom, corvid_datum, corvid_uuid};

/// A row: a plain value that may be copied and kept. It holds no columns.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct corvid_row {
    /// Its table.
    pub table: corvid_table,
    /// Its identity. Of a row that was inserted here, until the server knows it, a provisional one.
    pub uuid: corvid_uuid,
}

impl From<RowId> for corvid_row {
    fn from(row: RowId) -> corvid_row {
        corvid_row {
            table: corvid_table {
                number: row.table.0.into(),
            },
            uuid: row.uuid.into(),
        }
    }
}

/// A row of a table that the schema has.
pub(crate) fn row_id(schema: &Schema, row: corvid_row) -> Result<RowId, Failure> {
    let table = table_id(schema, row.table)?;
    Ok(RowId {
        table,
        uuid: Uuid::from(row.uuid),
    })
}

pub(crate) fn row_gone() -> Failure {
    Failure::new(corvid_error::CORVID_ERR_ROW_GONE, "there is no such row")
}

/// Rows at one moment: a copy that does not change. Free it with corvid_rows_free.
pub struct corvid_rows {
    _private: [u8; 0],
}

/// The object behind the handle.
pub(crate) struct Rows(pub(crate) Vec<corvid_row>);

impl Kind for Rows {
    type Opaque = corvid_rows;
    const NAME: &'static str = "list of rows";
}

/// Lists the rows of a table, in no particular order. Free the list with corvid_rows_free.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_rows_new(
    client: *const corvid_client,
    table: corvid_table,
    rows: *mut *mut corvid_rows,
) -> corvid_error {
    guard("corvid_rows_new", || {
        let out = Out::new(rows, "rows")?;
        let rows = with(client, |client| {
            let table = table_id(client.schema(), table)?;
            Ok(client.rows(table).map(corvid_row::from).collect())
        })?;
        out.set(handle::store(Rows(rows))?);
        Ok(())
    })
}

/// The number of rows in a list; 0 for a handle that is none.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_rows_count(rows: *const corvid_rows) -> usize {
    let mut count = 0;
    guard("corvid_rows_count", || {
        count = handle::get::<Rows>(rows)?.0.len();
        Ok(())
    });
    count
}

/// The rows of a list: an array of corvid_rows_count elements, which belongs to the list and stays
/// valid until corvid_rows_free. Null for a handle that is none.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_rows_data(rows: *const corvid_rows) -> *const corvid_row {
    let mut data = std::ptr::null();
    guard("corvid_rows_data", || {
        data = handle::get::<Rows>(rows)?.0.as_ptr();
        Ok(())
    });
    data
}

/// Frees a list. Null is fine.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_rows_free(rows: *mut corvid_rows) -> corvid_error {
    guard("corvid_rows_free", || handle::take::<Rows>(rows).map(drop))
}

/// The number of rows of a table.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_row_count(
    client: *const corvid_client,
    table: corvid_table,
    count: *mut usize,
) -> corvid_error {
    guard("corvid_row_count", || {
        let out = Out::new(count, "count")?;
        out.set(with(client, |client| {
            let table = table_id(client.schema(), table)?;
            Ok(client.row_count(table))
        })?);
        Ok(())
    })
}

/// Finds a row by UUID, which is also how references are followed. CORVID_ERR_ROW_GONE: it is not
/// there.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_row_find(
    client: *const corvid_client,
    table: corvid_table,
    uuid: corvid_uuid,
    row: *mut corvid_row,
) -> corvid_error {
    guard("corvid_row_find", || {
        let out = Out::new(row, "row")?;
        let found = with(client, |client| {
            let table: TableId = table_id(client.schema(), table)?;
            client.row(table, uuid.into()).ok_or_else(row_gone)
        })?;
        out.set(found.into());
        Ok(())
    })
}

/// The value of a column of a row under the lock of a client.
pub(crate) fn read(
    client: &polled::Client,
    row: corvid_row,
    column: corvid_column,
) -> Result<(Datum, Column), Failure> {
    let row = row_id(client.schema(), row)?;
    let column = column_key(client.schema(), column)?;
    if row.table != column.table {
        return Err(corvid::Misuse::WrongTable.into());
    }
    let datum = client.read(row, column).ok_or_else(row_gone)?;
    Ok((datum, column))
}

/// Reads a column of a row, of any type; a column that is not replicated shows its default. A
/// deleted row shows its last values as long as its deletion is listed by corvid_changes_new. The
/// datum is a copy: free it with corvid_datum_free.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_read(
    client: *const corvid_client,
    row: corvid_row,
    column: corvid_column,
    datum: *mut *mut corvid_datum,
) -> corvid_error {
    guard("corvid_read", || {
        let out = Out::new(datum, "datum")?;
        // The copy is made when the lock is free again.
        let datum = with(client, |client| Ok(read(client, row, column)?.0))?;
        out.set(handle::store(View::of(&datum))?);
        Ok(())
    })
}

/// Does something with the only element of a column, which must be of a type, under the lock of the
/// client.
fn only<R>(
    client: *const corvid_client,
    row: corvid_row,
    column: corvid_column,
    expected: AtomType,
    work: impl FnOnce(AtomRef<'_>) -> Result<R, Failure>,
) -> Result<R, Failure> {
    with(client, |client| {
        let row = row_id(client.schema(), row)?;
        let column = column_key(client.schema(), column)?;
        if row.table != column.table {
            return Err(corvid::Misuse::WrongTable.into());
        }
        let column_type = &client.column(column).column_type;
        let is_one = column_type.max == 1 && !column_type.is_map();
        if !is_one || column_type.key.atom != expected {
            let text = format!("the column does not hold at most one {}", expected.name());
            return Err(Failure::new(corvid_error::CORVID_ERR_TYPE, text));
        }
        let read;
        let held = client.view(row).and_then(|view| view.get(column));
        let datum = match held {
            Some(datum) => datum,
            None => {
                read = client.read(row, column).ok_or_else(row_gone)?;
                &read
            }
        };
        let only = datum.first();
        work(only.ok_or_else(|| Failure::none("the column is empty"))?)
    })
}

/// Reads a column of at most one integer. CORVID_ERR_NONE: it is empty.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_get_integer(
    client: *const corvid_client,
    row: corvid_row,
    column: corvid_column,
    value: *mut i64,
) -> corvid_error {
    guard("corvid_get_integer", || {
        let out = Out::new(value, "value")?;
        only(client, row, column, AtomType::Integer, |atom| {
            if let AtomRef::Integer(integer) = atom {
                out.set(integer);
            }
            Ok(())
        })
    })
}

/// Reads a column of at most one real. CORVID_ERR_NONE: it is empty.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_get_real(
    client: *const corvid_client,
    row: corvid_row,
    column: corvid_column,
    value: *mut f64,
) -> corvid_error {
    guard("corvid_get_real", || {
        let out = Out::new(value, "value")?;
        only(client, row, column, AtomType::Real, |atom| {
            if let AtomRef::Real(real) = atom {
                out.set(real.get());
            }
            Ok(())
        })
    })
}

/// Reads a column of at most one boolean. CORVID_ERR_NONE: it is empty.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_get_boolean(
    client: *const corvid_client,
    row: corvid_row,
    column: corvid_column,
    value: *mut bool,
) -> corvid_error {
    guard("corvid_get_boolean", || {
        let out = Out::new(value, "value")?;
        only(client, row, column, AtomType::Boolean, |atom| {
            if let AtomRef::Boolean(boolean) = atom {
                out.set(boolean);
            }
            Ok(())
        })
    })
}

/// Reads a column of at most one UUID or reference. CORVID_ERR_NONE: it is empty.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_get_uuid(
    client: *const corvid_client,
    row: corvid_row,
    column: corvid_column,
    value: *mut corvid_uuid,
) -> corvid_error {
    guard("corvid_get_uuid", || {
        let out = Out::new(value, "value")?;
        only(client, row, column, AtomType::Uuid, |atom| {
            if let AtomRef::Uuid(uuid) = atom {
                out.set(uuid.into());
            }
            Ok(())
        })
    })
}

/// Copies a column of at most one string into `buffer`, cut to `size` bytes with its NUL. `*length`
/// is the length of the whole string; `length` may be null, and so may `buffer` if `size` is 0.
/// CORVID_ERR_NONE: the column is empty.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_get_string(
    client: *const corvid_client,
    row: corvid_row,
    column: corvid_column,
    buffer: *mut c_char,
    size: usize,
    length: *mut usize,
) -> corvid_error {
    guard("corvid_get_string", || {
        only(client, row, column, AtomType::String, |atom| match atom {
            AtomRef::String(text) => put_text(text.as_str(), buffer, size, length),
            _ => Ok(()),
        })
    })
}

/// Reads several columns of a row in one call, each of at most one element. `atoms` gets one atom
/// for each column, of type CORVID_TYPE_VOID where the column is empty. Strings are copied into
/// `buffer` of `size` bytes, each with its NUL, and the atoms point there; `buffer` may be null if
/// `size` is 0. After an error their contents are undefined. CORVID_ERR_LIMIT: the buffer is too
/// small.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_get_columns(
    client: *const corvid_client,
    row: corvid_row,
    columns: *const corvid_column,
    count: usize,
    atoms: *mut corvid_atom,
    buffer: *mut c_char,
    size: usize,
) -> corvid_error {
    guard("corvid_get_columns", || {
        let columns = pointer::array(columns, count, "columns")?;
        let mut atoms = OutArray::new(atoms, count, "atoms")?;
        let mut texts = OutArray::new(buffer, size, "buffer")?;
        with(client, |client| {
            let row = row_id(client.schema(), row)?;
            let view = client.view(row);
            let table = client.schema().table(row.table).columns();
            for column in columns {
                if row.table.0 != column.table {
                    return Err(corvid::Misuse::WrongTable.into());
                }
                let schema = table.get(usize::from(column.number));
                let schema =
                    schema.ok_or_else(|| Failure::argument("the table has no such column"))?;
                let column_type = &schema.column_type;
                let column = Column {
                    table: row.table,
                    id: corvid::ColumnId(column.number),
                };
                if column_type.max != 1 || column_type.is_map() {
                    let text = "a column holds more than one element";
                    return Err(Failure::new(corvid_error::CORVID_ERR_TYPE, text));
                }
                let read;
                let datum = match view.and_then(|view| view.get(column)) {
                    Some(datum) => datum,
                    None => {
                        read = client.read(row, column).ok_or_else(row_gone)?;
                        &read
                    }
                };
                let only = datum.first();
                let string = match only {
                    Some(AtomRef::String(text)) => Some(texts.push_text(text.as_str())?),
                    _ => None,
                };
                atoms.push(corvid_atom::shown(only, string))?;
            }
            Ok(())
        })
    })
}
