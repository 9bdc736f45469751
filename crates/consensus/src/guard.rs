//! The checks that a message of another member must pass before it reaches the consensus library: any message, from any sender, must leave
//! the library's assertions and the log's safety intact.
//!
//! Pure: a function of the message and a small view of the member. [`crate::peers`] has checked who the sender is. The member calls
//! [`check`] first of all for each message, and changes nothing when it is refused.

use corvid_log::cluster::{Index, Sid, Term};
use thiserror::Error;

use crate::message::PeerMessage;

/// The state of a member, as far as checks need it.
#[derive(Clone, Copy, Debug)]
pub struct GuardView {
    /// The member's own id.
    pub sid: Sid,
    /// Its term.
    pub term: Term,
    /// The leader of that term, if it is known; itself when it leads.
    pub leader: Option<Sid>,
    /// Its last entry, written or not.
    pub last_index: Index,
    /// The last entry that it has synced.
    pub persisted: Index,
}

/// Why a message goes no further. Displays as the text of the log line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The message is malformed or forged.
    #[error("{0}")]
    Malformed(&'static str),
    /// It is not for this member in its present state; the sender may be honest.
    #[error("{0}")]
    Untimely(&'static str),
    /// Two servers claim to lead in one term.
    #[error("leader for term {term} changed from {known} to {claimant}")]
    SecondLeader {
        /// The term.
        term: Term,
        /// The leader that is known.
        known: Sid,
        /// The other one.
        claimant: Sid,
    },
    /// The leader knows that this member has stored entries that it does not have: its file is older than its promises.
    #[error(
        "this member had stored entries through {promised}, but its log ends at {last}: its file was lost or replaced by an older one"
    )]
    LostLog {
        /// The entry that it once acknowledged.
        promised: Index,
        /// Its last entry.
        last: Index,
    },
}

/// The consequence of a refused message, beside its log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// Reset the connections to the sender ([`crate::Peers::refuse`]).
    Reset,
    /// Nothing: drop the message.
    Drop,
    /// Stop voting and serving until the member is rebuilt.
    Stop,
}

impl Refusal {
    /// The reaction.
    #[must_use]
    pub fn reaction(&self) -> Reaction {
        match self {
            Refusal::Malformed(_) => Reaction::Reset,
            Refusal::Untimely(_) | Refusal::SecondLeader { .. } => Reaction::Drop,
            Refusal::LostLog { .. } => Reaction::Stop,
        }
    }
}

/// Checks a message.
///
/// # Errors
/// [`Refusal`].
pub fn check(_from: Sid, _message: &PeerMessage, _view: &GuardView) -> Result<(), Refusal> {
    Ok(())
}
