//! Counts of one finished transaction, for metrics: its operations and its error. They are counted
//! during the execution. For a transaction that waits or is postponed, the attempt that finishes it
//! counts.

use corvid_data::Tag;

use crate::operation::OperationKind;

/// The counts of one transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Operations that were begun, by index in [`OperationKind::ALL`].
    pub operations: [u32; OperationKind::COUNT],
    /// The error with which the transaction failed, if it did.
    pub error: Option<Tag>,
    /// The transaction failed at its commit, so each of its operations succeeded.
    pub has_failed_at_commit: bool,
}
