//! Identifies a row in a database by its table and its UUID. A UUID is unique only within a table.

use corvid_data::{TableId, Uuid};

/// A row, which may or may not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RowId {
    /// The row's table.
    pub(crate) table: TableId,
    /// The row's UUID.
    pub(crate) uuid: Uuid,
}

impl RowId {
    /// The row `uuid` of `table`.
    pub(crate) fn new(table: TableId, uuid: Uuid) -> RowId {
        RowId { table, uuid }
    }
}
