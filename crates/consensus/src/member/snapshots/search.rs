//! Searches for entries in a snapshot that this member has installed: asks other members, which
//! have seen those entries one by one.
//!
//! Invariant: an answer is a fact about committed entries, so it is valid from any member and in
//! any term. One search at a time. It ends when everything is known, or when no member can know
//! more. Serves the database ([`crate::database::MemberRequest::Find`]).

use std::collections::{BTreeMap, BTreeSet};

use corvid_log::cluster::{Eid, Index, Sid};

use super::recent::Recent;
use crate::database::{Finding, ForwardOutcome, MemberEvent};
use crate::limits::RESULT_BYTES_MAX;
use crate::member::context::Context;
use crate::member::roster::Roster;
use crate::message::{LIST_MAX, PeerMessage};

/// After this many rounds of an election timer, unconnected members are no longer awaited.
const ROUNDS: u32 = 2;
/// After this many rounds nobody is awaited, if there is a leader: a member with a damaged file is
/// connected but knows nothing.
const ROUNDS_MAX: u32 = 10;

/// The entries after the first index, up to and including the second.
pub(crate) type Span = (Index, Index);

/// The search for entries in an installed snapshot.
#[derive(Debug, Default)]
pub(crate) struct Search {
    question: Option<Question>,
}

/// The search in progress.
#[derive(Debug)]
struct Question {
    span: Span,
    /// Ids about which more could be learned.
    ids: BTreeMap<Eid, Known>,
    /// Members that have answered in this round.
    answered: BTreeSet<Sid>,
    /// Rounds that are over.
    rounds: u32,
    /// When the next round begins, ms.
    next_ms: u64,
}

/// The facts about an id that the database has been told.
#[derive(Debug, Default)]
struct Known {
    /// Whether an entry has it, or none does.
    is_found: bool,
    /// The outcome of its transaction.
    has_outcome: bool,
}

/// Another member's answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) span: Span,
    /// Whether the member has seen all entries of the span.
    pub(crate) is_complete: bool,
    /// Ids that belong to entries of the span.
    pub(crate) found: Vec<Eid>,
    pub(crate) outcomes: Vec<(Eid, ForwardOutcome)>,
}

impl Search {
    pub(crate) fn deadline_ms(&self) -> u64 {
        self.question.as_ref().map_or(u64::MAX, |it| it.next_ms)
    }

    /// Starts a search: which of these ids belong to entries of the span? `has_leader`: this member
    /// leads, or can reach the leader.
    pub(crate) fn begin(
        &mut self,
        cx: &mut Context,
        roster: &Roster,
        (timer_ms, has_leader): (u64, bool),
        span: Span,
        mut ids: Vec<Eid>,
    ) {
        self.question = None;
        if ids.is_empty() {
            return;
        }
        if ids.len() > LIST_MAX {
            let beyond = ids.split_off(LIST_MAX).into_iter();
            let findings = beyond.map(|id| (id, Finding::Unknown)).collect();
            report(cx, span, findings);
        }
        self.question = Some(Question {
            span,
            ids: ids.into_iter().map(|id| (id, Known::default())).collect(),
            answered: BTreeSet::new(),
            rounds: 0,
            next_ms: cx.now_ms + timer_ms,
        });
        self.ask_all(cx, roster);
        self.end_if_hopeless(cx, roster, has_leader);
    }

    fn ask_all(&self, cx: &mut Context, roster: &Roster) {
        for sid in roster.others(cx.own()) {
            self.ask(cx, roster, sid);
        }
    }

    /// Asks a member, if it is reachable.
    pub(crate) fn ask(&self, cx: &mut Context, roster: &Roster, sid: Sid) {
        let Some(question) = &self.question else {
            return;
        };
        if sid == cx.own() || !cx.peers.is_up(sid) || !roster.contains(sid) {
            return;
        }
        let (after, through) = question.span;
        let message = PeerMessage::FindEntries {
            after,
            through,
            ids: question.ids.keys().copied().collect(),
        };
        cx.send(sid, message);
    }

    /// Asks again, if it is time: questions and answers may have been lost, and members that knew
    /// nothing may have learned more.
    pub(crate) fn ask_again(
        &mut self,
        cx: &mut Context,
        roster: &Roster,
        (timer_ms, has_leader): (u64, bool),
    ) {
        let Some(question) = self.question.as_mut().filter(|it| it.next_ms <= cx.now_ms) else {
            return;
        };
        question.rounds += 1;
        self.end_if_hopeless(cx, roster, has_leader);
        if let Some(question) = &mut self.question {
            question.next_ms = cx.now_ms + timer_ms;
            question.answered.clear();
        }
        self.ask_all(cx, roster);
    }

    /// Handles another member's answer.
    pub(crate) fn hear_answer(
        &mut self,
        cx: &mut Context,
        roster: &Roster,
        has_leader: bool,
        from: Sid,
        answer: Answer,
    ) {
        let is_member = roster.contains(from);
        let question = self.question.as_mut();
        let question = question.filter(|it| it.span == answer.span && is_member);
        let Some(question) = question else {
            return;
        };
        let findings = question.learn(cx, answer);
        question.answered.insert(from);
        let is_over = question.ids.is_empty();
        let span = question.span;
        if !findings.is_empty() {
            report(cx, span, findings);
        }
        if is_over {
            self.question = None;
        }
        self.end_if_hopeless(cx, roster, has_leader);
    }

