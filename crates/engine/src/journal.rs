//! The journal of a transaction: which rows it has touched, and what each was before the first touch.
//!
//! Invariant: one entry per touched row, in the order of first touches. Tables are changed in place; the journal is what a rollback
//! restores and what the commit compares with. It knows no table.

use corvid_data::{Arc, ColumnDiff, ColumnId, Datum, HashSeed, Row};

use crate::hash::Map;
use crate::page::Slot;
use crate::row_id::RowId;

/// Rows of a transaction that are told apart by looking at each; more are found by hash.
const FEW: usize = 8;

/// What a commit found to have happened to a touched row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Nothing: never existed, or equals its original.
    None,
    /// New.
    Inserted,
    /// Changed in the columns of [`Touched::diffs`].
    Modified,
    /// Gone.
    Deleted,
}

/// A touched row.
#[derive(Debug)]
pub(crate) struct Touched {
    /// Which row.
    pub(crate) id: RowId,
    /// Where it is, unless it is gone.
    pub(crate) slot: Option<Slot>,
    /// Before the transaction; `None` when it did not exist.
    pub(crate) old: Option<Arc<Row>>,
    /// Strong references to it at the last commit.
    pub(crate) strong: u32,
    /// What came of it; set and kept by the commit.
    pub(crate) effect: Effect,
    /// Changed columns of a modified row, by column; set and kept by the commit. Until then those differences, in any order, that are known
    /// from the way in which columns were written.
    pub(crate) diffs: Vec<ColumnDiff>,
}

impl Touched {
    /// Notes that `column`, which is `now`, is about to become something else; `diff` is the difference if it is known.
    pub(crate) fn record_write(&mut self, column: ColumnId, now: &Datum, diff: Option<Datum>) {
        let Some(old) = &self.old else { return };
        self.diffs.retain(|known| known.column != column);
        // After an earlier change it would not be the difference from what was there before the transaction.
        let is_first = || old.columns[usize::from(column.0)].ptr_eq(now);
        if let Some(diff) = diff.filter(|_| is_first()) {
            self.diffs.push(ColumnDiff { column, diff });
        }
    }
}

/// All touched rows.
#[derive(Debug)]
pub(crate) struct Journal {
    rows: Vec<Touched>,
    /// Of all rows, when they are more than [`FEW`].
    positions: Map<RowId, usize>,
}

impl Journal {
    /// No rows yet.
    pub(crate) fn new(seed: HashSeed) -> Journal {
        Journal {
            rows: Vec::new(),
            positions: Map::with_hasher(seed),
        }
    }

    /// Notes the row at `slot` before it is changed for the first time; `before` tells what it is then, with its count of strong
    /// references.
    pub(crate) fn touch(
        &mut self,
        id: RowId,
        slot: Slot,
        before: impl FnOnce() -> Option<(Arc<Row>, u32)>,
    ) -> &mut Touched {
        let position = self.position(id).unwrap_or_else(|| {
            let (old, strong) = match before() {
                Some((row, strong)) => (Some(row), strong),
                None => (None, 0),
            };
            self.add(Touched {
                id,
                slot: Some(slot),
                old,
                strong,
                effect: Effect::None,
                diffs: Vec::new(),
            })
        });
        &mut self.rows[position]
    }

    /// Adds a row that is not there and returns its place.
    fn add(&mut self, row: Touched) -> usize {
        let position = self.rows.len();
        self.rows.push(row);
        if position == FEW {
            let ids = self.rows.iter().map(|touched| touched.id);
            self.positions.extend(ids.zip(0..));
        } else if position > FEW {
            self.positions.insert(self.rows[position].id, position);
        }
        position
    }

    /// The entry of a row, if it was touched.
    pub(crate) fn find(&self, id: RowId) -> Option<&Touched> {
        self.position(id).map(|position| &self.rows[position])
    }

    /// The place of a row's entry, if it was touched.
    pub(crate) fn position(&self, id: RowId) -> Option<usize> {
        if self.rows.len() <= FEW {
            return self.rows.iter().position(|touched| touched.id == id);
        }
        self.positions.get(&id).copied()
    }

    /// The entries, in order.
    pub(crate) fn rows(&self) -> &[Touched] {
        &self.rows
    }

    /// The entries, in order.
    pub(crate) fn rows_mut(&mut self) -> &mut [Touched] {
        &mut self.rows
    }

    /// The entries, taken out.
    pub(crate) fn take(&mut self) -> Vec<Touched> {
        self.positions.clear();
        std::mem::take(&mut self.rows)
    }
}
