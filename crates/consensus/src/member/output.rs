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
    /// Requests to the member's file, in order. [`StorageRequest::Append`] may hold several records. Never [`StorageRequest::Rewrite`], for
    /// which there is [`Output::Rewrite`].
    Store(Vec<StorageRequest>),
    /// Send a message. It may be lost; it must not overtake an earlier one to the same peer.
    Send {
        /// The peer.
        to: Sid,
        /// The message.
        message: PeerMessage,
    },
    /// To the database.
    Database(MemberEvent),
    /// The peers to be connected to, from now on. Others are disconnected.
    Dial(Vec<DialTarget>),
    /// A message of this peer was malformed or forged: log the reason and reset its connections.
    Refuse {
        /// The peer.
        from: Sid,
        /// Why.
        reason: String,
    },
    /// The election timer has changed, ms: probes of connections depend on it.
    ElectionTimer(u64),
    /// The row of the database in `_Server` has changed.
    Row(ServerRow),
    /// A command is done: its reply or its error.
    CommandDone(CommandToken, Result<String, String>),
    /// A message for the log. Of a repeated kind, only some are to be logged.
    Log(Level, Option<Repeated>, String),
    /// Read a part of the body of the snapshot in the member's file. Answered by `Input::SnapshotRead`.
    ReadSnapshot {
        /// The peer that it is for; to be repeated.
        to: Sid,
        /// The snapshot.
        index: Index,
        /// The first byte, from the beginning of the JSON text `[schema,rows]`.
        offset: u64,
        /// How many, at most.
        bytes_max: usize,
    },
    /// Begin a new file beside the present one, for a snapshot of a peer. One that was begun before is given up.
    BeginSnapshot(SnapshotMeta),
    /// Append to the body of the snapshot. Answered by `Input::SnapshotWritten`.
    WriteSnapshot {
        /// The snapshot.
        index: Index,
        /// Where the bytes belong: where those before ended.
        offset: u64,
        /// The bytes.
        bytes: Bytes,
    },
    /// The snapshot is not wanted any more.
    AbandonSnapshot,
    /// The body is complete: replace the member's file by a header with this snapshot and these records, and make that last. Requests to
    /// the old file that are not answered yet need no answer. Answered by `Input::SnapshotInstalled`; the database is told by
    /// [`MemberEvent::Replaced`] then.
    InstallSnapshot {
        /// The snapshot.
        snapshot: SnapshotMeta,
        /// The cluster.
        cid: Option<Cid>,
        /// Records after the header, framed.
        records: Vec<u8>,
    },
    /// Have the database make a snapshot, and answer with `Input::SnapshotMade`: the file must be written again, because nothing can be
    /// appended to it. When a file has grown, the caller makes a snapshot of its own accord.
    MakeSnapshot,
    /// Write a new file beside the present one, which is not copied: [`StorageRequest::Rewrite`] with contents that the caller composes of
    /// this and the database's snapshot. Its stages are answered by `Input::Storage`.
    Rewrite(Box<Rewrite>),
    /// The snapshot of `Input::SnapshotMade` is not wanted, or its rewrite is given up, which no reply follows; the database is told by `MemberEvent::Compacted` if it was its own.
    RejectSnapshot,
    /// The member has left its cluster for good; it has no further outputs.
    Left,
    /// The member cannot go on: the text says why, and how to repair it. It has no further outputs.
    Failed(String),
}

/// Messages for the log that one cause may bring any number of times: the caller limits the rate of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Repeated {
    /// An election timeout has passed.
    Timeout,
    /// An election begins without a timeout, or its real vote.
    Election,
    /// This member was elected.
    Elected,
    /// A vote request was ignored.
    IgnoredVote,
    /// A message of a term that is over.
    LowerTerm,
    /// A pre-vote that was not needed any more.
    LatePreVote,
    /// A second leader in a term.
    SecondLeader,
    /// A message of a server that is no member, or of a process that claims to be one.
    Stranger,
    /// A member whose committed log is not this one's.
    OtherHistory,
    /// An acknowledgement of entries that were not sent.
    Unsent,
    /// A message that came at a wrong time; for developers.
    Untimely,
}

/// A new file for a member, except for the database's contents.
#[derive(Clone, Debug)]
pub struct Rewrite {
    /// The database's contents: those of [`MemberRequest::Snapshot`](crate::MemberRequest::Snapshot); `None` after `Input::SnapshotMade`,
    /// whose caller has them.
    pub snapshot: Option<Snapshot>,
    /// The number for [`StorageRequest::Rewrite`].
    pub number: RewriteNumber,
    /// The cluster.
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
    /// Records after the header, framed.
    pub records: Vec<u8>,
}

/// The columns of the database's row in `_Server` that the member decides
/// (docs/spec/distribution.md 1.8). The database itself tells `index`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerRow {
    /// The member takes part in its cluster, knows of a leader, and its database has caught up
    /// (`commits/catching_up.rs`).
    pub is_connected: bool,
    /// The member leads, and its database executes transactions.
    pub is_leader: bool,
    /// The cluster, if known.
    pub cid: Option<Cid>,
    /// The member.
    pub sid: Sid,
    /// Why the database has no contents, if it has none. Not a column: refusals of requests say it.
    pub absence: Option<Absence>,
}

/// The reason why a database has no contents. A member that has contents may fail too; then its
/// clients read what it had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// The server has not completed joining its cluster.
    Joining,
    /// Its file is damaged, and its leader has not replaced it yet.
    Damaged,
    /// It takes no part in its cluster any more.
    Failed,
}