    /// Ends the search when no remaining member could know more: all others have answered or, after
    /// some time with a leader, all reachable ones have.
    fn end_if_hopeless(&mut self, cx: &mut Context, roster: &Roster, has_leader: bool) {
        let Some(question) = &self.question else {
            return;
        };
        let rounds = if has_leader { question.rounds } else { 0 };
        let mut awaited = roster.others(cx.own()).filter(|sid| {
            !question.answered.contains(sid)
                && (rounds < ROUNDS || cx.peers.is_up(*sid))
                && rounds < ROUNDS_MAX
        });
        if awaited.next().is_some() {
            return;
        }
        let Some(question) = self.question.take() else {
            return;
        };
        let ids = question.ids.into_keys();
        let findings = ids.map(|id| (id, Finding::Unknown)).collect();
        report(cx, question.span, findings);
    }
}

impl Question {
    /// Tells the database the outcomes that are news. Returns what was learned about entries.
    fn learn(&mut self, cx: &mut Context, answer: Answer) -> Vec<(Eid, Finding)> {
        for (id, outcome) in answer.outcomes {
            if let Some(known) = self.ids.get_mut(&id).filter(|it| !it.has_outcome) {
                known.has_outcome = true;
                // The outcome of a proposed transaction decides nothing: only its own entry does.
                known.is_found |= !matches!(outcome, ForwardOutcome::Proposed(_));
                cx.tell_database(MemberEvent::Outcome { id, outcome });
            }
        }
        let mut findings = Vec::new();
        for id in answer.found {
            if let Some(known) = self.ids.get_mut(&id).filter(|it| !it.is_found) {
                known.is_found = true;
                findings.push((id, Finding::Committed));
            }
        }
        if answer.is_complete {
            for (id, known) in self.ids.iter_mut().filter(|(_, it)| !it.is_found) {
                known.is_found = true;
                findings.push((*id, Finding::Absent));
            }
        }
        self.ids
            .retain(|_, known| !known.is_found || !known.has_outcome);
        findings
    }
}

/// Answers another member's question. `kept`: outcomes retained outside `recent`.
pub(crate) fn answer(
    recent: &Recent,
    kept: impl Iterator<Item = (Eid, ForwardOutcome)>,
    (after, through): Span,
    ids: &BTreeSet<Eid>,
) -> PeerMessage {
    let mut outcomes = recent.outcomes_of(ids);
    outcomes.extend(kept);
    // A message carries no more than this; the member asks again for what it still lacks.
    let mut bytes = 0;
    outcomes.retain(|(_, outcome)| {
        bytes += outcome.result().map_or(0, bytes::Bytes::len);
        bytes <= RESULT_BYTES_MAX
    });
    PeerMessage::FoundEntries {
        after,
        through,
        is_complete: recent.covers(after, through),
        found: recent.find(through, ids),
        outcomes,
    }
}

fn report(cx: &mut Context, (_, through): Span, findings: Vec<(Eid, Finding)>) {
    cx.tell_database(MemberEvent::Found { through, findings });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::context::fixture::{self, sid};
    use corvid_data::Uuid;

    fn id(number: u8) -> Eid {
        Eid(Uuid([number; 16]))
    }

    fn roster() -> Roster {
        Roster::new(
            Some((Index(1), fixture::list(&[1, 2]))),
            Vec::new(),
            None,
            0,
        )
    }

    /// The findings that the database is told, in the order of the outputs.
    fn take_findings(cx: &mut Context) -> Vec<(Eid, Finding)> {
        let outputs = std::iter::from_fn(|| cx.outbox.take());
        let findings = outputs.filter_map(|output| match output {
            crate::Output::Database(MemberEvent::Found { findings, .. }) => Some(findings),
            _ => None,
        });
        findings.flatten().collect()
    }

    #[test]
    fn an_incomplete_answer_finds_and_a_complete_one_excludes() {
        let (mut cx, roster) = (fixture::follower(), roster());
        let mut search = Search::default();
        let span = (Index(4), Index(9));
        let pace = (1000, true);
        search.begin(&mut cx, &roster, pace, span, vec![id(5), id(6)]);
        assert!(take_findings(&mut cx).is_empty());
        let answer = |span, is_complete, found: &[u8]| Answer {
            span,
            is_complete,
            found: found.iter().copied().map(id).collect(),
            outcomes: vec![(id(5), ForwardOutcome::Proposed(bytes::Bytes::new()))],
        };
        let mut hear = |cx: &mut Context, from, answer| {
            search.hear_answer(cx, &roster, true, sid(from), answer);
            take_findings(cx)
        };
        let other = (Index(4), Index(8));
        assert!(hear(&mut cx, 2, answer(other, true, &[5, 6])).is_empty());
        assert!(hear(&mut cx, 3, answer(span, true, &[5, 6])).is_empty());
        let found = hear(&mut cx, 2, answer(span, true, &[5]));
        let expected = [(id(5), Finding::Committed), (id(6), Finding::Absent)];
        // The outcome of the other transaction is unknown, and nobody is left to ask.
        assert_eq!(found[..2], expected);
        assert_eq!(found[2..], [(id(6), Finding::Unknown)]);
        assert!(hear(&mut cx, 2, answer(span, true, &[5])).is_empty());
    }
}
