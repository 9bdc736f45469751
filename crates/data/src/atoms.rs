//! Runs of atoms of one type: the typed vectors that data consist of, and borrowed views of them.
//!
//! Invariant: all atoms of a run have its type, so no element carries a tag. Datum code reads runs
//! through [`AtomSlice`]. Runs know nothing of sets and maps, and nothing of the order of elements,
//! except for binary search in a run that the caller keeps sorted.

use std::hash::{Hash, Hasher};

use crate::{Atom, AtomRef, AtomType, Real, Str, Uuid};

/// A full vector grows by at least this many elements: enough to amortize, few enough to waste
/// little memory in rows.
const GROWTH_MIN: usize = 4;

/// An owned run.
#[derive(Clone, Debug)]
pub(crate) enum Atoms {
    Integer(Vec<i64>),
    Real(Vec<Real>),
    Boolean(Vec<bool>),
    String(Vec<Str>),
    Uuid(Vec<Uuid>),
}

/// A borrowed run: the keys or values of a leaf, or an inline atom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtomSlice<'a> {
    Integer(&'a [i64]),
    Real(&'a [Real]),
    Boolean(&'a [bool]),
    String(&'a [Str]),
    Uuid(&'a [Uuid]),
}

/// Applies the same expression to the vector or slice that `$run` holds.
macro_rules! each {
    ($kind:ident, $run:expr, $elements:ident => $body:expr) => {
        match $run {
            $kind::Integer($elements) => $body,
            $kind::Real($elements) => $body,
            $kind::Boolean($elements) => $body,
            $kind::String($elements) => $body,
            $kind::Uuid($elements) => $body,
        }
    };
}

/// Like [`each`], and wraps the outcome in the variant that it came from.
macro_rules! map_each {
    ($kind:ident, $run:expr, $elements:ident => $body:expr) => {
        match $run {
            $kind::Integer($elements) => $kind::Integer($body),
            $kind::Real($elements) => $kind::Real($body),
            $kind::Boolean($elements) => $kind::Boolean($body),
            $kind::String($elements) => $kind::String($body),
            $kind::Uuid($elements) => $kind::Uuid($body),
        }
    };
}

/// Pairs a run with an atom of its type. An atom of another type is a bug in the caller, not a
/// fault of the input.
macro_rules! with_atom {
    ($run:expr, $atom:expr, ($elements:ident, $value:ident) => $body:expr) => {
        match ($run, $atom) {
            (Atoms::Integer($elements), Atom::Integer($value)) => $body,
            (Atoms::Real($elements), Atom::Real($value)) => $body,
            (Atoms::Boolean($elements), Atom::Boolean($value)) => $body,
            (Atoms::String($elements), Atom::String($value)) => $body,
            (Atoms::Uuid($elements), Atom::Uuid($value)) => $body,
            (run, atom) => unreachable!("{atom:?} put among atoms of type {:?}", run.atom_type()),
        }
    };
}

impl Atoms {
    /// An empty run of the type of `atom`.
    pub(crate) fn for_atom(atom: &Atom, capacity: usize) -> Atoms {
        Atoms::with_capacity(atom.as_ref().atom_type(), capacity)
    }

    pub(crate) fn with_capacity(atom_type: AtomType, capacity: usize) -> Atoms {
        match atom_type {
            AtomType::Integer => Atoms::Integer(Vec::with_capacity(capacity)),
            AtomType::Real => Atoms::Real(Vec::with_capacity(capacity)),
            AtomType::Boolean => Atoms::Boolean(Vec::with_capacity(capacity)),
            AtomType::String => Atoms::String(Vec::with_capacity(capacity)),
            AtomType::Uuid => Atoms::Uuid(Vec::with_capacity(capacity)),
        }
    }

    pub(crate) fn atom_type(&self) -> AtomType {
        self.slice().atom_type()
    }

    pub(crate) fn len(&self) -> usize {
        each!(Atoms, self, elements => elements.len())
    }

    pub(crate) fn slice(&self) -> AtomSlice<'_> {
        match self {
            Atoms::Integer(elements) => AtomSlice::Integer(elements),
            Atoms::Real(elements) => AtomSlice::Real(elements),
            Atoms::Boolean(elements) => AtomSlice::Boolean(elements),
            Atoms::String(elements) => AtomSlice::String(elements),
            Atoms::Uuid(elements) => AtomSlice::Uuid(elements),
        }
    }

    pub(crate) fn push(&mut self, atom: Atom) {
        with_atom!(self, atom, (elements, value) => elements.push(value));
    }

    /// Appends an atom. Returns whether it is greater than the previous last one.
    pub(crate) fn push_after(&mut self, atom: Atom) -> bool {
        with_atom!(self, atom, (elements, value) => {
            let is_after = elements.last().is_none_or(|last| last.cmp(&value).is_lt());
            elements.push(value);
            is_after
        })
    }

    /// Inserts in place. A full vector grows by an eighth.
    pub(crate) fn insert(&mut self, at: usize, atom: Atom) {
        with_atom!(self, atom, (elements, value) => {
            if elements.len() == elements.capacity() {
                elements.reserve_exact(GROWTH_MIN.max(elements.len() / 8));
            }
            elements.insert(at, value);
        });
    }

    /// A copy with `atom` inserted, built in one allocation of the exact size.
    pub(crate) fn copy_with(&self, at: usize, atom: Atom) -> Atoms {
        let mut copy = Atoms::with_capacity(self.atom_type(), self.len() + 1);
        copy.extend_from(self.slice(), 0, at);
        copy.push(atom);
        copy.extend_from(self.slice(), at, self.len());
        copy
    }

    pub(crate) fn remove(&mut self, at: usize) {
        each!(Atoms, self, elements => {
            elements.remove(at);
        });
    }

    /// Swaps the elements at `at` and `at + 1`.
    pub(crate) fn swap(&mut self, at: usize) {
        each!(Atoms, self, elements => elements.swap(at, at + 1));
    }

    pub(crate) fn set(&mut self, at: usize, atom: Atom) {
        with_atom!(self, atom, (elements, value) => elements[at] = value);
    }

    /// Keeps `..at` and returns the rest.
    pub(crate) fn split_off(&mut self, at: usize) -> Atoms {
        map_each!(Atoms, self, elements => elements.split_off(at))
    }

    /// Appends copies of `source[from..to]`, which must have the same type.
    pub(crate) fn extend_from(&mut self, source: AtomSlice<'_>, from: usize, to: usize) {
        match (self, source) {
            (Atoms::Integer(into), AtomSlice::Integer(elements)) => {
                into.extend_from_slice(&elements[from..to]);
            }
            (Atoms::Real(into), AtomSlice::Real(elements)) => {
                into.extend_from_slice(&elements[from..to]);
            }
            (Atoms::Boolean(into), AtomSlice::Boolean(elements)) => {
                into.extend_from_slice(&elements[from..to]);
            }
            (Atoms::String(into), AtomSlice::String(elements)) => {
                into.extend_from_slice(&elements[from..to]);
            }
            (Atoms::Uuid(into), AtomSlice::Uuid(elements)) => {
                into.extend_from_slice(&elements[from..to]);
            }
            (run, source) => {
                unreachable!("{:?} joined to {:?}", source.atom_type(), run.atom_type())
            }
        }
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        each!(Atoms, self, elements => elements.shrink_to_fit());
    }

    pub(crate) fn sort(&mut self) {
        each!(Atoms, self, elements => elements.sort_unstable());
    }

    /// The order of positions that sorts the run. Equal elements may be in any order.
    pub(crate) fn sorted_positions(&self) -> Vec<u32> {
        fn positions<T: Ord>(elements: &[T]) -> Vec<u32> {
            // There are fewer than 2^32 elements: a datum holds at most u32::MAX
            // (docs/spec/protocol.md 1.1).
            let mut order: Vec<u32> = (0..elements.len() as u32).collect();
            order.sort_unstable_by(|&left, &right| {
                elements[left as usize].cmp(&elements[right as usize])
            });
            order
        }
        each!(Atoms, self, elements => positions(elements))
    }

    /// A copy of the elements at `positions`, in that order.
    pub(crate) fn permuted(&self, positions: &[u32]) -> Atoms {
        fn pick<T: Clone>(elements: &[T], positions: &[u32]) -> Vec<T> {
            positions
                .iter()
                .map(|&at| elements[at as usize].clone())
                .collect()
        }
        map_each!(Atoms, self, elements => pick(elements, positions))
    }
}

impl<'a> AtomSlice<'a> {
    pub(crate) fn of(atom: &'a Atom) -> AtomSlice<'a> {
        match atom {
            Atom::Integer(value) => AtomSlice::Integer(std::slice::from_ref(value)),
            Atom::Real(value) => AtomSlice::Real(std::slice::from_ref(value)),
            Atom::Boolean(value) => AtomSlice::Boolean(std::slice::from_ref(value)),
            Atom::String(value) => AtomSlice::String(std::slice::from_ref(value)),
            Atom::Uuid(value) => AtomSlice::Uuid(std::slice::from_ref(value)),
        }
    }

    pub(crate) fn atom_type(self) -> AtomType {
        match self {
            AtomSlice::Integer(_) => AtomType::Integer,
            AtomSlice::Real(_) => AtomType::Real,
            AtomSlice::Boolean(_) => AtomType::Boolean,
            AtomSlice::String(_) => AtomType::String,
            AtomSlice::Uuid(_) => AtomType::Uuid,
        }
    }

    #[inline]
    pub(crate) fn len(self) -> usize {
        each!(AtomSlice, self, elements => elements.len())
    }

    /// The atom at `at`, which must be below the length.
    #[inline]
    pub(crate) fn get(self, at: usize) -> AtomRef<'a> {
        match self {
            AtomSlice::Integer(elements) => AtomRef::Integer(elements[at]),
            AtomSlice::Real(elements) => AtomRef::Real(elements[at]),
            AtomSlice::Boolean(elements) => AtomRef::Boolean(elements[at]),
            AtomSlice::String(elements) => AtomRef::String(&elements[at]),
            AtomSlice::Uuid(elements) => AtomRef::Uuid(elements[at]),
        }
    }

    /// Binary search in a sorted run: `Ok` with the index, or `Err` with the index to insert at. An
    /// atom of another type is absent and sorts before or after the whole run, as [`AtomRef`]
    /// orders types.
    pub(crate) fn search(self, key: AtomRef<'_>) -> Result<usize, usize> {
        match (self, key) {
            (AtomSlice::Integer(elements), AtomRef::Integer(key)) => elements.binary_search(&key),
            (AtomSlice::Real(elements), AtomRef::Real(key)) => elements.binary_search(&key),
            (AtomSlice::Boolean(elements), AtomRef::Boolean(key)) => elements.binary_search(&key),
            (AtomSlice::String(elements), AtomRef::String(key)) => elements.binary_search(key),
            (AtomSlice::Uuid(elements), AtomRef::Uuid(key)) => elements.binary_search(&key),
            (run, _) if run.len() == 0 => Err(0),
            (run, key) if run.get(0) < key => Err(run.len()),
            _ => Err(0),
        }
    }

    /// The number of equal elements of two runs, from `at` in one and `other_at` in the other up to
    /// the first difference; at most `most`.
    pub(crate) fn common(
        self,
        (at, other_at): (usize, usize),
        other: AtomSlice<'_>,
        most: usize,
    ) -> usize {
        macro_rules! count {
            ($($kind:ident)*) => {
                match (self, other) {
                    $((AtomSlice::$kind(left), AtomSlice::$kind(right)) => {
                        let pairs = left[at..].iter().zip(&right[other_at..]).take(most);
                        pairs.take_while(|(left, right)| left == right).count()
                    })*
                    _ => 0,
                }
            };
        }
        count!(Integer Real Boolean String Uuid)
    }

    /// Whether two runs are equally long and differ in every element.
    pub(crate) fn differs_everywhere(self, other: AtomSlice<'_>) -> bool {
        macro_rules! differs {
            ($($kind:ident)*) => {
                match (self, other) {
                    $((AtomSlice::$kind(left), AtomSlice::$kind(right)) => {
                        left.len() == right.len() && left.iter().zip(right).all(|(left, right)| left != right)
                    })*
                    _ => false,
                }
            };
        }
        differs!(Integer Real Boolean String Uuid)
    }

    /// Whether two neighbours of a sorted run are equal.
    pub(crate) fn has_repeats(self) -> bool {
        each!(AtomSlice, self, elements => elements.windows(2).any(|pair| pair[0] == pair[1]))
    }

    /// Feeds each element separately, so that the hash does not depend on how a datum is cut into
    /// runs.
    pub(crate) fn hash_each<H: Hasher>(self, state: &mut H) {
        each!(AtomSlice, self, elements => elements.iter().for_each(|element| element.hash(state)));
    }
}
