//! Transactions in doubt that an installed snapshot may contain.
//!
//! The snapshot does not tell, so the member asks the others, who have seen its entries one by one. Meanwhile such a request is *sought*: it is
//! neither executed again nor overtaken by later requests of its session. Invariant: nothing is guessed. A request whose entry is in the
//! snapshot gets the reply of the leader that executed it; one whose entry is not is in doubt as before, and never happened if an entry of
//! a later term is committed. If no member knows, or the reply is lost with the leader, the client is disconnected.

use corvid_consensus::database::{Finding, MemberRequest};
use corvid_log::cluster::{Eid, Index, Term};

use super::super::replies::Reason;
use super::steps::Task;
use super::{Clustered, Part, Parts};
use crate::message::Event;
use crate::upstream::Number;

impl Clustered {
    /// A snapshot is about to replace the contents; its last entry has this term.
    pub(super) fn seek(&mut self, last: Term) {
        self.in_flight.seek(last, self.applied);
    }

    /// The contents are those of a snapshot through this entry: asks the other members about what
    /// is sought.
    pub(super) fn ask_for_sought(&mut self, through: Index) {
        if let Some((after, ids)) = self.in_flight.question(through) {
            self.push_request(MemberRequest::Find {
                after,
                through,
                ids,
            });
        }
    }

    /// Other members have told about requests that are sought.
    pub(super) fn judge_findings(&mut self, through: Index, findings: Vec<(Eid, Finding)>) {
        // A request that never happened is judged by those of its session that did.
        let is_committed = |(_, finding): &(Eid, Finding)| *finding == Finding::Committed;
        let (committed, others): (Vec<_>, Vec<_>) = findings.into_iter().partition(is_committed);
        for (id, _) in committed {
            self.steps.plan(Task::AnswerFound(id));
        }
        self.steps.plan(Task::JudgeOthers(through, others));
        self.steps.plan(Task::EndSearch);
    }

    /// The entries with these ids are not in the snapshot through that entry, or nobody knows.
    pub(super) fn judge_others(
        &mut self,
        through: Index,
        others: Vec<(Eid, Finding)>,
        parts: &mut Parts<'_>,
    ) {
        for (id, finding) in others {
            // The entry may be in a later snapshot; a further search is under way.
            if !self.in_flight.is_sought_through(through) {
                continue;
            }
            if finding == Finding::Absent {
                let mut numbers = self.in_flight.sought_behind(id);
                numbers.extend(self.in_flight.sought(id));
                for number in numbers {
                    self.in_flight.set_absent(number);
                }
            } else {
                self.give_up_unknown(id, parts);
            }
        }
    }

    /// Everything that was found is judged: what is not in doubt any more continues.
    pub(super) fn end_search(&mut self, parts: &mut Parts<'_>) {
        self.end_doubt(self.in_flight.judged(), parts);
        if let Part::Leads(_) = self.part {
            self.steps.plan(Task::ExecuteInFlight);
        }
    }

    /// The entry with this id is in the snapshot.
    pub(super) fn answer_found(&mut self, id: Eid, parts: &mut Parts<'_>) {
        if let Some(number) = self.in_flight.sought(id) {
            let overtaken = self.in_flight.overtaken_by(number);
            if let Some((entry, reply)) = self.in_flight.take_found(number) {
                self.finish(entry, reply, true, parts);
            }
            if let Some(overtaken) = overtaken {
                self.give_up(overtaken, parts);
            }
        }
        self.steps.plan(Task::FinishSeen(id));
    }

    /// No member knows whether the entry with this id is in the snapshot, or what the outcome of its transaction was.
    fn give_up_unknown(&mut self, id: Eid, parts: &mut Parts<'_>) {
        let seen = self.in_flight.sought_behind(id);
        if let Some(number) = self.in_flight.sought(id) {
            self.give_up(number, parts);
        }
        for number in seen {
            if self.in_flight.is_overtaken(number) {
                self.give_up(number, parts);
            } else {
                // It changed nothing, so it may be executed again.
                self.in_flight.set_absent(number);
            }
        }
    }

    /// The outcome of a request will never be known: its client is disconnected.
    fn give_up(&mut self, number: Number, parts: &mut Parts<'_>) {
        let Some((entry, _)) = self.in_flight.take(number) else {
            return;
        };
        let session = entry.request.session;
        self.in_flight.forget(session, number);
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
        // Nothing of it happens any more.
        self.withdraw_session(session, parts);
    }
}
