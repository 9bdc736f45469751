//! Transactions of a follower's sessions.
//!
//! One that only reads is answered from the applied state. One that waits is tried here first; it blocks here until its `wait` is satisfied.
//! Everything else is forwarded whole to the leader, many at once, and answered when the outcome is applied here. While a session has
//! transactions in flight, its later ones that can be forwarded follow at once, and all its other requests wait in its outbox: so replies
//! are in order (`answering.rs`), and a session reads what it has written.

use bytes::Bytes;
use corvid_consensus::database::{Forward, ForwardMethod, ForwardOnce, ForwardOutcome};
use corvid_consensus::limits;
use corvid_data::{Tag, WireError};
use corvid_engine::{Database, Outcome};
use corvid_log::cluster::{Eid, Term};
use corvid_monitor::SessionId;

use super::super::environment::Environment;
use super::super::replies::{Answer, Outputs, Reason};
use super::steps::{Action, Task};
use super::{Clustered, Entry, Part, Parts, Stage};
use crate::message::{DatabaseMethod, Request, ToDatabase};
use crate::once;
use crate::upstream::{Number, TransactionKind, asserted_locks, for_source, identity_of};

impl Clustered {
    /// Whether a transaction is forwarded without being tried here.
    pub(in super::super) fn forwards_at_once(
        &self,
        request: &Request,
        outputs: &Outputs,
        environment: &Environment,
    ) -> bool {
        if !self.follows() {
            return false;
        }
        if self.is_relay() {
            return self.relays_at_once(request, environment);
        }
        let kind = TransactionKind::of(request.params());
        // A `wait` that is unsatisfied in the state here may be satisfied by what the session has in flight.
        let may_block = kind.may_wait && !outputs.outboxes.has_forwards(request.session);
        kind.may_write && !may_block
    }

    /// Undoes a transaction that was tried here and changed something. False if it may stay.
    pub(in super::super) fn withdraw_trial(
        &self,
        request: &Request,
        outcome: &Outcome,
        database: &mut Database,
    ) -> bool {
        if self.is_relay() {
            return Clustered::withdraw_relay_trial(request, outcome, database);
        }
        self.follows() && self.undo_for_leader(request, outcome, database)
    }

    /// Undoes a transaction that was tried here and that the leader must execute: it changed something, or the leader may have executed the same
    /// one before, with another result. False if it may stay.
    pub(in super::super) fn undo_for_leader(
        &self,
        request: &Request,
        outcome: &Outcome,
        database: &mut Database,
    ) -> bool {
        let Outcome::Done { delta, .. } = outcome else {
            return false;
        };
        if let Some(delta) = delta {
            database.undo(delta);
        }
        delta.is_some()
            || (request.once.is_some() && TransactionKind::of(request.params()).may_write)
    }

    /// The session of an input that must wait until its transactions in flight are answered.
    pub(in super::super) fn awaited_by(
        &self,
        input: &ToDatabase,
        outputs: &Outputs,
        environment: &Environment,
    ) -> Option<SessionId> {
        let outboxes = &outputs.outboxes;
        let (session, may_follow) = match input {
            ToDatabase::Request(request) => (
                request.session,
                request.blocked
                    || (request.method == DatabaseMethod::Transact
                        && outboxes.has_forwards(request.session)
                        && self.may_pipeline(request, environment)),
            ),
            ToDatabase::Cancel(session, _) => (*session, false),
            _ => return None,
        };
        (outboxes.has_forwards(session) && !may_follow).then_some(session)
    }

    /// Whether a transaction may follow others of its session that are in flight.
    fn may_pipeline(&self, request: &Request, environment: &Environment) -> bool {
        if self.is_relay() {
            return self.relays_at_once(request, environment);
        }
        TransactionKind::of(request.params()).may_write
    }

