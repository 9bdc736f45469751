//! Differences of data: what `modify` in update2, `_is_diff` records and reference counting are made of (protocol.md 4.7,
//! storage.md 4.4). Subtrees that old and new share are skipped, so the cost follows the change.

use crate::{AtomRef, ColumnType, Datum, WireError};

/// One element of the difference between two data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// Only in the new datum.
    Added(AtomRef<'a>, Option<AtomRef<'a>>),
    /// Only in the old datum.
    Removed(AtomRef<'a>, Option<AtomRef<'a>>),
    /// A map key in both, with another value: key, old value, new value.
    Replaced(AtomRef<'a>, AtomRef<'a>, AtomRef<'a>),
}

/// Calls `visit` for each difference in key order. O(changes · log n) where memory is shared, O(n) otherwise.
pub fn changes<'a>(old: &'a Datum, new: &'a Datum, visit: &mut dyn FnMut(Change<'a>)) {
    let _ = (old, new, visit);
    todo!()
}

impl Datum {
    /// The difference as the wire and the file carry it: the new value when the type is not composite, else the symmetric
    /// difference. `None` when equal.
    #[must_use]
    pub fn diff(old: &Datum, new: &Datum, column_type: &ColumnType) -> Option<Datum> {
        let _ = (old, new, column_type);
        todo!()
    }

    /// Applies such a difference. O(|diff| · log n).
    ///
    /// # Errors
    /// `Datum crated by diff has size error` (the reference's spelling) when the result has too many or too few elements.
    pub fn apply_diff(&mut self, diff: &Datum, column_type: &ColumnType) -> Result<(), WireError> {
        let _ = (diff, column_type);
        todo!()
    }
}
