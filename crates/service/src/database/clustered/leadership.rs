//! The change between leading and following.
//!
//! A database that loses leadership undoes its speculative commits. Their entries may still be committed by the next leader, so those
//! transactions stay in flight, in doubt, with their replies; so do the transactions of their sessions that changed nothing and have seen
//! them. Everything else that was pending is executed again, in the same order; requests behind a transaction in doubt wait for it. Nobody
//! gets an error. A database that begins to lead knows everything that can have been committed, so it executes all that is in flight.

use corvid_log::cluster::{Eid, Sid, Term};

use super::super::outbox::Reason;
use super::super::pending::{Answer, Origin, Pending};
use super::super::undo::changed_sessions;
use super::super::{DatabaseService, Now};
use super::{InFlight, Part};
use crate::message::{DatabaseMethod, ToDatabase};

impl DatabaseService {
    /// The member leads, and everything before its leadership is applied.
    pub(super) fn lead(&mut self, now: Now, term: Term) {
        if let Some(Part::Leads(present)) = self.part() {
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
        let requests = cluster.in_flight.take_all();
        let mut sessions = Vec::new();
        let mut again = Vec::new();
        // An outcome that waits for an entry changed nothing, so that transaction may be executed again too.
        for request in requests {
            if !request.blocked {
                self.outputs.outboxes.end_forward(request.session);
                sessions.push(request.session);
            }
            again.push(ToDatabase::Request(request));
        }
        let mut requeued = Vec::new();
        for input in again {
            requeued.extend(self.execute_again_unless_blocked(now, input));
        }
        self.put_back(requeued);
        for session in sessions {
            self.resume_if_unblocked(session);
        }
    }

    /// The member does not lead.
    pub(super) fn follow(&mut self, now: Now, term: Term, leader: Option<Sid>) {
        let part = Part::Follows(term, leader);
        if let Some(Part::Leads(led)) = self.part() {
            self.lose_leadership(now, led, part);
        } else if let Some(cluster) = self.model.cluster_mut() {
            cluster.part = part;
            cluster.in_flight.begin_term(term);
        }
        self.forward_waiting(now);
    }

    fn part(&self) -> Option<Part> {
        self.model.cluster().map(|cluster| cluster.part)
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
        let undone = self.pending.take_all();
        if undone.is_empty() {
            self.lose_conversion(now, led);
            return;
        }
        let affected = self.undo_commits(&undone);
        self.monitors.undo();
        for entry in &undone {
            self.undo_monitor_change(entry);
        }
        self.report_remotes_again();
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
        self.put_back(requeued);
        self.lose_conversion(now, led);
        self.release();
        self.retry(now, affected);
        self.release();
        for session in sessions {
            self.resume_if_unblocked(session);
        }
    }

    /// Keeps an undone entry if it is in doubt; `after` is the last commit up to it. Otherwise returns the input that is executed again, if
    /// there is one.
    fn doubt(&mut self, led: Term, after: Option<Eid>, entry: Pending) -> Option<ToDatabase> {
        match (entry.origin, entry.answer, entry.commit) {
            (Origin::Client(request), reply, Some(commit)) => {
                if !request.blocked {
                    self.outputs.outboxes.begin_forward(request.session);
                }
                let in_flight = self.in_flight_mut()?;
                in_flight.push_proposed(led, Eid(commit.txn), request, reply);
                None
            }
            (Origin::Client(request), reply @ (Answer::Result(_) | Answer::Long(..)), None)
                if request.method == DatabaseMethod::Transact
                    && after.is_some()
                    && self.outputs.outboxes.has_forwards(request.session) =>
            {
                if !request.blocked {
                    self.outputs.outboxes.begin_forward(request.session);
                }
                self.in_flight_mut()?.push_seen(led, after?, request, reply);
                None
            }
            // This reply does not depend on the state.
            (origin, Answer::Canceled, None) => {
                self.pending.push(Pending::answer(Answer::Canceled, origin));
                None
            }
            // A closed session has no monitors any more, and must not get any.
            (Origin::Client(request), ..)
                if request.method.is_about_monitors() && request.info.is_closed() =>
            {
                None
            }
            (Origin::Client(request), ..) => Some(ToDatabase::Request(request)),
            (Origin::Cancel(session, id), ..) => Some(ToDatabase::Cancel(session, id)),
            (Origin::Control(control), ..) => Some(ToDatabase::Control(control)),
            // The member that has the session finds out. The server itself writes nothing to a clustered database.
            (Origin::Forwarded(_) | Origin::Server(_) | Origin::Source, ..) => None,
        }
    }

    /// Requests that depend on the rest of the cluster.
    pub(super) fn in_flight_mut(&mut self) -> Option<&mut InFlight> {
        Some(&mut self.model.cluster_mut()?.in_flight)
    }

    /// Executes an input that was executed or in flight before. Returns it if it must wait in the outbox of its session, before the later
    /// requests of that session.
    fn execute_again_unless_blocked(&mut self, now: Now, input: ToDatabase) -> Option<ToDatabase> {
        let is_blocked = matches!(&input, ToDatabase::Request(request) if request.blocked);
        if !is_blocked {
            if let Some((session, reason)) = self.reason_to_wait(&input) {
                self.outputs.outboxes.block(session, reason);
            }
            if self.outputs.outboxes.must_queue(&input) {
                return Some(input);
            }
        }
        match input {
            // It waits until nothing is pending, with the later requests of its session.
            ToDatabase::Request(request) if request.method == DatabaseMethod::Convert => {
                return Some(ToDatabase::Request(request));
            }
            ToDatabase::Request(request) => self.request(now, request),
            ToDatabase::Cancel(session, id) => self.cancel(now, session, id),
            ToDatabase::Control(control) => self.control(now, control),
            _ => unreachable!("only these are pending or in flight"),
        }
        None
    }

    /// Puts inputs before the later ones of their sessions.
    fn put_back(&mut self, inputs: Vec<ToDatabase>) {
        for input in inputs.into_iter().rev() {
            self.outputs.outboxes.put_back(input);
        }
    }

    /// The reason for which an input of a session that is not blocked must wait, if there is one.
    fn reason_to_wait(&self, input: &ToDatabase) -> Option<(corvid_monitor::SessionId, Reason)> {
        if let Some(session) = self.awaits_cluster(input) {
            return Some((session, Reason::Cluster));
        }
        match input {
            ToDatabase::Request(request)
                if request.method.is_about_monitors()
                    && self.outputs.outboxes.changes_monitors(request.session) =>
            {
                Some((request.session, Reason::MonitorChange))
            }
            _ => None,
        }
    }
}
