//! Looking at what records are about, a little before they are applied.
//!
//! The way to a column leads through the table of places, the page, the row and the memory of the datum, each in far memory, and each known
//! only from the one before. Applying records one by one waits for every step of each. Here each step is taken for several records before
//! the next one is, so that a processor waits for them together.
//!
//! Invariant: changes nothing, and whatever it finds may be wrong by the time a record is applied. Called by who loads a log.

use std::hint::black_box;

use corvid_data::{Recorded, RecordedRow};
use smallvec::SmallVec;

use crate::database::Database;
use crate::page::Slot;
use crate::table::Table;

/// Rows looked at together: more than a processor waits for at the same time gain nothing.
const TOGETHER: usize = 8;

impl Database {
    /// Looks at the rows that some records are about: at a few of them, when they are many.
    pub fn look_ahead<'r>(&self, records: impl Iterator<Item = &'r Recorded>) {
        let rows = records.flat_map(|recorded| &recorded.rows);
        let found: SmallVec<[(&Table, &RecordedRow, Option<Slot>); TOGETHER]> = rows
            .take(TOGETHER)
            .map(|row| {
                let table = &self.tables[usize::from(row.table.0)];
                (table, row, table.guess(row.uuid))
            })
            .collect();
        for (table, row, slot) in &found {
            match slot {
                Some(slot) => _ = black_box(table.at(*slot).columns.len()),
                None => look_for_twins(table, row),
            }
        }
        for (table, row, slot) in &found {
            let Some(slot) = slot else { continue };
            let present = table.at(*slot);
            for (column, _) in row.columns.iter().flatten() {
                let datum = present.columns.get(usize::from(column.0));
                black_box(datum.map(corvid_data::Datum::len));
            }
        }
    }
}

/// Looks where a new row will stand in the indexes of its table.
fn look_for_twins(table: &Table, row: &RecordedRow) {
    let Some(given) = &row.columns else { return };
    for index in table.indexes() {
        let of_column = |wanted| given.iter().find(|(column, _)| *column == wanted);
        let key = index.columns().iter();
        let key = key.filter_map(|column| of_column(*column).map(|(_, datum)| datum));
        black_box(index.candidates(key).next());
    }
}
