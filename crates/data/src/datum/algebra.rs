//! Data as sets: inclusion, exclusion, union and difference, in terms of which
//! docs/spec/protocol.md 5.4 and 5.5 are written.
//!
//! Each operation chooses between looking up the elements of the smaller side and walking both
//! sides, so that a small argument does not cost a walk of a large column.

use super::builder::DatumBuilder;
use super::{Datum, Element};
use crate::diff::{Change, Changes};

impl Datum {
    /// Whether every element (map: key and value) of `other` is here: the `includes` function.
    /// O(|other| log n) or better.
    #[must_use]
    pub fn includes(&self, other: &Datum) -> bool {
        if other.len() > self.len() {
            return false;
        }
        if is_lookup_cheaper(other.len(), self.len()) {
            return other.iter().all(|element| self.has(element));
        }
        Changes::new(self, other).all(|change| matches!(change, Change::Removed(..)))
    }

    /// Whether no element (map: key and value) of `other` is here: the `excludes` function.
    /// O(|other| log n) or better.
    #[must_use]
    pub fn excludes(&self, other: &Datum) -> bool {
        let (small, large) = if self.len() <= other.len() {
            (self, other)
        } else {
            (other, self)
        };
        if is_lookup_cheaper(small.len(), large.len()) {
            return !small.iter().any(|element| large.has(element));
        }
        let (mut left, mut right) = (small.iter(), large.iter());
        let (mut a, mut b) = (left.next(), right.next());
        while let (Some(x), Some(y)) = (a, b) {
            if x == y {
                return false;
            }
            if x.0 <= y.0 {
                a = left.next();
            }
            if y.0 <= x.0 {
                b = right.next();
            }
        }
        true
    }

    /// Adds every element of `other` whose key is not here yet: the `insert` mutator. Returns the
    /// number of added elements.
    pub fn insert_all(&mut self, other: &Datum) -> usize {
        let before = self.len();
        if before == 0 {
            *self = other.clone();
        } else if is_lookup_cheaper(other.len(), before) {
            for (key, value) in other {
                self.insert(key.to_owned(), value.map(super::AtomRef::to_owned));
            }
        } else {
            *self = merge(self, other, |here, _| Some(here));
        }
        self.len() - before
    }

    /// Removes every element of `other` (map: the pairs equal in key and value): the `delete`
    /// mutator. Returns the number of removed elements.
    pub fn remove_all(&mut self, other: &Datum) -> usize {
        self.remove_where(other, |here, there| here == there)
    }

    /// Removes every key that is an element of the set `keys`: the `delete` mutator of maps with a
    /// set.
    pub fn remove_keys(&mut self, keys: &Datum) -> usize {
        self.remove_where(keys, |_, _| true)
    }

    /// Removes each element here whose key is in `other` and for which `is_selected(here, there)`
    /// is true.
    fn remove_where(
        &mut self,
        other: &Datum,
        is_selected: impl Fn(Element<'_>, Element<'_>) -> bool,
    ) -> usize {
        let before = self.len();
        if is_lookup_cheaper(other.len(), before) {
            for (key, value) in other {
                // Elements of a set, and keys of a map, match by the key alone.
                let is_victim = value.is_none()
                    || self
                        .find(key)
                        .is_some_and(|here| is_selected((key, here), (key, value)));
                if is_victim {
                    self.remove(key);
                }
            }
        } else {
            let kept = merge_keys(self, other, |here, there| match (here, there) {
                (Some(here), Some(there)) => (!is_selected(here, there)).then_some(here),
                (here, _) => here,
            });
            if kept.len() != before {
                *self = kept;
            }
        }
        before - self.len()
    }

    fn has(&self, (key, value): Element<'_>) -> bool {
        self.find(key) == Some(value)
    }
}

/// Whether `small` binary searches in `large` elements cost less than walking both.
pub(crate) fn is_lookup_cheaper(small: usize, large: usize) -> bool {
    let search = usize::BITS - large.leading_zeros();
    small.saturating_mul(search as usize) < small + large
}

/// The union of both sides. `both` chooses the element for a key that is in both.
pub(crate) fn merge<'a>(
    left: &'a Datum,
    right: &'a Datum,
    both: impl Fn(Element<'a>, Element<'a>) -> Option<Element<'a>>,
) -> Datum {
    merge_keys(left, right, |left, right| match (left, right) {
        (Some(left), Some(right)) => both(left, right),
        (one, None) | (None, one) => one,
    })
}

/// Walks both sides by key. `pick` chooses the element to keep for each key. O(|left| + |right|).
fn merge_keys<'a>(
    left: &'a Datum,
    right: &'a Datum,
    pick: impl Fn(Option<Element<'a>>, Option<Element<'a>>) -> Option<Element<'a>>,
) -> Datum {
    let mut merged = DatumBuilder::with_capacity(left.len().max(right.len()));
    let (mut lefts, mut rights) = (left.iter(), right.iter());
    let (mut a, mut b) = (lefts.next(), rights.next());
    loop {
        let order = match (a, b) {
            (None, None) => break,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(x), Some(y)) => x.0.cmp(&y.0),
        };
        let x = if order.is_le() {
            std::mem::replace(&mut a, lefts.next())
        } else {
            None
        };
        let y = if order.is_ge() {
            std::mem::replace(&mut b, rights.next())
        } else {
            None
        };
        if let Some((key, value)) = pick(x, y) {
            merged.push(key.to_owned(), value.map(super::AtomRef::to_owned));
        }
    }
    merged.finish_sorted()
}
