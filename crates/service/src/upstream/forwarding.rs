//! Transactions of a follower's sessions.
//!
//! One that only reads is answered from the applied state. One that waits is tried here first; it
//! blocks here until its `wait` is satisfied. Everything else is forwarded whole to the leader,
//! many at once, and answered when the outcome is applied here. While a session has transactions in
//! flight, its later ones that can be forwarded follow at once, and all its other requests wait in
//! its outbox: so replies are in order (`answering.rs`), and a session reads what it has written.
//!
//! Invariant: a request is forwarded again only after it is certain that it was not executed: an
//! entry of a later term is committed, and its own is not.

use bytes::Bytes;
use corvid_consensus::database::{
    Forward, ForwardMethod, ForwardOnce, ForwardOutcome, MemberRequest,
};
use corvid_consensus::limits;
use corvid_data::{Tag, WireError};
use corvid_engine::{Database, Outcome};
use corvid_log::cluster::{Eid, Index, Sid, Term};
use corvid_monitor::SessionId;

use super::Parts;
use super::identity::{for_source, identity_of};
use super::in_flight::{InFlight, Number};
use super::request_stage::{Entry, Stage};
use super::requests::Requests;
use super::role::Role;
use super::steps::{Action, Steps, Task};
use super::transaction_kind::{TransactionKind, asserted_locks};
use crate::barrier::{Activity, UnderWay};
use crate::environment::Environment;
use crate::message::{DatabaseMethod, Request, SourceRequest, ToDatabase};
use crate::once;
use crate::recorded_client;
use crate::replies::{Answer, Outputs, Reason};

/// The requests in flight, and the server that they are for.
pub(crate) struct Forwarding {
    pub(super) role: Role,
    pub(super) in_flight: InFlight,
    pub(super) requests: Requests,
}

/// The role, and requests for the other server.
impl Forwarding {
    pub(super) fn new(role: Role, requests: Requests) -> Forwarding {
        let mut in_flight = InFlight::default();
        in_flight.begin_term(role.term());
        Forwarding {
            role,
            in_flight,
            requests,
        }
    }

    /// Whether the other server is the source of a relay.
    pub(crate) fn is_relay(&self) -> bool {
        self.requests.are_for_source()
    }

    /// The role.
    pub(crate) fn role(&self) -> Role {
        self.role
    }

    /// Whether transactions that change something are for another server.
    pub(crate) fn follows(&self) -> bool {
        matches!(self.role, Role::Follows(..))
    }

    /// The server that leads, if this one follows it.
    pub(crate) fn leader(&self) -> Option<Sid> {
        match self.role {
            Role::Follows(_, leader) => leader,
            Role::Leads(_) => None,
        }
    }

    /// How many requests depend on the other server.
    pub(crate) fn requests_in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// The requests that depend on the other server, to be changed.
    pub(crate) fn in_flight_mut(&mut self) -> &mut InFlight {
        &mut self.in_flight
    }

    /// Reports what depends on the other server.
    pub(super) fn report_activity(&self, activity: &mut Activity) {
        activity.report(UnderWay::InFlight, !self.in_flight.is_empty());
        activity.report(UnderWay::LocalRequests, self.in_flight.has_local());
    }

    /// Takes this role. Requests that were forwarded in an earlier term are in doubt from now on.
    pub(crate) fn begin_role(&mut self, role: Role) {
        self.role = role;
        self.in_flight.begin_term(role.term());
    }

    /// This server follows. A leadership is given up before.
    pub(crate) fn follow(&mut self, term: Term, leader: Option<Sid>, steps: &mut Steps) {
        let role = Role::Follows(term, leader);
        match self.role {
            Role::Leads(led) => steps.push(Action::GiveUpLeadership(led, role)),
            Role::Follows(..) => self.begin_role(role),
        }
        steps.plan(Task::ForwardWaiting);
    }

    /// Adds a request for the member of a cluster.
    pub(crate) fn ask_member(&mut self, request: MemberRequest) {
        self.requests.push_for_member(request);
    }

    /// Adds a request for the source of a relay.
    pub(super) fn ask_source(&mut self, request: SourceRequest) {
        self.requests.push_for_source(request);
    }

    /// Reports that all entries, or changes, through this one are applied.
    pub(crate) fn report_applied(&mut self, through: Index) {
        self.requests.report_applied(through);
    }

    /// Takes the requests for the member, in order.
    pub(crate) fn take_member_requests(&mut self) -> Vec<MemberRequest> {
        self.requests.take_for_member()
    }

    /// Takes the requests for the source of a relay, in order.
    pub(crate) fn take_source_requests(&mut self) -> Vec<SourceRequest> {
        self.requests.take_for_source()
    }
}

