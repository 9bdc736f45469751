//! The messages between a relay's database and the relay's conversation with its source.
//!
//! They replace those between a database and its member (`corvid_consensus::database`): a relay
//! follows a server without being in a cluster with it. The source sends decoded changes of rows
//! instead of entries, sees the locks of the relay's clients, and can be asked to cancel a request.
//!
//! Invariant: nothing is in doubt. Each [`SourceRequest::Forward`] is answered by exactly one
//! [`SourceNews::Outcome`]. The other end is in `crates/service/src/relay`.

use bytes::Bytes;
use corvid_consensus::database::{Forward, ForwardOutcome};
use corvid_data::Recorded;
use corvid_log::cluster::{Eid, Index, Term};

/// The term of a relay's database, which never changes.
pub(crate) const RELAY_TERM: Term = Term(1);

/// From a relay's database to its conversation with the source.
#[derive(Debug)]
pub enum SourceRequest {
    /// Make the source execute a transaction.
    Forward(Box<Forward>),
    /// The database has applied all changes through this one.
    Applied(Index),
    /// A change does not fit the rows. The database applies nothing more until contents are
    /// installed.
    Misfit {
        /// Why it does not fit.
        details: String,
    },
    /// A client needs the outcome of this forwarded request no more. If it has not been sent to the
    /// source, it never is, and its outcome is [`ForwardOutcome::Blocked`]. If the source has it,
    /// its outcome follows as usual.
    Withdraw {
        /// [`Forward::id`].
        id: Eid,
        /// Why.
        why: Withdrawal,
    },
    /// Claim this lock at the source under this claim and no earlier one; `None`: release it. News
    /// follow as [`SourceNews::Lock`]. Takes effect after all earlier requests.
    Lock {
        /// Name of the lock.
        name: String,
        /// The claim.
        claim: Option<LockClaim>,
    },
}

/// Why a client needs the outcome of a forwarded request no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withdrawal {
    /// It cancels the request, and waits for the outcome nevertheless.
    Canceled,
    /// It has gone.
    Gone,
    /// It has gone, and may send the transaction again, here or at another server: the source does
    /// not cancel it.
    GoneForNow,
}

/// From a relay's conversation with its source to the database.
#[derive(Debug)]
pub enum SourceNews {
    /// Whether the relay has its source's contents, so that transactions may be forwarded.
    Reachable(bool),
    /// Changes of the source, in order; answered by [`SourceRequest::Applied`].
    Changes {
        /// The last of the changes.
        through: Index,
        /// The changes; at least one.
        changes: Vec<SourceChange>,
    },
    /// The outcome of a forwarded transaction.
    Outcome {
        /// [`Forward::id`].
        id: Eid,
        /// The outcome.
        outcome: ForwardOutcome,
    },
    /// News of a claim to a lock.
    Lock {
        /// Name of the lock.
        name: String,
        /// [`LockClaim::number`].
        number: u64,
        /// The news.
        news: LockNews,
    },
}

/// A change of rows at a relay's source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceChange {
    /// The change's number, counted by the relay.
    pub index: Index,
    /// The source's transaction id, or a random one if the source sends none.
    pub eid: Eid,
    /// The changed rows.
    pub recorded: Recorded,
    /// For each row, in order, whether it exists before the change. A row that contradicts this is
    /// an error.
    pub exists: Vec<bool>,
    /// Length of the source's message, bytes.
    pub bytes: usize,
}

/// A relay's claim to a lock at its source, for one of its sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockClaim {
    /// The claim's number; claims are numbered in ascending order.
    pub number: u64,
    /// Steal the lock instead of waiting for it.
    pub steals: bool,
}

/// News of a claim to a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockNews {
    /// The relay owns the lock.
    Granted,
    /// Another client owns the lock, and the relay waits in line.
    Waiting,
    /// There is no source to ask, or the source has given the lock to another client. The relay
    /// keeps claiming it, unless the claim was to steal it.
    Lost,
    /// The source refuses the claim, with this error as JSON.
    Refused(Bytes),
}
