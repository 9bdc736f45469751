//! Prefetching: reads the rows that records concern shortly before the records are applied.
//!
//! The path to a column leads through the slot table, the page, the row and the memory of the
//! datum. Each step is likely a cache miss, and its address depends on the previous step. Applying
//! records one by one waits for each of these misses in turn. Here each step is done for several
//! records before the next step, so that the processor waits for their misses together.
//!
//! Invariant: prefetching changes nothing, and nothing depends on what it finds, which may change
//! before a record is applied. The loader of a log calls it.

use std::hint::black_box;

use smallvec::SmallVec;

use crate::database::Database;
use crate::page::Slot;
use crate::row_builder::{Prepared, PreparedRow};
use crate::table::Table;

/// Rows that are read together. More would gain nothing: a processor waits for a limited number of
/// misses at once.
const TOGETHER: usize = 8;

impl Database {
    /// Reads the rows that some transactions concern, or a few of them if there are many. Returns
    /// how many rows exist that were guessed to be new.
    pub fn prefetch<'r>(&self, transactions: impl Iterator<Item = &'r Prepared>) -> usize {
        let rows = transactions.flat_map(|prepared| &prepared.rows);
        let found: SmallVec<[(&Table, &PreparedRow, Option<Slot>); TOGETHER]> = rows
            .take(TOGETHER)
            .map(|row| {
                let table = &self.tables[usize::from(row.table().0)];
                (table, row, table.guess(row.uuid()))
            })
            .collect();
        let mut mistakes = 0;
        for (table, row, slot) in &found {
            match (slot, row) {
                (Some(slot), _) => {
                    mistakes += usize::from(matches!(row, PreparedRow::New(_)));
                    black_box(table.at(*slot).columns.len());
                }
                (None, PreparedRow::New(new)) => {
                    for (index, hash) in table.indexes().iter().zip(&new.keys) {
                        black_box(index.hashed(*hash).next());
                    }
                }
                (None, PreparedRow::Recorded(_)) => {}
            }
        }
        for (table, row, slot) in &found {
            if let (Some(slot), PreparedRow::Recorded(row)) = (slot, row) {
                let present = table.at(*slot);
                for (column, _) in row.columns.iter().flatten() {
                    let datum = present.columns.get(usize::from(column.0));
                    black_box(datum.map(corvid_data::Datum::len));
                }
            }
        }
        mistakes
    }
}
