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
use corvid_engine::Outcome;
use corvid_log::cluster::Eid;
use corvid_monitor::SessionId;

use super::super::replies::{Answer, Reason};
use super::super::{DatabaseService, Now};
use super::identity::{for_source, identity_of};
use super::in_flight::Number;
use super::request_stage::{Entry, Stage};
use super::transaction_kind::asserted_locks;
use super::{Part, TransactionKind};
use crate::message::{Completion, DatabaseMethod, Request, ToDatabase};
use crate::once;

impl DatabaseService {
    /// Whether a transaction is forwarded without being tried here.
    pub(in super::super) fn forwards_at_once(&self, request: &Request) -> bool {
        if !self.model.is_follower() {
            return false;
        }
        if self.model.is_relay() {
            return self.relays_at_once(request);
        }
        let kind = TransactionKind::of(request.params());
        // A `wait` that is unsatisfied in the state here may be satisfied by what the session has in flight.
        let may_block = kind.may_wait && !self.outputs.outboxes.has_forwards(request.session);
        kind.may_write && !may_block
    }

    /// Undoes a transaction that was tried here and changed something. False if it may stay.
    pub(in super::super) fn withdraw_trial(
        &mut self,
        request: &Request,
        outcome: &Outcome,
    ) -> bool {
        if self.model.is_relay() {
            return self.withdraw_relay_trial(request, outcome);
        }
        self.model.is_follower() && self.undo_for_leader(request, outcome)
    }

    /// Undoes a transaction that was tried here and that the leader must execute: it changed something, or the leader may have executed the same
    /// one before, with another result. False if it may stay.
    pub(super) fn undo_for_leader(&mut self, request: &Request, outcome: &Outcome) -> bool {
        let Outcome::Done { delta, .. } = outcome else {
            return false;
        };
        if let Some(delta) = delta {
            self.database.undo(delta);
        }
        delta.is_some()
            || (request.once.is_some() && TransactionKind::of(request.params()).may_write)
    }

    /// The session of an input that must wait until its transactions in flight are answered.
    pub(in super::super) fn awaits_cluster(&self, input: &ToDatabase) -> Option<SessionId> {
        let outboxes = &self.outputs.outboxes;
        let (session, may_follow) = match input {
            ToDatabase::Request(request) => (
                request.session,
                request.blocked
                    || (request.method == DatabaseMethod::Transact
                        && outboxes.has_forwards(request.session)
                        && self.may_pipeline(request)),
            ),
            ToDatabase::Cancel(session, _) => (*session, false),
            _ => return None,
        };
        (outboxes.has_forwards(session) && !may_follow).then_some(session)
    }

    /// Whether a transaction may follow others of its session that are in flight.
    fn may_pipeline(&self, request: &Request) -> bool {
        if self.model.is_relay() {
            return self.relays_at_once(request);
        }
        TransactionKind::of(request.params()).may_write
    }

    /// Forwards a request to the leader, now or when there is one.
    pub(in super::super) fn forward(&mut self, now: Now, mut request: Box<Request>) {
        if request.info.is_closed() {
            self.end_request(&request);
            return;
        }
        if self.model.is_relay() {
            match self.admit_relayed(request) {
                Some(admitted) => request = admitted,
                None => return,
            }
        }
        let (session, method) = (request.session, request.method);
        if !request.blocked {
            self.outputs.outboxes.begin_forward(session);
        }
        if method == DatabaseMethod::Convert {
            // Later requests may be meant for the new schema.
            self.outputs.outboxes.block(session, Reason::Cluster);
        }
        let Some(in_flight) = self.model.in_flight_mut() else {
            return;
        };
        let (number, is_next) = in_flight.push(request, Stage::Waiting);
        if is_next {
            self.send_forward(now, number);
        }
    }

