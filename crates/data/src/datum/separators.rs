//! The separators of an inner node: the smallest key below each child. Versions of a node share
//! them, because only one or two changes in a dozen split a child or change its first key. Sharing
//! saves each change the reference counts of all strings.
//!
//! Invariant: never empty and never changed: an edit makes another run. Only [`super::tree`] uses
//! separators.

use triomphe::ThinArc;

use crate::atoms::{AtomSlice, Atoms};
use crate::{Real, Str, Uuid};

/// Keys in order, by type.
#[derive(Clone, Debug)]
pub(super) enum Separators {
    Integers(ThinArc<(), i64>),
    Reals(ThinArc<(), Real>),
    Booleans(ThinArc<(), bool>),
    Strings(ThinArc<(), Str>),
    Uuids(ThinArc<(), Uuid>),
}

fn share<T>(keys: Vec<T>) -> ThinArc<(), T> {
    ThinArc::from_header_and_iter((), keys.into_iter())
}

impl Separators {
    pub(super) fn new(keys: Atoms) -> Separators {
        match keys {
            Atoms::Integer(keys) => Separators::Integers(share(keys)),
            Atoms::Real(keys) => Separators::Reals(share(keys)),
            Atoms::Boolean(keys) => Separators::Booleans(share(keys)),
            Atoms::String(keys) => Separators::Strings(share(keys)),
            Atoms::Uuid(keys) => Separators::Uuids(share(keys)),
        }
    }

    pub(super) fn slice(&self) -> AtomSlice<'_> {
        match self {
            Separators::Integers(keys) => AtomSlice::Integer(&keys.slice),
            Separators::Reals(keys) => AtomSlice::Real(&keys.slice),
            Separators::Booleans(keys) => AtomSlice::Boolean(&keys.slice),
            Separators::Strings(keys) => AtomSlice::String(&keys.slice),
            Separators::Uuids(keys) => AtomSlice::Uuid(&keys.slice),
        }
    }

    /// Replaces the keys by a copy, with room for one more key, that `change` has edited.
    pub(super) fn edit<T>(&mut self, change: impl FnOnce(&mut Atoms) -> T) -> T {
        let keys = self.slice();
        let mut copy = Atoms::with_capacity(keys.atom_type(), keys.len() + 1);
        copy.extend_from(keys, 0, keys.len());
        let outcome = change(&mut copy);
        *self = Separators::new(copy);
        outcome
    }
}
