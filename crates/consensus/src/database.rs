//! The messages between a member and its database, and the rules that make each transaction exactly once.
//!
//! *The leader's database* executes transactions on speculative state and proposes each commit as an entry. Entries of one leadership are
//! committed in the order of their proposal. It begins when [`MemberEvent::Leads`] arrives: by then every entry of earlier terms that can be
//! committed is applied. When it loses leadership, it undoes its speculative commits. Their entries may still be committed by the next
//! leader: such a transaction is *in doubt* until an entry of a later term is committed ([`MemberEvent::Committed`], `term`). If its own
//! entry came before, it is done and its reply, which is kept, is true: the entry was applied to the same state. Otherwise it never
//! happened, and is executed again.
//!
//! *A follower's database* applies committed entries. It forwards transactions that change something, each with an id that becomes the id of
//! its entry. A forwarded transaction is in doubt under the same rule. A member executes a forwarded transaction only in the term that it
//! was forwarded in, and once, so a delayed message cannot execute it again.
//!
//! *An installed snapshot* ([`MemberEvent::Replaced`]) does not tell which entries it contains. The database has its member ask the others
//! ([`MemberRequest::Find`]), who have seen those entries one by one.

use bytes::Bytes;
use corvid_engine::Snapshot;
use corvid_log::cluster::{Eid, Index, Sid, Term};
use corvid_log::storage::StoreError;

/// From a database to its member.
#[derive(Debug)]
pub enum MemberRequest {
    /// Append these entries, in this order. Dropped when the member does not lead in this term any more.
    Propose {
        /// The term of [`MemberEvent::Leads`].
        term: Term,
        /// At least one.
        proposals: Vec<Proposal>,
    },
    /// Have the leader of this term execute a transaction. The member sends it again when a message may have been lost; it gives it up when
    /// the term ends. The database finds out from committed entries.
    Forward {
        /// The term of [`MemberEvent::Follows`].
        term: Term,
        /// The transaction.
        forward: Box<Forward>,
    },
    /// The outcome of a transaction that another member forwarded ([`MemberEvent::Execute`]).
    Outcome {
        /// As in [`MemberEvent::Execute`].
        origin: ForwardOrigin,
        /// [`Forward::id`].
        id: Eid,
        /// The outcome.
        outcome: ForwardOutcome,
    },
    /// All committed entries through this one are applied.
    Applied(Index),
    /// An installed snapshot may contain transactions in doubt: find out which of these ids are those of entries behind `after` and through
    /// `through`. Answered by [`MemberEvent::Found`]. A later search takes the place of this one.
    Find {
        /// The last entry that was applied before the snapshot.
        after: Index,
        /// The last entry that the snapshot includes.
        through: Index,
        /// The ids; none ends the search.
        ids: Vec<Eid>,
    },
    /// Compact the file: this is its snapshot. Answered by [`MemberEvent::Compacted`].
    Snapshot {
        /// To be repeated in the answer; `None`: because the file has grown.
        token: Option<u64>,
        /// The last entry that it contains.
        index: Index,
        /// The id of the last entry with data that it contains.
        eid: Eid,
        /// Schema and rows.
        snapshot: Snapshot,
    },
}

/// A commit to be appended to the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// Its id: the transaction id that clients see, and for a forwarded transaction [`Forward::id`].
    pub eid: Eid,
    /// `[null,T]`, `[S,T]` or `[S,null]` as JSON (docs/spec/distribution.md 1.3).
    pub data: Bytes,
    /// The `result` of a transaction that its client may send again. It goes with the entry to the other members, and into no file.
    pub result: Option<Bytes>,
}

/// A transaction that another member is to execute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forward {
    /// Random, chosen by the member that forwards. The entry gets this id, and new rows get UUIDs derived from it, so that the result can be
    /// computed again where the reply is lost.
    pub id: Eid,
    /// The method of the request.
    pub method: ForwardMethod,
    /// The `params` array of the request, as it came from the client.
    pub params: Bytes,
    /// The client's identity.
    pub client: ClientIdentity,
    /// How long the transaction has waited, ms: `wait` operations count from its arrival.
    pub elapsed_ms: u64,
    /// Its client may send it again. Then the entry gets this id instead of [`Forward::id`], and the outcome tells when it is committed:
    /// it is never [`ForwardOutcome::Proposed`].
    pub once: Option<ForwardOnce>,
}

/// The identity of a transaction that its client may send again, over any member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForwardOnce {
    /// Drawn by the client.
    pub id: Eid,
    /// A commit that was there when the client sent the transaction first. `None`, of a relay: it has not been sent before.
    pub after: Option<Eid>,
}

/// The requests that change a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForwardMethod {
    /// `transact`.
    #[default]
    Transact,
    /// `convert`. Its outcome is [`ForwardOutcome::Proposed`] or [`ForwardOutcome::Refused`].
    Convert,
}

/// The client of a transaction, as access control and `assert` see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientIdentity {
    /// Role of its remote; empty: none.
    pub role: String,
    /// Common name of its certificate.
    pub client_id: Option<String>,
    /// Its remote is read-only.
    pub is_read_only: bool,
    /// The locks that it held when the transaction was forwarded.
    pub locks: Vec<String>,
    /// Of a client of relays: further roles under which its transactions are judged, each with the
    /// common name that goes with it. All of them must allow a transaction.
    pub further: Vec<(String, Option<String>)>,
    /// Of a relay's request alone: how it is sent. Not for other members.
    pub for_source: Option<Box<ForSource>>,
}

