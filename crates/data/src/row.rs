//! A row version: immutable once committed, shared by tables, deltas, monitors and snapshots.
//!
//! Only the engine makes rows. A row knows neither its table nor its types.

use crate::{Datum, Uuid};

/// One version of a row. Columns are in schema order ([`crate::TableSchema::columns`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// `_uuid`
    pub uuid: Uuid,
    /// `_version`, renewed at each commit that changes the row.
    pub version: Uuid,
    /// One datum per column.
    pub columns: Box<[Datum]>,
}