    /// Forwards the waiting requests that may go now, because a leader is known or there is room.
    pub(super) fn forward_waiting(&mut self, now: Now) {
        let is_possible = |cluster: &super::Clustered| {
            matches!(cluster.part, Part::Follows(_, Some(_))) && !cluster.in_flight.is_empty()
        };
        if !self.model.cluster().is_some_and(is_possible) {
            return;
        }
        let blocked = self.model.in_flight_mut().map(super::InFlight::set_all_due);
        for number in blocked.into_iter().flatten() {
            self.send_forward(now, number);
        }
        self.advance_due(now);
    }

    /// Forwards a waiting request, if there is a leader. False if it still waits.
    pub(super) fn send_forward(&mut self, now: Now, number: Number) -> bool {
        let in_flight = self.model.cluster().map(super::Clustered::in_flight);
        let request = in_flight.and_then(|in_flight| in_flight.request(number));
        // Its session is gone or about to be closed, and takes the request with it.
        if request
            .is_none_or(|request| request.info.is_closed() || self.is_dismissed(&request.info))
        {
            return false;
        }
        let is_relay = self.model.is_relay();
        let Some(cluster) = self.model.cluster_mut() else {
            return false;
        };
        let Part::Follows(term, Some(_)) = cluster.part else {
            return false;
        };
        if !cluster.in_flight.has_room() {
            return false;
        }
        let Some(cluster) = self.model.cluster() else {
            return false;
        };
        let Some(request) = cluster.in_flight.request(number) else {
            return false;
        };
        let asserts = TransactionKind::of(request.params()).asserts;
        if is_relay && asserts && !self.owns_asserted(request) {
            self.fail_assertion(number);
            return true;
        }
        let locks = match asserts {
            true if is_relay => asserted_locks(request.params()).unwrap_or_default(),
            true => self.environment.owned_locks(request.session),
            false => Vec::new(),
        };
        let method = match request.method {
            DatabaseMethod::Convert => ForwardMethod::Convert,
            _ => ForwardMethod::Transact,
        };
        let id = match request.once {
            Some(once) if is_relay => Eid(once.id),
            None if is_relay => Eid(once::transaction_id(self.environment.fresh())),
            _ => Eid(self.environment.fresh()),
        };
        let mut client = identity_of(request, locks.clone());
        if is_relay && method == ForwardMethod::Transact {
            // Guards are made of the newest rules that the relay has.
            match for_source(&mut self.database, request) {
                Ok(forms) => client.for_source = Some(Box::new(forms)),
                Err(error) => {
                    self.fail_waiting(number, error);
                    return true;
                }
            }
        }
        let forward = Box::new(Forward {
            id,
            method,
            params: Bytes::copy_from_slice(request.params()),
            client,
            elapsed_ms: now.mono_ms.saturating_sub(request.arrived_ms),
            once: request.once.map(|once| ForwardOnce {
                id: Eid(once.id),
                after: once.after.map(Eid),
            }),
        });
        // The leader would refuse the message and not only the transaction, so it does not leave.
        if !is_relay && let Err(why) = limits::check_forward(&forward) {
            let error = WireError::new(Tag::ResourcesExhausted, why.to_string());
            self.fail_waiting(number, error);
            return true;
        }
        let Some(cluster) = self.model.cluster_mut() else {
            return false;
        };
        cluster.in_flight.forwarded(number, id, locks);
        cluster.push_forward(term, forward);
        true
    }

    /// A waiting request cannot be forwarded for this reason, which answers it.
    fn fail_waiting(&mut self, number: Number, error: WireError) {
        let taken = self.model.in_flight_mut().and_then(|it| it.take(number));
        if let Some((entry, _)) = taken {
            self.drop_once(&entry.request);
            self.finish(entry, Answer::Error(Box::new(error)), false);
        }
    }

    /// The outcome of a forwarded request.
    pub(super) fn handle_outcome(&mut self, now: Now, id: Eid, outcome: ForwardOutcome) {
        let in_flight = self.model.in_flight_mut();
        if let Some((entry, reply)) = in_flight.and_then(|it| it.outcome(id, outcome)) {
            self.finish(entry, reply, true);
        }
        self.finish_decided(now);
    }

