//! A snapshot without its body, and where the body lies in a file.

use super::{Eid, Index, Servers, Term};

/// A snapshot without its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotMeta {
    /// The last entry that it includes.
    pub index: Index,
    /// The term of that entry.
    pub term: Term,
    /// The last entry with data that it includes.
    pub eid: Eid,
    /// The members as of that entry.
    pub servers: Servers,
    /// The election timer as of that entry, ms.
    pub election_timer_ms: u64,
    /// The length of the body, bytes.
    pub body_bytes: u64,
}

/// The bytes of a file that hold the body of a snapshot: the JSON text `[schema,rows]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyLocation {
    /// The offset of the first byte, from the start of the file.
    pub offset: u64,
    /// The number of bytes.
    pub length: u64,
}

impl BodyLocation {
    /// The offset behind the last byte.
    #[must_use]
    pub fn end(self) -> u64 {
        self.offset.saturating_add(self.length)
    }
}