    /// Forwards a request to the leader, now or when there is one.
    pub(in super::super) fn forward(&mut self, mut request: Box<Request>, parts: &mut Parts<'_>) {
        if request.info.is_closed() {
            parts.outputs.end_request(&request);
            return;
        }
        if self.is_relay() {
            match self.admit_relayed(request, parts) {
                Some(admitted) => request = admitted,
                None => return,
            }
        }
        let (session, method) = (request.session, request.method);
        let outboxes = &mut parts.outputs.outboxes;
        if !request.blocked {
            outboxes.begin_forward(session);
        }
        if method == DatabaseMethod::Convert {
            // Later requests may be meant for the new schema.
            outboxes.block(session, Reason::Cluster);
        }
        let (number, is_next) = self.in_flight.push(request, Stage::Waiting);
        if is_next {
            self.send_forward(number, parts);
        }
    }

    /// Forwards the waiting requests that may go now, because a leader is known or there is room.
    pub(super) fn forward_waiting(&mut self, parts: &mut Parts<'_>) {
        if self.leader().is_none() || self.in_flight.is_empty() {
            return;
        }
        for number in self.in_flight.set_all_due() {
            self.send_forward(number, parts);
        }
        self.steps.plan(Task::Advance);
    }

    /// Forwards a waiting request, if there is a leader. False if it still waits.
    pub(super) fn send_forward(&mut self, number: Number, parts: &mut Parts<'_>) -> bool {
        let Some(request) = self.in_flight.request(number) else {
            return false;
        };
        // Its session is gone or about to be closed, and takes the request with it.
        if request.info.is_closed() || parts.is_dismissed(&request.info) {
            return false;
        }
        let Part::Follows(term, Some(_)) = self.part else {
            return false;
        };
        if !self.in_flight.has_room() {
            return false;
        }
        let Some(request) = self.in_flight.request(number) else {
            return false;
        };
        let asserts = TransactionKind::of(request.params()).asserts;
        if self.is_relay() && asserts && !owns_asserted(request, parts.environment) {
            self.fail_assertion(number, parts);
            return true;
        }
        match self.compose_forward(request, asserts, parts) {
            Ok((forward, locks)) => {
                self.in_flight.forwarded(number, forward.id, locks);
                self.push_forward(term, forward);
            }
            Err(error) => self.fail_waiting(number, error, parts),
        }
        true
    }

    /// A request as it is forwarded, with the locks that its session holds.
    ///
    /// # Errors
    /// The leader, or the source, would not take it.
    fn compose_forward(
        &self,
        request: &Request,
        asserts: bool,
        parts: &mut Parts<'_>,
    ) -> Result<(Box<Forward>, Vec<String>), WireError> {
        let is_relay = self.is_relay();
        let environment = &mut *parts.environment;
        let locks = match asserts {
            true if is_relay => asserted_locks(request.params()).unwrap_or_default(),
            true => environment.owned_locks(request.session),
            false => Vec::new(),
        };
        let method = match request.method {
            DatabaseMethod::Convert => ForwardMethod::Convert,
            _ => ForwardMethod::Transact,
        };
        let id = match request.once {
            Some(once) if is_relay => Eid(once.id),
            None if is_relay => Eid(once::transaction_id(environment.fresh())),
            _ => Eid(environment.fresh()),
        };
        let mut client = identity_of(request, locks.clone());
        if is_relay && method == ForwardMethod::Transact {
            // Guards are made of the newest rules that the relay has.
            let forms = for_source(parts.database, request)?;
            client.for_source = Some(Box::new(forms));
        }
        let forward = Box::new(Forward {
            id,
            method,
            params: Bytes::copy_from_slice(request.params()),
            client,
            elapsed_ms: parts.now.mono_ms.saturating_sub(request.arrived_ms),
            once: request.once.map(|once| ForwardOnce {
                id: Eid(once.id),
                after: once.after.map(Eid),
            }),
        });
        // The leader would refuse the message and not only the transaction, so it does not leave.
        if !is_relay && let Err(why) = limits::check_forward(&forward) {
            return Err(WireError::new(Tag::ResourcesExhausted, why.to_string()));
        }
        Ok((forward, locks))
    }

