//! Transactions of a relay's sessions, and the other differences between a relay and a follower in
//! a cluster (docs/spec/distribution.md 2.3).
//!
//! A transaction that only reads, waits, checks or comments is answered here. Every other one goes
//! to the source whole. It is tried here first where the source would judge otherwise or cannot be
//! asked now:
//!
//! | Tried first | Because |
//! |---|---|
//! | the client has a role, or is read-only | its errors are known now; the source judges it again, when it executes it |
//! | it has a `wait` that may block | it blocks here, where its session can cancel it |
//! | no source can be reached | its errors are known now; otherwise its client would wait for them |
//! | it asserts a lock that its session does not own | at the source the relay's session may own it, for another client |
//!
//! A transaction that its client sends again (`transact_once`) is not tried, unless the client is
//! read-only: the contents here may include its own effect, so only the source can judge it.
//!
//! A trial that fails is the answer, unless only the commit failed: the relay may be behind, so the
//! source decides about references and indexes. A trial sees what the relay has, so it waits until
//! the earlier transactions of its session are answered; all others follow each other without
//! waiting. Invariant: a trial changes nothing.

use corvid_consensus::database::ForwardOutcome;
use corvid_data::{Tag, WireError};
use corvid_engine::{Database, Outcome, WorkBudget};
use corvid_log::cluster::Index;
use corvid_monitor::SessionId;

use super::Parts;
use super::execution::execute_for;
use super::forwarding::{Forwarding, is_sent_again, owns_asserted};
use super::identity::identity_of;
use super::in_flight::Number;
use super::request_stage::Stage;
use super::steps::{Action, Reply, Steps, Task};
use super::transaction_kind::TransactionKind;
use crate::environment::Environment;
use crate::job::Derived;
use crate::message::{Completion, DatabaseMethod, Request, SourceRequest, ToDatabase, Withdrawal};
use crate::replies::Answer;

/// Bytes of requests that wait for a source, with their cost besides their text; beyond that
/// further ones are refused.
const WAITING_BYTES_MAX: usize = 256 << 20;

impl Forwarding {
    /// The client of forwarded requests has gone, or cancels one that may be waiting at the source,
    /// by its id.
    pub(super) fn withdraw_at_source(&mut self, session: SessionId, canceled: Option<&[u8]>) {
        if !self.is_relay() {
            return;
        }
        let forwarded = self.in_flight.forwarded_of(session);
        let meant = forwarded.filter(|(request, _)| {
            canceled.is_none_or(|canceled| request.blocked && *request.id == *canceled)
        });
        let withdrawals = meant.map(|(request, id)| SourceRequest::Withdraw {
            id,
            why: match canceled {
                Some(_) => Withdrawal::Canceled,
                None if request.once.is_some() => Withdrawal::GoneForNow,
                None => Withdrawal::Gone,
            },
        });
        let withdrawals: Vec<_> = withdrawals.collect();
        for withdrawal in withdrawals {
            self.ask_source(withdrawal);
        }
    }

    /// Whether a transaction is for the source, and is not tried here.
    pub(super) fn relays_at_once(&self, request: &Request, environment: &Environment) -> bool {
        let kind = TransactionKind::of(request.params());
        // A trial would judge a transaction by contents that may include its own effect: a `wait`
        // that was satisfied then may not be now. Only the source knows. A client that may not
        // write has written nothing.
        let may_have_happened = is_sent_again(request) && !request.is_read_only();
        kind.is_for_source && (may_have_happened || !self.must_try(request, kind, environment))
    }

    fn must_try(
        &self,
        request: &Request,
        kind: TransactionKind,
        environment: &Environment,
    ) -> bool {
        kind.may_block
            || request.is_read_only()
            || !request.identities().is_empty()
            || self.leader().is_none()
            || (kind.asserts && !owns_asserted(request, environment))
    }

    /// Undoes a trial. False if it is the answer.
    pub(super) fn withdraw_relay_trial(
        request: &Request,
        outcome: &Outcome,
        database: &mut Database,
    ) -> bool {
        let Outcome::Done { delta, tally, .. } = outcome else {
            return false;
        };
        if !TransactionKind::of(request.params()).is_for_source
            || (tally.error.is_some() && !tally.has_failed_at_commit)
        {
            // The reply would be that of a commit, and no source has it.
            assert!(delta.is_none(), "nothing was changed");
            return false;
        }
        if let Some(delta) = delta {
            database.undo(delta);
        }
        true
    }

