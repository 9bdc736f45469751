//! The first row of each key that an index has, by the hash of the key: a look-up of equal rows costs one probe instead of a search,
//! each step of which would fetch a row, its columns and their texts from far memory. Five to nine bytes a key.
//!
//! Invariant: of the rows of one key, that of the smallest UUID is here. Only for indexes that compare by the order of data, in which what
//! is equal has one hash, and of columns of one element, since a hash of a large set would cost its size at each change. Knows no rows: the caller compares a slot's row with the key and computes the hash of a slot's key.

use std::hash::{BuildHasher, Hash as _, Hasher as _};

use corvid_data::Datum;
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// Slots of rows. See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct FirstByKey {
    slots: HashTable<u32>,
}

/// The hash of a key, column by column.
pub(crate) fn hash<'a>(key: impl Iterator<Item = &'a Datum>) -> u64 {
    // Keys come from a server that is trusted with everything else; a seed would only cost.
    let mut hasher = FixedState::default().build_hasher();
    key.for_each(|datum| datum.hash(&mut hasher));
    hasher.finish()
}

impl FirstByKey {
    /// The first row of a key.
    pub(crate) fn find(&self, hash: u64, mut has_key: impl FnMut(u32) -> bool) -> Option<u32> {
        self.slots.find(hash, |&slot| has_key(slot)).copied()
    }

    /// A row was inserted.
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

    /// A row is removed; `next` is the next one with the same key, if there is one.
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

    /// How many keys there are.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }
}
