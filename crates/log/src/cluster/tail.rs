//! The end of a member's file that cannot be read: could the member have forgotten a promise?
//!
//! A member answers a peer only after a sync, and a sync forces everything before it to the disk. So
//! the bytes from the first bad record on were never synced, and promise nothing, if the write of
//! that record never completed ([`crate::interruption`]).
//!
//! Any other damage may be in bytes that were synced. The member may have voted, or acknowledged
//! entries, in the records that are lost; if it went on as if it had not, the cluster could lose
//! commits (docs/spec/distribution.md 1.4). The promises that the rest of the file proves are read
//! by [`super::promises`]. Made by [`super::recovery`].

use corvid_data::WireError;

use super::promises::Obstacle;
use crate::ReadError;

/// The first record that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberDamage {
    /// Its number, counting from 0.
    pub record: u64,
    /// The offset of its header.
    pub offset: u64,
    /// The error.
    pub error: ReadError,
    /// The bytes from there on were never synced.
    pub is_unsynced: bool,
    /// If they may have been: why the member's cluster cannot make the loss good. `None`: it can
    /// ([`super::RecoveredMembership::Damaged`]).
    pub obstacle: Option<Obstacle>,
}

impl MemberDamage {
    /// Whether records that the member has acknowledged may be lost. Then it must neither vote nor serve until it is rebuilt. Otherwise
    /// the first append replaces the damaged bytes.
    #[must_use]
    pub fn may_have_forgotten(&self) -> bool {
        !self.is_unsynced
    }

    /// The error in the reference's words about `file`.
    #[must_use]
    pub fn to_wire(&self, file: &str) -> WireError {
        self.error.to_wire(file)
    }
}