    /// Takes a request for the source. Refuses it when too many wait.
    pub(super) fn admit_relayed(
        &mut self,
        mut request: Box<Request>,
        steps: &mut Steps,
        parts: &mut Parts<'_>,
    ) -> Option<Box<Request>> {
        let may_block = request.method == DatabaseMethod::Transact
            && TransactionKind::of(request.params()).may_block;
        if may_block && !std::mem::replace(&mut request.blocked, true) {
            // It may block at the source, and must not hold up the later replies of its session.
            parts.outputs.complete(request.session, Completion::Request);
        }
        if self.in_flight.waiting_bytes() <= WAITING_BYTES_MAX {
            if let Some(once) = request.once {
                parts.once.begin(once);
            }
            return Some(request);
        }
        let details = "too many transactions wait for the relay's source";
        let error = WireError::new(Tag::ResourcesExhausted, details);
        let (session, blocked) = (request.session, request.blocked);
        // The refusal has its place among the replies of the session, as any other reply.
        let (number, _) = self.in_flight.push(request, Stage::Waiting);
        let taken = self.in_flight.take(number);
        if !blocked {
            parts.outputs.outboxes.begin_forward(session);
        }
        if let Some((entry, _)) = taken {
            let answer = Answer::Error(Box::new(error));
            self.finish(entry, answer, false, steps, parts);
        }
        None
    }

    /// A waiting transaction asserts a lock that its session has lost in the meantime: it is
    /// executed here, without the lock.
    pub(super) fn fail_assertion(
        &mut self,
        number: Number,
        steps: &mut Steps,
        parts: &mut Parts<'_>,
    ) {
        let Some((entry, _)) = self.in_flight.take(number) else {
            return;
        };
        let request = &entry.request;
        let client = identity_of(request, parts.environment.owned_locks(request.session));
        let mut uuids = Derived::from(parts.environment.fresh());
        let mut budget = WorkBudget::unlimited();
        let text = (request.params(), &client, 0);
        let answer = match execute_for(text, &mut uuids, &mut budget, parts) {
            Ok(Outcome::Done { result, delta, .. }) => {
                if let Some(delta) = delta {
                    parts.database.undo(&delta);
                }
                Answer::Result(result)
            }
            // A `wait` before the `assert` is no longer satisfied.
            Ok(Outcome::Blocked { .. }) => Answer::Canceled,
            Err(_) => unreachable!("nothing limits it"),
        };
        self.drop_once(&entry.request, parts);
        self.finish(entry, answer, false, steps, parts);
    }

    /// Contents of another schema, which are this change, are about to replace the present ones:
    /// the conversion that made them is answered before, because its session may be closed by them.
    /// All other replies come after them.
    pub(super) fn finish_converted(
        &mut self,
        index: Index,
        steps: &mut Steps,
        parts: &mut Parts<'_>,
    ) {
        if let Some((entry, result)) = self.in_flight.take_converted(index) {
            let outcome = ForwardOutcome::Unchanged(index, result.clone());
            self.audit_relayed(&entry.request, &outcome, parts);
            let answer = Answer::Result(result.into());
            self.finish(entry, answer, false, steps, parts);
            steps.plan(Task::FinishConverted(index));
        }
    }

    /// The source of a relay has decided about a transaction: answers those with the same id.
    pub(super) fn decide_once(
        &mut self,
        request: &Request,
        outcome: &ForwardOutcome,
        steps: &mut Steps,
        parts: &mut Parts<'_>,
    ) {
        let Some(once) = request.once.filter(|_| self.is_relay()) else {
            return;
        };
        for (request, answer) in parts.once.decide(request, once, outcome) {
            steps.push(Action::Answer(Reply {
                request,
                answer,
                has_changed: false,
                turn: None,
            }));
        }
        self.drop_once(request, parts);
    }

    /// A transaction is not on its way any more: those with the same id that have no answer take
    /// its place.
    pub(super) fn drop_once(&self, request: &Request, parts: &mut Parts<'_>) {
        let Some(once) = request.once.filter(|_| self.is_relay()) else {
            return;
        };
        let requests = parts.once.take_waiting_for(once).into_iter();
        let requests = requests.map(|request| ToDatabase::Request(Box::new(request)));
        parts.barrier_queue.push_first(requests);
    }

    /// The source has answered a request: the audit trail shows it.
    pub(super) fn audit_relayed(
        &self,
        request: &Request,
        outcome: &ForwardOutcome,
        parts: &mut Parts<'_>,
    ) {
        if self.is_relay() {
            let schema = parts.database.schema();
            let entry = parts.audit.of_relayed(schema, parts.now, request, outcome);
            parts.outputs.audit.extend(entry);
        }
    }
}
