//! The textual notation of tools and messages (protocol.md 2.7).

use crate::Atom;
use crate::{AtomRef, BaseType, ColumnType, Datum, Uuid};

/// Appends an atom, strings quoted only where needed.
pub fn write_atom(out: &mut String, atom: AtomRef<'_>) {
    let _ = (out, atom);
    todo!()
}

/// Appends a datum with `[]` or `{}` where the type's max exceeds 1 or it is empty.
pub fn write_datum(out: &mut String, datum: &Datum, column_type: &ColumnType) {
    let _ = (out, datum, column_type);
    todo!()
}

/// Appends the `--bare` form: unquoted, separated by one space.
pub fn write_datum_bare(out: &mut String, datum: &Datum, column_type: &ColumnType) {
    let _ = (out, datum, column_type);
    todo!()
}

/// Reads an atom; `names` resolves `@name`.
///
/// # Errors
/// The messages of protocol.md 2.7.
pub fn read_atom(
    text: &str,
    base: &BaseType,
    names: &mut dyn FnMut(&str) -> Option<Uuid>,
) -> Result<Atom, String> {
    let _ = (text, base, names);
    todo!()
}

/// Reads a datum; `names` resolves `@name`.
///
/// # Errors
/// The messages of protocol.md 2.7.
pub fn read_datum(
    text: &str,
    column_type: &ColumnType,
    names: &mut dyn FnMut(&str) -> Option<Uuid>,
) -> Result<Datum, String> {
    let _ = (text, column_type, names);
    todo!()
}
