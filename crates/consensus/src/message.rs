//! The messages between members. `wire` defines their text; here they are typed.
//!
//! The first group carries the `raft` crate's messages, except the kinds that no peer may send
//! (proposals, transfers, read requests). The second group is Corvid's own: snapshots travel next
//! to the log, transactions are forwarded whole, and servers ask to join or leave.

use bytes::Bytes;
use corvid_log::cluster::{Eid, Index, Sid, Term};

pub use corvid_log::cluster::SnapshotMeta;

use crate::database::{Forward, ForwardOutcome};
use crate::entry::EntryBody;

/// A message from one member to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerMessage {
    /// Entries after `prev_index`. Without entries it only announces the commit index.
    Append {
        /// The leader's term.
        term: Term,
        /// The entry before the first one sent.
        prev_index: Index,
        /// The term of that entry.
        prev_term: Term,
        /// The leader's commit index.
        commit: Index,
        /// Terms and texts; the index of each entry follows from its position.
        entries: Vec<(Term, EntryBody)>,
    },
    /// The answer to an append or a snapshot.
    AppendReply {
        /// The follower's term.
        term: Term,
        /// The last entry that the follower has stored or, in a rejection, `prev_index` of the
        /// rejected append.
        index: Index,
        /// The follower's commit index.
        commit: Index,
        /// Set if the append was rejected.
        rejection: Option<Rejection>,
    },
    /// A sign of life from the leader.
    Heartbeat {
        /// The leader's term.
        term: Term,
        /// The commit index, but no higher than this follower's log is known to reach.
        commit: Index,
    },
    /// The answer to a heartbeat.
    HeartbeatReply {
        /// The follower's term.
        term: Term,
        /// The follower's commit index.
        commit: Index,
    },
    /// A candidate asks for a vote.
    Vote {
        /// The term in which it wants to lead. A pre-vote does not change the receiver's term.
        term: Term,
        /// The candidate's last entry.
        last_index: Index,
        /// The term of that entry.
        last_term: Term,
        /// The candidate's commit index.
        commit: Index,
        /// The term of the entry at the commit index.
        commit_term: Term,
        /// Whether this is a pre-vote, which asks if the receiver would vote and commits it to
        /// nothing.
        is_prevote: bool,
        /// Whether the leader asked for this election; if so, receivers need not wait for the
        /// leader to fall silent.
        is_transfer: bool,
    },
    /// The answer to a candidate.
    VoteReply {
        /// The term of the request if granted, otherwise the receiver's term.
        term: Term,
        /// Whether this answers a pre-vote.
        is_prevote: bool,
        /// Whether the receiver votes for the candidate.
        is_granted: bool,
        /// The receiver's commit index.
        commit: Index,
        /// The term of the entry at the commit index.
        commit_term: Term,
    },
    /// The leader asks the receiver to stand for election at once.
    TimeoutNow {
        /// The leader's term.
        term: Term,
    },
    /// A snapshot follows in chunks. Its body is the JSON text `[schema,rows]`.
    SnapshotOffer {
        /// The leader's term.
        term: Term,
        /// The snapshot.
        snapshot: SnapshotMeta,
    },
    /// A part of a snapshot's body.
    SnapshotChunk {
        /// The leader's term.
        term: Term,
        /// Index of the snapshot to which the chunk belongs.
        index: Index,
        /// Offset of the first byte in the body.
        offset: u64,
        /// The bytes, at most [`CHUNK_BYTES_MAX`].
        bytes: Bytes,
    },
    /// How much of a snapshot's body the receiver has. The leader continues from there.
    SnapshotProgress {
        /// The receiver's term.
        term: Term,
        /// Index of the snapshot.
        index: Index,
        /// Number of bytes stored.
        offset: u64,
    },
    /// A member whose file is damaged asks the leader for a snapshot that reaches its last entry.
    SnapshotRequest {
        /// The member's term.
        term: Term,
        /// The last entry that the member may have acknowledged.
        last_index: Index,
        /// The term of that entry.
        last_term: Term,
        /// The member's address, according to its damaged file.
        address: String,
        /// The name of its database, from the same file.
        name: String,
    },
    /// Transactions for the leader to execute, numbered consecutively for each follower and term.
    Forward {
        /// The term. The receiver ignores the message unless it leads in this term.
        term: Term,
        /// The number of the first transaction. Within one term and one process of the follower,
        /// numbers are consecutive. The first follows a multiple of 2^32 that is unique to the
        /// process.
        first: u64,
        /// All outcomes up to this number have arrived, so the leader may forget them.
        answered: u64,
        /// The transactions.
        forwards: Vec<Forward>,
    },
    /// Outcomes of forwarded transactions.
    Outcomes {
        /// The term.
        term: Term,
        /// Number, id and outcome of each.
        outcomes: Vec<(u64, Eid, ForwardOutcome)>,
    },
    /// A server asks to become a member.
    AddServer {
        /// Its address.
        address: String,
        /// The name of its database.
        name: String,
    },
    /// The answer to [`PeerMessage::AddServer`].
    AddServerReply {
        /// Whether the server is a member now.
        is_success: bool,
        /// The reason, in the words of docs/spec/distribution.md 1.9.
        comment: String,
        /// Addresses of other members to ask.
        remote_addresses: Vec<String>,
    },
    /// A request to remove a member.
    RemoveServer {
        /// The id of the member.
        server_id: Sid,
    },
    /// The answer to [`PeerMessage::RemoveServer`].
    RemoveServerReply {
        /// Whether the member has left.
        is_success: bool,
        /// The member that was to leave; `None` means the receiver.
        target: Option<Sid>,
        /// The reason, in the words of docs/spec/distribution.md 1.10.
        comment: String,
    },
    /// A member has installed a snapshot that includes the entries after `after` and up to
    /// `through`. It asks which of these ids belong to them.
    FindEntries {
        /// The last entry that the member had applied before.
        after: Index,
        /// The last entry of the snapshot.
        through: Index,
        /// The ids; at least one.
        ids: Vec<Eid>,
    },
    /// The answer to [`PeerMessage::FindEntries`], from a member that knows everything up to
    /// `through` to be committed.
    FoundEntries {
        /// As in the question.
        after: Index,
        /// As in the question.
        through: Index,
        /// Whether the sender has seen all of those entries: ids that it did not find then belong
        /// to none of them.
        is_complete: bool,
        /// The ids that belong to entries of the range.
        found: Vec<Eid>,
        /// Outcomes of transactions that the sender executed for the receiver.
        outcomes: Vec<(Eid, ForwardOutcome)>,
    },
    /// By a committed list, the receiver is no longer a member of the sender's cluster.
    NotMember {
        /// The sender's term.
        term: Term,
    },
}

