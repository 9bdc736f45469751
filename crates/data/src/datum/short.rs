//! A short datum: elements of the usual types in one allocation of the exact size, where a leaf has
//! two or three.
//!
//! ```text
//! set of strings    references, length, "10.0.0.1", "10.0.0.2"      8 bytes each, 32 in total
//! map of strings    references, length, key, key, value, value      48
//! ```
//!
//! Invariant: keys are strictly ascending; a set has at least two elements, a map at least one
//! pair, and neither more than [`SHORT_MAX`]. A short datum is never changed: a change unpacks it
//! into a leaf. For so few elements that costs less than changing them in place. Data of other
//! types are leaves from the start. Only [`crate::Datum`] makes short data.

use triomphe::ThinArc;

use super::leaf::{Chunk, Leaf};
use crate::atoms::{AtomSlice, Atoms};
use crate::{Atom, Str, Uuid};

/// Limit on the elements or pairs of a short datum; one more makes a leaf.
pub(super) const SHORT_MAX: usize = 16;
/// A leaf that shrinks to this many elements becomes short again, if its types allow.
pub(super) const SHORT_AGAIN: usize = 8;

/// The elements, by type.
#[derive(Clone)]
pub(super) enum Short {
    Integers(ThinArc<(), i64>),
    Strings(ThinArc<(), Str>),
    Uuids(ThinArc<(), Uuid>),
    /// A map from strings to strings: all keys, then all values.
    StringMap(ThinArc<(), Str>),
}

/// Applies the same expression to the elements of any type.
macro_rules! each {
    ($short:expr, $shared:ident => $body:expr) => {
        match $short {
            Short::Integers($shared) => $body,
            Short::Strings($shared) | Short::StringMap($shared) => $body,
            Short::Uuids($shared) => $body,
        }
    };
}

impl Short {
    /// Packs a leaf. Returns the leaf as the error if it is too long or of other types.
    pub(super) fn pack(leaf: Leaf) -> Result<Short, Leaf> {
        if leaf.len() > SHORT_MAX {
            return Err(leaf);
        }
        match (leaf.keys, leaf.values) {
            (Atoms::Integer(keys), None) => Ok(Short::Integers(share(keys.into_iter()))),
            (Atoms::String(keys), None) => Ok(Short::Strings(share(keys.into_iter()))),
            (Atoms::Uuid(keys), None) => Ok(Short::Uuids(share(keys.into_iter()))),
            (Atoms::String(keys), Some(Atoms::String(values))) => {
                Ok(Short::of_pairs(keys.into_iter(), values.into_iter()))
            }
            (keys, values) => Err(Leaf { keys, values }),
        }
    }

    /// A set of sorted strings.
    pub(super) fn of_strings(strings: impl ExactSizeIterator<Item = Str>) -> Short {
        Short::Strings(share(strings))
    }

    /// A map of sorted keys and their values.
    pub(super) fn of_pairs(
        keys: impl ExactSizeIterator<Item = Str>,
        values: impl ExactSizeIterator<Item = Str>,
    ) -> Short {
        let count = keys.len() + values.len();
        let mut all = keys.chain(values);
        let counted = (0..count).map(|_| all.next().unwrap_or_default());
        Short::StringMap(share(counted))
    }

    /// Packs a map of one pair.
    pub(super) fn pack_pair(key: Atom, value: Atom) -> Result<Short, Leaf> {
        match (key, value) {
            (Atom::String(key), Atom::String(value)) => {
                Ok(Short::StringMap(share([key, value].into_iter())))
            }
            (key, value) => Err(Leaf::single(key, Some(value))),
        }
    }

    /// A leaf with the same elements and room for one more.
    pub(super) fn unpack(&self) -> Leaf {
        let Chunk { keys, values } = self.chunk();
        let copy = |run: AtomSlice<'_>| {
            let mut copy = Atoms::with_capacity(run.atom_type(), run.len() + 1);
            copy.extend_from(run, 0, run.len());
            copy
        };
        Leaf {
            keys: copy(keys),
            values: values.map(copy),
        }
    }

    /// A map with another value at `at`, built in one allocation. `None` for a set, or for a value
    /// of another type.
    pub(super) fn with_value(&self, at: usize, value: &Atom) -> Option<Short> {
        let (Short::StringMap(both), Atom::String(value)) = (self, value) else {
            return None;
        };
        let changed = both.slice.len() / 2 + at;
        let all = both.slice.iter().enumerate();
        let elements = all.map(|(index, text)| if index == changed { value } else { text }.clone());
        Some(Short::StringMap(share(elements)))
    }

    pub(super) fn chunk(&self) -> Chunk<'_> {
        let keys = match self {
            Short::Integers(keys) => AtomSlice::Integer(&keys.slice),
            Short::Strings(keys) => AtomSlice::String(&keys.slice),
            Short::Uuids(keys) => AtomSlice::Uuid(&keys.slice),
            Short::StringMap(both) => {
                let (keys, values) = both.slice.split_at(both.slice.len() / 2);
                return Chunk {
                    keys: AtomSlice::String(keys),
                    values: Some(AtomSlice::String(values)),
                };
            }
        };
        Chunk { keys, values: None }
    }

    pub(super) fn len(&self) -> usize {
        let count = each!(self, shared => shared.slice.len());
        if self.is_map() { count / 2 } else { count }
    }

    pub(super) fn is_map(&self) -> bool {
        matches!(self, Short::StringMap(_))
    }

    /// Whether both share their memory. Data of different types never do.
    pub(super) fn ptr_eq(&self, other: &Short) -> bool {
        let address = |short: &Short| each!(short, shared => shared.slice.as_ptr().cast::<u8>());
        address(self) == address(other)
    }
}

fn share<T>(elements: impl ExactSizeIterator<Item = T>) -> ThinArc<(), T> {
    ThinArc::from_header_and_iter((), elements)
}
