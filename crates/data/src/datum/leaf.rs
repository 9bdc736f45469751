//! A leaf: a sorted run of keys, and for maps a parallel run of values. It is a whole small datum,
//! or one leaf of a large one.
//!
//! Invariant: keys are strictly ascending, and `values` (if any) has as many elements as `keys`.
//! Leaves are shared by reference count. A function that changes a shared leaf copies it first.

use triomphe::Arc;

use crate::atoms::{AtomSlice, Atoms};
use crate::{Atom, AtomRef};

/// This many values are compared before their keys are.
const PAIRS_AT_A_TIME: usize = 8;

#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    pub(crate) keys: Atoms,
    pub(crate) values: Option<Atoms>,
}

/// A borrowed leaf, or the borrowed element of an inline datum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk<'a> {
    pub(crate) keys: AtomSlice<'a>,
    pub(crate) values: Option<AtomSlice<'a>>,
}

/// An element of a set, or a pair of a map.
pub(crate) type Element<'a> = (AtomRef<'a>, Option<AtomRef<'a>>);

impl<'a> Chunk<'a> {
    pub(crate) const EMPTY: Chunk<'static> = Chunk {
        keys: AtomSlice::Boolean(&[]),
        values: None,
    };

    pub(crate) fn of(atom: &'a Atom) -> Chunk<'a> {
        Chunk {
            keys: AtomSlice::of(atom),
            values: None,
        }
    }

    #[inline]
    pub(crate) fn len(self) -> usize {
        self.keys.len()
    }

    /// The number of equal elements of two runs, from `at` in one and `other_at` in the other up to
    /// the first difference. For maps, the number of equal pairs.
    pub(crate) fn common(self, at: usize, other: Chunk<'_>, other_at: usize) -> usize {
        let (Some(values), Some(others)) = (self.values, other.values) else {
            return self.keys.common((at, other_at), other.keys, usize::MAX);
        };
        // A few at a time, values first: in a rewritten map all keys of the run are equal and no
        // value is.
        let mut count = 0;
        loop {
            let offsets = (at + count, other_at + count);
            let equal = values.common(offsets, others, PAIRS_AT_A_TIME);
            let pairs = self.keys.common(offsets, other.keys, equal);
            count += pairs;
            if pairs < PAIRS_AT_A_TIME {
                return count;
            }
        }
    }

    /// Whether both runs are of maps, with the same keys and a different value at every key.
    pub(crate) fn is_rewritten(self, other: Chunk<'_>) -> bool {
        match (self.values, other.values) {
            (Some(values), Some(others)) => {
                // The first pair usually decides.
                values.differs_everywhere(others) && self.keys == other.keys
            }
            _ => false,
        }
    }

    #[inline]
    pub(crate) fn get(self, at: usize) -> Element<'a> {
        (self.keys.get(at), self.values.map(|values| values.get(at)))
    }
}

impl Leaf {
    /// A leaf of one element.
    pub(crate) fn single(key: Atom, value: Option<Atom>) -> Leaf {
        let run = |atom: Atom| {
            let mut run = Atoms::for_atom(&atom, 1);
            run.push(atom);
            run
        };
        Leaf {
            keys: run(key),
            values: value.map(run),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(crate) fn chunk(&self) -> Chunk<'_> {
        Chunk {
            keys: self.keys.slice(),
            values: self.values.as_ref().map(Atoms::slice),
        }
    }

    pub(crate) fn search(&self, key: AtomRef<'_>) -> Result<usize, usize> {
        self.keys.slice().search(key)
    }

    /// The smallest key, owned. The leaf must not be empty.
    pub(crate) fn first_key(&self) -> Atom {
        self.keys.slice().get(0).to_owned()
    }

    /// Inserts at `at`. The caller owns the leaf.
    pub(crate) fn insert_owned(&mut self, at: usize, key: Atom, value: Option<Atom>) {
        assert_eq!(self.values.is_some(), value.is_some(), "pair in a set");
        self.keys.insert(at, key);
        if let (Some(values), Some(value)) = (&mut self.values, value) {
            values.insert(at, value);
        }
    }

    /// Removes the element at `at`. The caller owns the leaf.
    pub(crate) fn remove_owned(&mut self, at: usize) {
        self.keys.remove(at);
        if let Some(values) = &mut self.values {
            values.remove(at);
        }
    }

    /// Inserts at `at`: in place if the leaf is not shared, else into a copy that is built with the
    /// element.
    pub(crate) fn insert(this: &mut Arc<Leaf>, at: usize, key: Atom, value: Option<Atom>) {
        if let Some(leaf) = Arc::get_mut(this) {
            leaf.insert_owned(at, key, value);
        } else {
            assert_eq!(this.values.is_some(), value.is_some(), "pair in a set");
            *this = Arc::new(Leaf {
                keys: this.keys.copy_with(at, key),
                values: this
                    .values
                    .as_ref()
                    .zip(value)
                    .map(|(values, value)| values.copy_with(at, value)),
            });
        }
    }

    /// Removes the element at `at`, after copying a shared leaf.
    pub(crate) fn remove(this: &mut Arc<Leaf>, at: usize) {
        Arc::make_mut(this).remove_owned(at);
    }

    /// Replaces the value at `at` of a map, after copying a shared leaf.
    pub(crate) fn set_value(this: &mut Arc<Leaf>, at: usize, value: Atom) {
        match &mut Arc::make_mut(this).values {
            Some(values) => values.set(at, value),
            None => unreachable!("value put into a set"),
        }
    }

    /// Keeps the elements before `at` and returns the rest.
    pub(crate) fn split_off(&mut self, at: usize) -> Leaf {
        Leaf {
            keys: self.keys.split_off(at),
            values: self.values.as_mut().map(|values| values.split_off(at)),
        }
    }

    /// Appends the elements of `right`, which must all be greater than those here.
    pub(crate) fn append(&mut self, right: Chunk<'_>) {
        self.keys.extend_from(right.keys, 0, right.len());
        if let (Some(values), Some(more)) = (&mut self.values, right.values) {
            values.extend_from(more, 0, more.len());
        }
    }

    /// Sorts the few pairs of a map by key, with an insertion sort.
    pub(crate) fn sort_pairs(&mut self) {
        let Some(values) = &mut self.values else {
            return;
        };
        for end in 1..self.keys.len() {
            for at in (0..end).rev() {
                if self.keys.slice().get(at) <= self.keys.slice().get(at + 1) {
                    break;
                }
                self.keys.swap(at);
                values.swap(at);
            }
        }
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        self.keys.shrink_to_fit();
        if let Some(values) = &mut self.values {
            values.shrink_to_fit();
        }
    }
}
