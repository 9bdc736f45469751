//! The change between leading and following.
//!
//! A database that loses leadership undoes its speculative commits. Their entries may still be committed by the next leader, so those
//! transactions stay in flight, in doubt, with their replies; so do the transactions of their sessions that changed nothing and have seen
//! them. Everything else that was pending is executed again, in the same order; requests behind a transaction in doubt wait for it. Nobody
//! gets an error. A database that begins to lead knows everything that can have been committed, so it executes all that is in flight, except
//! transactions that a snapshot may contain (`seeking.rs`).

use corvid_log::cluster::{Eid, Sid, Term};

use super::super::replies::{Answer, Origin, Pending, Reason};
use super::super::undo::changed_sessions;
use super::super::{DatabaseService, Now};
use super::request_stage::{Entry, Stage};
use super::{InFlight, Part, TransactionKind};
use crate::message::{DatabaseMethod, Request, ToDatabase};

impl DatabaseService {
    /// The member leads, and everything before its leadership is applied.
    pub(super) fn lead(&mut self, now: Now, term: Term) {
        if let Some(Part::Leads(present)) = self.model.part() {
            if present == term {
                return;
            }
            self.lose_leadership(now, present, Part::Follows(term, None));
        }
        let Some(cluster) = self.model.cluster_mut() else {
            return;
        };
        cluster.part = Part::Leads(term);
        cluster.in_flight.begin_term(term);
        self.execute_in_flight(now);
    }

    /// Executes what is in flight, as the leader. Requests that are sought wait.
    pub(super) fn execute_in_flight(&mut self, now: Now) {
        let Some(in_flight) = self.model.in_flight_mut() else {
            return;
        };
        // An outcome that waits for an entry changed nothing, so that transaction may be executed again too.
        let (blocked, sessions) = in_flight.make_local();
        for session in sessions {
            self.outputs.outboxes.block(session, Reason::Cluster);
        }
        for Entry { request, .. } in blocked {
            if request.info.is_closed() {
                self.end_request(&request);
            } else if self.conversions.is_waiting(&self.file) {
                self.barrier_queue.push(ToDatabase::Request(request));
            } else {
                self.execute_request(now, request);
            }
        }
        self.advance_due(now);
    }

    /// The member does not lead.
    pub(super) fn follow(&mut self, now: Now, term: Term, leader: Option<Sid>) {
        let part = Part::Follows(term, leader);
        if let Some(Part::Leads(led)) = self.model.part() {
            self.lose_leadership(now, led, part);
        } else if let Some(cluster) = self.model.cluster_mut() {
            cluster.part = part;
            cluster.in_flight.begin_term(term);
        }
        self.forward_waiting(now);
    }

    /// Undoes all speculative commits of the leadership in this term.
    fn lose_leadership(&mut self, now: Now, led: Term, part: Part) {
        let Some(cluster) = self.model.cluster_mut() else {
            return;
        };
        cluster.part = part;
        // The member would drop them. Their transactions are in doubt all the same, and never happened.
        cluster.proposals.clear();
        let (Part::Follows(term, _) | Part::Leads(term)) = part;
        cluster.in_flight.begin_term(term);
        // The requests in flight here wait behind pending ones of their sessions.
        let behind = cluster.in_flight.take_ordered();
        let undone = self.pending.take_all();
        if undone.is_empty() {
            self.keep_again(behind);
            self.lose_conversion(now, led);
            return;
        }
        let affected = self.undo_commits(&undone);
        self.subscriptions.undo();
        for entry in &undone {
            self.undo_monitor_change(entry);
        }
        self.observers
            .observe_undo(&self.database, &mut self.outputs);
        // They came behind everything that their sessions have pending, and before what they have in flight.
        let mut waited = self
            .subscriptions
            .take_waiting_for_contents(&mut self.outputs);
        let in_flight = self.model.in_flight_mut();
        waited.extend(in_flight.into_iter().flat_map(InFlight::take_all_anew));
        let sessions = changed_sessions(&undone);
        let mut requeued = Vec::new();
        let mut after = None;
        for entry in undone {
            let txn = entry.commit.as_ref().map(|commit| Eid(commit.txn));
            after = txn.or(after);
            // Before a later transaction of its session is in doubt, and has a reply.
            let again = self.doubt(led, after, entry);
            requeued.extend(again.and_then(|input| self.execute_again_unless_blocked(now, input)));
        }
        for request in waited {
            if self.is_behind(&request) {
                self.keep(Box::new(request), Stage::Local);
            } else {
                let input = ToDatabase::Request(Box::new(request));
                requeued.extend(self.execute_again_unless_blocked(now, input));
            }
        }
        self.keep_again(behind);
        self.put_back_inputs(requeued);
        self.lose_conversion(now, led);
        self.release();
        self.retry(now, affected);
        self.release();
        for session in sessions {
            self.resume_if_unblocked(session);
        }
    }

