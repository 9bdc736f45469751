//! Equality, order, hash and debug form of data. They depend on the contents, not on the form.
//!
//! Equality and order skip the nodes that both sides share, through [`crate::diff::Changes`].

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use super::{Datum, Repr};
use crate::diff::{Change, Changes};

impl PartialEq for Datum {
    fn eq(&self, other: &Datum) -> bool {
        match (&self.0, &other.0) {
            // Scalars: the case of nearly every row that a walk compares.
            (Repr::One(left), Repr::One(right)) => left == right,
            (Repr::Tree(_), _) | (_, Repr::Tree(_)) => {
                self.len() == other.len() && Changes::new(self, other).next().is_none()
            }
            _ if self.ptr_eq(other) => true,
            _ => {
                let (left, right) = (self.chunk(), other.chunk());
                left.len() == right.len()
                    && (left.len() == 0 || (left.keys == right.keys && left.values == right.values))
            }
        }
    }
}

impl Eq for Datum {}

impl PartialOrd for Datum {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Orders by element count, then keys, then values (docs/spec/protocol.md 2.4).
impl Ord for Datum {
    fn cmp(&self, other: &Datum) -> Ordering {
        let by_len = self.len().cmp(&other.len());
        if by_len.is_ne() {
            return by_len;
        }
        if let (Repr::One(left), Repr::One(right)) = (&self.0, &other.0) {
            return left.cmp(right);
        }
        // Up to the first key that only one side has, keys agree pairwise. At that index this side
        // has the smaller key. Both sides have equally many elements, so the other side has a key
        // at that index too.
        let mut by_value = Ordering::Equal;
        for change in Changes::new(self, other) {
            match change {
                Change::Removed(..) => return Ordering::Less,
                Change::Added(..) => return Ordering::Greater,
                Change::Replaced(_, left, right) => by_value = by_value.then(left.cmp(&right)),
            }
        }
        by_value
    }
}

impl Hash for Datum {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_usize(self.len());
        if self.root().is_none() {
            let chunk = self.chunk();
            chunk.keys.hash_each(state);
            if let Some(values) = chunk.values {
                values.hash_each(state);
            }
            return;
        }
        // Two passes: if each chunk's keys and values were hashed together, the hash would depend
        // on where chunks end.
        for chunk in self.chunks() {
            chunk.keys.hash_each(state);
        }
        for chunk in self.chunks() {
            if let Some(values) = chunk.values {
                values.hash_each(state);
            }
        }
    }
}

impl fmt::Debug for Datum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = f.debug_set();
        for (key, value) in self {
            match value {
                None => list.entry(&key),
                Some(value) => list.entry(&(key, value)),
            };
        }
        list.finish()
    }
}
