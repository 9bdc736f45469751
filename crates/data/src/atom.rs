//! Atoms: the single values of RFC 7047, owned and borrowed (docs/spec/protocol.md 2.1).
//!
//! Atoms of one type are totally ordered as docs/spec/protocol.md 2.1 sorts them. Checks against a
//! column's constraints are in [`crate::constraint`], notations in [`crate::wire`] and
//! [`crate::text`].

use crate::{AtomType, Real, Str, Uuid};

/// An owned atom.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Atom {
    /// `integer`
    Integer(i64),
    /// `real`
    Real(Real),
    /// `boolean`
    Boolean(bool),
    /// `string`
    String(Str),
    /// `uuid`
    Uuid(Uuid),
}

/// A borrowed atom, as a datum yields it. Comparing atoms of different types is a bug in the
/// caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AtomRef<'a> {
    /// `integer`
    Integer(i64),
    /// `real`
    Real(Real),
    /// `boolean`
    Boolean(bool),
    /// `string`
    String(&'a Str),
    /// `uuid`
    Uuid(Uuid),
}

impl Atom {
    /// The default of a type: 0, false, `""`, all-zero UUID.
    #[must_use]
    pub fn default_for(atom_type: AtomType) -> Atom {
        match atom_type {
            AtomType::Integer => Atom::Integer(0),
            AtomType::Real => Atom::Real(Real::default()),
            AtomType::Boolean => Atom::Boolean(false),
            AtomType::String => Atom::String(Str::default()),
            AtomType::Uuid => Atom::Uuid(Uuid::ZERO),
        }
    }

    /// A borrowed view of the atom.
    #[must_use]
    pub fn as_ref(&self) -> AtomRef<'_> {
        match self {
            Atom::Integer(v) => AtomRef::Integer(*v),
            Atom::Real(v) => AtomRef::Real(*v),
            Atom::Boolean(v) => AtomRef::Boolean(*v),
            Atom::String(v) => AtomRef::String(v),
            Atom::Uuid(v) => AtomRef::Uuid(*v),
        }
    }
}

impl AtomRef<'_> {
    /// The atom's type.
    #[must_use]
    pub fn atom_type(self) -> AtomType {
        match self {
            AtomRef::Integer(_) => AtomType::Integer,
            AtomRef::Real(_) => AtomType::Real,
            AtomRef::Boolean(_) => AtomType::Boolean,
            AtomRef::String(_) => AtomType::String,
            AtomRef::Uuid(_) => AtomType::Uuid,
        }
    }

    /// Whether the atom is the default of its type.
    #[must_use]
    pub fn is_default(self) -> bool {
        match self {
            AtomRef::Integer(integer) => integer == 0,
            AtomRef::Real(real) => real == Real::default(),
            AtomRef::Boolean(boolean) => !boolean,
            AtomRef::String(text) => text.is_empty(),
            AtomRef::Uuid(uuid) => uuid == Uuid::ZERO,
        }
    }

    /// Copies the atom (strings are shared).
    #[must_use]
    pub fn to_owned(self) -> Atom {
        match self {
            AtomRef::Integer(v) => Atom::Integer(v),
            AtomRef::Real(v) => Atom::Real(v),
            AtomRef::Boolean(v) => Atom::Boolean(v),
            AtomRef::String(v) => Atom::String(v.clone()),
            AtomRef::Uuid(v) => Atom::Uuid(v),
        }
    }

    /// The UUID, if the atom is one.
    #[must_use]
    pub fn as_uuid(self) -> Option<Uuid> {
        match self {
            AtomRef::Uuid(uuid) => Some(uuid),
            _ => None,
        }
    }

    /// The string, if the atom is one.
    #[must_use]
    pub fn as_string(&self) -> Option<&str> {
        match self {
            AtomRef::String(text) => Some(text.as_str()),
            _ => None,
        }
    }

    /// The integer, if the atom is one.
    #[must_use]
    pub fn as_integer(self) -> Option<i64> {
        match self {
            AtomRef::Integer(integer) => Some(integer),
            _ => None,
        }
    }

    /// The boolean, if the atom is one.
    #[must_use]
    pub fn as_boolean(self) -> Option<bool> {
        match self {
            AtomRef::Boolean(boolean) => Some(boolean),
            _ => None,
        }
    }
}
