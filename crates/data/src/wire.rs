//! The JSON notation of atoms and data (protocol.md 2.1, 2.4, 2.6): read in one pass, guided by the type, no tree.

use corvid_json::Reader;

use crate::{Atom, AtomRef, BaseType, ColumnType, Datum, Uuid, WireError};

/// Binds the names of `["named-uuid", NAME]` while one transaction is read.
pub trait Symbols {
    /// The UUID that `name` stands for, binding it to a fresh one at first mention.
    fn resolve(&mut self, name: &str) -> Uuid;
}

/// Reads one atom and checks its constraints. `symbols: None` where named UUIDs are not allowed.
/// The reader must stand before the value, and its text must be valid JSON.
///
/// # Errors
/// The texts of protocol.md 2.1 to 2.3.
pub fn read_atom(
    reader: &mut Reader<'_>,
    base: &BaseType,
    symbols: Option<&mut dyn Symbols>,
) -> Result<Atom, WireError> {
    let _ = (reader, base, symbols);
    todo!()
}

/// Reads a datum of a column type: shape, count, elements, duplicates, in that order.
///
/// # Errors
/// The texts of protocol.md 2.1 to 2.4.
pub fn read_datum(
    reader: &mut Reader<'_>,
    column_type: &ColumnType,
    symbols: Option<&mut dyn Symbols>,
) -> Result<Datum, WireError> {
    let _ = (reader, column_type, symbols);
    todo!()
}

/// Appends an atom (`5`, `"x"`, `["uuid","..."]`).
pub fn write_atom(out: &mut Vec<u8>, atom: AtomRef<'_>) {
    let _ = (out, atom);
    todo!()
}

/// Appends a datum: one-element sets bare, maps always as `["map",...]`; `is_map` tells what an empty one is.
pub fn write_datum(out: &mut Vec<u8>, datum: &Datum, is_map: bool) {
    let _ = (out, datum, is_map);
    todo!()
}
