//! Applies a transaction read from a log (docs/spec/storage.md 4). It goes through the same
//! transaction and commit as a client's, so a file can contain only contents that a client could
//! have written.

use corvid_data::{
    ColumnId, ColumnType, Datum, Delta, Recorded, RecordedRow, Row, Tag, UuidSource, WireError,
    wire,
};

use crate::commit::commit;
use crate::database::Database;
use crate::page::Slot;
use crate::row_id::RowId;
use crate::transaction::{Transaction, Written};

mod prefetch;
mod steps;

/// Applies `recorded` and commits.
///
/// # Errors
/// A row that does not fit, or an error of the commit. Nothing changes then.
pub(crate) fn apply_recorded(
    database: &mut Database,
    recorded: Recorded,
    uuids: &mut dyn UuidSource,
) -> Result<Delta, WireError> {
    let mut txn = Transaction::begin(database);
    for row in recorded.rows {
        if let Err(error) = apply(&mut txn, row, recorded.is_diff, uuids) {
            txn.rollback();
            return Err(error);
        }
    }
    let delta = commit(txn, uuids)?;
    Ok(Delta {
        comment: recorded.comment.unwrap_or_default(),
        ..delta
    })
}

fn apply(
    txn: &mut Transaction<'_>,
    row: RecordedRow,
    is_diff: bool,
    uuids: &mut dyn UuidSource,
) -> Result<(), WireError> {
    let RecordedRow {
        table,
        uuid,
        columns,
    } = row;
    match (txn.table(table).find(uuid), columns) {
        (None, None) => {
            let details = format!("transaction deletes row {uuid} that does not exist");
            return Err(WireError::new(Tag::SyntaxError, details));
        }
        (Some(slot), None) => txn.delete(table, slot),
        // A record of an existing row holds differences or new values, and of a missing row its
        // contents. The record itself does not tell whether the row exists.
        (Some(slot), Some(columns)) if is_diff => {
            let columns = apply_diffs(txn, table, slot, columns)?;
            txn.write(table, slot, columns.into_iter());
        }
        (Some(slot), Some(columns)) => {
            txn.write(table, slot, own(columns).map(Written::from));
        }
        (None, Some(columns)) => {
            let row = new_row(txn.database, RowId::new(table, uuid), columns, uuids)?;
            txn.insert(table, row);
        }
    }
    Ok(())
}

/// The row that a record inserts.
fn new_row(
    database: &Database,
    id: RowId,
    columns: Vec<(ColumnId, Datum)>,
    uuids: &mut dyn UuidSource,
) -> Result<Row, WireError> {
    let schema = database.schema.table(id.table);
    let mut row = Row {
        uuid: id.uuid,
        version: uuids.fresh(),
        columns: database.layouts[usize::from(id.table.0)].defaults.clone(),
    };
    for (column, datum) in own(columns) {
        // Differences are read without size limits, but for a missing row they are its contents.
        let column_type = &schema.column(column).column_type;
        if !column_type.admits(datum.len()) {
            return Err(size_error(&datum, column_type));
        }
        row.columns[usize::from(column.0)] = datum;
    }
    Ok(row)
}

fn size_error(datum: &Datum, column_type: &ColumnType) -> WireError {
    let mut json = Vec::new();
    wire::write_datum(&mut json, datum, column_type.is_map());
    WireError::syntax(&json, column_type.count_problem(datum.len()))
}

/// The columns without `_uuid` and `_version`, which a record cannot change.
fn own(columns: Vec<(ColumnId, Datum)>) -> impl Iterator<Item = (ColumnId, Datum)> {
    columns
        .into_iter()
        .filter(|(column, _)| !column.is_standard())
}

fn apply_diffs(
    txn: &Transaction<'_>,
    table: corvid_data::TableId,
    slot: Slot,
    diffs: Vec<(ColumnId, Datum)>,
) -> Result<Vec<Written>, WireError> {
    let schema = txn.table_schema(table);
    let row = txn.table(table).at(slot);
    own(diffs)
        .map(|(column, diff)| {
            let mut datum = row.columns[usize::from(column.0)].clone();
            let column_type = &schema.column(column).column_type;
            datum.apply_diff(&diff, column_type)?;
            let is_known = column_type.is_composite() && !diff.is_empty();
            Ok(Written {
                column,
                datum,
                diff: is_known.then_some(diff),
            })
        })
        .collect()
}
