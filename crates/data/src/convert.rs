//! Converts a datum to another column type, as a schema conversion does with each column
//! (docs/spec/protocol.md 4.15).
//!
//! The outcome equals writing the datum as JSON and reading it under the new type, except that
//! reals keep all their digits. A real stays a real, so it fits no integer column even if its value
//! is integral.

use crate::{
    Atom, AtomRef, AtomType, BaseType, ColumnType, Datum, DatumBuilder, Real, WireError, wire,
};

impl Datum {
    /// Converts the datum, which is of type `from`, to the type `to`.
    ///
    /// # Errors
    /// Those of [`wire::read_datum`]: shape, number of elements, types and constraints, duplicates.
    ///
    /// ```
    /// use corvid_data::{Atom, AtomType, ColumnType, Datum};
    ///
    /// let (integer, real) = (ColumnType::scalar(AtomType::Integer), ColumnType::scalar(AtomType::Real));
    /// let datum = Datum::one(Atom::Integer(5)).convert(&integer, &real)?;
    /// let error = datum.convert(&real, &integer).expect_err("no way back");
    /// assert_eq!(error.to_string(), r#"syntax "5": syntax error: expected integer"#);
    /// # Ok::<(), corvid_data::WireError>(())
    /// ```
    pub fn convert(&self, from: &ColumnType, to: &ColumnType) -> Result<Datum, WireError> {
        if from == to {
            return Ok(self.clone());
        }
        if from.is_map() != to.is_map() {
            return Err(self.misfit(
                from,
                match to.value {
                    Some(_) => "expected [\"map\", <array>]".to_owned(),
                    // A datum of a set type that is not written as a set is one atom.
                    None => expectation(to.key.atom),
                },
            ));
        }
        if !to.admits(self.len()) {
            return Err(self.misfit(from, to.count_problem(self.len())));
        }
        let mut converted = DatumBuilder::with_capacity(self.len());
        for (key, value) in self {
            let key = atom(key, &to.key)?;
            let value = match (value, &to.value) {
                (Some(value), Some(base)) => Some(atom(value, base)?),
                _ => None,
            };
            converted.push(key, value);
        }
        converted.finish()
    }

    /// A `syntax error` about the whole datum.
    fn misfit(&self, from: &ColumnType, details: String) -> WireError {
        let mut whole = Vec::new();
        wire::write_datum(&mut whole, self, from.is_map());
        WireError::syntax(&whole, details)
    }
}

fn atom(atom: AtomRef<'_>, base: &BaseType) -> Result<Atom, WireError> {
    let converted = match (atom, base.atom) {
        (AtomRef::Integer(integer), AtomType::Real) => {
            // Every integer is finite as a double.
            Atom::Real(Real::new(integer as f64).unwrap_or_default())
        }
        (same, atom_type) if same.atom_type() == atom_type => same.to_owned(),
        (other, atom_type) => {
            let mut fragment = Vec::new();
            wire::write_atom(&mut fragment, other);
            return Err(WireError::syntax(&fragment, expectation(atom_type)));
        }
    };
    base.check(converted.as_ref())?;
    Ok(converted)
}

/// The details of the error about an atom of another type.
fn expectation(atom_type: AtomType) -> String {
    match atom_type {
        AtomType::Uuid => "expected [\"uuid\", <string>]".to_owned(),
        other => format!("expected {}", other.name()),
    }
}
