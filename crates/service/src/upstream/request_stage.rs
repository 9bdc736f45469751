//! One request in flight, and what is known of it.
//!
//! ```text
//! Waiting ---> Forwarded ---> (its entry is applied: answered)
//!    ^           |    |-----> Decided ---> (applied through its index: answered, or tried again)
//!    |           |
//!    +-----------+            an entry of a later term is committed before its own: never happened
//!    +---------- Proposed     by this database while it led; otherwise like Forwarded
//!    +---------- Seen         executed here, changed nothing, saw a proposal that is in doubt
//! Forwarded, Proposed, Seen <---> Sought   an installed snapshot may contain its entry
//! Sought ---> (its entry is in the snapshot: answered)
//! Local ---> (first of its session: executed by this database)
//! Answered ---> (first of its session: the reply leaves)
//! ```
//!
//! Invariant: a request with an id may have been executed by some leader; no other request ever had
//! that id. The order of requests is not known here.

use bytes::Bytes;
use corvid_consensus::database::{Finding, ForwardOutcome};
use corvid_log::cluster::{Eid, Index, Term};
use corvid_monitor::SessionId;

use super::in_flight::Number;
use super::transaction_kind::TransactionKind;
use crate::message::{DatabaseMethod, Request};
use crate::replies::Answer;

/// A request and its stage.
pub(crate) struct Entry {
    pub(crate) number: Number,
    pub(crate) request: Box<Request>,
    /// The request's session has closed.
    pub(super) is_withdrawn: bool,
    /// Its client has canceled it, after it had blocked, while a leader had it.
    pub(super) is_canceled: bool,
    pub(super) stage: Stage,
}

/// The turn of a request in the order of its session.
#[derive(Clone, Copy)]
pub(crate) struct Turn {
    pub(crate) session: SessionId,
    pub(crate) number: Number,
    /// The request had blocked, and is outside the order.
    pub(crate) was_blocked: bool,
}

/// A taken entry, without its request.
pub(crate) struct Slot {
    number: Number,
    is_withdrawn: bool,
}

/// The knowledge about a request.
pub(crate) enum Stage {
    /// No leader has the request.
    Waiting,
    /// The leader of this term has the request.
    Forwarded {
        term: Term,
        id: Eid,
        /// The locks that the session owned when the request was forwarded.
        locks: Vec<String>,
        /// The result, valid only if the entry is committed.
        result: Option<Bytes>,
    },
    /// This database executed the request as the leader of this term; its entry may be committed.
    /// The reply is valid only if it is.
    Proposed { term: Term, id: Eid, reply: Answer },
    /// This database executed the request as the leader of this term, on the state after the
    /// proposal `after`, and it changed nothing. The reply is valid only if that proposal is
    /// committed.
    Seen {
        term: Term,
        after: Eid,
        reply: Answer,
    },
    /// An installed snapshot may contain the request's entry, or the entry that it has seen, after
    /// entry `after`. The other members are asked.
    Sought {
        after: Index,
        finding: Option<Finding>,
        /// The earlier stage: forwarded, proposed or seen.
        before: Box<Stage>,
    },
    /// The outcome is certain once the entry that it depends on has been applied.
    Decided(ForwardOutcome),
    /// This database executes the request once the earlier ones of its session are answered.
    Local,
    /// The reply leaves once the earlier ones of its session have left.
    Answered { reply: Answer, has_changed: bool },
}

impl Entry {
    /// Whether the request's session has closed.
    pub(crate) fn is_withdrawn(&self) -> bool {
        self.is_withdrawn
    }

    /// Whether its client has canceled the request while a leader had it.
    pub(crate) fn is_canceled(&self) -> bool {
        self.is_canceled
    }

    /// The request's turn in the order of its session.
    pub(crate) fn turn(&self) -> Turn {
        Turn {
            session: self.request.session,
            number: self.number,
            was_blocked: self.request.blocked,
        }
    }

    /// A taken entry, split from its request.
    pub(crate) fn split(self) -> (Slot, Box<Request>) {
        let slot = Slot {
            number: self.number,
            is_withdrawn: self.is_withdrawn,
        };
        (slot, self.request)
    }

