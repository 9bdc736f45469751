//! Rows that look different through a list of columns: what `select` returns without `_uuid`, and what `wait` compares.

use corvid_data::{HashSeed, Row};
use hashbrown::HashTable;

use crate::column_list::ColumnList;

/// A set of rows in order of arrival, told apart by some columns only.
pub(crate) struct Distinct<'r> {
    columns: &'r ColumnList,
    seed: HashSeed,
    rows: Vec<&'r Row>,
    positions: HashTable<usize>,
}

impl<'r> Distinct<'r> {
    /// An empty set of rows seen through `columns`.
    pub(crate) fn new(columns: &'r ColumnList, seed: HashSeed) -> Distinct<'r> {
        Distinct {
            columns,
            seed,
            rows: Vec::new(),
            positions: HashTable::new(),
        }
    }

    /// Adds a row; `false` when it looks like one that is there.
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

    /// The place of the row that looks like `row`.
    pub(crate) fn find(&self, row: &Row) -> Option<usize> {
        let hash = self.columns.hash(self.seed, row);
        let looks_same = |position: &usize| self.columns.same(self.rows[*position], row);
        self.positions.find(hash, looks_same).copied()
    }

    /// How many look different.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The rows, in order of arrival.
    pub(crate) fn into_rows(self) -> Vec<&'r Row> {
        self.rows
    }
}
