//! Transactions in doubt that an installed snapshot may contain.
//!
//! The snapshot does not tell, so the member asks the others, who have seen its entries one by one. Meanwhile such a request is *sought*: it is
//! neither executed again nor overtaken by later requests of its session. Invariant: nothing is guessed. A request whose entry is in the
//! snapshot gets the reply of the leader that executed it; one whose entry is not is in doubt as before, and never happened if an entry of
//! a later term is committed. If no member knows, or the reply is lost with the leader, the client is disconnected.

use corvid_consensus::database::{Finding, MemberRequest};
use corvid_log::cluster::{Eid, Index, Term};

use super::super::replies::Reason;
use super::super::{DatabaseService, Now};
use super::in_flight::Number;
use super::{Clustered, Part};
use crate::message::Event;

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
}

impl DatabaseService {
    /// Other members have told about requests that are sought.
    pub(super) fn judge_findings(&mut self, now: Now, through: Index, findings: &[(Eid, Finding)]) {
        // A request that never happened is judged by those of its session that did.
        let (committed, others): (Vec<_>, Vec<_>) = findings
            .iter()
            .partition(|(_, finding)| *finding == Finding::Committed);
        for (id, _) in committed {
            self.answer_found(id);
        }
        for (id, finding) in others {
            let Some(in_flight) = self.model.in_flight_mut() else {
                return;
            };
            // The entry may be in a later snapshot; a further search is under way.
            if !in_flight.is_sought_through(through) {
                continue;
            }
            if finding == Finding::Absent {
                let mut numbers = in_flight.sought_behind(id);
                numbers.extend(in_flight.sought(id));
                numbers.into_iter().for_each(|it| in_flight.set_absent(it));
            } else {
                self.give_up_unknown(id);
            }
        }
        let judged = self.model.cluster().map(|it| it.in_flight.judged());
        if let Some(judged) = judged {
            self.end_doubt(now, judged);
        }
        if let Some(Part::Leads(_)) = self.model.part() {
            self.execute_in_flight(now);
        }
    }

    /// The entry with this id is in the snapshot.
    fn answer_found(&mut self, id: Eid) {
        let Some(in_flight) = self.model.in_flight_mut() else {
            return;
        };
        if let Some(number) = in_flight.sought(id) {
            let overtaken = in_flight.overtaken_by(number);
            if let Some((entry, reply)) = in_flight.take_found(number) {
                self.finish(entry, reply, true);
            }
            if let Some(overtaken) = overtaken {
                self.give_up(overtaken);
            }
        }
        while let Some((entry, reply)) = self.model.in_flight_mut().and_then(|it| it.take_seen(id))
        {
            self.finish(entry, reply, false);
        }
    }

    /// No member knows whether the entry with this id is in the snapshot, or what the outcome of its transaction was.
    fn give_up_unknown(&mut self, id: Eid) {
        let Some(in_flight) = self.model.in_flight_mut() else {
            return;
        };
        let seen = in_flight.sought_behind(id);
        if let Some(number) = in_flight.sought(id) {
            self.give_up(number);
        }
        for number in seen {
            match self.model.in_flight_mut() {
                // It changed nothing, so it may be executed again.
                Some(in_flight) if !in_flight.is_overtaken(number) => in_flight.set_absent(number),
                _ => self.give_up(number),
            }
        }
    }

    /// The outcome of a request will never be known: its client is disconnected.
    fn give_up(&mut self, number: Number) {
        let Some((entry, _)) = self.model.in_flight_mut().and_then(|it| it.take(number)) else {
            return;
        };
        let session = entry.request.session;
        if let Some(in_flight) = self.model.in_flight_mut() {
            in_flight.forget(session, number);
        }
        if entry.is_withdrawn() {
            return;
        }
        self.end_request(&entry.request);
        self.outputs.outboxes.block(session, Reason::Cluster);
        let reason = "the outcome of a transaction is not known";
        self.outputs
            .events
            .push(Event::OutcomeUnknown(session, reason.into()));
        // Nothing of it happens any more.
        self.withdraw_session(session);
    }
}
