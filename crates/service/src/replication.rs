//! Active-backup replication (docs/spec/distribution.md 3) without sockets and tables: what a backup asks its source, in which order, and
//! what becomes of the answers.
//!
//! ```text
//! Disconnected -connected-> ServerId -> Databases -> Schema -> Contents -> Comparing -> Replicating
//!       ^                       |           |          |          |            |             |
//!       |                       +-----------+----------+----------+------------+             | an update does not fit
//!       |                                   v                                                v
//!       +--------------- rest ---------- Failed                                          Reconnect
//! ```
//!
//! Invariant: a backup stays a backup. Whatever goes wrong, it keeps what it has, stays read-only and tries again: at once after a loss of
//! the connection or an update that does not fit, after a rest when the source cannot be replicated. Only its operator makes it active.
//!
//! [`Replication`] is the machine of one database; the database ([`crate::DatabaseService`]) feeds it, applies what it yields and carries its
//! orders out; the connection belongs to the shell, which sees texts and no meaning. What the source holds is asked for by `monitor_cond`,
//! whose updates are differences, so their cost follows the change. With tables left out plain `monitor` is used, whose updates are values:
//! the copy may then differ from the source (rows that only rows of such tables refer to, references to rows that are not here), and
//! differences would not fit.

pub mod difference;
mod exclusions;
mod log_message;
mod machine;
mod read;
mod schema_match;

pub use exclusions::Exclusions;
pub use log_message::{Level, LogMessage};
pub use machine::{Replication, Step};
pub use read::read_update;
pub use schema_match::{Mismatch, mismatches};

use corvid_data::Uuid;
use corvid_json::Pieces;
pub use corvid_session::update::Encoding;

/// Tells one time of being a backup from the next: texts of an earlier one are not taken for those of the present.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(pub u64);

/// Whether a database takes writes, or a copy of another server's.
#[derive(Clone, Debug)]
pub enum Role {
    /// Clients may write.
    Active,
    /// It follows a source, and clients may only read.
    Backup(Box<Following>),
}

/// What a backup follows.
#[derive(Clone, Debug)]
pub struct Following {
    /// The number of this time.
    pub id: SourceId,
    /// Tables that are left alone.
    pub excluded: Exclusions,
    /// Our own server's id: who finds it at the source would replicate itself.
    pub server_id: Uuid,
}

/// From the connection to the source.
#[derive(Debug)]
pub enum SourceEvent {
    /// It stands; each connection has a higher number than those before.
    Connected(u64),
    /// A whole text, but for probes, which the shell answers.
    Message(Pieces),
    /// It is gone.
    Disconnected,
}

/// For the connection to the source. Orders bear the number of the connection that they are meant for: what was to be said on one must
/// not be said on the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceOrder {
    /// Write this.
    Send(Vec<u8>),
    /// Texts of so many bytes have been worked off.
    Consumed(usize),
    /// Close, and connect again.
    Reconnect,
    /// Close, and connect again after [`REST_MS`].
    Rest,
}

/// How long a source that cannot be replicated is left alone, ms. Long enough for what is logged at each attempt to stay little.
pub const REST_MS: u64 = 10_000;

/// How a backup stands, for `ovsdb-server/sync-status` and whoever watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicationStatus {
    /// It has yet to receive the contents.
    Connecting,
    /// It had everything at a time, and is not connected, or receives the contents again.
    Lost,
    /// It has everything and receives updates.
    Replicating,
    /// The source cannot be replicated.
    Failed,
}

impl ReplicationStatus {
    /// Every one.
    pub const ALL: [ReplicationStatus; 4] = [
        ReplicationStatus::Connecting,
        ReplicationStatus::Lost,
        ReplicationStatus::Replicating,
        ReplicationStatus::Failed,
    ];

    /// One word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ReplicationStatus::Connecting => "connecting",
            ReplicationStatus::Lost => "lost",
            ReplicationStatus::Replicating => "replicating",
            ReplicationStatus::Failed => "failed",
        }
    }
}
