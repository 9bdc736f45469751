//! Damage in a member's file: could the member have forgotten a promise?
//!
//! A member answers a peer only after a sync, and a sync forces everything before it to the disk.
//! So if the write of the first bad record never completed ([`crate::interruption`]), the bytes
//! from there on were never synced and promise nothing.
//!
//! Any other damage may be in bytes that were synced. The lost records may hold a vote, or entries
//! that the member acknowledged. If the member carried on as if they never existed, the cluster
//! could lose commits (docs/spec/distribution.md 1.4). [`super::promises`] reads the promises that
//! the rest of the file proves. [`super::recovery`] calls this module.

use corvid_data::WireError;

use super::promises::Obstacle;
use crate::ReadError;

/// The first record that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberDamage {
    /// Number of the record, counting from 0.
    pub record: u64,
    /// Offset of its header.
    pub offset: u64,
    /// The error.
    pub error: ReadError,
    /// Whether the bytes from `offset` on were never synced.
    pub is_unsynced: bool,
    /// If they may have been synced: why the cluster cannot replace what was lost. `None`: it can
    /// ([`super::RecoveredMembership::Damaged`]).
    pub obstacle: Option<Obstacle>,
}

impl MemberDamage {
    /// Whether records that the member has acknowledged may be lost. Then it must neither vote nor
    /// serve until it is rebuilt. Otherwise the first append replaces the damaged bytes.
    #[must_use]
    pub fn may_have_forgotten(&self) -> bool {
        !self.is_unsynced
    }

    /// Renders the error in the reference's words about `file`.
    #[must_use]
    pub fn to_wire(&self, file: &str) -> WireError {
        self.error.to_wire(file)
    }
}
