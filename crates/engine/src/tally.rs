//! Counts of one finished transaction: its operations and its error, for metrics. They are counted during the
//! execution; a transaction that waits or is postponed is counted by the attempt that finishes it.

use corvid_data::Tag;

/// Names of operations on the wire, in the order in which [`Tally::operations`] counts them.
pub const OPERATIONS: [&str; 10] = [
    "insert", "select", "update", "mutate", "delete", "wait", "commit", "abort", "comment",
    "assert",
];

/// The count of one transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Operations that were begun, by index in [`OPERATIONS`].
    pub operations: [u32; OPERATIONS.len()],
    /// The error with which it failed, if it did.
    pub error: Option<Tag>,
    /// It failed at its commit, so each of its operations succeeded.
    pub has_failed_at_commit: bool,
}
