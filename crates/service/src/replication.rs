//! Active-backup replication (docs/spec/distribution.md 3) without sockets and tables: a backup's
//! requests to its source, in order, and the use of the replies.
//!
//! ```text
//! Disconnected -open-> ServerId -> Databases -> Schema -> Contents -> Applying -> Replicating
//!       ^                  |           |          |          |           |            |
//!       |                  +-----------+----------+----------+-----------+            | misfit
//!       |                              v                                              v
//!       +---------- rest ---------- Failed                                        Reconnect
//! ```
//!
//! Invariant: a backup stays a backup. After every failure it keeps its rows, stays read-only and
//! tries again: at once after losing the connection or after an update that does not fit, and after
//! a rest if the source cannot be replicated. Only the operator makes it active.
//!
//! [`Replication`] is the machine of one database. The database ([`crate::DatabaseService`]) feeds
//! it, applies its updates and carries out its orders. The connection belongs to the server crate,
//! which does not read messages. The source's contents are requested by `monitor_cond`, whose
//! updates are differences, so the cost is proportional to the change. With excluded tables, plain
//! `monitor` is used instead, whose updates are values: the copy may then differ from the source,
//! and differences would not fit. (Rows that only excluded tables refer to are missing; references
//! may point to rows that are not here.)

pub mod difference;
mod exclusions;
mod log_message;
mod machine;
mod read;
mod schema_match;

pub use exclusions::Exclusions;
pub use log_message::LogMessage;
pub use machine::{Replication, Step};
pub use read::read_update;
pub use schema_match::{Mismatch, mismatches};

use corvid_data::Uuid;
use corvid_json::Pieces;
pub use corvid_session::update::Encoding;

/// Numbers the periods of being a backup; messages of earlier periods are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(pub u64);

/// The role of a database.
#[derive(Clone, Debug)]
pub enum Role {
    /// Active: clients may write.
    Active,
    /// A backup: it follows a source, and clients may only read.
    Backup(Box<Following>),
}

/// The settings of a backup.
#[derive(Clone, Debug)]
pub struct Following {
    /// The number of this period.
    pub id: SourceId,
    /// Tables that are not replicated.
    pub excluded: Exclusions,
    /// This server's own id: a source with the same id is this server itself.
    pub server_id: Uuid,
}

/// An event of the connection to the source.
#[derive(Debug)]
pub enum SourceEvent {
    /// The connection is open; each connection has a higher number than those before.
    Connected(u64),
    /// A whole message has arrived. Probes are not reported: the connection answers them.
    Message(Pieces),
    /// The connection has ended.
    Disconnected,
}

/// An order to the connection to the source. It carries the number of its connection, so an order
/// for one connection does not affect the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceOrder {
    /// Write this message.
    Send(Vec<u8>),
    /// The database has consumed messages of this many bytes.
    Consumed(usize),
    /// Close, and connect again.
    Reconnect,
    /// Close, and connect again after [`REST_MS`].
    Rest,
}

/// The rest before the next attempt to replicate a source that cannot be replicated, ms; long
/// enough to keep the log short.
pub const REST_MS: u64 = 10_000;

/// The state of replication, for `ovsdb-server/sync-status` and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicationStatus {
    /// The backup has not received the contents yet.
    Connecting,
    /// The backup had all contents, and is disconnected or receiving contents again.
    Lost,
    /// The backup has all contents and receives updates.
    Replicating,
    /// The source cannot be replicated.
    Failed,
}

impl ReplicationStatus {
    /// All states.
    pub const ALL: [ReplicationStatus; 4] = [
        ReplicationStatus::Connecting,
        ReplicationStatus::Lost,
        ReplicationStatus::Replicating,
        ReplicationStatus::Failed,
    ];

    /// The name of the state.
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
