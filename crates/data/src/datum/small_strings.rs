//! Gathers a few strings, or pairs of them, for a datum. Most sets and maps of a log are that
//! short. Gathering needs no allocation; the only one is the datum's own.
//!
//! Invariant: there are as many values as keys, or none; never more than [`ELEMENTS_MAX`]. The
//! reader of data ([`crate::wire`]) uses this type, and switches to a [`DatumBuilder`] for more
//! elements.

use smallvec::SmallVec;

use super::short::Short;
use super::{Datum, DatumBuilder, Repr};
use crate::{Atom, Str};

/// Limit on the elements or pairs that are gathered. For more, an allocation pays.
const ELEMENTS_MAX: usize = 8;

/// Elements in any order.
#[derive(Default)]
pub(crate) struct SmallStrings {
    keys: SmallVec<[Str; ELEMENTS_MAX]>,
    values: SmallVec<[Str; ELEMENTS_MAX]>,
}

impl SmallStrings {
    /// Adds an element or pair. There must be room.
    #[inline]
    pub(crate) fn push(&mut self, key: Str, value: Option<Str>) {
        self.keys.push(key);
        self.values.extend(value);
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is no room for another.
    pub(crate) fn is_full(&self) -> bool {
        self.keys.len() == ELEMENTS_MAX
    }

    /// A builder with the same elements and room for more.
    pub(crate) fn into_builder(self) -> DatumBuilder {
        let mut builder = DatumBuilder::with_capacity(2 * ELEMENTS_MAX);
        let mut values = self.values.into_iter();
        for key in self.keys {
            builder.push(Atom::String(key), values.next().map(Atom::String));
        }
        builder
    }

    /// The datum; `None` if a key occurs twice.
    pub(crate) fn finish(mut self) -> Option<Datum> {
        self.sort()?;
        let is_map = !self.values.is_empty();
        if self.keys.len() <= 1 && !is_map {
            return Some(match self.keys.pop() {
                Some(text) => Datum::one(Atom::String(text)),
                None => Datum::empty(),
            });
        }
        let keys = self.keys.into_iter();
        Some(Datum(Repr::Short(if is_map {
            Short::of_pairs(keys, self.values.into_iter())
        } else {
            Short::of_strings(keys)
        })))
    }

    /// Insertion sort; `None` if a key occurs twice.
    fn sort(&mut self) -> Option<()> {
        for end in 1..self.keys.len() {
            for at in (0..end).rev() {
                match self.keys[at].cmp(&self.keys[at + 1]) {
                    std::cmp::Ordering::Less => break,
                    std::cmp::Ordering::Equal => return None,
                    std::cmp::Ordering::Greater => {}
                }
                self.keys.swap(at, at + 1);
                if !self.values.is_empty() {
                    self.values.swap(at, at + 1);
                }
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ways to build a datum of numbered strings.
    fn both(numbers: &[usize], is_map: bool) -> [Option<Datum>; 2] {
        let mut small = SmallStrings::default();
        let mut builder = DatumBuilder::new();
        for (index, number) in numbers.iter().enumerate() {
            let key = Str::new(&number.to_string());
            let value = is_map.then(|| Str::new(&index.to_string()));
            small.push(key.clone(), value.clone());
            builder.push(Atom::String(key), value.map(Atom::String));
        }
        [small.finish(), builder.finish().ok()]
    }

    #[test]
    fn small_strings_make_the_datum_that_a_builder_makes() {
        let lists: [&[usize]; 7] = [
            &[],
            &[7],
            &[1, 2],
            &[2, 1],
            &[3, 3],
            &[5, 1, 4, 2, 3],
            &[5, 1, 4, 5],
        ];
        for list in lists {
            for is_map in [false, true] {
                let [small, built] = both(list, is_map);
                assert_eq!(small, built, "{list:?}");
                let is_short = |datum: &Datum| matches!(datum.0, Repr::Short(_));
                assert_eq!(small.as_ref().map(is_short), built.as_ref().map(is_short));
            }
        }
    }

    #[test]
    fn a_full_set_continues_as_a_builder() {
        let mut small = SmallStrings::default();
        while !small.is_full() {
            let text = Str::new(&(9 - small.len()).to_string());
            small.push(text.clone(), Some(text));
        }
        let mut builder = small.into_builder();
        let one = Atom::String(Str::new("1"));
        builder.push(one.clone(), Some(one));
        assert_eq!(builder.finish().expect("distinct").len(), ELEMENTS_MAX + 1);
    }
}
