//! Counts of one finished transaction: its operations and its error, for metrics. They are counted during the
//! execution; a transaction that waits or is postponed is counted by the attempt that finishes it.

use corvid_data::Tag;

use crate::operation::OperationKind;

/// The count of one transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Operations that were begun, by index in [`OperationKind::ALL`].
    pub operations: [u32; OperationKind::COUNT],
    /// The error with which it failed, if it did.
    pub error: Option<Tag>,
    /// It failed at its commit, so each of its operations succeeded.
    pub has_failed_at_commit: bool,
}
