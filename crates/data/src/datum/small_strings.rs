//! A few strings, or pairs of them, on their way into a datum: most sets and maps of a log are no longer. They are gathered without an
//! allocation, and the only one is made when their number is known.
//!
//! Invariant: as many values as keys, or none; never more than [`FEW`]. Called by who reads data; a [`DatumBuilder`] takes over when more come.

use smallvec::SmallVec;

use super::short::Short;
use super::{Datum, DatumBuilder, Repr};
use crate::{Atom, Str};

/// Elements or pairs that are gathered; more are worth an allocation.
const FEW: usize = 8;

/// Elements in any order.
#[derive(Default)]
pub(crate) struct SmallStrings {
    keys: SmallVec<[Str; FEW]>,
    values: SmallVec<[Str; FEW]>,
}

impl SmallStrings {
    /// Adds an element or pair, if there is room.
    #[inline]
    pub(crate) fn push(&mut self, key: Str, value: Option<Str>) {
        self.keys.push(key);
        self.values.extend(value);
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether another is too many.
    pub(crate) fn is_full(&self) -> bool {
        self.keys.len() == FEW
    }

    /// The same elements where there is room for more.
    pub(crate) fn into_builder(self) -> DatumBuilder {
        let mut builder = DatumBuilder::with_capacity(2 * FEW);
        let mut values = self.values.into_iter();
        for key in self.keys {
            builder.push(Atom::String(key), values.next().map(Atom::String));
        }
        builder
    }

    /// The datum; `None` when a key comes twice.
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

    /// Puts one after the other in its place.
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

    /// Both ways to make a datum of numbered strings.
    fn both(numbers: &[usize], is_map: bool) -> [Option<Datum>; 2] {
        let mut few = SmallStrings::default();
        let mut builder = DatumBuilder::new();
        for (place, number) in numbers.iter().enumerate() {
            let key = Str::new(&number.to_string());
            let value = is_map.then(|| Str::new(&place.to_string()));
            few.push(key.clone(), value.clone());
            builder.push(Atom::String(key), value.map(Atom::String));
        }
        [few.finish(), builder.finish().ok()]
    }

    #[test]
    fn a_few_strings_make_what_a_builder_makes() {
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
                let [few, built] = both(list, is_map);
                assert_eq!(few, built, "{list:?}");
                let is_short = |datum: &Datum| matches!(datum.0, Repr::Short(_));
                assert_eq!(few.as_ref().map(is_short), built.as_ref().map(is_short));
            }
        }
    }

    #[test]
    fn a_builder_goes_on_where_there_is_no_room() {
        let mut few = SmallStrings::default();
        while !few.is_full() {
            let text = Str::new(&(9 - few.len()).to_string());
            few.push(text.clone(), Some(text));
        }
        let mut builder = few.into_builder();
        let one = Atom::String(Str::new("1"));
        builder.push(one.clone(), Some(one));
        assert_eq!(builder.finish().expect("distinct").len(), FEW + 1);
    }
}
