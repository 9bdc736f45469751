//! A row of the replica, and handles to rows.

use corvid_data::{Datum, TableId, Uuid};

/// A handle to a row, which may or may not exist. A plain value that borrows nothing, so it may
/// outlive the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId {
    /// The row's table.
    pub table: TableId,
    /// The row's UUID; a provisional one for a row that this client inserted, until the server
    /// assigns another.
    pub uuid: Uuid,
}

/// The contents of a row at one moment ([`crate::Idl::version`]): a plain value of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RowVersion {
    pub(crate) table: TableId,
    pub(crate) slot: u32,
    /// That of the slot. No other contents of the table ever had it.
    pub(crate) number: u64,
}

/// The contents of a row: the columns for which its table has positions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) uuid: Uuid,
    pub(crate) columns: Box<[Datum]>,
}
