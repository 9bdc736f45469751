//! The rows of one table: by UUID, by slot, and in the order of its indexes.
//!
//! Invariant: every row is in every index, at the position of its current contents. So a caller
//! names the columns before it changes a row, and indexes that do not use them are not touched.
//! Every change of a row gives its slot a version that the table has never had.

use std::hash::BuildHasher;

use corvid_data::{Datum, Uuid};
use foldhash::fast::FixedState;
use hashbrown::HashTable;

use crate::index::Index;
use crate::row::Row;

/// A table's rows. Slots are reused.
#[derive(Debug, Default)]
pub(crate) struct Table {
    slots: Vec<Option<Row>>,
    /// By slot: the number of the last change of its row.
    versions: Vec<u64>,
    /// Insertions, changes and deletions of rows so far.
    last_version: u64,
    free: Vec<u32>,
    /// Slots by UUID.
    by_uuid: HashTable<u32>,
    pub(crate) indexes: Vec<Index>,
}

/// Rows come from a server that is trusted with everything else, so the hash uses a fixed, public
/// seed (as in `first_by_key.rs`).
fn hash(uuid: &Uuid) -> u64 {
    FixedState::default().hash_one(uuid)
}

impl Table {
    pub(crate) fn len(&self) -> usize {
        self.by_uuid.len()
    }

    pub(crate) fn slots(&self) -> &[Option<Row>] {
        &self.slots
    }

    pub(crate) fn slot(&self, uuid: Uuid) -> Option<u32> {
        self.by_uuid
            .find(hash(&uuid), |&slot| self.has(slot, uuid))
            .copied()
    }

    fn has(&self, slot: u32, uuid: Uuid) -> bool {
        self.at(slot).is_some_and(|row| row.uuid == uuid)
    }

    /// The row in a slot.
    pub(crate) fn at(&self, slot: u32) -> Option<&Row> {
        self.slots.get(slot as usize)?.as_ref()
    }

    /// The version of what is in a slot.
    pub(crate) fn version(&self, slot: u32) -> u64 {
        self.versions.get(slot as usize).copied().unwrap_or(0)
    }

    /// The slot has another version from now on.
    fn renew(&mut self, slot: u32) {
        self.last_version += 1;
        if let Some(version) = self.versions.get_mut(slot as usize) {
            *version = self.last_version;
        }
    }

    pub(crate) fn get(&self, uuid: Uuid) -> Option<&Row> {
        self.at(self.slot(uuid)?)
    }

    pub(crate) fn contains(&self, uuid: Uuid) -> bool {
        self.slot(uuid).is_some()
    }

    /// The rows, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Row> {
        self.slots.iter().flatten()
    }

    /// Inserts a row, whose UUID must be new.
    pub(crate) fn insert(&mut self, row: Row) {
        let uuid = row.uuid;
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                let slot = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
                self.slots.push(None);
                self.versions.push(0);
                slot
            }
        };
        self.slots[slot as usize] = Some(row);
        self.renew(slot);
        let slots = &self.slots;
        let hash_of = |&slot: &u32| {
            let row = slots[slot as usize].as_ref();
            row.map_or(0, |row| hash(&row.uuid))
        };
        self.by_uuid.insert_unique(hash(&uuid), slot, hash_of);
        for index in &mut self.indexes {
            index.insert(&self.slots, slot);
        }
    }

    /// Adds an index over the existing rows.
    pub(crate) fn add_index(&mut self, mut index: Index) {
        for slot in (0u32..).take(self.slots.len()) {
            index.insert(&self.slots, slot);
        }
        self.indexes.push(index);
    }

    pub(crate) fn remove(&mut self, uuid: Uuid) -> Option<Row> {
        let slot = self.slot(uuid)?;
        for index in &mut self.indexes {
            index.remove(&self.slots, slot);
        }
        let found = self
            .by_uuid
            .find_entry(hash(&uuid), |&other| other == slot)
            .ok()?;
        found.remove();
        self.renew(slot);
        self.free.push(slot);
        self.slots[slot as usize].take()
    }

    /// Changes columns of a row, at the given positions. Costs O(log n) for each index that uses
    /// one of them.
    pub(crate) fn change<T>(
        &mut self,
        slot: u32,
        places: &[usize],
        change: impl FnOnce(&mut [Datum]) -> T,
    ) -> Option<T> {
        // An index finds a row's entry by the current contents. So the row leaves the index before
        // it changes and enters it again afterwards.
        let uses = |index: &Index| places.iter().any(|&place| index.uses(place));
        for index in self.indexes.iter_mut().filter(|index| uses(index)) {
            index.remove(&self.slots, slot);
        }
        self.renew(slot);
        let row = self.slots.get_mut(slot as usize)?.as_mut()?;
        let outcome = change(&mut row.columns);
        for index in self.indexes.iter_mut().filter(|index| uses(index)) {
            index.insert(&self.slots, slot);
        }
        Some(outcome)
    }

    /// Sets one column and returns its previous value.
    pub(crate) fn set(&mut self, slot: u32, place: usize, value: Datum) -> Option<Datum> {
        self.change(slot, &[place], |columns| {
            std::mem::replace(&mut columns[place], value)
        })
    }
}
