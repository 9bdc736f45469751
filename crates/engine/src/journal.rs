//! The journal of a transaction: the rows that it has touched, each with its version before the
//! first touch.
//!
//! Invariant: one entry per touched row, in the order of first touches. Tables are changed in
//! place; a rollback restores the journal's versions, and the commit compares with them. The
//! journal knows no table.

use corvid_data::{Arc, ColumnDiff, ColumnId, Datum, HashSeed, Row};

use crate::hash::Map;
use crate::page::Slot;
use crate::row_id::RowId;

/// Up to this many rows are searched linearly; more are found by hash.
const LINEAR_MAX: usize = 8;

/// The effect of a transaction on a touched row, as the commit finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// No effect: the row never existed, or equals its original.
    None,
    /// The row is new.
    Inserted,
    /// The row changed in the columns of [`Touched::diffs`].
    Modified,
    /// The row was deleted.
    Deleted,
}

/// A touched row.
#[derive(Debug)]
pub(crate) struct Touched {
    /// The row.
    pub(crate) id: RowId,
    /// The row's slot; `None` if the transaction deleted the row.
    pub(crate) slot: Option<Slot>,
    /// The version before the transaction; `None` if the row did not exist.
    pub(crate) old: Option<Arc<Row>>,
    /// Strong references to the row at the last commit.
    pub(crate) strong: u32,
    /// The effect on the row. The commit sets and updates it.
    pub(crate) effect: Effect,
    /// The differences of a modified row, sorted by column. The commit sets and updates them.
    /// Before the commit: the differences that writers of columns supplied, in any order.
    pub(crate) diffs: Vec<ColumnDiff>,
}

impl Touched {
    /// Records that `column`, whose value is `now`, is about to change. `diff` is the difference,
    /// if the writer knows it.
    pub(crate) fn record_write(&mut self, column: ColumnId, now: &Datum, diff: Option<Datum>) {
        let Some(old) = &self.old else { return };
        self.diffs.retain(|known| known.column != column);
        // After an earlier change, `diff` is not the difference from the value before the
        // transaction.
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
    /// The positions of all rows, if there are more than [`LINEAR_MAX`].
    positions: Map<RowId, usize>,
}

impl Journal {
    /// An empty journal.
    pub(crate) fn new(seed: HashSeed) -> Journal {
        Journal {
            rows: Vec::new(),
            positions: Map::with_hasher(seed),
        }
    }

    /// Adds the row at `slot` before its first change. `before` returns its version at that time,
    /// with its count of strong references.
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

    /// Adds a row that was not touched before. Returns its position.
    fn add(&mut self, row: Touched) -> usize {
        let position = self.rows.len();
        self.rows.push(row);
        if position == LINEAR_MAX {
            let ids = self.rows.iter().map(|touched| touched.id);
            self.positions.extend(ids.zip(0..));
        } else if position > LINEAR_MAX {
            self.positions.insert(self.rows[position].id, position);
        }
        position
    }

    /// The entry of a row, if it was touched.
    pub(crate) fn find(&self, id: RowId) -> Option<&Touched> {
        self.position(id).map(|position| &self.rows[position])
    }

    /// The position of a row's entry, if it was touched.
    pub(crate) fn position(&self, id: RowId) -> Option<usize> {
        if self.rows.len() <= LINEAR_MAX {
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

    /// Moves the entries out.
    pub(crate) fn take(&mut self) -> Vec<Touched> {
        self.positions.clear();
        std::mem::take(&mut self.rows)
    }
}
