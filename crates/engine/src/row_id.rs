//! The identity of a row in a database: its table and its UUID there (a UUID is unique within one table only).

use corvid_data::{TableId, Uuid};

/// A row, present or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RowId {
    /// Its table.
    pub(crate) table: TableId,
    /// Its UUID there.
    pub(crate) uuid: Uuid,
}

impl RowId {
    /// The row `uuid` of `table`.
    pub(crate) fn new(table: TableId, uuid: Uuid) -> RowId {
        RowId { table, uuid }
    }
}
