//! A snapshot's metadata, and where its body lies in a file.

use super::{Eid, Index, Servers, Term};

/// The metadata of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotMeta {
    /// The last entry that the snapshot includes.
    pub index: Index,
    /// The term of that entry.
    pub term: Term,
    /// The id of the last entry with data that the snapshot includes.
    pub eid: Eid,
    /// The members as of that entry.
    pub servers: Servers,
    /// The election timer as of that entry, ms.
    pub election_timer_ms: u64,
    /// The length of the body, bytes.
    pub body_bytes: u64,
}

/// The range of a file that holds the body of a snapshot: the JSON text `[schema,rows]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyLocation {
    /// Offset of the first byte from the start of the file.
    pub offset: u64,
    /// The number of bytes.
    pub length: u64,
}

impl BodyLocation {
    /// The offset just past the last byte.
    #[must_use]
    pub fn end(self) -> u64 {
        self.offset.saturating_add(self.length)
    }
}
