//! A row of the replica, and handles to it.

use corvid_data::{Datum, TableId, Uuid};

/// A row, whether it is there or not. A plain value: it borrows nothing and outlives nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId {
    /// Its table.
    pub table: TableId,
    /// Its identity. Of a row that was inserted here, until the server knows it, a provisional one.
    pub uuid: Uuid,
}

/// The contents of a row: the columns that its table has places for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) uuid: Uuid,
    pub(crate) columns: Box<[Datum]>,
}
