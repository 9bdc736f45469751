//! Checking atoms against a base type's constraints, with the exact texts of protocol.md 2.2.

use crate::{AtomRef, BaseType, ColumnType, Datum, WireError};

impl BaseType {
    /// Checks one atom: enum first, then range or length.
    ///
    /// # Errors
    /// `constraint violation`.
    pub fn check(&self, atom: AtomRef<'_>) -> Result<(), WireError> {
        let _ = atom;
        todo!()
    }
}

impl ColumnType {
    /// Checks every key and value of `datum` (not their number).
    ///
    /// # Errors
    /// `constraint violation`.
    pub fn check(&self, datum: &Datum) -> Result<(), WireError> {
        let _ = datum;
        todo!()
    }
}