/// The way of a transaction to the other server.
impl Forwarding {
    /// Whether a transaction is forwarded without being tried here. `is_repeated`: its client has
    /// sent it before ([`is_sent_again`]).
    pub(crate) fn forwards_at_once(
        &self,
        request: &Request,
        is_repeated: bool,
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
        // A `wait` that is unsatisfied here may be satisfied by what the session has in flight. If
        // the transaction was executed before, its `wait` may never be satisfied again: the leader
        // knows the outcome.
        let has_forwards = outputs.outboxes.has_forwards(request.session);
        let may_block = kind.may_wait && !is_repeated && !has_forwards;
        kind.may_change && !may_block
    }

    /// Undoes a transaction that was tried here and changed something. False if it may stay.
    pub(crate) fn withdraw_trial(
        &self,
        request: &Request,
        outcome: &Outcome,
        database: &mut Database,
    ) -> bool {
        if self.is_relay() {
            return Forwarding::withdraw_relay_trial(request, outcome, database);
        }
        self.follows() && Forwarding::undo_for_leader(request, outcome, database)
    }

    /// Undoes a transaction that was tried here and that the leader must execute: it changed
    /// something, or the leader may have executed the same one before, with another result. False
    /// if it may stay.
    pub(crate) fn undo_for_leader(
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
            || (request.once.is_some() && TransactionKind::of(request.params()).may_change)
    }

    /// The session of an input that must wait until its transactions in flight are answered.
    pub(crate) fn awaited_by(
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
        TransactionKind::of(request.params()).may_change
    }

