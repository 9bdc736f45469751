//! The first row of each key of an index, by the key's hash. A look-up by key costs one probe
//! instead of a binary search. Each step of that search would fetch a row, its columns and their
//! texts from distant memory. Costs five to nine bytes per key.
//!
//! Invariant: of the rows with one key, this table holds the row with the smallest UUID. Only
//! indexes in the default order use it, because there equal values have equal hashes. All of their
//! columns hold at most one element, since hashing a large set on each change would cost its size.
//! This file does not know rows: the caller compares a slot's row with a key, and computes a slot's
//! hash.

use std::hash::{BuildHasher, Hash as _, Hasher as _};

use corvid_data::Datum;
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// Slots of the first rows, one per key.
#[derive(Debug, Default)]
pub(crate) struct FirstByKey {
    slots: HashTable<u32>,
}

/// The hash of a key, column by column.
pub(crate) fn hash<'a>(key: impl Iterator<Item = &'a Datum>) -> u64 {
    // Keys come from a server that is trusted with everything else, so a random seed would only add
    // cost.
    let mut hasher = FixedState::default().build_hasher();
    key.for_each(|datum| datum.hash(&mut hasher));
    hasher.finish()
}

impl FirstByKey {
    /// The first row of a key.
    pub(crate) fn find(&self, hash: u64, mut has_key: impl FnMut(u32) -> bool) -> Option<u32> {
        self.slots.find(hash, |&slot| has_key(slot)).copied()
    }

    /// Records an inserted row, which becomes the first of its key if `is_before` holds for the
    /// current first row.
    pub(crate) fn insert(
        &mut self,
        slot: u32,
        hash_of: impl Fn(u32) -> u64,
        mut has_key: impl FnMut(u32) -> bool,
        is_before: impl FnOnce(u32) -> bool,
    ) {
        let found = (self.slots).entry(
            hash_of(slot),
            |&other| has_key(other),
            |&other| hash_of(other),
        );
        match found {
            Entry::Occupied(mut first) => {
                if is_before(*first.get()) {
                    *first.get_mut() = slot;
                }
            }
            Entry::Vacant(vacant) => {
                vacant.insert(slot);
            }
        }
    }

    /// Records the removal of a row; `next` is the next row with the same key, if any.
    pub(crate) fn remove(&mut self, hash: u64, slot: u32, next: Option<u32>) {
        let Ok(mut first) = self.slots.find_entry(hash, |&other| other == slot) else {
            return;
        };
        match next {
            Some(next) => *first.get_mut() = next,
            None => {
                first.remove();
            }
        }
    }

    /// The number of distinct keys.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }
}