    /// Keeps an undone entry if it is in doubt, or behind one of its session; `after` is the last commit up to it. Otherwise returns the
    /// input that is executed again, if there is one. The requests of a closed session are dropped: nothing of it happens any more.
    fn doubt(&mut self, led: Term, after: Option<Eid>, entry: Pending) -> Option<ToDatabase> {
        match (entry.origin, entry.answer, entry.commit) {
            (Origin::Client(request), ..) if request.info.is_closed() => {
                self.end_request(&request);
                None
            }
            (Origin::Client(request), reply, Some(commit)) => {
                let (term, id) = (led, Eid(commit.txn));
                self.keep(request, Stage::Proposed { term, id, reply });
                None
            }
            // This reply does not depend on the state.
            (origin, Answer::Canceled, None) => {
                self.pending.push(Pending::answer(Answer::Canceled, origin));
                None
            }
            (Origin::Client(request), Answer::Certain(reply, has_changed), None) => {
                if self.is_behind(&request) {
                    let reply = *reply;
                    self.keep(request, Stage::Answered { reply, has_changed });
                } else {
                    let answer = Answer::Certain(reply, has_changed);
                    let origin = Origin::Client(request);
                    self.pending.push(Pending::answer(answer, origin));
                }
                None
            }
            (Origin::Client(request), reply, None) if self.must_keep(&request) => {
                let stage = match (after, reply) {
                    (
                        Some(after),
                        reply @ (Answer::Result(_) | Answer::Long(..) | Answer::Error(_)),
                    ) if request.method == DatabaseMethod::Transact => {
                        let term = led;
                        Stage::Seen { term, after, reply }
                    }
                    _ => Stage::Local,
                };
                self.keep(request, stage);
                None
            }
            (Origin::Client(request), ..) => Some(ToDatabase::Request(request)),
            (Origin::Cancel(session, id), ..) => Some(ToDatabase::Cancel(session, id)),
            (Origin::Control(control), ..) => Some(ToDatabase::Control(control)),
            // The member that has the session finds out. The server itself writes nothing to a clustered database.
            (Origin::Forwarded(_) | Origin::Server(_) | Origin::Source | Origin::Member(_), ..) => {
                None
            }
        }
    }

    /// Whether an undone request must wait for earlier ones of its session.
    fn is_behind(&self, request: &Request) -> bool {
        let outboxes = &self.outputs.outboxes;
        !request.blocked
            && (outboxes.has_forwards(request.session)
                || outboxes.is_blocked_except_by_cluster(request.session))
    }

    /// Whether an undone request that changed nothing is kept in flight: it is behind others, or could only be executed by a leader.
    fn must_keep(&self, request: &Request) -> bool {
        let is_for_leader = || {
            request.method == DatabaseMethod::Transact
                && TransactionKind::of(request.params()).may_write
        };
        !request.blocked && (self.is_behind(request) || is_for_leader())
    }

    /// Keeps an undone request in flight; the later requests of its session wait in its outbox.
    pub(super) fn keep(&mut self, request: Box<Request>, stage: Stage) {
        if request.info.is_closed() {
            self.end_request(&request);
            return;
        }
        if !request.blocked {
            let outboxes = &mut self.outputs.outboxes;
            outboxes.begin_forward(request.session);
            outboxes.block(request.session, Reason::Cluster);
        }
        if let Some(in_flight) = self.model.in_flight_mut() {
            in_flight.push(request, stage);
        }
    }

    /// Keeps requests that were in flight before, behind the others.
    fn keep_again(&mut self, behind: Vec<(Box<Request>, Stage)>) {
        if let Some(in_flight) = self.model.in_flight_mut() {
            for (request, stage) in behind {
                in_flight.push(request, stage);
            }
        }
    }

    /// Executes an input again. Returns it if it must wait in the outbox of its session, before the later requests of that session.
    fn execute_again_unless_blocked(&mut self, now: Now, input: ToDatabase) -> Option<ToDatabase> {
        if let Some(session) = self.awaits_cluster(&input) {
            self.outputs.outboxes.block(session, Reason::Cluster);
        }
        let is_retry = matches!(&input, ToDatabase::Request(request) if request.blocked);
        if !is_retry && self.outputs.outboxes.must_queue(&input) {
            return Some(input);
        }
        match input {
            ToDatabase::Request(request) => self.execute_request(now, request),
            ToDatabase::Cancel(session, id) => self.cancel(now, session, id),
            ToDatabase::Control(control) => self.handle_control(now, control),
            _ => unreachable!("only these are pending"),
        }
        None
    }

    /// Puts inputs before the later ones of their sessions.
    fn put_back_inputs(&mut self, inputs: Vec<ToDatabase>) {
        for input in inputs.into_iter().rev() {
            self.outputs.outboxes.put_back(input);
        }
    }
}
