//! One request in flight, and what is known of it.
//!
//! ```text
//! Waiting ---> Forwarded ---> (its entry is applied: answered)
//!    ^           |    |-----> Decided ---> (applied through its index: answered, or tried again)
//!    |           |
//!    +-----------+            an entry of a later term is committed before its own: it never happened
//!    +---------- Proposed     by this database while it led; otherwise like Forwarded
//!    +---------- Seen         executed by it without a change, after a proposal that is in doubt; true if that is
//! Forwarded, Proposed, Seen <---> Sought   an installed snapshot may contain its entry; if it does: answered
//! Local ---> (first of its session: executed by this database)
//! Answered ---> (first of its session: the reply leaves)
//! ```
//!
//! Invariant: a request with an id is one that some leader may have executed; no other request ever had that id. Knows no order of requests.

use bytes::Bytes;
use corvid_consensus::database::{Finding, ForwardOutcome};
use corvid_log::cluster::{Eid, Index, Term};
use corvid_monitor::SessionId;

use super::in_flight::Number;
use super::transaction_kind::TransactionKind;
use crate::message::{DatabaseMethod, Request};

/// A request, and what is known of it.
pub(crate) struct Entry<A> {
    pub(crate) number: Number,
    pub(crate) request: Box<Request>,
    /// Its session is gone.
    pub(super) is_withdrawn: bool,
    pub(super) stage: Stage<A>,
}

/// The turn of a request in the order of its session.
#[derive(Clone, Copy)]
pub(crate) struct Turn {
    pub(crate) session: SessionId,
    pub(crate) number: Number,
    /// It blocked before, and is not part of the order.
    pub(crate) was_blocked: bool,
}

/// An entry that has been taken, without its request.
pub(crate) struct Slot {
    number: Number,
    is_withdrawn: bool,
}

/// The knowledge about a request; `A` is a reply.
pub(crate) enum Stage<A> {
    /// No leader has it.
    Waiting,
    /// The leader of this term has it.
    Forwarded {
        term: Term,
        id: Eid,
        /// The locks that its session held.
        locks: Vec<String>,
        /// The result, which is true if the entry is committed.
        result: Option<Bytes>,
    },
    /// This database executed it as the leader of this term, and the entry may be committed. The reply is true if it is.
    Proposed { term: Term, id: Eid, reply: A },
    /// This database executed it as the leader of this term, without a change, on the state after the proposal with this id. The reply is
    /// true if that is committed.
    Seen { term: Term, after: Eid, reply: A },
    /// An installed snapshot may contain its entry, or the one that it has seen, behind this one. The other members are asked.
    Sought {
        after: Index,
        finding: Option<Finding>,
        /// Forwarded, proposed or seen.
        before: Box<Stage<A>>,
    },
    /// The outcome is certain once the entries that it is based on are applied.
    Decided(ForwardOutcome),
    /// This database executes it when the earlier ones of its session are answered.
    Local,
    /// The reply leaves when the earlier ones of its session have left.
    Answered { reply: A, has_changed: bool },
}

impl<A> Entry<A> {
    /// Whether its session is gone.
    pub(crate) fn is_withdrawn(&self) -> bool {
        self.is_withdrawn
    }

    /// Its turn in the order of its session.
    pub(crate) fn turn(&self) -> Turn {
        Turn {
            session: self.request.session,
            number: self.number,
            was_blocked: self.request.blocked,
        }
    }

    /// A taken entry without its request.
    pub(crate) fn split(self) -> (Slot, Box<Request>) {
        let slot = Slot {
            number: self.number,
            is_withdrawn: self.is_withdrawn,
        };
        (slot, self.request)
    }

    fn may_write(&self) -> bool {
        match self.request.method {
            DatabaseMethod::Transact => TransactionKind::of(self.request.params()).may_write,
            DatabaseMethod::Convert => true,
            _ => false,
        }
    }

    /// Whether an outcome is known that depends on no change of its own, so that executing it again does no harm.
    pub(super) fn may_execute_again(&self) -> bool {
        let has_changed = match &self.stage {
            Stage::Answered { has_changed, .. } => *has_changed,
            Stage::Decided(_) => false,
            _ => return false,
        };
        !has_changed && self.request.method == DatabaseMethod::Transact
    }

    /// The stage of a request that must be executed again.
    pub(super) fn again(&self) -> Stage<A> {
        if self.request.blocked || self.may_write() {
            Stage::Waiting
        } else {
            Stage::Local
        }
    }
}

impl Slot {
    /// The entry again.
    pub(crate) fn with<A>(self, request: Box<Request>) -> Entry<A> {
        Entry {
            number: self.number,
            request,
            is_withdrawn: self.is_withdrawn,
            stage: Stage::Waiting,
        }
    }
}

impl<A> Stage<A> {
    /// Whether it has not been executed, or depends on a leadership that is over in `present`.
    pub(super) fn is_undecided(&self, present: Term) -> bool {
        match self {
            Stage::Waiting
            | Stage::Local
            | Stage::Proposed { .. }
            | Stage::Seen { .. }
            | Stage::Sought { .. } => true,
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

    /// The proposal that it has seen, and on which its reply depends.
    pub(super) fn seen(&self) -> Option<Eid> {
        match self {
            Stage::Seen { after, .. } => Some(*after),
            Stage::Sought { before, .. } => before.seen(),
            _ => None,
        }
    }

    /// The stage without the search.
    pub(super) fn before_search(self) -> Stage<A> {
        match self {
            Stage::Sought { before, .. } => *before,
            stage => stage,
        }
    }

    /// Whether its entry is known to be committed.
    pub(super) fn has_happened(&self) -> bool {
        match self {
            Stage::Answered { has_changed, .. } => *has_changed,
            Stage::Sought { finding, .. } => *finding == Some(Finding::Committed),
            _ => false,
        }
    }

    /// The leadership whose end decides it. None decides about a request that is sought: its entry may be committed already.
    pub(super) fn term(&self) -> Option<Term> {
        match self {
            Stage::Forwarded { term, .. }
            | Stage::Proposed { term, .. }
            | Stage::Seen { term, .. } => Some(*term),
            _ => None,
        }
    }
}

impl<A: From<Vec<u8>>> Stage<A> {
    /// Takes the reply to a request whose entry is committed, if it is known.
    pub(super) fn take_reply(&mut self, method: DatabaseMethod) -> Option<A> {
        match self {
            _ if method == DatabaseMethod::Convert => Some(A::from(b"{}".to_vec())),
            Stage::Proposed { reply, .. } => Some(std::mem::replace(reply, A::from(Vec::new()))),
            Stage::Forwarded { result, .. } => {
                let result = result.take()?;
                Some(A::from(result.into()))
            }
            _ => None,
        }
    }
}

/// The entry that an outcome is based on; `None`: its own.
pub(super) fn index_of(outcome: &ForwardOutcome) -> Option<Index> {
    match outcome {
        ForwardOutcome::Proposed(_) => None,
        ForwardOutcome::Unchanged(index, _)
        | ForwardOutcome::Refused(index, _)
        | ForwardOutcome::Blocked(index) => Some(*index),
    }
}
