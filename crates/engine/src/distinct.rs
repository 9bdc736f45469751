//! Rows that differ in a list of columns: `select` without `_uuid` returns only such rows, and
//! `wait` compares sets of them.

use corvid_data::{HashSeed, Row};
use hashbrown::HashTable;

use crate::column_list::ColumnList;

/// A set of rows in order of insertion, compared only by some columns.
pub(crate) struct Distinct<'r> {
    columns: &'r ColumnList,
    seed: HashSeed,
    rows: Vec<&'r Row>,
    positions: HashTable<usize>,
}

impl<'r> Distinct<'r> {
    /// An empty set of rows, compared by `columns`.
    pub(crate) fn new(columns: &'r ColumnList, seed: HashSeed) -> Distinct<'r> {
        Distinct {
            columns,
            seed,
            rows: Vec::new(),
            positions: HashTable::new(),
        }
    }

    /// Adds a row. Returns false if the set has a row that is equal in the columns.
    pub(crate) fn insert(&mut self, row: &'r Row) -> bool {
        if self.find(row).is_some() {
            return false;
        }
        let Distinct {
            columns,
            seed,
            rows,
            positions,
        } = self;
        let hash = columns.hash(*seed, row);
        let again = |position: &usize| columns.hash(*seed, rows[*position]);
        positions.insert_unique(hash, rows.len(), again);
        rows.push(row);
        true
    }

    /// The position of the row that equals `row` in the columns.
    pub(crate) fn find(&self, row: &Row) -> Option<usize> {
        let hash = self.columns.hash(self.seed, row);
        let is_equal = |position: &usize| self.columns.same(self.rows[*position], row);
        self.positions.find(hash, is_equal).copied()
    }

    /// The number of rows.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The rows, in order of insertion.
    pub(crate) fn into_rows(self) -> Vec<&'r Row> {
        self.rows
    }
}
