//! The records of a cluster member's file (magic `CLUSTER`): their types, decoding and encoding,
//! and the rules for their order (docs/spec/distribution.md 1.4).
//!
//! ```text
//! OVSDB CLUSTER 578 55c3...\n    Header    the member's identity, the servers, a snapshot OVSDB
//! CLUSTER  75 1f0a...\n    Record    an entry, or the member's own state:
//!                                          term, vote, leader, commit index
//! ```
//!
//! [`recover`] reads a whole file into the state with which a member starts; [`ClusterReader`]
//! returns record after record, for tools. Files are read as leniently as by the reference, with
//! its error texts. This module knows nothing about elections and peers, and does not interpret
//! entries: their schema and transaction stay JSON text until another crate decodes them.

pub mod address;
pub mod data;
pub mod data_length;
pub mod fields;
pub mod header;
mod header_scan;
pub mod ids;
pub mod promises;
pub mod reader;
pub mod received;
pub mod record;
pub mod recovered;
pub mod recovery;
pub mod replay;
pub mod servers;
pub mod snapshot_body;
pub mod snapshot_header;
pub mod snapshot_meta;
pub mod tail;
pub mod transaction;
pub mod unfit;

pub use address::AddressError;
pub use data::{Data, Parts};
pub use data_length::data_fits;
pub use header::{Header, Membership, Snapshot};
pub use ids::{Cid, Eid, Index, Sid, Term};
pub use promises::{Obstacle, Promises};
pub use reader::ClusterReader;
pub use received::{ReceivedBody, ReceivedContent};
pub use record::{Entry, Kind, Payload, Record, append_record};
pub use recovered::{Joined, Membership as RecoveredMembership, Recovered, StoredEntry};
pub use recovery::{RecoveryError, recover};
pub use replay::{Replay, Step, Truncation, Violation};
pub use servers::Servers;
pub use snapshot_body::SnapshotBody;
pub use snapshot_header::{
    MemberIdentity, SnapshotHeader, is_snapshot_intact, locate_body, read_body,
};
pub use snapshot_meta::{BodyLocation, SnapshotMeta};
pub use tail::MemberDamage;
pub use transaction::{TransactionReader, write_data};
pub use unfit::Unfit;

/// The election timer of a cluster that never changed it, ms.
pub const ELECTION_TIMER_DEFAULT_MS: u64 = 1000;
/// The shortest election timer, ms.
pub const ELECTION_TIMER_MIN_MS: u64 = 100;
/// The longest election timer, ms.
pub const ELECTION_TIMER_MAX_MS: u64 = 600_000;

#[cfg(test)]
mod tests;