    /// Answers the requests whose outcome is based on entries that are applied.
    pub(super) fn finish_decided(&mut self, now: Now) {
        while let Some(cluster) = self.model.cluster_mut()
            && let Some((entry, outcome)) = cluster.in_flight.take_decided(cluster.applied)
        {
            self.decide_once(&entry.request, &outcome);
            self.audit_relayed(now, &entry.request, &outcome);
            if entry.is_withdrawn() {
                self.forget(entry.request.session, entry.number, entry.request.blocked);
                continue;
            }
            let answer = match outcome {
                ForwardOutcome::Unchanged(_, result) => Answer::Result(result.into()),
                ForwardOutcome::Refused(_, error) => Answer::Refused(error),
                // It was withdrawn before it was sent.
                ForwardOutcome::Blocked(_) if self.model.is_relay() => Answer::Canceled,
                ForwardOutcome::Blocked(_) if entry.request.blocked => {
                    self.try_again(now, entry);
                    continue;
                }
                ForwardOutcome::Blocked(_) => {
                    self.put_back(entry, Stage::Local);
                    continue;
                }
                ForwardOutcome::Proposed(_) => unreachable!("its own entry decides it"),
            };
            self.finish(entry, answer, false);
        }
        self.advance_due(now);
        if self
            .model
            .in_flight_mut()
            .is_some_and(super::InFlight::end_throttling)
        {
            self.forward_waiting(now);
        }
    }

    /// A `wait` of a blocked transaction was not satisfied at the leader: tries it here.
    fn try_again(&mut self, now: Now, entry: Entry) {
        let Entry {
            number, request, ..
        } = entry;
        self.forget(request.session, number, true);
        if self.is_dismissed(&request.info) {
            self.drop_request(&request);
            return;
        }
        let committed = self.attempt(now, request);
        assert!(committed.is_none(), "a follower commits nothing");
        self.release();
    }

    /// Cancels a request that no leader has. False if there is no such request. The source of a relay is asked to cancel a request that may be
    /// waiting there: its reply comes, whatever it is.
    pub(in super::super) fn cancel_waiting(&mut self, session: SessionId, id: &[u8]) -> bool {
        if let Some(cluster) = self.model.cluster_mut() {
            cluster.withdraw_forwarded(session, Some(id));
        }
        let in_flight = self.model.in_flight_mut();
        let Some(entry) = in_flight.and_then(|in_flight| in_flight.take_waiting(session, id))
        else {
            return false;
        };
        self.drop_once(&entry.request);
        self.cancel_request(&entry.request, Completion::of(&entry.request));
        self.end_forward(session, entry.request.blocked);
        true
    }

    /// A client has disconnected, or is about to be: what no leader has is withdrawn, the rest ends in silence. Its outbox stays blocked.
    pub(in super::super) fn withdraw_session(&mut self, session: SessionId) {
        if let Some(cluster) = self.model.cluster_mut() {
            cluster.withdraw_forwarded(session, None);
        }
        if let Some(in_flight) = self.model.in_flight_mut()
            && !in_flight.is_empty()
        {
            for entry in in_flight.withdraw(session) {
                self.drop_once(&entry.request);
                self.end_request(&entry.request);
            }
        }
    }

    /// The database is removed: answers everything in flight.
    pub(in super::super) fn cancel_in_flight(&mut self) {
        for request in self.executor.once.take_waiting() {
            match request.info.is_aware() {
                true => self.cancel_request(&request, Completion::None),
                false => self.drop_request(&request),
            }
        }
        let in_flight = self.model.in_flight_mut();
        let requests = in_flight.map(super::InFlight::take_all);
        for (request, stage) in requests.into_iter().flatten() {
            let (session, was_blocked) = (request.session, request.blocked);
            match stage {
                Stage::Answered { reply, has_changed } => {
                    self.send_answer(request, reply, has_changed);
                }
                // Refused like those that wait in the outbox.
                Stage::Local => self.refuse_removed(ToDatabase::Request(request)),
                _ if request.info.is_aware() => {
                    self.cancel_request(&request, Completion::of(&request));
                }
                _ => self.drop_request(&request),
            }
            self.end_forward(session, was_blocked);
        }
    }
}