/// Maximum bytes of a snapshot's body in one message.
pub const CHUNK_BYTES_MAX: usize = 256 * 1024;

/// Maximum number of entries, transactions or outcomes in one message.
pub const LIST_MAX: usize = 1 << 20;

/// Why an append was rejected: the follower lacks the entry before it, or cannot tell whether it
/// matches.
///
/// A hint after the rejected entry means that it cannot tell: the append ended before the
/// follower's commit index, up to which the follower no longer compares. The hint is the follower's
/// last committed entry. The leader sends its next append from there, so that the follower can
/// compare. The rejection acknowledges nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The last entry that may match, or the follower's last committed entry.
    pub hint: Index,
    /// The term of that entry.
    pub hint_term: Term,
}

impl PeerMessage {
    /// The sender's term. Messages about joining, leaving and searching for entries have none.
    #[must_use]
    pub fn term(&self) -> Option<Term> {
        match self {
            PeerMessage::Append { term, .. }
            | PeerMessage::AppendReply { term, .. }
            | PeerMessage::Heartbeat { term, .. }
            | PeerMessage::HeartbeatReply { term, .. }
            | PeerMessage::Vote { term, .. }
            | PeerMessage::VoteReply { term, .. }
            | PeerMessage::TimeoutNow { term }
            | PeerMessage::SnapshotOffer { term, .. }
            | PeerMessage::SnapshotChunk { term, .. }
            | PeerMessage::SnapshotProgress { term, .. }
            | PeerMessage::SnapshotRequest { term, .. }
            | PeerMessage::Forward { term, .. }
            | PeerMessage::Outcomes { term, .. }
            | PeerMessage::NotMember { term } => Some(*term),
            PeerMessage::AddServer { .. }
            | PeerMessage::AddServerReply { .. }
            | PeerMessage::RemoveServer { .. }
            | PeerMessage::RemoveServerReply { .. }
            | PeerMessage::FindEntries { .. }
            | PeerMessage::FoundEntries { .. } => None,
        }
    }
}
