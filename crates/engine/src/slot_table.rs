//! A hash table from keys that lie in the rows to the slots of these rows. It stores half of each key's hash and no key: 8 bytes an
//! entry, so that it grows without a look at the rows and a miss rarely costs one.
//!
//! Invariant: the caller's. Entries are as many as were added and not removed; equal hashes stand side by side. Both the places of a
//! table ([`crate::table`]) and its indexes ([`crate::index`]) are such tables; what a key is, and whether it is the one that is sought,
//! they know alone.

use hashbrown::HashTable;

use crate::page::Slot;

/// SlotTable by hash.
#[derive(Clone, Debug, Default)]
pub(crate) struct SlotTable {
    entries: HashTable<Entry>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    hash: u32,
    slot: Slot,
}

/// The 64 bits that the table wants from the 32 that are stored; a bijection of the low half, mixed into the top bits.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[allow(clippy::cast_possible_truncation)]
fn fold(hash: u64) -> u32 {
    (hash ^ (hash >> 32)) as u32
}

impl SlotTable {
    /// Adds a slot.
    pub(crate) fn insert(&mut self, hash: u64, slot: Slot) {
        let hash = fold(hash);
        self.entries
            .insert_unique(spread(hash), Entry { hash, slot }, |entry| {
                spread(entry.hash)
            });
    }

    /// Removes a slot that was added with this hash.
    pub(crate) fn remove(&mut self, hash: u64, slot: Slot) {
        let hash = fold(hash);
        let wanted = Entry { hash, slot };
        match self
            .entries
            .find_entry(spread(hash), |entry| *entry == wanted)
        {
            Ok(entry) => {
                entry.remove();
            }
            Err(_) => unreachable!("what is removed was added"),
        }
    }

    /// The slots that were added with this hash and, now and then, with others.
    pub(crate) fn candidates(&self, hash: u64) -> impl Iterator<Item = Slot> + '_ {
        let hash = fold(hash);
        self.entries
            .iter_hash(spread(hash))
            .filter(move |entry| entry.hash == hash)
            .map(|entry| entry.slot)
    }

    /// Pairs of entries that look-ups begin at one place for. For tests: it walks.
    pub(crate) fn collisions(&self) -> u64 {
        let mask = self.entries.num_buckets().wrapping_sub(1) as u64;
        let mut places: Vec<u64> = self
            .entries
            .iter()
            .map(|entry| spread(entry.hash) & mask)
            .collect();
        places.sort_unstable();
        let together = places.chunk_by(|one, next| one == next);
        together
            .map(|chunk| chunk.len() as u64)
            .map(|count| count * (count - 1) / 2)
            .sum()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}
