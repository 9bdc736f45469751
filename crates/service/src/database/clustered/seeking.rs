//! Transactions in doubt that an installed snapshot may contain.
//!
//! The snapshot does not tell, so the member asks the others, who have seen its entries one by one.
//! Meanwhile such a request is *sought*: it is neither executed again nor overtaken by later
//! requests of its session. Invariant: nothing is guessed. A request whose entry is in the snapshot
//! gets the reply of the leader that executed it; one whose entry is not is in doubt as before, and
//! never happened if an entry of a later term is committed. If no member knows, or the reply is
//! lost with the leader, the client is disconnected.

use corvid_consensus::database::{Finding, MemberRequest};
use corvid_log::cluster::{Eid, Index, Term};

use crate::message::Event;
use crate::replies::Reason;
use crate::upstream::{Forwarding, MemberTask, Number, Parts, Task, Upstream};

/// A snapshot is about to replace the contents; its last entry has this term.
pub(super) fn seek(upstream: &mut Upstream, last: Term) {
    let applied = upstream.contents.applied();
    upstream.forwarding.in_flight_mut().seek(last, applied);
}

/// The contents are those of a snapshot through this entry: asks the other members about the
/// requests that are sought.
pub(super) fn ask_for_sought(upstream: &mut Upstream, through: Index) {
    let forwarding = &mut upstream.forwarding;
    if let Some((after, ids)) = forwarding.in_flight_mut().question(through) {
        forwarding.ask_member(MemberRequest::Find {
            after,
            through,
            ids,
        });
    }
}

/// Other members have told about requests that are sought.
pub(super) fn judge_findings(
    upstream: &mut Upstream,
    through: Index,
    findings: Vec<(Eid, Finding)>,
) {
    // A request that never happened is judged by those of its session that did.
    let is_committed = |(_, finding): &(Eid, Finding)| *finding == Finding::Committed;
    let (committed, others): (Vec<_>, Vec<_>) = findings.into_iter().partition(is_committed);
    let steps = &mut upstream.steps;
    for (id, _) in committed {
        steps.plan_for_member(MemberTask::AnswerFound(id));
    }
    steps.plan_for_member(MemberTask::JudgeOthers(through, others));
    steps.plan_for_member(MemberTask::EndSearch);
}

/// The entries with these ids are not in the snapshot through that entry, or no member knows.
pub(super) fn judge_others(
    upstream: &mut Upstream,
    through: Index,
    others: Vec<(Eid, Finding)>,
    parts: &mut Parts<'_>,
) {
    let forwarding = &mut upstream.forwarding;
    for (id, finding) in others {
        let in_flight = forwarding.in_flight_mut();
        // The entry may be in a later snapshot; a further search is under way.
        if !in_flight.is_sought_through(through) {
            continue;
        }
        if finding == Finding::Absent {
            let mut numbers = in_flight.sought_behind(id);
            numbers.extend(in_flight.sought(id));
            for number in numbers {
                in_flight.set_absent(number);
            }
        } else {
            give_up_unknown(forwarding, id, parts);
        }
    }
}

/// Everything that was found is judged: requests that are no longer in doubt continue.
pub(super) fn end_search(upstream: &mut Upstream, parts: &mut Parts<'_>) {
    let Upstream {
        forwarding, steps, ..
    } = upstream;
    let judged = forwarding.in_flight_mut().judged();
    forwarding.end_doubt(judged, steps, parts);
    if !forwarding.follows() {
        steps.plan_for_member(MemberTask::ExecuteInFlight);
    }
}

/// The entry with this id is in the snapshot.
pub(super) fn answer_found(upstream: &mut Upstream, id: Eid, parts: &mut Parts<'_>) {
    let Upstream {
        forwarding, steps, ..
    } = upstream;
    let in_flight = forwarding.in_flight_mut();
    if let Some(number) = in_flight.sought(id) {
        let overtaken = in_flight.overtaken_by(number);
        if let Some((entry, reply)) = in_flight.take_found(number) {
            forwarding.finish(entry, reply, true, steps, parts);
        }
        if let Some(overtaken) = overtaken {
            give_up(forwarding, overtaken, parts);
        }
    }
    steps.plan(Task::FinishSeen(id));
}

/// No member knows whether the entry with this id is in the snapshot, or what the outcome of its
/// transaction was.
fn give_up_unknown(forwarding: &mut Forwarding, id: Eid, parts: &mut Parts<'_>) {
    let seen = forwarding.in_flight_mut().sought_behind(id);
    if let Some(number) = forwarding.in_flight_mut().sought(id) {
        give_up(forwarding, number, parts);
    }
    for number in seen {
        let in_flight = forwarding.in_flight_mut();
        if in_flight.is_overtaken(number) {
            give_up(forwarding, number, parts);
        } else {
            // It changed nothing, so it may be executed again.
            in_flight.set_absent(number);
        }
    }
}

/// The outcome of a request will never be known: its client is disconnected.
fn give_up(forwarding: &mut Forwarding, number: Number, parts: &mut Parts<'_>) {
    let in_flight = forwarding.in_flight_mut();
    let Some((entry, _)) = in_flight.take(number) else {
        return;
    };
    let session = entry.request.session;
    in_flight.forget(session, number);
    if entry.is_withdrawn() {
        return;
    }
    let outputs = &mut *parts.outputs;
    outputs.end_request(&entry.request);
    outputs.outboxes.block(session, Reason::Cluster);
    let reason = "the outcome of a transaction is not known";
    outputs
        .events
        .push(Event::OutcomeUnknown(session, reason.into()));
    // None of its other requests happens.
    forwarding.withdraw_session(session, parts);
}