/// The forms in which a relay sends a client's transaction to its source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForSource {
    /// The client as a JSON object, for a source that judges transactions under their clients'
    /// roles.
    pub client: Bytes,
    /// The transaction with its own guards, for any other source. `None`: it needs none.
    pub guarded: Option<Guarded>,
}

/// A transaction with `wait` operations, by which it fails where its client's role does not allow
/// it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guarded {
    /// The `params` array.
    pub params: Bytes,
    /// The guards, in the order of the operations.
    pub guards: Vec<Guard>,
}

/// A guard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// Its place among the operations with guards, from zero. It guards the operation that comes
    /// after it and after any further guards.
    pub at: usize,
    /// The error object of the operation, should the guard fail.
    pub error: Bytes,
}

/// The member that forwarded a transaction, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ForwardOrigin {
    /// The member.
    pub sid: Sid,
    /// The term.
    pub term: Term,
}

/// The outcome of a forwarded transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForwardOutcome {
    /// Executed and proposed as an entry with its id. The `result` holds if that entry is committed.
    Proposed(Bytes),
    /// Executed without a change, on the state after this entry: the `result`.
    Unchanged(Index, Bytes),
    /// Refused, on the state after this entry: the `error` object.
    Refused(Index, Bytes),
    /// A `wait` is not satisfied by the state after this entry. The member that has the session tries again when it has applied the entry.
    /// Of a relay: it was withdrawn before it was sent.
    Blocked(Index),
}

impl ForwardOutcome {
    /// The text that the client gets, if the outcome has one.
    pub(crate) fn result(&self) -> Option<&Bytes> {
        match self {
            ForwardOutcome::Proposed(result)
            | ForwardOutcome::Unchanged(_, result)
            | ForwardOutcome::Refused(_, result) => Some(result),
            ForwardOutcome::Blocked(_) => None,
        }
    }
}

/// From a member to its database.
#[derive(Debug)]
pub enum MemberEvent {
    /// The member leads, and everything before its leadership is applied. Execute and propose.
    Leads {
        /// The term of this leadership.
        term: Term,
    },
    /// The election timer, which limits what a leader proposes. Comes before [`MemberEvent::Leads`], and with each change while it leads.
    ElectionTimer {
        /// In milliseconds.
        timer_ms: u64,
    },
    /// The member does not lead, or not any more: undo what is speculative. Repeated when the term or the leader changes.
    Follows {
        /// Its term.
        term: Term,
        /// The leader of that term, if it is known and can be reached; transactions may be forwarded then.
        leader: Option<Sid>,
    },
    /// These entries are committed; answered by [`MemberRequest::Applied`].
    Committed {
        /// The last committed entry; entries without data are among those before.
        through: Index,
        /// The term of that entry: proposals and forwards of earlier terms that have not been committed by now never will be.
        term: Term,
        /// Entries with data, in order.
        entries: Vec<Committed>,
    },
    /// The member's file has been replaced by a snapshot that the leader sent: load the database from the file, whose state is that after
    /// this entry. Everything before is obsolete. Answered by [`MemberRequest::Applied`].
    Replaced {
        /// The last entry that the snapshot includes.
        index: Index,
        /// Its term, with the meaning that it has in [`MemberEvent::Committed`].
        term: Term,
        /// The last entry with data that the snapshot includes.
        eid: Eid,
    },
    /// Execute transactions that another member forwarded, and answer each with [`MemberRequest::Outcome`]. Never sent twice for one id.
    Execute {
        /// To be repeated in the outcome.
        origin: ForwardOrigin,
        /// In the order of their session.
        forwards: Vec<Forward>,
    },
    /// The answer to [`MemberRequest::Snapshot`], when a crash cannot bring the old file back.
    Compacted {
        /// As in the request.
        token: Option<u64>,
        /// Why the file could not be compacted.
        result: Result<(), StoreError>,
    },
    /// Something has been found out about the ids of a search. Outcomes that other members still know come before, as
    /// [`MemberEvent::Outcome`].
    Found {
        /// As in [`MemberRequest::Find`].
        through: Index,
        /// Ids, and what was found.
        findings: Vec<(Eid, Finding)>,
    },
    /// The outcome of a forwarded transaction. Not certain to come.
    Outcome {
        /// [`Forward::id`].
        id: Eid,
        /// The outcome.
        outcome: ForwardOutcome,
    },
}

/// The knowledge of the other members about an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// It is that of a committed entry.
    Committed,
    /// No entry of the range has it.
    Absent,
    /// The search is over: no member knows more.
    Unknown,
}

/// A committed entry with data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Committed {
    /// The oldest proposal of the present leadership that is not committed yet: its speculative commit is true now.
    Own {
        /// Its position in the log.
        index: Index,
        /// Its id.
        eid: Eid,
    },
    /// Any other entry: apply its data.
    Data {
        /// Its position in the log.
        index: Index,
        /// Its id.
        eid: Eid,
        /// `[null,T]`, `[S,T]` or `[S,null]` as JSON.
        data: Bytes,
        /// [`Proposal::result`], unless a member on the way has read the entry from its file.
        result: Option<Bytes>,
    },
}
