//! The messages between the database of a relay and the relay's conversation with its source.
//!
//! They take the place of those between a database and its member (`corvid_consensus::database`):
//! a relay follows a server that is in no cluster with it. Its source tells decoded changes of rows
//! instead of entries, sees the locks of the relay's clients, and can be asked to cancel a request.
//!
//! Invariant: nothing is in doubt. Each [`SourceRequest::Forward`] is answered by exactly one
//! [`SourceNews::Outcome`]. `crates/service/src/relay` has the other end.

use bytes::Bytes;
use corvid_consensus::database::{Forward, ForwardOutcome};
use corvid_data::Recorded;
use corvid_log::cluster::{Eid, Index};

/// From the database of a relay to its conversation with the source.
#[derive(Debug)]
pub enum SourceRequest {
    /// Have the source execute a transaction.
    Forward(Box<Forward>),
    /// All changes through this one are applied.
    Applied(Index),
    /// A change does not fit the rows. Nothing is applied until contents are installed.
    Misfit {
        /// Why it does not fit.
        details: String,
    },
    /// No client waits for the outcome of this forwarded request any more. If it was not sent to the
    /// source, it is not sent, and its outcome is [`ForwardOutcome::Blocked`]. Otherwise its outcome
    /// comes all the same.
    Withdraw {
        /// [`Forward::id`].
        id: Eid,
        /// The source is to cancel it, if that is possible.
        cancels: bool,
    },
    /// Own this lock at the source under this claim, and under no other one any more; `None`: give it
    /// back. News of it come as [`SourceNews::Lock`]. It comes after the requests before it.
    Lock {
        /// Name of the lock.
        name: String,
        /// The claim.
        claim: Option<LockClaim>,
    },
}

/// From a relay's conversation with its source to the database.
#[derive(Debug)]
pub enum SourceNews {
    /// Whether the relay has what its source has, so that transactions may be forwarded.
    Reachable(bool),
    /// Changes of the source, in order; answered by [`SourceRequest::Applied`].
    Changes {
        /// The last one.
        through: Index,
        /// At least one.
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

/// A change of rows at the source of a relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceChange {
    /// Its number, counted by the relay.
    pub index: Index,
    /// The source's transaction id, or one that the relay has drawn where the source tells none.
    pub eid: Eid,
    /// The rows.
    pub recorded: Recorded,
    /// For each of these rows, in order, whether it exists before the change. A row for which this is wrong is an error.
    pub exists: Vec<bool>,
    /// The length of the source's message.
    pub bytes: usize,
}

/// A relay's claim to a lock at its source, for one of its sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockClaim {
    /// Greater than those of all claims before.
    pub number: u64,
    /// The lock is to be stolen.
    pub steals: bool,
}

/// News of a claim to a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockNews {
    /// The relay owns the lock.
    Granted,
    /// Another client owns it, and the relay waits in line.
    Waiting,
    /// No source can be asked, or the source has given the lock to another client. The relay goes on claiming it, unless it steals.
    Lost,
    /// The source refuses: its error as JSON.
    Refused(Bytes),
}
