//! A datum: the contents of one column of one row. Up to one element is inline. A small datum is a
//! sorted shared array (one allocation for the shortest data of the usual types). A large datum is
//! a tree whose nodes are shared. So changing one element costs O(log n), and clones are O(1).
//!
//! Elements are sorted and distinct. A datum carries no type; operations that need one get it as an
//! argument. The form affects only memory: equal contents compare and hash equal in every form.
//! Above 64 elements a datum is always a tree, and at 32 and below it never is. In between it keeps
//! its form, so that a datum whose length varies around one limit is not converted at each change.
//! Likewise above 16 elements it is never short, and at 8 and below it always is (if its types
//! allow).

mod algebra;
mod builder;
mod cursor;
mod leaf;
mod order;
mod separators;
mod short;
mod small_strings;
mod tree;

use triomphe::Arc;

pub(crate) use algebra::{is_lookup_cheaper, merge};
pub use builder::DatumBuilder;
pub use cursor::Iter;
pub(crate) use cursor::{Chunks, Path};
pub(crate) use leaf::{Chunk, Element, Leaf};
pub(crate) use small_strings::SmallStrings;
pub(crate) use tree::{Inner, Node};

use short::{SHORT_AGAIN, Short};

use crate::{Atom, AtomRef, ColumnType, Str, Uuid};

/// Limit on a sorted array; one more element makes a tree.
const LEAF_LIMIT: usize = 64;
/// A tree that shrinks to this many elements becomes a sorted array again.
const TREE_LIMIT: usize = 32;

/// A set (scalars and optional scalars are sets of at most one) or a map. 24 bytes.
///
/// Equality, order and hash follow docs/spec/protocol.md 2.4: element count, then keys, then
/// values. The empty set and the empty map are the same datum.
///
/// ```
/// use corvid_data::{Atom, AtomRef, Datum};
///
/// let mut ports = Datum::one(Atom::Integer(7));
/// ports.insert(Atom::Integer(3), None);
/// assert!(ports.contains(AtomRef::Integer(7)));
/// let first = ports.clone();
/// ports.remove(AtomRef::Integer(3));
/// assert!(ports < first, "fewer elements sort first");
/// ```
#[derive(Clone, Default)]
pub struct Datum(Repr);

#[derive(Clone, Default)]
enum Repr {
    #[default]
    Empty,
    /// A set of one.
    One(Atom),
    Short(Short),
    Leaf(Arc<Leaf>),
    Tree(Arc<Inner>),
}

impl Datum {
    /// A datum without elements.
    #[must_use]
    pub const fn empty() -> Datum {
        Datum(Repr::Empty)
    }

    /// A set of one atom: every scalar.
    #[must_use]
    pub const fn one(atom: Atom) -> Datum {
        Datum(Repr::One(atom))
    }

    /// A map of one pair.
    #[must_use]
    pub fn pair(key: Atom, value: Atom) -> Datum {
        Datum(match Short::pack_pair(key, value) {
            Ok(short) => Repr::Short(short),
            Err(leaf) => Repr::Leaf(Arc::new(leaf)),
        })
    }

    /// The default of a column: empty if `min` is 0, else one default atom or pair
    /// (docs/spec/protocol.md 2.4).
    #[must_use]
    pub fn default_for(column_type: &ColumnType) -> Datum {
        if column_type.min == 0 {
            return Datum::empty();
        }
        let key = Atom::default_for(column_type.key.atom);
        match &column_type.value {
            None => Datum::one(key),
            Some(value) => Datum::pair(key, Atom::default_for(value.atom)),
        }
    }

    /// Whether the datum equals [`Datum::default_for`], without building that.
    #[must_use]
    #[inline]
    pub fn is_default(&self, column_type: &ColumnType) -> bool {
        if column_type.min == 0 {
            return self.is_empty();
        }
        let chunk = match &self.0 {
            Repr::One(atom) => return atom.as_ref().is_default(),
            _ => self.chunk(),
        };
        chunk.len() == 1 && {
            let (key, value) = chunk.get(0);
            key.is_default() && value.is_none_or(AtomRef::is_default)
        }
    }

