//! Transactions of a follower's sessions.
//!
//! One that only reads is answered from the applied state. One that waits is tried here first; it blocks here until its `wait` is satisfied.
//! Everything else is forwarded whole to the leader, many at once, and answered when the outcome is applied here. While a session has
//! transactions in flight, its later ones that can be forwarded follow at once, and all its other requests wait in its outbox: so replies
//! are in order, and a session reads what it has written. One exception: a transaction that changes nothing is executed again, perhaps behind
//! later ones of its session, when its outcome is lost with the leader.

use bytes::Bytes;
use corvid_consensus::database::{
    ClientIdentity, Forward, ForwardMethod, ForwardOutcome, MemberRequest,
};
use corvid_engine::Outcome;
use corvid_log::cluster::Eid;
use corvid_monitor::SessionId;
use std::sync::PoisonError;

use super::super::outbox::Reason;
use super::super::pending::{Answer, Origin, Pending};
use super::super::release::completion_of;
use super::super::{DatabaseService, Now};
use super::in_flight::{Entry, Number};
use super::{Part, TransactionKind};
use crate::message::{DatabaseMethod, Request, ToDatabase};

impl DatabaseService {
    /// Whether transactions that change something must be forwarded.
    pub(in super::super) fn is_follower(&self) -> bool {
        self.model.cluster().is_some_and(super::Clustered::follows)
    }

    /// Whether a transaction is forwarded without being tried here.
    pub(in super::super) fn forwards_at_once(&self, request: &Request) -> bool {
        if !self.is_follower() {
            return false;
        }
        let kind = TransactionKind::of(request.params());
        // A `wait` that is unsatisfied in the state here may be satisfied by what the session has in flight.
        let may_block = kind.may_wait && !self.outputs.outboxes.has_forwards(request.session);
        kind.may_write && !may_block
    }

