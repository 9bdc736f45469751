//! Collects elements in any order into a datum.
//!
//! Invariant: for up to one element, only the datum itself may allocate. Input that is already
//! sorted is not sorted again.

use triomphe::Arc;

use super::leaf::Leaf;
use super::short::Short;
use super::tree::Inner;
use super::{Datum, LEAF_LIMIT, Repr};
use crate::atoms::Atoms;
use crate::{Atom, Tag, WireError};

/// Elements to allocate for if the caller gave no number.
const CAPACITY_MIN: usize = 4;

/// Up to this many pairs are sorted in place. For more, the indexes are sorted.
const PAIRS_IN_PLACE_MAX: usize = 16;

/// Collects elements in any order and detects duplicates.
#[derive(Debug, Default)]
pub struct DatumBuilder {
    elements: Elements,
    /// Some key was not greater than the one before it.
    is_unsorted: bool,
    /// How many elements the caller expects.
    expected: usize,
}

#[derive(Debug, Default)]
enum Elements {
    #[default]
    None,
    One(Atom),
    /// The first pair of a map. Most differences of maps are no longer than one pair.
    Pair(Atom, Atom),
    Many(Leaf),
}

impl Elements {
    /// Moves the only element into a leaf with room for more.
    fn begin_leaf(&mut self, capacity: usize) -> &mut Leaf {
        let leaf = match std::mem::take(self) {
            Elements::One(key) => run(key, None, capacity),
            Elements::Pair(key, value) => run(key, Some(value), capacity),
            Elements::Many(leaf) => leaf,
            Elements::None => unreachable!("no element to begin a leaf with"),
        };
        *self = Elements::Many(leaf);
        match self {
            Elements::Many(leaf) => leaf,
            _ => unreachable!("assigned just now"),
        }
    }
}

impl DatumBuilder {
    /// An empty builder.
    #[must_use]
    pub fn new() -> DatumBuilder {
        DatumBuilder::default()
    }

    /// An empty builder. Its first allocation has room for `expected` elements.
    #[must_use]
    pub fn with_capacity(expected: usize) -> DatumBuilder {
        DatumBuilder {
            expected,
            ..DatumBuilder::default()
        }
    }

    /// Number of elements so far, including duplicates.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.elements {
            Elements::None => 0,
            Elements::One(_) | Elements::Pair(..) => 1,
            Elements::Many(leaf) => leaf.len(),
        }
    }

    /// Whether nothing was pushed yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds an element or pair. All must have the same types.
    pub fn push(&mut self, key: Atom, value: Option<Atom>) {
        let leaf = match &mut self.elements {
            Elements::None => {
                self.elements = match value {
                    None => Elements::One(key),
                    Some(value) => Elements::Pair(key, value),
                };
                return;
            }
            Elements::Many(leaf) => leaf,
            first => first.begin_leaf(self.expected.max(CAPACITY_MIN)),
        };
        self.is_unsorted |= !leaf.keys.push_after(key);
        match (&mut leaf.values, value) {
            (Some(values), Some(value)) => values.push(value),
            (None, None) => {}
            _ => unreachable!("pairs and elements mixed"),
        }
    }

    /// Builds the datum, after sorting the elements if they are not sorted yet.
    ///
    /// # Errors
    /// `ovsdb error` with `set contains duplicate` or `map contains duplicate key`.
    pub fn finish(self) -> Result<Datum, WireError> {
        match self.elements {
            Elements::None => Ok(Datum::empty()),
            Elements::One(atom) => Ok(Datum::one(atom)),
            Elements::Pair(key, value) => Ok(Datum::pair(key, value)),
            Elements::Many(mut leaf) => {
                if self.is_unsorted {
                    leaf = sort(leaf);
                    if leaf.keys.slice().has_repeats() {
                        let details = match leaf.values {
                            Some(_) => "map contains duplicate key",
                            None => "set contains duplicate",
                        };
                        return Err(WireError::new(Tag::OvsdbError, details));
                    }
                }
                Ok(from_sorted(leaf))
            }
        }
    }
}

impl DatumBuilder {
    /// Builds the datum, as [`DatumBuilder::finish`] does, from keys that were pushed in strictly
    /// ascending order.
    pub(crate) fn finish_sorted(self) -> Datum {
        assert!(!self.is_unsorted, "keys pushed out of order");
        match self.elements {
            Elements::None => Datum::empty(),
            Elements::One(atom) => Datum::one(atom),
            Elements::Pair(key, value) => Datum::pair(key, value),
            Elements::Many(leaf) => from_sorted(leaf),
        }
    }
}

/// A leaf of one element with room for more.
fn run(key: Atom, value: Option<Atom>, capacity: usize) -> Leaf {
    let start = |atom: Atom| {
        let mut run = Atoms::for_atom(&atom, capacity);
        run.push(atom);
        run
    };
    Leaf {
        keys: start(key),
        values: value.map(start),
    }
}

fn sort(leaf: Leaf) -> Leaf {
    let mut leaf = leaf;
    match &leaf.values {
        None => {
            leaf.keys.sort();
            leaf
        }
        Some(_) if leaf.len() <= PAIRS_IN_PLACE_MAX => {
            leaf.sort_pairs();
            leaf
        }
        Some(values) => {
            let positions = leaf.keys.sorted_positions();
            Leaf {
                values: Some(values.permuted(&positions)),
                keys: leaf.keys.permuted(&positions),
            }
        }
    }
}

/// The datum of sorted distinct elements. O(n).
pub(super) fn from_sorted(leaf: Leaf) -> Datum {
    match leaf.len() {
        0 => return Datum::empty(),
        1 if leaf.values.is_none() => return Datum::one(leaf.first_key()),
        len if len > LEAF_LIMIT => return Datum(Repr::Tree(Inner::build(leaf))),
        _ => {}
    }
    Datum(match Short::pack(leaf) {
        Ok(short) => Repr::Short(short),
        Err(mut leaf) => {
            leaf.shrink_to_fit();
            Repr::Leaf(Arc::new(leaf))
        }
    })
}
