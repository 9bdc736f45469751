//! The messages between members. Their text on the wire is `wire`'s matter; here they are typed.
//!
//! The first group carries the `raft` crate's messages, without the kinds that no peer may send (proposals, transfers, read requests). The
//! second group is ours: snapshots travel beside the log, transactions are forwarded whole, and servers ask to join or leave.

use bytes::Bytes;
use corvid_log::cluster::{Eid, Index, Sid, Term};

pub use corvid_log::cluster::SnapshotMeta;

use crate::database::{Forward, ForwardOutcome};
use crate::entry::EntryBody;

/// A message of one member to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerMessage {
    /// Entries behind `prev_index`; without any it only tells the commit index.
    Append {
        /// The leader's term.
        term: Term,
        /// The entry before the first one.
        prev_index: Index,
        /// Its term.
        prev_term: Term,
        /// The leader's commit index.
        commit: Index,
        /// Terms and texts; the index of each follows from its position.
        entries: Vec<(Term, EntryBody)>,
    },
    /// The answer to an append or a snapshot.
    AppendReply {
        /// The follower's term.
        term: Term,
        /// The last entry that the follower has stored, or the one that was rejected.
        index: Index,
        /// The follower's commit index.
        commit: Index,
        /// Present when the append was rejected.
        rejection: Option<Rejection>,
    },
    /// The leader is alive.
    Heartbeat {
        /// The leader's term.
        term: Term,
        /// The commit index, as far as this follower's log is known to reach.
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
        /// The term that it wants to lead in; nothing changes at the receiver if it is a pre-vote.
        term: Term,
        /// Its last entry.
        last_index: Index,
        /// The term of that entry.
        last_term: Term,
        /// Its commit index.
        commit: Index,
        /// The term of that entry.
        commit_term: Term,
        /// Nobody votes yet: would the receiver?
        is_prevote: bool,
        /// The leader has asked for this election, so receivers do not wait for its silence.
        is_transfer: bool,
    },
    /// The answer to a candidate.
    VoteReply {
        /// The term of the request if granted, otherwise the receiver's.
        term: Term,
        /// The answer is to a pre-vote.
        is_prevote: bool,
        /// Whether the receiver votes for the candidate.
        is_granted: bool,
        /// The receiver's commit index.
        commit: Index,
        /// The term of that entry.
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
        /// The snapshot that it is part of.
        index: Index,
        /// The offset of the first byte.
        offset: u64,
        /// The bytes; never more than [`CHUNK_BYTES_MAX`].
        bytes: Bytes,
    },
    /// How much of a snapshot's body the receiver has. The leader sends the next chunks from here.
    SnapshotProgress {
        /// The receiver's term.
        term: Term,
        /// The snapshot.
        index: Index,
        /// Bytes stored.
        offset: u64,
    },
    /// A member whose file is damaged asks the leader for a snapshot that reaches its last entry.
    SnapshotRequest {
        /// The member's term.
        term: Term,
        /// The last entry that it may have acknowledged.
        last_index: Index,
        /// The term of that entry.
        last_term: Term,
        /// Its address, as its damaged file says.
        address: String,
        /// The name of its database, likewise.
        name: String,
    },
    /// Transactions to be executed by the leader, numbered in order for each follower and term.
    Forward {
        /// The term; the receiver ignores the message when it does not lead in it.
        term: Term,
        /// The number of the first transaction. Numbers are consecutive within a term and a process of the follower; the first begins behind
        /// a multiple of 2^32 that is the process's own.
        first: u64,
        /// All outcomes through this number have arrived, so the leader may forget them.
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
    /// The answer to it.
    AddServerReply {
        /// Whether it is a member now.
        is_success: bool,
        /// Why, in the words of docs/spec/distribution.md 1.9.
        comment: String,
        /// Addresses of members to ask as well.
        remote_addresses: Vec<String>,
    },
    /// A member is to leave.
    RemoveServer {
        /// Which one.
        server_id: Sid,
    },
    /// The answer to it.
    RemoveServerReply {
        /// Whether it has left.
        is_success: bool,
        /// The member that was to leave; `None`: the receiver.
        target: Option<Sid>,
        /// Why, in the words of docs/spec/distribution.md 1.10.
        comment: String,
    },
    /// A member has installed a snapshot that includes the entries behind `after` and through `through`: which of these ids are theirs?
    FindEntries {
        /// The last entry that the member had applied before.
        after: Index,
        /// The last entry of the snapshot.
        through: Index,
        /// At least one.
        ids: Vec<Eid>,
    },
    /// The answer of a member that knows everything through `through` to be committed.
    FoundEntries {
        /// As in the question.
        after: Index,
        /// As in the question.
        through: Index,
        /// The sender has seen each of those entries, so ids that it has not found are none of theirs.
        is_complete: bool,
        /// The ids of entries.
        found: Vec<Eid>,
        /// Outcomes of transactions that the sender executed for the receiver.
        outcomes: Vec<(Eid, ForwardOutcome)>,
    },
    /// The receiver is no member of the sender's cluster any more, by a committed list.
    NotMember {
        /// The sender's term.
        term: Term,
    },
}

/// Bytes of a snapshot's body in one message, at most.
pub const CHUNK_BYTES_MAX: usize = 256 * 1024;

/// Entries, transactions or outcomes of one message, at most.
pub const LIST_MAX: usize = 1 << 20;

/// Why an append was rejected: the follower has no such entry, or it cannot say whether it has.
///
/// A hint after the rejected entry says the latter: the append ended before the follower's commit
/// index. The hint names the last entry that the follower has committed, and the leader sends its
/// next append from there, so that the follower can compare. It acknowledges nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The last entry that may match, or the last committed one.
    pub hint: Index,
    /// The term of that entry.
    pub hint_term: Term,
}

impl PeerMessage {
    /// The sender's term; messages about joining and leaving, and about committed entries, have none.
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