    /// Undoes a transaction that was tried here and changed something. False if it may stay.
    pub(in super::super) fn withdraw_trial(&mut self, outcome: &Outcome) -> bool {
        match outcome {
            Outcome::Done {
                delta: Some(delta), ..
            } if self.is_follower() => {
                self.database.undo(delta);
                true
            }
            _ => false,
        }
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
                        && TransactionKind::of(request.params()).may_write),
            ),
            ToDatabase::Cancel(session, _) | ToDatabase::Fence(session, _) => (*session, false),
            _ => return None,
        };
        (outboxes.has_forwards(session) && !may_follow).then_some(session)
    }

    /// Forwards a request to the leader, now or when there is one.
    pub(in super::super) fn forward(&mut self, now: Now, request: Box<Request>) {
        if request.info.is_closed() {
            let completion = completion_of(&request);
            self.outputs.complete(request.session, completion);
            return;
        }
        let (session, method) = (request.session, request.method);
        if !request.blocked {
            self.outputs.outboxes.begin_forward(session);
        }
        if method == DatabaseMethod::Convert {
            // Later requests may be meant for the new schema.
            self.outputs.outboxes.block(session, Reason::Cluster);
        }
        let Some(in_flight) = self.in_flight_mut() else {
            return;
        };
        let number = in_flight.push(request);
        self.send_forward(now, number);
    }

    /// Forwards the waiting requests that may go now.
    pub(super) fn forward_waiting(&mut self, now: Now) {
        let Some(cluster) = self.model.cluster() else {
            return;
        };
        if !matches!(cluster.part, Part::Follows(_, Some(_))) {
            return;
        }
        for number in cluster.in_flight.waiting() {
            self.send_forward(now, number);
        }
    }

    fn send_forward(&mut self, now: Now, number: Number) {
        let in_flight = self.model.cluster().map(super::Clustered::in_flight);
        let request = in_flight.and_then(|in_flight| in_flight.request(number));
        // Its session is about to be closed, and takes the request with it.
        if request.is_none_or(|request| self.is_dismissed(&request.info)) {
            return;
        }
        let Some(cluster) = self.model.cluster_mut() else {
            return;
        };
        let Part::Follows(term, Some(_)) = cluster.part else {
            return;
        };
        if !cluster.in_flight.may_forward(number) {
            return;
        }
        let Some(request) = cluster.in_flight.request(number) else {
            return;
        };
        let method = match request.method {
            DatabaseMethod::Convert => ForwardMethod::Convert,
            _ => ForwardMethod::Transact,
        };
        let session = request.session;
        let asserts = TransactionKind::of(request.params()).asserts;
        let locks = || self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        let locks = asserts.then(|| locks().requested_by(session).owned);
        let locks = locks.unwrap_or_default();
        let id = Eid(self.uuids.fresh());
        let forward = Box::new(Forward {
            id,
            method,
            params: Bytes::copy_from_slice(request.params()),
            client: ClientIdentity {
                role: request.info.role.clone(),
                client_id: request.info.client_id.clone(),
                is_read_only: request.info.read_only,
                locks: locks.clone(),
            },
            elapsed_ms: now.mono_ms.saturating_sub(request.arrived_ms),
        });
        cluster.in_flight.forwarded(number, id, locks);
        cluster
            .requests
            .push(MemberRequest::Forward { term, forward });
    }

    /// The outcome of a forwarded request.
    pub(super) fn outcome(&mut self, now: Now, id: Eid, outcome: ForwardOutcome) {
        if let Some(in_flight) = self.in_flight_mut() {
            in_flight.outcome(id, outcome);
        }
        self.finish_decided(now);
    }

    /// Answers the requests whose outcome is based on entries that are applied.
    pub(super) fn finish_decided(&mut self, now: Now) {
        let mut has_finished = false;
        while let Some(cluster) = self.model.cluster_mut()
            && let Some((entry, outcome)) = cluster.in_flight.take_decided(cluster.applied)
        {
            has_finished = true;
            let (session, was_blocked) = (entry.request.session, entry.request.blocked);
            if entry.is_withdrawn() {
                continue;
            }
            match outcome {
                ForwardOutcome::Unchanged(_, result) => {
                    let answer = Answer::Result(result.into());
                    self.pending
                        .push(Pending::answer(answer, Origin::Client(entry.request)));
                    self.release();
                }
                ForwardOutcome::Refused(_, error) => self.send_refusal(&entry.request, &error),
                ForwardOutcome::Blocked(_) => self.try_again(now, entry),
                ForwardOutcome::Proposed(_) => unreachable!("its own entry decides it"),
            }
            self.end_forward(session, was_blocked);
        }
        if has_finished {
            self.forward_waiting(now);
        }
    }

    fn send_refusal(&mut self, request: &Request, error: &[u8]) {
        self.send_updates(request.session);
        let completion = completion_of(request);
        self.outputs
            .error_json(request.session, &request.id, error, completion);
    }

    /// A `wait` was not satisfied at the leader: tries it here.
    fn try_again(&mut self, now: Now, entry: Entry) {
        if self.is_dismissed(&entry.request.info) {
            self.drop_request(&entry.request);
            return;
        }
        let committed = self.attempt(now, entry.request);
        assert!(committed.is_none(), "a follower commits nothing");
        self.release();
    }

    /// A request that was in flight has ended.
    pub(super) fn end_forward(&mut self, session: SessionId, was_blocked: bool) {
        if !was_blocked {
            self.outputs.outboxes.end_forward(session);
            self.resume_if_unblocked(session);
        }
    }

    /// Cancels a request that no leader has. False if there is no such request.
    pub(in super::super) fn cancel_waiting(&mut self, session: SessionId, id: &[u8]) -> bool {
        let in_flight = self.in_flight_mut();
        let Some(entry) = in_flight.and_then(|in_flight| in_flight.take_waiting(session, id))
        else {
            return false;
        };
        let was_blocked = entry.request.blocked;
        self.cancel_request(&entry.request, completion_of(&entry.request));
        self.end_forward(session, was_blocked);
        true
    }

    /// A client has disconnected: what no leader has is withdrawn, the rest ends in silence.
    pub(in super::super) fn withdraw_session(&mut self, session: SessionId) {
        if let Some(in_flight) = self.in_flight_mut()
            && !in_flight.is_empty()
        {
            for entry in in_flight.withdraw(session) {
                let completion = completion_of(&entry.request);
                self.outputs.complete(session, completion);
            }
        }
    }

    /// The database is removed: answers everything in flight.
    pub(in super::super) fn cancel_in_flight(&mut self) {
        let in_flight = self.in_flight_mut();
        let requests = in_flight.map(super::InFlight::take_all);
        for request in requests.into_iter().flatten() {
            let (completion, was_blocked) = (completion_of(&request), request.blocked);
            if request.info.is_aware() {
                self.cancel_request(&request, completion);
            } else {
                request.info.miss_cancellation();
                self.outputs.complete(request.session, completion);
            }
            self.end_forward(request.session, was_blocked);
        }
    }
}
