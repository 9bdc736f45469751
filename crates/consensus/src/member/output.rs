//! The outputs of a member.

use bytes::Bytes;
use corvid_engine::Snapshot;
use corvid_log::cluster::{Cid, Eid, Index, Servers, Sid, Term};
use corvid_log::storage::{RewriteNumber, StorageRequest};
use corvid_rpc::Level;

use super::CommandToken;
use crate::database::MemberEvent;
use crate::message::{PeerMessage, SnapshotMeta};
use crate::peers::DialTarget;

/// An output of a member.
#[derive(Debug)]
pub enum Output {
    /// Requests to the member's file, in order. [`StorageRequest::Append`] may hold several
    /// records. Never [`StorageRequest::Rewrite`]: [`Output::Rewrite`] takes its place.
    Store(Vec<StorageRequest>),
    /// Send a message. It may be lost, but must not overtake an earlier one to the same peer.
    Send {
        /// The peer.
        to: Sid,
        /// The message.
        message: PeerMessage,
    },
    /// An event for the database.
    Database(MemberEvent),
    /// The complete list of peers to stay connected to from now on. Disconnect all others.
    Dial(Vec<DialTarget>),
    /// A message from this peer was malformed or forged: log the reason and reset its connections.
    Refuse {
        /// The peer.
        from: Sid,
        /// The reason, for the log.
        reason: String,
    },
    /// The election timer has changed, ms; the probes of connections depend on it.
    ElectionTimer(u64),
    /// The database's row in `_Server` has changed.
    Row(ServerRow),
    /// A command is done, with its reply or its error.
    CommandDone(CommandToken, Result<String, String>),
    /// A line for the log. Lines of a repeated kind are subject to a rate limit.
    Log(Level, Option<Repeated>, String),
    /// Read a part of the body of the snapshot in the member's file. Answered by
    /// `Input::SnapshotRead`.
    ReadSnapshot {
        /// The peer that needs it; repeated in the answer.
        to: Sid,
        /// The snapshot.
        index: Index,
        /// Offset of the first byte, from the beginning of the JSON text `[schema,rows]`.
        offset: u64,
        /// Maximum number of bytes.
        bytes_max: usize,
    },
    /// Begin a new file next to the present one, for a peer's snapshot. Abandon any that was begun
    /// before.
    BeginSnapshot(SnapshotMeta),
    /// Append to the snapshot's body. Answered by `Input::SnapshotWritten`.
    WriteSnapshot {
        /// The snapshot.
        index: Index,
        /// Where the bytes belong: the end of the bytes before.
        offset: u64,
        /// The bytes.
        bytes: Bytes,
    },
    /// The snapshot is no longer wanted.
    AbandonSnapshot,
    /// The body is complete: replace the member's file by a header with this snapshot and these
    /// records, and make that durable. Requests to the old file that are still in flight need no
    /// answer. Answered by `Input::SnapshotInstalled`, after which [`MemberEvent::Replaced`] tells
    /// the database.
    InstallSnapshot {
        /// The snapshot.
        snapshot: SnapshotMeta,
        /// The cluster, if known.
        cid: Option<Cid>,
        /// Framed records that follow the header.
        records: Vec<u8>,
    },
    /// Have the database make a snapshot, and answer with `Input::SnapshotMade`: the file must be
    /// rewritten, because nothing can be appended to it. When a file has grown, the caller makes a
    /// snapshot on its own.
    MakeSnapshot,
    /// Write a new file next to the present one, without copying it: [`StorageRequest::Rewrite`]
    /// with contents that the caller builds from this value and the database's snapshot.
    /// `Input::Storage` reports its stages.
    Rewrite(Box<Rewrite>),
    /// The snapshot of `Input::SnapshotMade` is not wanted, or its rewrite was abandoned, for this
    /// reason; no reply follows. If the snapshot was the database's own, `MemberEvent::Compacted`
    /// tells the database instead.
    RejectSnapshot(&'static str),
    /// The member has left its cluster for good. No outputs follow.
    Left,
    /// The member cannot continue; the text says why, and how to repair it. No outputs follow.
    Failed(String),
}

/// Kinds of log lines that one cause may repeat any number of times. The caller limits the rate of
/// each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Repeated {
    /// An election timeout has passed.
    Timeout,
    /// An election begins without a timeout, or moves from pre-vote to vote.
    Election,
    /// This member was elected.
    Elected,
    /// A vote request was ignored.
    IgnoredVote,
    /// A message of an older term.
    LowerTerm,
    /// A pre-vote reply that arrived after the pre-vote was won.
    LatePreVote,
    /// A second leader in a term.
    SecondLeader,
    /// A message from a server that is not a member, or from a process that claims to be one.
    Stranger,
    /// A member whose committed log contradicts this one's.
    OtherHistory,
    /// An acknowledgement of entries that were not sent.
    Unsent,
    /// A request for admission that is answered at once.
    Joiner,
    /// A message that came at a wrong time; for developers only.
    Untimely,
}

/// A new file for a member, without the database's contents.
#[derive(Clone, Debug)]
pub struct Rewrite {
    /// The contents that came with [`MemberRequest::Snapshot`](crate::MemberRequest::Snapshot).
    /// `None` after `Input::SnapshotMade`, whose caller has them.
    pub snapshot: Option<Snapshot>,
    /// The number for [`StorageRequest::Rewrite`].
    pub number: RewriteNumber,
    /// The cluster, if known.
    pub cid: Option<Cid>,
    /// `prev_index`.
    pub index: Index,
    /// `prev_term`.
    pub term: Term,
    /// `prev_eid`.
    pub eid: Eid,
    /// `prev_servers`.
    pub servers: Servers,
    /// `prev_election_timer`, ms.
    pub election_timer_ms: u64,
    /// Framed records that follow the header.
    pub records: Vec<u8>,
}

/// The columns of the database's row in `_Server` that the member decides
/// (docs/spec/distribution.md 1.8). The database itself reports `index`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerRow {
    /// Whether the member takes part in its cluster, knows of a leader, and its database has caught
    /// up (`commits/catching_up.rs`).
    pub is_connected: bool,
    /// Whether the member leads and its database executes transactions.
    pub is_leader: bool,
    /// The cluster, if known.
    pub cid: Option<Cid>,
    /// The member's id.
    pub sid: Sid,
    /// Why the database has no contents; `None` if it has. Not a column: replies that refuse
    /// requests say it.
    pub absence: Option<Absence>,
}

/// Why a database has no contents. A member with contents may fail too; its clients then read what
/// it had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// The server has not finished joining its cluster.
    Joining,
    /// The member's file is damaged, and its leader has not replaced it yet.
    Damaged,
    /// The member no longer takes part in its cluster.
    Failed,
}