    /// Number of elements or pairs.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Empty => 0,
            Repr::One(_) => 1,
            Repr::Short(short) => short.len(),
            Repr::Leaf(leaf) => leaf.len(),
            Repr::Tree(tree) => tree.len(),
        }
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(self.0, Repr::Empty)
    }

    /// The only element of a scalar or non-empty optional scalar; the first element of a larger
    /// set.
    #[must_use]
    pub fn first(&self) -> Option<AtomRef<'_>> {
        match &self.0 {
            Repr::Empty => None,
            Repr::One(atom) => Some(atom.as_ref()),
            Repr::Tree(tree) => Some(tree.first_leaf().chunk().keys.get(0)),
            Repr::Short(_) | Repr::Leaf(_) => Some(self.chunk().keys.get(0)),
        }
    }

    /// The first element if it is a string: a scalar string column's text.
    #[must_use]
    pub fn as_string(&self) -> Option<&Str> {
        match self.first() {
            Some(AtomRef::String(text)) => Some(text),
            _ => None,
        }
    }

    /// The first element if it is a UUID.
    #[must_use]
    pub fn as_uuid(&self) -> Option<Uuid> {
        self.first().and_then(AtomRef::as_uuid)
    }

    /// The first element if it is an integer.
    #[must_use]
    pub fn as_integer(&self) -> Option<i64> {
        self.first().and_then(AtomRef::as_integer)
    }

    /// The first element if it is a boolean.
    #[must_use]
    pub fn as_boolean(&self) -> Option<bool> {
        self.first().and_then(AtomRef::as_boolean)
    }

    pub(crate) fn chunks(&self) -> Chunks<'_> {
        match &self.0 {
            Repr::Tree(tree) => Chunks::tree(tree),
            _ => Chunks::single(self.chunk()),
        }
    }

    /// Visits the runs in order, each with the number of elements before it.
    #[inline]
    pub(crate) fn for_each_chunk(&self, mut visit: impl FnMut(usize, Chunk<'_>)) {
        let Repr::Tree(tree) = &self.0 else {
            return visit(0, self.chunk());
        };
        let mut before = 0;
        for chunk in Chunks::tree(tree) {
            visit(before, chunk);
            before += chunk.len();
        }
    }

    /// The elements in one run; empty for a tree.
    pub(crate) fn chunk(&self) -> Chunk<'_> {
        match &self.0 {
            Repr::Empty | Repr::Tree(_) => Chunk::EMPTY,
            Repr::One(atom) => Chunk::of(atom),
            Repr::Short(short) => short.chunk(),
            Repr::Leaf(leaf) => leaf.chunk(),
        }
    }

    /// The root, if the datum is a tree.
    pub(crate) fn root(&self) -> Option<&Inner> {
        match &self.0 {
            Repr::Tree(tree) => Some(tree),
            _ => None,
        }
    }

    /// Elements in order, maps with their values.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter::new(self.chunks(), self.len())
    }

    /// Elements or map keys in order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = AtomRef<'_>> + '_ {
        self.iter().map(|(key, _)| key)
    }

    /// The values of a map in key order; none for a set.
    pub fn values(&self) -> impl Iterator<Item = AtomRef<'_>> + '_ {
        self.iter().filter_map(|(_, value)| value)
    }

    /// Looks up an element: the value in a map, `Some(None)` in a set, `None` if absent.
    pub(crate) fn find(&self, key: AtomRef<'_>) -> Option<Option<AtomRef<'_>>> {
        let chunk = match &self.0 {
            Repr::Empty => return None,
            Repr::One(atom) => return (atom.as_ref() == key).then_some(None),
            Repr::Short(short) => short.chunk(),
            Repr::Leaf(leaf) => leaf.chunk(),
            Repr::Tree(tree) => tree.leaf_of(key).chunk(),
        };
        let at = chunk.keys.search(key).ok()?;
        Some(chunk.get(at).1)
    }

    /// Whether the element or key is present. O(log n).
    #[must_use]
    pub fn contains(&self, key: AtomRef<'_>) -> bool {
        self.find(key).is_some()
    }

    /// The value at a key of a map. O(log n).
    #[must_use]
    pub fn get(&self, key: AtomRef<'_>) -> Option<AtomRef<'_>> {
        self.find(key).flatten()
    }

    /// Adds an element or pair. Returns false, unchanged, if the key is present (maps keep their
    /// value). O(log n).
    pub fn insert(&mut self, key: Atom, value: Option<Atom>) -> bool {
        match &mut self.0 {
            Repr::Empty => {
                *self = match value {
                    None => Datum::one(key),
                    Some(value) => Datum::pair(key, value),
                };
            }
            Repr::One(present) => {
                if *present == key {
                    return false;
                }
                let mut leaf = Leaf::single(present.clone(), None);
                let at = usize::from(*present < key);
                leaf.insert_owned(at, key, value);
                *self = builder::from_sorted(leaf);
            }
            Repr::Short(short) => {
                let Err(at) = short.chunk().keys.search(key.as_ref()) else {
                    return false;
                };
                let mut leaf = short.unpack();
                leaf.insert_owned(at, key, value);
                *self = builder::from_sorted(leaf);
            }
            Repr::Leaf(leaf) => {
                let Err(at) = leaf.search(key.as_ref()) else {
                    return false;
                };
                Leaf::insert(leaf, at, key, value);
                if leaf.len() > LEAF_LIMIT {
                    self.0 = Repr::Tree(Inner::build(Leaf::clone(leaf)));
                }
            }
            Repr::Tree(tree) => {
                let (position, _) = tree.locate(key.as_ref());
                if position.at.is_ok() {
                    return false;
                }
                Inner::insert(tree, &position, key, value);
            }
        }
        true
    }

    /// Adds a pair, or replaces the value at its key. O(log n).
    pub fn replace(&mut self, key: Atom, value: Atom) {
        if let Repr::Tree(tree) = &mut self.0 {
            let (position, leaf) = tree.locate(key.as_ref());
            match position.at {
                Err(_) => Inner::insert(tree, &position, key, Some(value)),
                Ok(at) if leaf.chunk().get(at).1 == Some(value.as_ref()) => {}
                Ok(_) => Inner::set_value(tree, &position, value),
            }
            return;
        }
        match self.find(key.as_ref()) {
            None => {
                self.insert(key, Some(value));
            }
            Some(present) if present == Some(value.as_ref()) => {}
            Some(_) => match &mut self.0 {
                Repr::Short(short) => {
                    let at = short.chunk().keys.search(key.as_ref());
                    match at.ok().and_then(|at| short.with_value(at, &value)) {
                        Some(changed) => *short = changed,
                        None => unreachable!("value put into a set"),
                    }
                }
                Repr::Leaf(leaf) => {
                    if let Ok(at) = leaf.search(key.as_ref()) {
                        Leaf::set_value(leaf, at, value);
                    }
                }
                Repr::Empty | Repr::One(_) | Repr::Tree(_) => unreachable!("value put into a set"),
            },
        }
    }

    /// Applies one element of a difference: an absent element is added, an equal one is removed,
    /// and a pair with another value gets the new value. O(log n), with one search in a tree.
    pub(crate) fn toggle(&mut self, key: AtomRef<'_>, value: Option<AtomRef<'_>>) {
        let owned = || value.map(AtomRef::to_owned);
        if let Repr::Tree(tree) = &mut self.0 {
            let (position, leaf) = tree.locate(key);
            match position.at.map(|at| leaf.chunk().get(at).1) {
                Err(_) => Inner::insert(tree, &position, key.to_owned(), owned()),
                Ok(present) if present == value => {
                    Inner::remove(tree, &position);
                    self.shrink();
                }
                Ok(_) => {
                    if let Some(value) = owned() {
                        Inner::set_value(tree, &position, value);
                    }
                }
            }
            return;
        }
        match self.find(key) {
            None => {
                self.insert(key.to_owned(), owned());
            }
            Some(present) if present == value => {
                self.remove(key);
            }
            Some(_) => {
                if let Some(value) = owned() {
                    self.replace(key.to_owned(), value);
                }
            }
        }
    }

    /// Removes an element or key. Returns false if it is absent. O(log n).
    pub fn remove(&mut self, key: AtomRef<'_>) -> bool {
        match &mut self.0 {
            Repr::Empty => return false,
            Repr::One(present) => {
                if present.as_ref() != key {
                    return false;
                }
                self.0 = Repr::Empty;
            }
            Repr::Short(short) => {
                let Ok(at) = short.chunk().keys.search(key) else {
                    return false;
                };
                let mut leaf = short.unpack();
                leaf.remove_owned(at);
                *self = builder::from_sorted(leaf);
            }
            Repr::Leaf(leaf) => {
                let Ok(at) = leaf.search(key) else {
                    return false;
                };
                if leaf.len() <= SHORT_AGAIN + 1 {
                    let mut leaf = Leaf::clone(leaf);
                    leaf.remove_owned(at);
                    *self = builder::from_sorted(leaf);
                } else {
                    Leaf::remove(leaf, at);
                }
            }
            Repr::Tree(tree) => {
                let (position, _) = tree.locate(key);
                if position.at.is_err() {
                    return false;
                }
                Inner::remove(tree, &position);
                self.shrink();
            }
        }
        true
    }

    /// Turns a tree that has become small into a leaf.
    fn shrink(&mut self) {
        if let Repr::Tree(tree) = &self.0
            && tree.len() <= TREE_LIMIT
        {
            self.0 = Repr::Leaf(Arc::new(tree.flatten()));
        }
    }

    /// Whether both share their memory (or are equal inline atoms), and so are equal. No elements
    /// are compared.
    #[must_use]
    #[inline]
    pub fn ptr_eq(&self, other: &Datum) -> bool {
        match (&self.0, &other.0) {
            (Repr::Empty, Repr::Empty) => true,
            (Repr::One(left), Repr::One(right)) => left == right,
            (Repr::Short(left), Repr::Short(right)) => left.ptr_eq(right),
            (Repr::Leaf(left), Repr::Leaf(right)) => Arc::ptr_eq(left, right),
            (Repr::Tree(left), Repr::Tree(right)) => Arc::ptr_eq(left, right),
            _ => false,
        }
    }

    /// Number of atoms held; map pairs count 2 (docs/spec/protocol.md 4.9, history).
    #[must_use]
    #[inline]
    pub fn atom_count(&self) -> u64 {
        self.len() as u64 * self.element_atoms()
    }

    /// Estimated number of atoms that only this datum holds: the cost of freeing it, because other
    /// versions may hold most of its memory. Counting ends somewhat above `enough`.
    ///
    /// ```
    /// use corvid_data::{Atom, Datum};
    ///
    /// let mut set = Datum::empty();
    /// for number in 0..10_000 {
    ///     set.insert(Atom::Integer(number), None);
    /// }
    /// assert!(set.unshared_atoms(20_000) == 10_000 && set.unshared_atoms(100) < 1_000);
    /// let before = set.clone();
    /// assert_eq!(before.unshared_atoms(100), 0);
    /// set.insert(Atom::Integer(10_000), None);
    /// assert!(before.unshared_atoms(100) < 100);
    /// ```
    #[must_use]
    pub fn unshared_atoms(&self, enough: u64) -> u64 {
        let elements = match &self.0 {
            Repr::Tree(tree) => {
                Inner::unshared_len(tree, usize::try_from(enough).unwrap_or(usize::MAX))
            }
            // They are few, so it does not matter whether other data hold them.
            _ => self.len(),
        };
        elements as u64 * self.element_atoms()
    }

    fn element_atoms(&self) -> u64 {
        let is_map = match &self.0 {
            Repr::Empty | Repr::One(_) => false,
            Repr::Short(short) => short.is_map(),
            Repr::Leaf(leaf) => leaf.values.is_some(),
            Repr::Tree(tree) => tree.is_map(),
        };
        if is_map { 2 } else { 1 }
    }
}

/// One element: every scalar.
impl From<Atom> for Datum {
    fn from(atom: Atom) -> Datum {
        Datum::one(atom)
    }
}

impl<'a> IntoIterator for &'a Datum {
    type Item = (AtomRef<'a>, Option<AtomRef<'a>>);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

#[cfg(test)]
mod tests;
