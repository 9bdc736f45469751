//! A hash table from keys that are read from the rows to the slots of these rows. It stores half of
//! each key's hash and no key, in 8 bytes per entry. So the table grows without reading the rows,
//! and a miss rarely reads one.
//!
//! Invariant: the table holds the entries that were added and not removed. Several may have the
//! same hash. The caller decides what a key is, and whether a candidate has the key that it wants.
//! A table maps UUIDs to slots with it ([`crate::table`]), and the schema's indexes map their keys
//! ([`crate::index`]): few rows share a hash there. For keys that many rows may share, the table is
//! combined with chains ([`crate::slot_chains`]).

use hashbrown::HashTable;

use crate::page::Slot;

/// Slots by hash.
#[derive(Clone, Debug, Default)]
pub(crate) struct SlotTable {
    entries: HashTable<Entry>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    hash: u32,
    slot: Slot,
}

/// The 64 bits that the hash table needs, from the 32 that are stored: a bijection of the low half,
/// mixed into the top bits.
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
            Err(_) => unreachable!("only slots that were added are removed"),
        }
    }

    /// The slots that were added with this hash, or with another hash that has the same stored
    /// half.
    pub(crate) fn candidates(&self, hash: u64) -> impl Iterator<Item = Slot> + '_ {
        let hash = fold(hash);
        self.entries
            .iter_hash(spread(hash))
            .filter(move |entry| entry.hash == hash)
            .map(|entry| entry.slot)
    }

    /// One of the slots that [`SlotTable::candidates`] yields, to be exchanged for another with the
    /// same hash.
    pub(crate) fn candidate_mut(&mut self, hash: u64) -> Option<&mut Slot> {
        let hash = fold(hash);
        let entry = self
            .entries
            .find_mut(spread(hash), |entry| entry.hash == hash);
        entry.map(|entry| &mut entry.slot)
    }

    /// Every slot, in no particular order. For tests.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Slot> + '_ {
        self.entries.iter().map(|entry| entry.slot)
    }

    /// Pairs of entries whose look-ups begin in the same bucket. For tests: it visits all entries.
    pub(crate) fn collisions(&self) -> u64 {
        let mask = self.entries.num_buckets().wrapping_sub(1) as u64;
        let mut buckets: Vec<u64> = self
            .entries
            .iter()
            .map(|entry| spread(entry.hash) & mask)
            .collect();
        buckets.sort_unstable();
        let together = buckets.chunk_by(|one, next| one == next);
        together
            .map(|chunk| chunk.len() as u64)
            .map(|count| count * (count - 1) / 2)
            .sum()
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}
