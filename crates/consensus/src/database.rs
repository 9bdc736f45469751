//! The messages between a member and its database, and the rules that execute each transaction
//! exactly once.
//!
//! *The leader's database* executes transactions on speculative state and proposes each commit as
//! an entry. Entries of one leadership are committed in the order of their proposal. The leadership
//! begins when [`MemberEvent::Leads`] arrives: by then every entry of earlier terms that can be
//! committed is applied. When the database loses leadership, it undoes its speculative commits. The
//! next leader may still commit their entries, so such a transaction is *in doubt* until an entry
//! of a later term is committed ([`MemberEvent::Committed`], `term`). If the transaction's own
//! entry was committed before that one, the transaction is done, and its retained reply is correct
//! because the entry was applied to the same state. Otherwise it never happened and is executed
//! again.
//!
//! *A follower's database* applies committed entries. It forwards transactions that change
//! something, each with an id that becomes the id of its entry. A forwarded transaction is in doubt
//! under the same rule. A member executes a forwarded transaction only in the term in which it was
//! forwarded, and only once, so a delayed message cannot execute it again.
//!
//! *An installed snapshot* ([`MemberEvent::Replaced`]) does not say which entries it contains. The
//! database has its member ask the others ([`MemberRequest::Find`]), which have seen those entries
//! one by one.

use bytes::Bytes;
use corvid_engine::Snapshot;
use corvid_log::cluster::{Eid, Index, Sid, Term};
use corvid_log::storage::StoreError;

/// From a database to its member.
#[derive(Debug)]
pub enum MemberRequest {
    /// Append these entries, in this order. Dropped if the member no longer leads in this term.
    Propose {
        /// The term of [`MemberEvent::Leads`].
        term: Term,
        /// At least one.
        proposals: Vec<Proposal>,
    },
    /// Have the leader of this term execute a transaction. The member resends it if a message may
    /// have been lost, and drops it when the term ends. The database learns from committed entries
    /// whether it happened.
    Forward {
        /// The term of [`MemberEvent::Follows`].
        term: Term,
        /// The transaction.
        forward: Box<Forward>,
    },
    /// The outcome of a transaction forwarded by another member ([`MemberEvent::Execute`]).
    Outcome {
        /// As in [`MemberEvent::Execute`].
        origin: ForwardOrigin,
        /// [`Forward::id`].
        id: Eid,
        /// The outcome.
        outcome: ForwardOutcome,
    },
    /// All committed entries up to this index have been applied.
    Applied(Index),
    /// An installed snapshot may contain transactions in doubt: find out which of these ids belong
    /// to entries after `after` and up to `through`. Answered by [`MemberEvent::Found`]. A later
    /// search replaces this one.
    Find {
        /// The last entry that was applied before the snapshot.
        after: Index,
        /// The last entry that the snapshot includes.
        through: Index,
        /// The ids; an empty list ends the search.
        ids: Vec<Eid>,
    },
    /// Compact the file: this is its snapshot. Answered by [`MemberEvent::Compacted`].
    Snapshot {
        /// Repeated in the answer. `None` means that the file has grown and nobody asked.
        token: Option<u64>,
        /// The last entry that the snapshot contains.
        index: Index,
        /// The id of the last entry with data that the snapshot contains.
        eid: Eid,
        /// Schema and rows.
        snapshot: Snapshot,
        /// The ids of the last entries with data, oldest first, up to `eid`, which the file names:
        /// so a restarted server knows the transactions that happened.
        commits: Vec<Eid>,
    },
}

/// A commit to be appended to the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The entry's id: the transaction id that clients see; for a forwarded transaction,
    /// [`Forward::id`].
    pub eid: Eid,
    /// `[null,T]`, `[S,T]` or `[S,null]` as JSON (docs/spec/distribution.md 1.3).
    pub data: Bytes,
    /// The `result` of a transaction that its client may send again. It travels with the entry to
    /// the other members, but is stored in no file.
    pub result: Option<Bytes>,
}

/// A transaction that another member is to execute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forward {
    /// A random id chosen by the forwarding member. The entry gets this id. New rows get UUIDs
    /// derived from it, so the result can be recomputed if the reply is lost.
    pub id: Eid,
    /// The method of the request.
    pub method: ForwardMethod,
    /// The `params` array of the request, as it came from the client.
    pub params: Bytes,
    /// The client's identity.
    pub client: ClientIdentity,
    /// How long the transaction has waited, ms. The timeouts of `wait` operations count from its
    /// arrival.
    pub elapsed_ms: u64,
    /// Set if the client may send the transaction again. Then the entry gets this id instead of
    /// [`Forward::id`], and the outcome arrives only after the commit: it is never
    /// [`ForwardOutcome::Proposed`].
    pub once: Option<ForwardOnce>,
}

/// The identity of a transaction that its client may send again, through any member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForwardOnce {
    /// A random id chosen by the client.
    pub id: Eid,
    /// A commit that existed when the client first sent the transaction. `None`, from a relay: the
    /// transaction has not been sent before.
    pub after: Option<Eid>,
    /// The client has sent the transaction before, so its end must be in the log.
    pub is_repeated: bool,
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