    /// Forwards a request to the leader, now or when there is one.
    pub(crate) fn forward(
        &mut self,
        mut request: Box<Request>,
        steps: &mut Steps,
        parts: &mut Parts<'_>,
    ) {
        // Nobody waits for its outcome, and it has not happened yet.
        if request.info.is_closed() {
            parts.outputs.end_request(&request);
            return;
        }
        if self.is_relay() {
            match self.admit_relayed(request, steps, parts) {
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
            self.send_forward(number, steps, parts);
        }
    }

    /// Forwards the waiting requests that may go now, because a leader is known or there is room.
    pub(super) fn forward_waiting(&mut self, steps: &mut Steps, parts: &mut Parts<'_>) {
        if self.leader().is_none() || self.in_flight.is_empty() {
            return;
        }
        for number in self.in_flight.set_all_due() {
            self.send_forward(number, steps, parts);
        }
        steps.plan(Task::Advance);
    }

    /// Forwards those that had no room, if there is room.
    pub(super) fn end_throttling(&mut self, steps: &mut Steps) {
        if self.in_flight.end_throttling() {
            steps.plan(Task::ForwardWaiting);
        }
    }

    /// Forwards a waiting request, if there is a leader. False if it still waits.
    pub(super) fn send_forward(
        &mut self,
        number: Number,
        steps: &mut Steps,
        parts: &mut Parts<'_>,
    ) -> bool {
        let Some(request) = self.in_flight.request(number) else {
            return false;
        };
        // Its session is gone or about to be closed, and takes the request with it.
        if request.info.is_closed() || parts.is_dismissed(&request.info) {
            return false;
        }
        let Role::Follows(term, Some(_)) = self.role else {
            return false;
        };
        if !self.in_flight.has_room() {
            return false;
        }
        let Some(request) = self.in_flight.request(number) else {
            return false;
        };
        let asserts = TransactionKind::of(request.params()).asserts;
        // At the source the relay's session owns the locks of all its clients: an `assert` is
        // judged here, and once more now, because the request may have waited.
        if self.is_relay() && asserts && !owns_asserted(request, parts.environment) {
            if !is_sent_again(request) {
                self.fail_assertion(number, steps, parts);
                return true;
            }
            // It may have been executed when its client owned the lock over another connection.
            // The source is asked for the outcome, and executes nothing: no commit has this id.
            self.in_flight.only_ask(number);
        }
        let Some(request) = self.in_flight.request(number) else {
            return false;
        };
        match compose_forward(request, asserts, self.is_relay(), parts) {
            Ok((forward, locks)) => {
                self.in_flight.forwarded(number, forward.id, locks);
                self.requests.push_forward(term, forward);
            }
            Err(error) => self.fail_waiting(number, error, steps, parts),
        }
        true
    }

    /// A waiting request cannot be forwarded for this reason, which answers it.
    fn fail_waiting(
        &mut self,
        number: Number,
        error: WireError,
        steps: &mut Steps,
        parts: &mut Parts<'_>,
    ) {
        if let Some((entry, _)) = self.in_flight.take(number) {
            self.drop_once(&entry.request, parts);
            let answer = Answer::Error(Box::new(error));
            self.finish(entry, answer, false, steps, parts);
        }
    }

    /// The outcome of a forwarded request.
    pub(crate) fn handle_outcome(
        &mut self,
        id: Eid,
        outcome: ForwardOutcome,
        steps: &mut Steps,
        parts: &mut Parts<'_>,
    ) {
        if let Some((entry, reply)) = self.in_flight.outcome(id, outcome) {
            self.finish(entry, reply, true, steps, parts);
        }
        steps.plan(Task::FinishDecided);
    }

    /// Answers the next request whose outcome is based on entries through `applied`.
    pub(super) fn finish_decided(
        &mut self,
        applied: Index,
        steps: &mut Steps,
        parts: &mut Parts<'_>,
    ) {
        let Some((entry, outcome)) = self.in_flight.take_decided(applied) else {
            steps.plan(Task::Advance);
            steps.plan(Task::EndThrottling);
            return;
        };
        self.decide_once(&entry.request, &outcome, steps, parts);
        self.audit_relayed(&entry.request, &outcome, parts);
        // The audit trail shows it, although no client waits for it.
        if entry.is_withdrawn() {
            self.forget(entry.turn(), parts);
            steps.plan(Task::FinishDecided);
            return;
        }
        let answer = match outcome {
            ForwardOutcome::Unchanged(_, result) => Some(Answer::Result(result.into())),
            ForwardOutcome::Refused(_, error) => Some(Answer::Refused(error)),
            // It was withdrawn before it was sent.
            ForwardOutcome::Blocked(_) if self.is_relay() || entry.is_canceled => {
                Some(Answer::Canceled)
            }
            ForwardOutcome::Blocked(_) => None,
            ForwardOutcome::Proposed(_) => unreachable!("its own entry decides it"),
        };
        match answer {
            Some(answer) => self.finish(entry, answer, false, steps, parts),
            // A `wait` of a blocked transaction was not satisfied at the leader: it is tried here.
            None if entry.request.blocked => {
                self.forget(entry.turn(), parts);
                steps.push(Action::Retry(entry.request));
            }
            None => self.put_back(entry, Stage::Local),
        }
        steps.plan(Task::FinishDecided);
    }

    /// An entry of this term is committed: requests that depend on earlier ones never happened.
    pub(crate) fn end_doubt(&mut self, term: Term, steps: &mut Steps, parts: &mut Parts<'_>) {
        for number in self.in_flight.end_doubt(term) {
            self.send_forward(number, steps, parts);
        }
        steps.plan(Task::Advance);
    }

    /// Takes a request that no leader has, to be canceled. The source of a relay is asked to cancel
    /// a request that may be waiting there: its reply comes, whatever it is.
    pub(crate) fn take_canceled(
        &mut self,
        session: SessionId,
        id: &[u8],
        parts: &mut Parts<'_>,
    ) -> Option<Entry> {
        self.withdraw_at_source(session, Some(id));
        let Some(entry) = self.in_flight.take_waiting(session, id) else {
            self.in_flight.cancel_blocked(session, id);
            return None;
        };
        self.drop_once(&entry.request, parts);
        Some(entry)
    }

    /// A client has disconnected, or is about to be: requests that no leader has are withdrawn, the
    /// others end in silence. Its outbox stays blocked.
    pub(crate) fn withdraw_session(&mut self, session: SessionId, parts: &mut Parts<'_>) {
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

/// A request as it is forwarded, with the locks that its session holds.
///
/// # Errors
/// The leader, or the source, would not take it.
fn compose_forward(
    request: &Request,
    asserts: bool,
    is_relay: bool,
    parts: &mut Parts<'_>,
) -> Result<(Box<Forward>, Vec<String>), WireError> {
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
    if !is_relay && parts.names_clients {
        client.description = Some(recorded_client::describe(request));
    }
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
            is_repeated: once.is_repeated,
        }),
    });
    // The leader would refuse the message and not only the transaction, so it does not leave.
    if !is_relay && let Err(why) = limits::check_forward(&forward) {
        return Err(WireError::new(Tag::ResourcesExhausted, why.to_string()));
    }
    Ok((forward, locks))
}

/// Whether the client has sent this transaction before, over another connection. A member must ask
/// before it completes the request with a commit of its own choice.
pub(crate) fn is_sent_again(request: &Request) -> bool {
    request.once.is_some_and(|once| once.is_repeated)
}

/// Whether a transaction of a relay's session may go to the source as far as its locks are
/// concerned: the session owns those that it asserts.
pub(super) fn owns_asserted(request: &Request, environment: &Environment) -> bool {
    let asserted = asserted_locks(request.params());
    asserted.is_some_and(|locks| environment.owns_all(request.session, &locks))
}
