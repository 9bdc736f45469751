//! A delta: the whole effect of one commit, and the only thing that leaves the engine. Log records,
//! updates, history and relays are functions of it.

use smallvec::SmallVec;

use crate::{Arc, ColumnId, Datum, Row, TableId, Uuid};

/// The changes of one commit. Rows are grouped by table and otherwise in no particular order.
#[derive(Clone, Debug, Default)]
pub struct Delta {
    /// One element per row that differs from its previous state.
    pub changes: Vec<RowChange>,
    /// Texts of all `comment` operations, joined by LF; empty if there are none.
    pub comment: String,
    /// A `commit` with `durable: true` requested a sync before the reply.
    pub durable: bool,
}

/// The old and the new version of one row. At least one is present.
#[derive(Clone, Debug)]
pub struct RowChange {
    /// The row's table.
    pub table: TableId,
    /// The row's UUID.
    pub uuid: Uuid,
    /// The version before; `None` for an insert.
    pub old: Option<Arc<Row>>,
    /// The version after; `None` for a delete.
    pub new: Option<Arc<Row>>,
    /// For a modification: each changed column (including ephemeral ones) with its difference.
    /// Empty for inserts and deletes.
    pub diffs: Box<[ColumnDiff]>,
}

/// A changed column and its difference ([`Datum::diff`]).
#[derive(Clone, Debug)]
pub struct ColumnDiff {
    /// The column.
    pub column: ColumnId,
    /// The difference.
    pub diff: Datum,
}

impl Delta {
    /// Whether nothing changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

/// A transaction as the log holds it, before it is applied: the form in which a [`crate::Delta`] is
/// read back from disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// `_date`, in milliseconds since the Unix epoch.
    pub date_ms: Option<i64>,
    /// `_comment`
    pub comment: Option<String>,
    /// `_is_diff`: columns of existing rows are differences, not values.
    pub is_diff: bool,
    /// The rows, in record order. Most records have one row, and millions of records pass from one
    /// thread to another.
    pub rows: SmallVec<[RecordedRow; 1]>,
}

/// One row of a [`Recorded`] transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedRow {
    /// The row's table.
    pub table: TableId,
    /// The row's UUID.
    pub uuid: Uuid,
    /// `None` deletes the row. Otherwise columns with their value or difference, read without size
    /// limits.
    pub columns: Option<Vec<(ColumnId, Datum)>>,
}
