//! Looking at what records are about, a little before they are applied.
//!
//! The way to a column leads through the table of places, the page, the row and the memory of the datum, each in far memory, and each known
//! only from the one before. Applying records one by one waits for every step of each. Here each step is taken for several records before
//! the next one is, so that a processor waits for them together.
//!
//! Invariant: changes nothing, and whatever it finds may be wrong by the time a record is applied. Called by who loads a log.

use std::hint::black_box;

use smallvec::SmallVec;

use crate::database::Database;
use crate::page::Slot;
use crate::row_builder::{Prepared, PreparedRow};
use crate::table::Table;

/// Rows looked at together: more than a processor waits for at the same time gain nothing.
const TOGETHER: usize = 8;

impl Database {
    /// Looks at the rows that some transactions are about: at a few of them, when they are many. Tells how many that were guessed new are
    /// there.
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
