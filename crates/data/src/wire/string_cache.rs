//! A cache of strings that recur while data are read, above all map keys. Equal strings share their
//! memory.
//!
//! The cache is two-way associative, with pairs of entries. A string that is found moves to the
//! first entry of its pair; one that is not found replaces the second. So strings that never recur
//! replace only one another, and strings that recur often stay. The cache holds a bounded number of
//! short strings and is never cleared. It wastes at most [`PAIRS`] * 2 * 64 bytes, approximately.
//!
//! A string costs a hash and one or two comparisons, mostly of hashes: 20 to 30 ns, about as much
//! as the allocation that it saves. Each cache belongs to one thread: threads that shared a string
//! would contend for its reference count.

use std::hash::BuildHasher;

use super::{Content, Symbols};
use crate::{Str, TrustedKeys, Uuid, WireError};

/// Pairs of entries: 16 KiB, which stay in the processor's caches.
const PAIRS: usize = 512;
/// Longer strings rarely recur.
const TEXT_BYTES_MAX: usize = 48;

/// After this many contents in a row that were not cached, only one in [`SAMPLE`] is looked up,
/// until one is found.
const UNKNOWN_MAX: usize = 64;
const SAMPLE: usize = 8;

/// Recent strings. As [`Symbols`] it admits no names. Takes no memory before the first string.
#[derive(Debug, Default)]
pub struct StringCache {
    pairs: Box<[[Entry; 2]]>,
    /// For each role, the number of contents since the last one that was found.
    unknown: [usize; 2],
}

/// A string and its hash, which saves most comparisons of strings that differ. The empty string
/// marks an empty entry.
#[derive(Clone, Debug, Default)]
struct Entry {
    hash: u64,
    text: Str,
}

impl Entry {
    fn holds(&self, hash: u64, text: &[u8]) -> bool {
        self.hash == hash && self.text.as_bytes() == text
    }
}

impl StringCache {
    /// The string atom of a text, shared with an equal one if that is still cached.
    ///
    /// # Errors
    /// Those of [`Str::from_utf8`].
    pub fn intern(&mut self, text: &[u8]) -> Result<Str, WireError> {
        Ok(self.find_or_add(text)?.0)
    }

    /// The string atom of a text that is not a key. Names, addresses and the values of long maps
    /// mostly never recur. If many in a row were not cached, only some are looked up.
    ///
    /// # Errors
    /// Those of [`Str::from_utf8`].
    pub fn intern_content(&mut self, text: &[u8], role: Content) -> Result<Str, WireError> {
        let unknown = self.unknown[role as usize];
        if unknown > UNKNOWN_MAX && !unknown.is_multiple_of(SAMPLE) {
            self.unknown[role as usize] = unknown + 1;
            return Str::from_utf8(text);
        }
        let (text, is_known) = self.find_or_add(text)?;
        self.unknown[role as usize] = if is_known { 0 } else { unknown + 1 };
        Ok(text)
    }

    /// The atom, and whether it was cached.
    #[inline]
    fn find_or_add(&mut self, text: &[u8]) -> Result<(Str, bool), WireError> {
        if text.is_empty() || text.len() > TEXT_BYTES_MAX {
            return Ok((Str::from_utf8(text)?, false));
        }
        if self.pairs.is_empty() {
            self.pairs = vec![<[Entry; 2]>::default(); PAIRS].into();
        }
        // Strings that are chosen to collide cost two comparisons, as others do, and are not
        // shared.
        let hash = TrustedKeys::default().hash_one(text);
        let pair = &mut self.pairs[usize::try_from(hash % PAIRS as u64).unwrap_or(0)];
        if !pair[0].holds(hash, text) {
            if !pair[1].holds(hash, text) {
                let text = Str::from_utf8(text)?;
                pair[1] = Entry {
                    hash,
                    text: text.clone(),
                };
                return Ok((text, false));
            }
            pair.swap(0, 1);
        }
        Ok((pair[0].text.clone(), true))
    }
}

impl Symbols for StringCache {
    fn resolve(&mut self, _: &str) -> Uuid {
        unreachable!("names are not admitted")
    }

    fn admits_names(&self) -> bool {
        false
    }

    fn string(&mut self, text: &[u8]) -> Result<Str, WireError> {
        self.intern(text)
    }

    fn content(&mut self, text: &[u8], role: Content) -> Result<Str, WireError> {
        self.intern_content(text, role)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_strings_share_memory() {
        let mut cache = StringCache::default();
        let first = cache.intern(b"requested-chassis").expect("ASCII");
        let second = cache.intern(b"requested-chassis").expect("ASCII");
        assert!(first.ptr_eq(&second));
        assert_eq!(cache.intern(b"").expect("empty"), Str::default());
        let long = vec![b'x'; TEXT_BYTES_MAX + 1];
        let [first, second] = [0, 1].map(|_| cache.intern(&long).expect("ASCII"));
        assert!(first == second && !first.ptr_eq(&second));
    }

    #[test]
    fn values_are_shared_again_soon_after_many_that_did_not_recur() {
        let mut cache = StringCache::default();
        for number in 0..if cfg!(miri) { 200 } else { 10_000 } {
            let text = number.to_string();
            let value = cache
                .intern_content(text.as_bytes(), Content::Value)
                .expect("ASCII");
            assert_eq!(&*value, text);
        }
        let mut shared = 0;
        let last = cache.intern(b"true").expect("ASCII");
        for _ in 0..100 {
            let value = cache
                .intern_content(b"true", Content::Value)
                .expect("ASCII");
            shared += usize::from(value.ptr_eq(&last));
        }
        assert!(shared >= 100 - SAMPLE, "{shared}");
    }

    #[test]
    fn replaced_strings_are_read_correctly() {
        let mut cache = StringCache::default();
        let count = if cfg!(miri) { 300 } else { 3000 };
        for number in (0..count).chain(0..count) {
            let text = number.to_string();
            assert_eq!(&*cache.intern(text.as_bytes()).expect("ASCII"), text);
        }
        assert!(cache.intern(b"\xff").is_err());
    }

    #[test]
    fn strings_that_occur_once_do_not_replace_frequent_ones() {
        let mut cache = StringCache::default();
        let mut share = |text: &str| cache.intern(text.as_bytes()).expect("ASCII");
        let keys = ["requested-chassis", "mcast_flood", "true"];
        let first = keys.map(&mut share);
        for row in 0..if cfg!(miri) { 100 } else { 10_000 } {
            for part in 0..3 {
                share(&format!("row-{row}-{part}"));
            }
            for (key, first) in keys.iter().zip(&first) {
                assert!(share(key).ptr_eq(first), "{key} after {row} rows");
            }
        }
    }

    #[test]
    fn elements_that_do_not_recur_leave_values_shared() {
        let mut cache = StringCache::default();
        for number in 0..if cfg!(miri) { 200 } else { 1000 } {
            let name = number.to_string();
            let element = cache.intern_content(name.as_bytes(), Content::Element);
            drop(element.expect("ASCII"));
            let [one, other] = [(); 2].map(|()| {
                let value = cache.intern_content(b"true", Content::Value);
                value.expect("ASCII")
            });
            assert!(one.ptr_eq(&other));
        }
        let [first, second] = [(); 2].map(|()| {
            let element = cache.intern_content(b"x", Content::Element);
            element.expect("ASCII")
        });
        assert!(!first.ptr_eq(&second), "only some are looked up");
    }
}
