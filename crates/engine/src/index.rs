//! The hash index behind one schema `indexes` entry: enforces uniqueness at commit and answers equality `where`.
//!
//! Invariant: holds exactly one entry per row of the table, whatever state a transaction is in; equal keys may stand side by side
//! until the commit judges them. It stores hashes and slots only; keys are read from the rows.

use corvid_data::{ColumnId, Datum, Row};

use crate::hash::hash_data;
use crate::page::Slot;
use crate::slot_table::SlotTable;

/// The columns of one schema index and where rows with a given key are.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    columns: Box<[ColumnId]>,
    slots: SlotTable,
}

impl Index {
    /// An empty index over `columns`, none of them `_uuid` or `_version`.
    pub(crate) fn new(columns: Box<[ColumnId]>) -> Index {
        assert!(columns.iter().all(|column| !column.is_standard()));
        Index {
            columns,
            slots: SlotTable::default(),
        }
    }

    /// The columns of its key.
    pub(crate) fn columns(&self) -> &[ColumnId] {
        &self.columns
    }

    /// The key of `row`, column by column.
    pub(crate) fn key<'a>(&'a self, row: &'a Row) -> impl Iterator<Item = &'a Datum> + 'a {
        self.columns
            .iter()
            .map(|column| &row.columns[usize::from(column.0)])
    }

    /// Whether two rows have equal keys.
    pub(crate) fn same_key(&self, a: &Row, b: &Row) -> bool {
        self.key(a).eq(self.key(b))
    }

    /// Adds the row at `slot`.
    pub(crate) fn insert(&mut self, slot: Slot, row: &Row) {
        self.slots.insert(hash_data(self.key(row)), slot);
    }

    /// Removes the row at `slot`, whose content is (still) `row`.
    pub(crate) fn remove(&mut self, slot: Slot, row: &Row) {
        self.slots.remove(hash_data(self.key(row)), slot);
    }

    /// The slots of rows whose key probably equals `key`: the hash is equal, the caller compares.
    pub(crate) fn candidates<'a>(
        &'a self,
        key: impl Iterator<Item = &'a Datum>,
    ) -> impl Iterator<Item = Slot> + 'a {
        self.slots.candidates(hash_data(key))
    }

    /// How many rows it holds.
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
    fn equal_keys_stand_side_by_side_and_leave_one_by_one() {
        let mut index = Index::new([ColumnId(1)].into());
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
