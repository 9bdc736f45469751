//! A datum: the content of one column of one row. Inline for none and one, a sorted shared array when small, a chunked
//! structurally shared tree when large, so that changing one element costs O(log n) and clones are O(1).
//!
//! Elements are sorted and distinct. A datum carries no type; operations that need one take it.

use crate::{Atom, AtomRef, ColumnType, WireError};

/// A set (scalars and optional scalars are sets of at most one) or a map. 24 bytes.
///
/// Equality, order and hash follow protocol.md 2.4: element count, then keys, then values.
#[derive(Clone, Debug, Default)]
pub struct Datum {
    _repr: (),
}

/// Collects elements in any order and checks duplicates.
#[derive(Debug, Default)]
pub struct DatumBuilder {}

impl Datum {
    /// No elements.
    #[must_use]
    pub const fn empty() -> Datum {
        Datum { _repr: () }
    }

    /// A set of one atom: every scalar.
    #[must_use]
    pub fn one(atom: Atom) -> Datum {
        let _ = atom;
        todo!()
    }

    /// A map of one pair.
    #[must_use]
    pub fn pair(key: Atom, value: Atom) -> Datum {
        let _ = (key, value);
        todo!()
    }

    /// The default of a column: empty when `min` is 0, else one default atom or pair (protocol.md 2.4).
    #[must_use]
    pub fn default_for(column_type: &ColumnType) -> Datum {
        let _ = column_type;
        todo!()
    }

    /// Whether it equals [`Datum::default_for`], without making one.
    #[must_use]
    pub fn is_default(&self, column_type: &ColumnType) -> bool {
        let _ = column_type;
        todo!()
    }

    /// Number of elements or pairs.
    #[must_use]
    pub fn len(&self) -> usize {
        todo!()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The only element of a scalar or non-empty optional scalar; the first of a larger set.
    #[must_use]
    pub fn first(&self) -> Option<AtomRef<'_>> {
        todo!()
    }

    /// Elements in order, maps with their values.
    pub fn iter(&self) -> impl Iterator<Item = (AtomRef<'_>, Option<AtomRef<'_>>)> + '_ {
        std::iter::empty()
    }

    /// Elements or map keys in order.
    pub fn keys(&self) -> impl Iterator<Item = AtomRef<'_>> + '_ {
        self.iter().map(|(key, _)| key)
    }

    /// Whether the element or key is present. O(log n).
    #[must_use]
    pub fn contains(&self, key: AtomRef<'_>) -> bool {
        let _ = key;
        todo!()
    }

    /// The value at a key of a map. O(log n).
    #[must_use]
    pub fn get(&self, key: AtomRef<'_>) -> Option<AtomRef<'_>> {
        let _ = key;
        todo!()
    }

    /// Adds an element or pair; `false` and unchanged when the key is present (maps keep their value). O(log n).
    pub fn insert(&mut self, key: Atom, value: Option<Atom>) -> bool {
        let _ = (key, value);
        todo!()
    }

    /// Adds a pair or replaces the value at its key. O(log n).
    pub fn replace(&mut self, key: Atom, value: Atom) {
        let _ = (key, value);
        todo!()
    }

    /// Removes an element or key; `false` when absent. O(log n).
    pub fn remove(&mut self, key: AtomRef<'_>) -> bool {
        let _ = key;
        todo!()
    }

    /// Every element (map: key and value) of `other` is here: the `includes` function. O(|other| log n).
    #[must_use]
    pub fn includes(&self, other: &Datum) -> bool {
        let _ = other;
        todo!()
    }

    /// No element (map: key and value) of `other` is here: the `excludes` function. O(|other| log n) or better.
    #[must_use]
    pub fn excludes(&self, other: &Datum) -> bool {
        let _ = other;
        todo!()
    }

    /// Whether both share their memory (or are equal inline atoms), so are equal without a look inside.
    #[must_use]
    pub fn ptr_eq(&self, other: &Datum) -> bool {
        let _ = other;
        todo!()
    }

    /// Atoms held: elements, map pairs count 2 (protocol.md 4.9, history).
    #[must_use]
    pub fn atom_count(&self) -> u64 {
        todo!()
    }
}

impl PartialEq for Datum {
    fn eq(&self, other: &Datum) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Datum {}

impl PartialOrd for Datum {
    fn partial_cmp(&self, other: &Datum) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Datum {
    fn cmp(&self, other: &Datum) -> std::cmp::Ordering {
        let _ = other;
        todo!()
    }
}

impl std::hash::Hash for Datum {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        let _ = state;
        todo!()
    }
}

impl DatumBuilder {
    /// An empty builder.
    #[must_use]
    pub fn new() -> DatumBuilder {
        DatumBuilder {}
    }

    /// Adds an element or pair; all must have the same types.
    pub fn push(&mut self, key: Atom, value: Option<Atom>) {
        let _ = (key, value);
        todo!()
    }

    /// Sorts.
    ///
    /// # Errors
    /// `ovsdb error` with `set contains duplicate` or `map contains duplicate key`.
    pub fn finish(self) -> Result<Datum, WireError> {
        todo!()
    }
}
