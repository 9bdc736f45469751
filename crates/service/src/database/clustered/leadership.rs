//! The change between leading and following.
//!
//! A database that loses leadership undoes its speculative commits. Their entries may still be committed by the next leader, so those
//! transactions stay in flight, in doubt, with their replies; so do the transactions of their sessions that changed nothing and have seen
//! them. Everything else that was pending is executed again, in the same order; requests behind a transaction in doubt wait for it. Nobody
//! gets an error. A database that begins to lead knows everything that can have been committed, so it executes all that is in flight, except
//! transactions that a snapshot may contain (`seeking.rs`).

use corvid_log::cluster::{Eid, Sid, Term};

use super::super::replies::{Answer, Origin, Outputs, Pending, Reason};
use super::steps::{Action, Task};
use super::{Clustered, Entry, Part, Parts, Stage};
use crate::message::{DatabaseMethod, Request, ToDatabase};
use crate::upstream::TransactionKind;

/// How an undone entry of the pending queue goes on.
pub(in super::super) enum Undone {
    /// It is in flight, or ends.
    Resolved,
    /// This reply is pending again.
    Answer(Answer, Origin),
    /// This input is executed again.
    Again(ToDatabase),
}

impl Clustered {
    /// The member leads, and everything before its leadership is applied.
    pub(super) fn lead(&mut self, term: Term) {
        if let Part::Leads(present) = self.part {
            if present == term {
                return;
            }
            let part = Part::Follows(term, None);
            self.steps.push(Action::GiveUpLeadership(present, part));
        }
        self.steps.plan(Task::Lead(term));
    }

    /// Executes what is in flight, as the leader. Requests that are sought wait.
    pub(super) fn execute_in_flight(&mut self, parts: &mut Parts<'_>) {
        // An outcome that waits for an entry changed nothing, so that transaction may be executed again too.
        let (blocked, sessions) = self.in_flight.make_local();
        for session in sessions {
            parts.outputs.outboxes.block(session, Reason::Cluster);
        }
        for Entry { request, .. } in blocked {
            if request.info.is_closed() {
                parts.outputs.end_request(&request);
            } else if parts.is_converting() {
                parts.barrier_queue.push(ToDatabase::Request(request));
            } else {
                self.steps.push(Action::Execute(request));
            }
        }
        self.steps.plan(Task::Advance);
    }

    /// The member does not lead.
    pub(super) fn follow(&mut self, term: Term, leader: Option<Sid>) {
        let part = Part::Follows(term, leader);
        if let Part::Leads(led) = self.part {
            self.steps.push(Action::GiveUpLeadership(led, part));
        } else {
            self.part = part;
            self.in_flight.begin_term(term);
        }
        self.steps.plan(Task::ForwardWaiting);
    }

    /// The leadership is over. Returns the requests in flight here, which come after the pending
    /// ones of their sessions.
    pub(in super::super) fn take_part(&mut self, part: Part) -> Vec<(Box<Request>, Stage)> {
        self.part = part;
        // The member would drop them. Their transactions are in doubt all the same, and never happened.
        self.proposals.clear();
        let (Part::Follows(term, _) | Part::Leads(term)) = part;
        self.in_flight.begin_term(term);
        self.in_flight.take_ordered()
    }

    /// Keeps an undone entry if it is in doubt, or follows one of its session; `after` is the last commit up to it. The requests of a closed
    /// session are dropped: nothing of it happens any more.
    pub(in super::super) fn doubt(
        &mut self,
        led: Term,
        after: Option<Eid>,
        entry: Pending,
        outputs: &mut Outputs,
    ) -> Undone {
        match (entry.origin, entry.answer, entry.commit) {
            (Origin::Client(request), ..) if request.info.is_closed() => {
                outputs.end_request(&request);
                Undone::Resolved
            }
            (Origin::Client(request), reply, Some(commit)) => {
                let (term, id) = (led, Eid(commit.txn));
                self.keep(request, Stage::Proposed { term, id, reply }, outputs);
                Undone::Resolved
            }
            // This reply does not depend on the state.
            (origin, Answer::Canceled, None) => Undone::Answer(Answer::Canceled, origin),
            (Origin::Client(request), Answer::Certain(reply, has_changed), None) => {
                if !is_behind(&request, outputs) {
                    let answer = Answer::Certain(reply, has_changed);
                    return Undone::Answer(answer, Origin::Client(request));
                }
                let reply = *reply;
                let stage = Stage::Answered { reply, has_changed };
                self.keep(request, stage, outputs);
                Undone::Resolved
            }
            (Origin::Client(request), reply, None) if must_keep(&request, outputs) => {
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
                self.keep(request, stage, outputs);
                Undone::Resolved
            }
            (Origin::Client(request), ..) => Undone::Again(ToDatabase::Request(request)),
            (Origin::Cancel(session, id), ..) => Undone::Again(ToDatabase::Cancel(session, id)),
            (Origin::Control(control), ..) => Undone::Again(ToDatabase::Control(control)),
            // The member that has the session finds out. The server itself writes nothing to a clustered database.
            (Origin::Forwarded(_) | Origin::Server(_) | Origin::Source | Origin::Member(_), ..) => {
                Undone::Resolved
            }
        }
    }

    /// Keeps an undone request in flight; the later requests of its session wait in its outbox.
    pub(in super::super) fn keep(
        &mut self,
        request: Box<Request>,
        stage: Stage,
        outputs: &mut Outputs,
    ) {
        if request.info.is_closed() {
            outputs.end_request(&request);
            return;
        }
        if !request.blocked {
            outputs.outboxes.begin_forward(request.session);
            outputs.outboxes.block(request.session, Reason::Cluster);
        }
        self.in_flight.push(request, stage);
    }

    /// Keeps requests that were in flight before, after the others.
    pub(in super::super) fn keep_again(&mut self, behind: Vec<(Box<Request>, Stage)>) {
        for (request, stage) in behind {
            self.in_flight.push(request, stage);
        }
    }
}

/// Whether an undone request must wait for earlier ones of its session.
pub(in super::super) fn is_behind(request: &Request, outputs: &Outputs) -> bool {
    let outboxes = &outputs.outboxes;
    !request.blocked
        && (outboxes.has_forwards(request.session)
            || outboxes.is_blocked_except_by_cluster(request.session))
}

/// Whether an undone request that changed nothing is kept in flight: it follows others, or could only be executed by a leader.
fn must_keep(request: &Request, outputs: &Outputs) -> bool {
    let is_for_leader = || {
        request.method == DatabaseMethod::Transact
            && TransactionKind::of(request.params()).may_write
    };
    !request.blocked && (is_behind(request, outputs) || is_for_leader())
}
