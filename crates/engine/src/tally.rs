//! What a finished transaction consisted of and how it failed, for whoever counts such things. Counted while it executes; a transaction that
//! waits or is put off is counted by the attempt that finishes it.

use corvid_data::Tag;

/// Names of operations on the wire, in the order in which [`Tally::operations`] counts them.
pub const OPERATIONS: [&str; 10] = [
    "insert", "select", "update", "mutate", "delete", "wait", "commit", "abort", "comment",
    "assert",
];

/// The count of one transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Operations that were begun, by place in [`OPERATIONS`].
    pub operations: [u32; OPERATIONS.len()],
    /// Why it failed, if it did.
    pub error: Option<Tag>,
}
