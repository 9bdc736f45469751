//! The change between leading and following.
//!
//! A database that loses leadership undoes its speculative commits. Their entries may still be
//! committed by the next leader, so those transactions stay in flight, in doubt, with their
//! replies; so do the transactions of their sessions that changed nothing and have seen them.
//! Everything else that was pending is executed again, in the same order; requests after a
//! transaction in doubt wait for it. Nobody gets an error. A database that begins to lead knows
//! everything that can have been committed, so it executes all that is in flight, except
//! transactions that a snapshot may contain (`seeking.rs`).

use corvid_log::cluster::{Eid, Term};

use crate::message::{DatabaseMethod, Request, ToDatabase};
use crate::replies::{Answer, Origin, Outputs, Pending, Reason};
use crate::upstream::{
    Action, Entry, Forwarding, MemberTask, Parts, Reply, Role, Stage, Task, TransactionKind,
    Upstream,
};

/// How an undone entry of the pending queue goes on.
pub(in super::super) enum Undone {
    /// It is in flight, or ends.
    Resolved,
    /// This reply is pending again.
    Answer(Answer, Origin),
    /// This input is executed again.
    Again(ToDatabase),
}

/// The member leads, and everything before its leadership is applied.
pub(super) fn lead(upstream: &mut Upstream, term: Term) {
    if let Role::Leads(present) = upstream.forwarding.role() {
        if present == term {
            return;
        }
        // Commits of the earlier leadership are in doubt, and must not be taken for this one's.
        let role = Role::Follows(term, None);
        upstream.steps.push(Action::GiveUpLeadership(present, role));
    }
    upstream.steps.plan_for_member(MemberTask::Lead(term));
}

/// Begins to lead in this term.
pub(super) fn begin(upstream: &mut Upstream, term: Term) {
    assert!(upstream.forwarding.follows(), "a leadership is given up");
    upstream.forwarding.begin_role(Role::Leads(term));
    let task = MemberTask::ExecuteInFlight;
    upstream.steps.plan_for_member(task);
}

/// Executes what is in flight, as the leader. Requests that are sought wait.
pub(super) fn execute_in_flight(upstream: &mut Upstream, parts: &mut Parts<'_>) {
    let Upstream {
        forwarding, steps, ..
    } = upstream;
    // An outcome that waits for an entry changed nothing, so that transaction may be executed again
    // too.
    let (blocked, sessions) = forwarding.in_flight_mut().make_local();
    for session in sessions {
        parts.outputs.outboxes.block(session, Reason::Cluster);
    }
    for entry in blocked {
        let is_canceled = entry.is_canceled();
        let Entry { request, .. } = entry;
        if request.info.is_closed() {
            parts.outputs.end_request(&request);
        } else if is_canceled {
            steps.push(Action::Answer(Reply {
                request,
                answer: Answer::Canceled,
                has_changed: false,
                turn: None,
            }));
        } else if parts.is_converting {
            parts.barrier_queue.push(ToDatabase::Request(request));
        } else {
            steps.push(Action::Execute(request));
        }
    }
    steps.plan(Task::Advance);
}

/// Keeps an undone entry if it is in doubt, or follows one of its session; `after` is the last
/// commit of the leadership in the term `led` up to it. The requests of a closed session are
/// dropped: nothing of it is executed.
pub(super) fn doubt(
    forwarding: &mut Forwarding,
    (led, after): (Term, Option<Eid>),
    entry: Pending,
    outputs: &mut Outputs,
) -> Undone {
    match (entry.origin, entry.answer, entry.commit) {
        (Origin::Client(request), ..) if request.info.is_closed() => {
            outputs.end_request(&request);
            Undone::Resolved
        }
        // Its entry may be committed, so it must not be executed again before that is certain.
        (Origin::Client(request), reply, Some(commit)) => {
            let (term, id) = (led, Eid(commit.txn));
            forwarding.keep(request, Stage::Proposed { term, id, reply }, outputs);
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
            forwarding.keep(request, stage, outputs);
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
            forwarding.keep(request, stage, outputs);
            Undone::Resolved
        }
        (Origin::Client(request), ..) => Undone::Again(ToDatabase::Request(request)),
        (Origin::Cancel(session, id), ..) => Undone::Again(ToDatabase::Cancel(session, id)),
        (Origin::Control(control), ..) => Undone::Again(ToDatabase::Control(control)),
        // The member that has the session finds out. The server itself writes nothing to a
        // clustered database.
        (Origin::Forwarded(_) | Origin::Server(_) | Origin::Source | Origin::Member(_), ..) => {
            Undone::Resolved
        }
    }
}

/// Keeps requests that were in flight before, after the others.
pub(in super::super) fn keep_again(
    forwarding: &mut Forwarding,
    behind: Vec<(Box<Request>, Stage)>,
) {
    for (request, stage) in behind {
        forwarding.in_flight_mut().push(request, stage);
    }
}

/// Whether an undone request must wait for earlier ones of its session.
pub(in super::super) fn is_behind(request: &Request, outputs: &Outputs) -> bool {
    let outboxes = &outputs.outboxes;
    !request.blocked
        && (outboxes.has_forwards(request.session)
            || outboxes.is_blocked_except_by_cluster(request.session))
}

/// Whether an undone request that changed nothing is kept in flight: it follows others, or could
/// only be executed by a leader.
fn must_keep(request: &Request, outputs: &Outputs) -> bool {
    let is_for_leader = || {
        request.method == DatabaseMethod::Transact
            && TransactionKind::of(request.params()).may_change
    };
    !request.blocked && (is_behind(request, outputs) || is_for_leader())
}
