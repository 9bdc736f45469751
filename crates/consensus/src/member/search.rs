//! The question whether entries are in a snapshot that this member has installed: other members are asked, who have seen those entries one by one.
//!
//! Invariant: an answer is a fact about committed entries, so it is as good from any member and in any term. One search at a time. It ends when
//! everything is known, or when no member can know more. Called for the database ([`crate::database::MemberRequest::Find`]).

use std::collections::{BTreeMap, BTreeSet};

use corvid_log::cluster::{Eid, Index, Sid};

use super::{Member, Output};
use crate::database::{Finding, ForwardOutcome, MemberEvent};
use crate::limits::RESULT_BYTES_MAX;
use crate::message::{LIST_MAX, PeerMessage};

/// Rounds of an election timer after which members without a connection are not waited for any more.
const ROUNDS: u32 = 2;
/// Rounds after which no answer is waited for, if there is a leader: a member whose file is damaged is connected and knows nothing.
const ROUNDS_MAX: u32 = 10;

/// See the module.
#[derive(Debug)]
pub(super) struct Search {
    after: Index,
    through: Index,
    /// Ids of which more could be known.
    ids: BTreeMap<Eid, Known>,
    /// Members that have answered since the last round began.
    answered: BTreeSet<Sid>,
    /// Rounds that are over.
    rounds: u32,
    /// When the next round begins, ms.
    pub(super) next_ms: u64,
}

/// The knowledge about an id.
#[derive(Debug, Default)]
struct Known {
    /// Whether it is that of an entry has been told.
    is_found: bool,
    /// The outcome of its transaction has been told.
    has_outcome: bool,
}

impl Member {
    /// The database wants to know which of these entries are behind `after` and through `through`.
    pub(super) fn search(&mut self, after: Index, through: Index, mut ids: Vec<Eid>) {
        self.searching = None;
        if ids.is_empty() {
            return;
        }
        if ids.len() > LIST_MAX {
            let beyond = ids.split_off(LIST_MAX).into_iter();
            let findings = beyond.map(|id| (id, Finding::Unknown)).collect();
            self.report_findings(through, findings);
        }
        self.searching = Some(Search {
            after,
            through,
            ids: ids.into_iter().map(|id| (id, Known::default())).collect(),
            answered: BTreeSet::new(),
            rounds: 0,
            next_ms: self.now_ms + self.ticker.timer_ms(),
        });
        for sid in self.membership.sids() {
            self.ask_for_entries(sid);
        }
        self.end_search_if_hopeless();
    }

    /// Asks a member that can be reached.
    pub(super) fn ask_for_entries(&mut self, sid: Sid) {
        let Some(search) = &self.searching else {
            return;
        };
        if sid == self.settings.sid || !self.is_up(sid) || !self.membership.contains(sid) {
            return;
        }
        let message = PeerMessage::FindEntries {
            after: search.after,
            through: search.through,
            ids: search.ids.keys().copied().collect(),
        };
        self.send(sid, message);
    }

    /// Asks again: questions and answers may have been lost, and members that knew nothing may have learned more.
    pub(super) fn searching_time(&mut self) {
        let Some(search) = self.searching.as_mut() else {
            return;
        };
        if search.next_ms > self.now_ms {
            return;
        }
        search.rounds += 1;
        self.end_search_if_hopeless();
        let next_ms = self.now_ms + self.ticker.timer_ms();
        if let Some(search) = self.searching.as_mut() {
            search.next_ms = next_ms;
            search.answered.clear();
        }
        for sid in self.membership.sids() {
            self.ask_for_entries(sid);
        }
    }

    /// Another member has installed a snapshot and asks for entries.
    pub(super) fn entries_sought(
        &mut self,
        from: Sid,
        after: Index,
        through: Index,
        ids: Vec<Eid>,
    ) {
        if !self.membership.contains(from) || !self.recent.reaches(through) {
            return;
        }
        let ids: BTreeSet<Eid> = ids.into_iter().collect();
        let mut outcomes = self.recent.outcomes_of(&ids);
        outcomes.extend(self.forwarding.outcomes_of(from, &ids));
        // One message carries no more; the member asks again for what it still lacks.
        let mut bytes = 0;
        outcomes.retain(|(_, outcome)| {
            bytes += outcome.result().map_or(0, bytes::Bytes::len);
            bytes <= RESULT_BYTES_MAX
        });
        let message = PeerMessage::FoundEntries {
            after,
            through,
            is_complete: self.recent.covers(after, through),
            found: self.recent.find(through, &ids),
            outcomes,
        };
        self.send(from, message);
    }

    /// Another member has answered.
    pub(super) fn entries_found(
        &mut self,
        from: Sid,
        (after, through): (Index, Index),
        is_complete: bool,
        found: Vec<Eid>,
        outcomes: Vec<(Eid, ForwardOutcome)>,
    ) {
        let is_member = self.membership.contains(from);
        let search = self.searching.as_mut();
        let search = search.filter(|it| (it.after, it.through) == (after, through) && is_member);
        let Some(search) = search else {
            return;
        };
        for (id, outcome) in outcomes {
            if let Some(known) = search.ids.get_mut(&id).filter(|it| !it.has_outcome) {
                known.has_outcome = true;
                // Nothing but its own entry decides about one that was proposed.
                known.is_found |= !matches!(outcome, ForwardOutcome::Proposed(_));
                let event = MemberEvent::Outcome { id, outcome };
                self.outputs.push_back(Output::Database(event));
            }
        }
        let mut findings = Vec::new();
        for id in found {
            if let Some(known) = search.ids.get_mut(&id).filter(|it| !it.is_found) {
                known.is_found = true;
                findings.push((id, Finding::Committed));
            }
        }
        if is_complete {
            for (id, known) in search.ids.iter_mut().filter(|(_, it)| !it.is_found) {
                known.is_found = true;
                findings.push((*id, Finding::Absent));
            }
        }
        search.answered.insert(from);
        search
            .ids
            .retain(|_, known| !known.is_found || !known.has_outcome);
        let is_over = search.ids.is_empty();
        if !findings.is_empty() {
            self.report_findings(through, findings);
        }
        if is_over {
            self.searching = None;
        }
        self.end_search_if_hopeless();
    }

    /// Ends the search when no member is left who could know more: all others have answered, or all that can be reached, after some time and
    /// with a leader.
    fn end_search_if_hopeless(&mut self) {
        let Some(search) = &self.searching else {
            return;
        };
        let has_leader = self.reachable_leader().is_some() || self.announced_term().is_some();
        let rounds = if has_leader { search.rounds } else { 0 };
        let others = self.membership.sids().into_iter();
        let mut awaited = others.filter(|sid| {
            *sid != self.settings.sid
                && !search.answered.contains(sid)
                && (rounds < ROUNDS || self.is_up(*sid))
                && rounds < ROUNDS_MAX
        });
        if awaited.next().is_some() {
            return;
        }
        let Some(search) = self.searching.take() else {
            return;
        };
        let ids = search.ids.into_keys();
        let findings = ids.map(|id| (id, Finding::Unknown)).collect();
        self.report_findings(search.through, findings);
    }

    fn report_findings(&mut self, through: Index, findings: Vec<(Eid, Finding)>) {
        let event = MemberEvent::Found { through, findings };
        self.outputs.push_back(Output::Database(event));
    }

    /// A new term begins: outcomes that followers may not have got are kept for those that ask.
    pub(super) fn keep_outcomes(&mut self) {
        for (id, outcome) in self.forwarding.take_outcomes() {
            self.recent.keep_outcome(id, outcome);
        }
    }
}