    fn may_change(&self) -> bool {
        match self.request.method {
            DatabaseMethod::Transact => TransactionKind::of(self.request.params()).may_change,
            DatabaseMethod::Convert => true,
            _ => false,
        }
    }

    /// Whether the outcome is known and includes no change by the request itself, so that executing
    /// it again is harmless.
    pub(super) fn may_execute_again(&self) -> bool {
        let has_changed = match &self.stage {
            Stage::Answered { has_changed, .. } => *has_changed,
            Stage::Decided(_) => false,
            _ => return false,
        };
        !has_changed && self.request.method == DatabaseMethod::Transact
    }

    /// The stage of a request that must be executed again.
    pub(super) fn again(&self) -> Stage {
        // A blocked request or a write needs a leader. A read is answered from this server's own
        // state.
        if self.request.blocked || self.may_change() {
            Stage::Waiting
        } else {
            Stage::Local
        }
    }
}

impl Slot {
    /// Joins the entry with its request again.
    pub(crate) fn with(self, request: Box<Request>) -> Entry {
        Entry {
            number: self.number,
            request,
            is_withdrawn: self.is_withdrawn,
            // It has a reply.
            is_canceled: false,
            stage: Stage::Waiting,
        }
    }
}

impl Stage {
    /// Whether the request has not been executed, or depends on a leader whose term has ended by
    /// `present`.
    pub(super) fn is_undecided(&self, present: Term) -> bool {
        match self {
            Stage::Waiting
            | Stage::Local
            | Stage::Proposed { .. }
            | Stage::Seen { .. }
            | Stage::Sought { .. } => true,
            // The leader of the present term has the request and will report the outcome.
            Stage::Forwarded { term, .. } => *term < present,
            Stage::Decided(_) | Stage::Answered { .. } => false,
        }
    }

    pub(super) fn id(&self) -> Option<Eid> {
        match self {
            Stage::Forwarded { id, .. } | Stage::Proposed { id, .. } => Some(*id),
            Stage::Sought { before, .. } => before.id(),
            _ => None,
        }
    }

    /// The proposal that the request has seen, and on which its reply depends.
    pub(super) fn seen(&self) -> Option<Eid> {
        match self {
            Stage::Seen { after, .. } => Some(*after),
            Stage::Sought { before, .. } => before.seen(),
            _ => None,
        }
    }

    /// The stage before the request was sought.
    pub(super) fn before_search(self) -> Stage {
        match self {
            Stage::Sought { before, .. } => *before,
            stage => stage,
        }
    }

    /// Whether the request's entry is known to be committed.
    pub(super) fn has_happened(&self) -> bool {
        match self {
            Stage::Answered { has_changed, .. } => *has_changed,
            Stage::Sought { finding, .. } => *finding == Some(Finding::Committed),
            _ => false,
        }
    }

    /// The term whose end decides the request. `None` for a sought request: its entry may be
    /// committed already.
    pub(super) fn term(&self) -> Option<Term> {
        match self {
            Stage::Forwarded { term, .. }
            | Stage::Proposed { term, .. }
            | Stage::Seen { term, .. } => Some(*term),
            _ => None,
        }
    }
}

impl Stage {
    /// Takes the reply to a request whose entry is committed, if the reply is known.
    pub(super) fn take_reply(&mut self, method: DatabaseMethod) -> Option<Answer> {
        match self {
            _ if method == DatabaseMethod::Convert => Some(Answer::Result(b"{}".to_vec())),
            Stage::Proposed { reply, .. } => {
                Some(std::mem::replace(reply, Answer::Result(Vec::new())))
            }
            Stage::Forwarded { result, .. } => {
                let result = result.take()?;
                Some(Answer::Result(result.into()))
            }
            _ => None,
        }
    }
}

/// The entry that an outcome depends on; `None` if it is the request's own.
pub(super) fn index_of(outcome: &ForwardOutcome) -> Option<Index> {
    match outcome {
        ForwardOutcome::Proposed(_) => None,
        ForwardOutcome::Unchanged(index, _)
        | ForwardOutcome::Refused(index, _)
        | ForwardOutcome::Blocked(index) => Some(*index),
    }
}
