//! Fetching of columns on demand.

use std::ffi::c_int;

use corvid::{FetchError, FetchId, FetchOutcome, Idl};

use crate::client::{corvid_client, with};
use crate::config::{column_key, corvid_column, corvid_table, table_id};
use crate::error::{Failure, corvid_error, guard};
use crate::pointer::Out;
use crate::reading::{corvid_row, row_gone, row_id};

/// The status of a fetch.
#[repr(C)]
pub enum corvid_fetch_status {
    /// The answer is not there yet.
    CORVID_FETCH_PENDING = 0,
    /// The values are in the replica.
    CORVID_FETCH_SUCCESS = 1,
    /// The row is no longer there.
    CORVID_FETCH_ROW_GONE = 2,
    /// The server refused.
    CORVID_FETCH_ERROR = 3,
    /// The connection ended first.
    CORVID_FETCH_DISCONNECTED = 4,
}

fn fetch(
    client: *mut corvid_client,
    fetch: *mut u64,
    begin: impl FnOnce(&mut Idl) -> Result<Result<FetchId, FetchError>, Failure>,
) -> Result<(), Failure> {
    let out = Out::new(fetch, "fetch")?;
    let begun = with(client, |client| begin(client.idl_mut()))?;
    let id = begun.map_err(|error| match error {
        FetchError::NotConnected => {
            Failure::new(corvid_error::CORVID_ERR_NOT_CONNECTED, error.to_string())
        }
        FetchError::RowGone => row_gone(),
        error => Failure::new(corvid_error::CORVID_ERR_COLUMN, error.to_string()),
    })?;
    out.set(id.0);
    Ok(())
}

/// Fetches a column of one row that has the mode CORVID_MODE_ON_DEMAND. `*fetch` is the number to
/// ask corvid_fetch_status_of about.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_fetch_row(
    client: *mut corvid_client,
    row: corvid_row,
    column: corvid_column,
    number: *mut u64,
) -> corvid_error {
    guard("corvid_fetch_row", || {
        fetch(client, number, |idl| {
            let row = row_id(idl.schema(), row)?;
            let column = column_key(idl.schema(), column)?;
            Ok(idl.fetch_row(row, column))
        })
    })
}

/// Fetches a column of all rows.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_fetch_column(
    client: *mut corvid_client,
    column: corvid_column,
    number: *mut u64,
) -> corvid_error {
    guard("corvid_fetch_column", || {
        fetch(client, number, |idl| {
            let column = column_key(idl.schema(), column)?;
            Ok(idl.fetch_column(column))
        })
    })
}

/// Fetches every column of a table that is fetched on demand.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_fetch_table(
    client: *mut corvid_client,
    table: corvid_table,
    number: *mut u64,
) -> corvid_error {
    guard("corvid_fetch_table", || {
        fetch(client, number, |idl| {
            let table = table_id(idl.schema(), table)?;
            Ok(idl.fetch_table(table))
        })
    })
}

/// The status of a fetch; `*status` is a corvid_fetch_status. A final status is returned once.
/// CORVID_ERR_NONE: there is no such fetch, or its end was returned.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_fetch_status_of(
    client: *mut corvid_client,
    number: u64,
    status: *mut c_int,
) -> corvid_error {
    guard("corvid_fetch_status_of", || {
        let out = Out::new(status, "status")?;
        let outcome = with(client, |client| {
            Ok(client.idl_mut().take_fetch_outcome(FetchId(number)))
        })?;
        let outcome = outcome.ok_or_else(|| Failure::none("there is no such fetch"))?;
        out.set(match outcome {
            FetchOutcome::Pending => 0,
            FetchOutcome::Success => 1,
            FetchOutcome::RowGone => 2,
            FetchOutcome::Error(_) => 3,
            FetchOutcome::Disconnected => 4,
        });
        Ok(())
    })
}
