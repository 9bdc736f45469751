//! The hash index for one entry of a schema's `indexes`. It enforces uniqueness at commit, and
//! answers `where` with equality.
//!
//! Invariant: the index holds exactly one entry per row of the table, even in the middle of a
//! transaction. Several rows may have equal keys until the commit checks them. The index stores
//! only hashes and slots; keys are read from the rows.

use corvid_data::{ColumnId, Datum, HashSeed, Row, TableSchema};
use smallvec::SmallVec;

use crate::hash::hash_data;
use crate::page::Slot;
use crate::slot_table::SlotTable;

/// The hashes of a row's keys, one per index of its table.
pub(crate) type Keys = SmallVec<[u64; 1]>;

/// The columns of a table's indexes. Indexes over `_uuid` or `_version` cannot be violated and get
/// no structure.
pub(crate) fn indexed(schema: &TableSchema) -> impl Iterator<Item = &[ColumnId]> {
    let all = schema.indexes.iter().map(Vec::as_slice);
    all.filter(|columns| columns.iter().all(|column| !column.is_standard()))
}

/// The hash of the key that `row` has in an index over these columns.
pub(crate) fn hash_key(seed: HashSeed, columns: &[ColumnId], row: &Row) -> u64 {
    hash_data(seed, key(columns, row))
}

fn key<'a>(columns: &'a [ColumnId], row: &'a Row) -> impl Iterator<Item = &'a Datum> + 'a {
    columns
        .iter()
        .map(|column| &row.columns[usize::from(column.0)])
}

/// The columns of one schema index, and the slots of rows by the hash of their key.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    columns: Box<[ColumnId]>,
    seed: HashSeed,
    slots: SlotTable,
}

impl Index {
    /// An empty index over `columns`, none of them `_uuid` or `_version`.
    pub(crate) fn new(columns: Box<[ColumnId]>, seed: HashSeed) -> Index {
        assert!(columns.iter().all(|column| !column.is_standard()));
        Index {
            columns,
            seed,
            slots: SlotTable::default(),
        }
    }

    /// The columns of the key.
    pub(crate) fn columns(&self) -> &[ColumnId] {
        &self.columns
    }

    /// The key of `row`, column by column.
    pub(crate) fn key<'a>(&'a self, row: &'a Row) -> impl Iterator<Item = &'a Datum> + 'a {
        key(&self.columns, row)
    }

    /// The hash of the key of `row`.
    pub(crate) fn hash(&self, row: &Row) -> u64 {
        hash_key(self.seed, &self.columns, row)
    }

    /// Whether two rows have equal keys.
    pub(crate) fn same_key(&self, a: &Row, b: &Row) -> bool {
        self.key(a).eq(self.key(b))
    }

    /// Adds the row at `slot`.
    pub(crate) fn insert(&mut self, slot: Slot, row: &Row) {
        self.insert_hashed(slot, self.hash(row));
    }

    /// Adds the row at `slot`, whose key has this hash.
    pub(crate) fn insert_hashed(&mut self, slot: Slot, hash: u64) {
        self.slots.insert(hash, slot);
    }

    /// Removes the row at `slot`, which must still have the contents of `row`.
    pub(crate) fn remove(&mut self, slot: Slot, row: &Row) {
        self.slots.remove(self.hash(row), slot);
    }

    /// The slots of rows whose key probably equals `key`: the hash is equal, and the caller
    /// compares.
    pub(crate) fn candidates<'a>(
        &'a self,
        key: impl Iterator<Item = &'a Datum>,
    ) -> impl Iterator<Item = Slot> + 'a {
        self.slots.candidates(hash_data(self.seed, key))
    }

    /// The slots of rows whose key probably has this hash.
    pub(crate) fn hashed(&self, hash: u64) -> impl Iterator<Item = Slot> + '_ {
        self.slots.candidates(hash)
    }

    /// Whether a row other than the one at `slot` has the key of `row`, which has this hash. `at`
    /// returns the row of a slot.
    pub(crate) fn has_duplicate<'a>(
        &self,
        hash: u64,
        slot: Option<Slot>,
        row: &Row,
        at: impl Fn(Slot) -> &'a Row,
    ) -> bool {
        let mut others = self.hashed(hash).filter(|other| Some(*other) != slot);
        others.any(|other| self.same_key(at(other), row))
    }

    /// See [`SlotTable::collisions`].
    pub(crate) fn collisions(&self) -> u64 {
        self.slots.collisions()
    }

    /// The number of rows in the index.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corvid_data::{Atom, Uuid};

    fn row(key: i64) -> Row {
        Row {
            uuid: Uuid::ZERO,
            version: Uuid::ZERO,
            columns: [0, key].map(|n| Datum::one(Atom::Integer(n))).into(),
        }
    }

    fn slots(index: &Index, key: i64) -> Vec<Slot> {
        let row = row(key);
        let mut slots: Vec<Slot> = index.candidates(index.key(&row)).collect();
        slots.sort();
        slots
    }

    #[test]
    fn rows_with_equal_keys_are_added_and_removed_one_by_one() {
        let mut index = Index::new([ColumnId(1)].into(), HashSeed::FIXED);
        for number in 0..1000 {
            index.insert(Slot::new(number), &row(number as i64 / 2));
        }
        assert_eq!(slots(&index, 7), [Slot::new(14), Slot::new(15)]);
        index.remove(Slot::new(14), &row(7));
        assert_eq!(slots(&index, 7), [Slot::new(15)]);
        assert_eq!(slots(&index, 600), []);
        assert_eq!(index.len(), 999);
    }
}