/// The client of a transaction, as access control and `assert` operations see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientIdentity {
    /// The role of its remote; empty if there is none.
    pub role: String,
    /// Common name of its certificate.
    pub client_id: Option<String>,
    /// Whether its remote is read-only.
    pub is_read_only: bool,
    /// The locks that it held when the transaction was forwarded.
    pub locks: Vec<String>,
    /// For a client of relays: further roles under which its transactions are checked, each with
    /// its common name. All of them must allow a transaction.
    pub further: Vec<(String, Option<String>)>,
    /// Its description in the record of the commit, if members record clients; their databases know
    /// the form.
    pub description: Option<String>,
    /// For a relay's request only: how to send it to the source. Never sent to other members.
    pub for_source: Option<Box<ForSource>>,
}

/// The forms in which a relay sends a client's transaction to its source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForSource {
    /// The client as a JSON object, for a source that checks transactions under their clients'
    /// roles.
    pub client: Bytes,
    /// The transaction with its own guards, for any other source. `None`: it needs no guards.
    pub guarded: Option<Guarded>,
}

/// A transaction with added `wait` operations, which make it fail if its client's role does not
/// allow it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guarded {
    /// The `params` array.
    pub params: Bytes,
    /// The guards, in the order of the operations.
    pub guards: Vec<Guard>,
}

/// An added `wait` operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// Its index in the guarded list of operations, from zero. It guards the next operation that is
    /// not itself a guard.
    pub at: usize,
    /// The operation's error object if the guard fails.
    pub error: Bytes,
}

/// The member that forwarded a transaction, and the term in which it did.
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
    /// Executed and proposed as an entry with its id. The `result` is valid only if that entry is
    /// committed.
    Proposed(Bytes),
    /// Executed without a change, on the state after this entry; the text is the `result`.
    Unchanged(Index, Bytes),
    /// Refused on the state after this entry; the text is the `error` object.
    Refused(Index, Bytes),
    /// The state after this entry does not satisfy a `wait`. The member with the session retries
    /// once it has applied the entry. From a relay: the transaction was withdrawn before it was
    /// sent.
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
    /// The member leads, and everything before its leadership is applied. The database executes and
    /// proposes from now on.
    Leads {
        /// The term of this leadership.
        term: Term,
    },
    /// The election timer, which limits the size of what a leader proposes. Sent before
    /// [`MemberEvent::Leads`], and on each change during a leadership.
    ElectionTimer {
        /// The timer, ms.
        timer_ms: u64,
    },
    /// The member does not lead, or no longer leads: undo everything speculative. Repeated when the
    /// term or the leader changes.
    Follows {
        /// The member's term.
        term: Term,
        /// The leader of that term, if it is known and reachable. Only then may transactions be
        /// forwarded.
        leader: Option<Sid>,
    },
    /// These entries are committed. Answered by [`MemberRequest::Applied`].
    Committed {
        /// The last committed entry; entries without data count too.
        through: Index,
        /// The term of that entry. Proposals and forwards of earlier terms that are not committed
        /// by now never will be.
        term: Term,
        /// Entries with data, in order.
        entries: Vec<Committed>,
    },
    /// A snapshot from the leader has replaced the member's file: load the database from the file,
    /// which holds the state after this entry. Everything earlier is obsolete. Answered by
    /// [`MemberRequest::Applied`].
    Replaced {
        /// The last entry that the snapshot includes.
        index: Index,
        /// Its term, with the same meaning as in [`MemberEvent::Committed`].
        term: Term,
        /// The id of the last entry with data that the snapshot includes.
        eid: Eid,
    },
    /// Execute transactions forwarded by another member, and answer each with
    /// [`MemberRequest::Outcome`]. Never sent twice for one id.
    Execute {
        /// Repeated in the outcome.
        origin: ForwardOrigin,
        /// The transactions, in the order of their sessions.
        forwards: Vec<Forward>,
    },
    /// The answer to [`MemberRequest::Snapshot`], sent once a crash cannot bring the old file back.
    Compacted {
        /// As in the request.
        token: Option<u64>,
        /// The error if the file could not be compacted.
        result: Result<(), StoreError>,
    },
    /// The search has learned something about some ids. Outcomes that other members still know come
    /// first, as [`MemberEvent::Outcome`].
    Found {
        /// As in [`MemberRequest::Find`].
        through: Index,
        /// Ids, and what was learned about each.
        findings: Vec<(Eid, Finding)>,
    },
    /// The outcome of a forwarded transaction. Delivery is not guaranteed.
    Outcome {
        /// [`Forward::id`].
        id: Eid,
        /// The outcome.
        outcome: ForwardOutcome,
    },
}

/// The result of a search for an id among the other members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A committed entry has this id.
    Committed,
    /// No entry of the range has it.
    Absent,
    /// The search is over, and no member knows more.
    Unknown,
}

/// A committed entry with data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Committed {
    /// The oldest uncommitted proposal of the present leadership: its speculative commit is final
    /// now.
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
        /// [`Proposal::result`]; `None` if a member on the way read the entry from its file.
        result: Option<Bytes>,
    },
}
