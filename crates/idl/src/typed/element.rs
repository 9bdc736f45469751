//! Elements of columns as Rust values.

use corvid_data::{Atom, AtomRef, Real, Str, Uuid};

use super::Row;
use crate::idl::Idl;
use crate::row::RowId;

/// A type whose values convert to and from atoms. Generated code adds enumerations.
pub trait Element: Clone + Ord {
    /// The value of an atom; `None` if the atom is of another type.
    fn from_atom(atom: AtomRef<'_>) -> Option<Self>;

    /// Converts the value to an atom.
    fn into_atom(self) -> Atom;

    /// Whether reads show the element. References to missing rows are hidden.
    fn is_shown(&self, _idl: &Idl) -> bool {
        true
    }
}

impl Element for i64 {
    fn from_atom(atom: AtomRef<'_>) -> Option<i64> {
        atom.as_integer()
    }

    fn into_atom(self) -> Atom {
        Atom::Integer(self)
    }
}

impl Element for bool {
    fn from_atom(atom: AtomRef<'_>) -> Option<bool> {
        atom.as_boolean()
    }

    fn into_atom(self) -> Atom {
        Atom::Boolean(self)
    }
}

impl Element for Real {
    fn from_atom(atom: AtomRef<'_>) -> Option<Real> {
        match atom {
            AtomRef::Real(value) => Some(value),
            _ => None,
        }
    }

    fn into_atom(self) -> Atom {
        Atom::Real(self)
    }
}

impl Element for Str {
    fn from_atom(atom: AtomRef<'_>) -> Option<Str> {
        match atom {
            AtomRef::String(text) => Some(text.clone()),
            _ => None,
        }
    }

    fn into_atom(self) -> Atom {
        Atom::String(self)
    }
}

impl Element for Uuid {
    fn from_atom(atom: AtomRef<'_>) -> Option<Uuid> {
        atom.as_uuid()
    }

    fn into_atom(self) -> Atom {
        Atom::Uuid(self)
    }
}

/// A reference to a row.
impl<R: Row> Element for R {
    fn from_atom(atom: AtomRef<'_>) -> Option<R> {
        let uuid = atom.as_uuid()?;
        Some(R::of(RowId {
            table: R::TABLE,
            uuid,
        }))
    }

    fn into_atom(self) -> Atom {
        Atom::Uuid(self.uuid())
    }

    fn is_shown(&self, idl: &Idl) -> bool {
        self.is_there(idl)
    }
}