    /// A waiting request cannot be forwarded for this reason, which answers it.
    fn fail_waiting(&mut self, number: Number, error: WireError, parts: &mut Parts<'_>) {
        if let Some((entry, _)) = self.in_flight.take(number) {
            self.drop_once(&entry.request, parts);
            self.finish(entry, Answer::Error(Box::new(error)), false, parts);
        }
    }

    /// The outcome of a forwarded request.
    pub(super) fn handle_outcome(
        &mut self,
        id: Eid,
        outcome: ForwardOutcome,
        parts: &mut Parts<'_>,
    ) {
        if let Some((entry, reply)) = self.in_flight.outcome(id, outcome) {
            self.finish(entry, reply, true, parts);
        }
        self.steps.plan(Task::FinishDecided);
    }

    /// Answers the requests whose outcome is based on entries that are applied.
    pub(super) fn finish_decided(&mut self, parts: &mut Parts<'_>) {
        let Some((entry, outcome)) = self.in_flight.take_decided(self.applied) else {
            self.steps.plan(Task::Advance);
            self.steps.plan(Task::EndThrottling);
            return;
        };
        self.decide_once(&entry.request, &outcome, parts);
        self.audit_relayed(&entry.request, &outcome, parts);
        if entry.is_withdrawn() {
            self.forget(entry.turn(), parts);
            self.steps.plan(Task::FinishDecided);
            return;
        }
        let answer = match outcome {
            ForwardOutcome::Unchanged(_, result) => Some(Answer::Result(result.into())),
            ForwardOutcome::Refused(_, error) => Some(Answer::Refused(error)),
            // It was withdrawn before it was sent.
            ForwardOutcome::Blocked(_) if self.is_relay() => Some(Answer::Canceled),
            ForwardOutcome::Blocked(_) => None,
            ForwardOutcome::Proposed(_) => unreachable!("its own entry decides it"),
        };
        match answer {
            Some(answer) => self.finish(entry, answer, false, parts),
            // A `wait` of a blocked transaction was not satisfied at the leader: it is tried here.
            None if entry.request.blocked => {
                self.forget(entry.turn(), parts);
                self.steps.push(Action::Retry(entry.request));
            }
            None => self.put_back(entry, Stage::Local),
        }
        self.steps.plan(Task::FinishDecided);
    }

    /// An entry of this term is committed: requests that depend on earlier ones never happened.
    pub(super) fn end_doubt(&mut self, term: Term, parts: &mut Parts<'_>) {
        for number in self.in_flight.end_doubt(term) {
            self.send_forward(number, parts);
        }
        self.steps.plan(Task::Advance);
    }

    /// Takes a request that no leader has, to be canceled. The source of a relay is asked to cancel
    /// a request that may be waiting there: its reply comes, whatever it is.
    pub(in super::super) fn take_canceled(
        &mut self,
        session: SessionId,
        id: &[u8],
        parts: &mut Parts<'_>,
    ) -> Option<Entry> {
        self.withdraw_at_source(session, Some(id));
        let entry = self.in_flight.take_waiting(session, id)?;
        self.drop_once(&entry.request, parts);
        Some(entry)
    }

    /// A client has disconnected, or is about to be: what no leader has is withdrawn, the rest ends in silence. Its outbox stays blocked.
    pub(in super::super) fn withdraw_session(&mut self, session: SessionId, parts: &mut Parts<'_>) {
        self.withdraw_at_source(session, None);
        if self.in_flight.is_empty() {
            return;
        }
        for entry in self.in_flight.withdraw(session) {
            self.drop_once(&entry.request, parts);
            parts.outputs.end_request(&entry.request);
        }
    }
}

/// Whether a transaction of a relay's session may go to the source as far as its locks are
/// concerned: the session owns those that it asserts.
pub(super) fn owns_asserted(request: &Request, environment: &Environment) -> bool {
    let asserted = asserted_locks(request.params());
    asserted.is_some_and(|locks| environment.owns_all(request.session, &locks))
}
