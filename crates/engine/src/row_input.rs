//! Row objects of operations: column names and values from a client (docs/spec/protocol.md 5.2,
//! 5.6, 5.7).

use corvid_data::{ColumnId, Datum, Symbols, TableSchema, WireError, wire};
use corvid_json::Reader;
use smallvec::SmallVec;

use crate::triple::unknown_column;

/// The columns that a row object names, which may include `_uuid` and `_version`, each once.
pub(crate) type Given = SmallVec<[(ColumnId, Datum); 8]>;

/// Parses the raw text of a row object. The caller has checked that it is an object.
///
/// # Errors
/// An unknown column, or a value that does not fit its column. Of several faults, the first one
/// that no later member of the same name replaces.
pub(crate) fn read_row(
    table: &TableSchema,
    raw: &[u8],
    symbols: &mut dyn Symbols,
) -> Result<Given, WireError> {
    let mut given = Given::new();
    let mut faults: Vec<(ColumnId, WireError)> = Vec::new();
    let mut reader = Reader::trusted(raw);
    let broken = |_| WireError::syntax(raw, "row must be JSON object");
    reader.begin_object().map_err(broken)?;
    while let Some(name) = reader.next_member().map_err(broken)? {
        let Some(column) = table.column_named(&name) else {
            return Err(unknown_column(table, &name, raw));
        };
        // The last of repeated members counts. Earlier ones are dropped, including their faults.
        if given.iter().any(|(id, _)| *id == column) {
            given.retain(|(id, _)| *id != column);
        }
        faults.retain(|(id, _)| *id != column);
        let column_type = &table.column(column).column_type;
        match wire::read_datum(&mut reader, column_type, Some(symbols)) {
            Ok(datum) => given.push((column, datum)),
            Err(fault) => faults.push((column, fault)),
        }
    }
    match faults.into_iter().next() {
        Some((_, fault)) => Err(fault),
        None => Ok(given),
    }
}
