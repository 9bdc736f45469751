//! The member's role, term and leader as others have been told: the database, `_Server` and the
//! log.
//!
//! Invariant: the database is told that it leads only once it has applied the entry that begins the
//! leadership, and of only one leadership at a time. Terms only grow.

use corvid_log::cluster::{Index, Sid, Term};
use corvid_rpc::Level;

use crate::database::MemberEvent;
use crate::member::context::Context;
use crate::member::roster::Roster;
use crate::member::status::Role;
use crate::member::{Output, Repeated, ServerRow};

/// The role, term and leader that others have been told.
#[derive(Debug)]
pub(crate) struct View {
    role: Role,
    term: Term,
    leader: Option<Sid>,
    /// The last event about leadership that the database was sent.
    told: Option<Told>,
    /// The election timer that the database was told, ms.
    told_timer_ms: Option<u64>,
    row: Option<ServerRow>,
    /// This member's leadership: its term, and the entry that begins it.
    leadership: Option<(Term, Index)>,
    /// Whether a leader was seen since the start.
    has_seen_leader: bool,
    /// The newest commit index that a leader has announced.
    leader_commit: Index,
    /// Elections since a leader was last seen.
    elections_without_leader: u32,
    elections: u64,
    /// When the last election began, ms, and whether a transfer caused it.
    election: Option<(u64, bool)>,
    won_ms: Option<u64>,
    last_reset_ms: u64,
}

/// Leadership as the database was told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Leads(Term),
    Follows(Term, Option<Sid>),
}

/// A difference between the algorithm's role, term or leader and the view.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoleChange {
    role: Role,
    pub(crate) term: Term,
    leader: Option<Sid>,
    pub(crate) is_new_term: bool,
    /// Whether this member led and no longer leads in that term.
    pub(crate) is_leadership_lost: bool,
}

impl View {
    pub(crate) fn new(now_ms: u64) -> View {
        View {
            role: Role::Follower,
            term: Term(0),
            leader: None,
            told: None,
            told_timer_ms: None,
            row: None,
            leadership: None,
            has_seen_leader: false,
            leader_commit: Index(0),
            elections_without_leader: 0,
            elections: 0,
            election: None,
            won_ms: None,
            last_reset_ms: now_ms,
        }
    }

    /// The term in which the database was told that it leads, unless it was told otherwise since.
    pub(crate) fn told_term(&self) -> Option<Term> {
        match self.told {
            Some(Told::Leads(term)) => Some(term),
            _ => None,
        }
    }

    /// A leader has announced how far the cluster has committed.
    pub(crate) fn note_leader_commit(&mut self, commit: Index) {
        self.leader_commit = self.leader_commit.max(commit);
    }

    /// The newest commit index that a leader has announced.
    pub(crate) fn leader_commit(&self) -> Index {
        self.leader_commit
    }

    /// This member leads from this entry on.
    pub(crate) fn begin_leadership(&mut self, term: Term, index: Index) {
        if self.leadership.is_none_or(|(known, _)| known != term) {
            self.leadership = Some((term, index));
        }
    }

    pub(crate) fn begin_election(&mut self, now_ms: u64, is_transfer: bool) {
        self.elections += 1;
        self.election = Some((now_ms, is_transfer));
        self.won_ms = None;
    }

    /// The election timeout has passed: logs the election that begins with it.
    pub(crate) fn time_out(&mut self, cx: &mut Context) {
        self.begin_election(cx.now_ms, false);
        self.elections_without_leader += 1;
        let ms = self.since_reset_ms(cx.now_ms);
        self.last_reset_ms = cx.now_ms;
        let (term, kind) = (cx.node.term(), election_kind(cx));
        let text = format!("term {term}: {ms} ms timeout expired, starting election ({kind})");
        cx.log_repeated(Level::Info, Repeated::Timeout, text);
    }

    /// A message from the leader has arrived.
    pub(crate) fn hear_leader(&mut self, now_ms: u64) {
        self.elections_without_leader = 0;
        self.last_reset_ms = now_ms;
    }

    /// A vote was granted, which restarts the election timeout.
    pub(crate) fn restart_timeout(&mut self, now_ms: u64) {
        self.last_reset_ms = now_ms;
    }

    /// Time since the election timeout started, ms.
    pub(crate) fn since_reset_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.last_reset_ms)
    }

    /// Whether two elections have passed since a leader was seen.
    pub(crate) fn is_retrying(&self) -> bool {
        self.elections_without_leader >= 2
    }

    /// Whether a leader was seen since the start, and the member is not searching for one.
    pub(crate) fn is_near(&self) -> bool {
        self.has_seen_leader && !self.is_retrying()
    }

    /// Number of elections that this member has begun.
    pub(crate) fn elections(&self) -> u64 {
        self.elections
    }

    /// When the last election began, ms, and whether a transfer caused it.
    pub(crate) fn election(&self) -> Option<(u64, bool)> {
        self.election
    }

    /// When this member won an election, ms.
    pub(crate) fn won_ms(&self) -> Option<u64> {
        self.won_ms
    }

    /// The difference between the algorithm's state and the view, if there is one.
    pub(crate) fn compare(&self, cx: &Context) -> Option<RoleChange> {
        let (role, term, leader) = (cx.node.role(), cx.node.term(), cx.node.leader());
        let is_same = (role, term, leader) == (self.role, self.term, self.leader);
        let is_new_term = term != self.term;
        let was_leader = self.role == Role::Leader;
        (!is_same).then_some(RoleChange {
            role,
            term,
            leader,
            is_new_term,
            is_leadership_lost: was_leader && (role != Role::Leader || is_new_term),
        })
    }

    /// Logs a change of the role, and adopts it as the view.
    pub(crate) fn adopt(&mut self, cx: &mut Context, roster: &Roster, change: RoleChange) {
        let RoleChange {
            role, term, leader, ..
        } = change;
        // A falling term would let this member vote twice in one term.
        assert!(
            term >= self.term,
            "the term falls from {} to {term}",
            self.term
        );
        if role == Role::Candidate && change.is_new_term && !cx.node.is_precandidate() {
            log_election(cx, "vote");
        }
        if role == Role::Leader && self.role != Role::Leader {
            self.won_ms = Some(cx.now_ms);
            let (quorum, count) = (roster.quorum(), roster.count());
            let text = format!("term {term}: elected leader by {quorum}+ of {count} servers");
            cx.log_repeated(Level::Info, Repeated::Elected, text);
        }
        if leader.is_some() {
            self.has_seen_leader = true;
            self.hear_leader(cx.now_ms);
        }
        if let Some(leader) = leader
            && leader != cx.own()
            && (change.is_new_term || self.leader != Some(leader))
        {
            let text = format!(
                "server {} is leader for term {term}",
                roster.name_of(leader)
            );
            cx.log(Level::Info, text);
        }
        (self.role, self.term, self.leader) = (role, term, leader);
    }

    /// Tells the database whether it leads, if that is news. `applied` is the last entry that the
    /// database has applied.
    pub(crate) fn tell_database(
        &mut self,
        cx: &mut Context,
        applied: Index,
        timer_ms: u64,
    ) -> Option<Told> {
        let term = self.term;
        // Leading needs more than the role. Once the entry that begins the leadership is applied,
        // so is everything before it, and the database may execute transactions on that state.
        let has_begun = self
            .leadership
            .is_some_and(|(known, index)| known == term && applied >= index);
        let told = if self.role == Role::Leader && !cx.has_failed() && has_begun {
            Told::Leads(term)
        } else if cx.has_failed() {
            Told::Follows(term, None)
        } else {
            Told::Follows(term, cx.reachable_leader())
        };
        if self.told == Some(told) {
            return None;
        }
        self.told = Some(told);
        self.tell_timer(cx, timer_ms);
        cx.tell_database(match told {
            Told::Leads(term) => MemberEvent::Leads { term },
            Told::Follows(term, leader) => MemberEvent::Follows { term, leader },
        });
        Some(told)
    }

    /// Tells a leading database the election timer, if it does not know it yet.
    pub(crate) fn tell_timer(&mut self, cx: &mut Context, timer_ms: u64) {
        if self.told_term().is_some() && self.told_timer_ms != Some(timer_ms) {
            self.told_timer_ms = Some(timer_ms);
            cx.tell_database(MemberEvent::ElectionTimer { timer_ms });
        }
    }

    /// Shows the row of `_Server`, if it has changed.
    pub(crate) fn show_row(&mut self, cx: &mut Context, row: ServerRow) {
        let known = self.row.as_ref();
        if known.is_none_or(|known| known.is_connected != row.is_connected) {
            let text = format!("raft_is_connected: {}", row.is_connected);
            cx.log(Level::Debug, text);
        }
        if self.row.as_ref() != Some(&row) {
            self.row = Some(row.clone());
            cx.put(Output::Row(row));
        }
    }
}

/// Logs an election that begins without a timeout, or a pre-vote that is won.
pub(crate) fn log_election(cx: &mut Context, kind: &str) {
    let text = format!("term {}: starting election ({kind})", cx.node.term());
    cx.log_repeated(Level::Info, Repeated::Election, text);
}

/// The kind of the current election, for log lines.
pub(crate) fn election_kind(cx: &Context) -> &'static str {
    match cx.node.is_precandidate() {
        true => "pre-vote",
        false => "vote",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::context::fixture::{self, list, sid};

    fn adopt(view: &mut View, cx: &mut Context) {
        let roster = Roster::new(Some((Index(1), list(&[1]))), Vec::new(), None, 0);
        let change = view.compare(cx).expect("a change");
        view.adopt(cx, &roster, change);
        assert!(view.compare(cx).is_none());
    }

    #[test]
    fn the_database_leads_when_it_has_applied_the_entry_that_begins_the_leadership() {
        let mut cx = fixture::leader();
        let mut view = View::new(0);
        adopt(&mut view, &mut cx);
        let term = cx.node.term();
        let mut tell = |cx: &mut Context, applied| view.tell_database(cx, Index(applied), 1000);
        assert_eq!(tell(&mut cx, 1), Some(Told::Follows(term, None)));
        assert_eq!(tell(&mut cx, 1), None, "it was told");
        view.begin_leadership(term, Index(2));
        let mut tell = |cx: &mut Context, applied| view.tell_database(cx, Index(applied), 1000);
        assert_eq!(tell(&mut cx, 1), None, "the entry is not applied");
        assert_eq!(tell(&mut cx, 2), Some(Told::Leads(term)));
        assert_eq!(view.told_term(), Some(term));
        let outputs = std::iter::from_fn(|| cx.outbox.take());
        let timers = outputs
            .filter(|output| matches!(output, Output::Database(MemberEvent::ElectionTimer { .. })));
        assert_eq!(timers.count(), 1, "a leader's database hears the timer");
    }

    #[test]
    fn a_follower_is_told_of_a_leader_that_it_can_reach() {
        let mut cx = fixture::follower();
        let mut view = View::new(0);
        adopt(&mut view, &mut cx);
        let mut tell = |cx: &mut Context| view.tell_database(cx, Index(1), 1000);
        assert_eq!(tell(&mut cx), Some(Told::Follows(Term(3), Some(sid(2)))));
        cx.peers.disconnect(sid(2), 5, true);
        assert_eq!(tell(&mut cx), Some(Told::Follows(Term(3), None)));
        assert_eq!(tell(&mut cx), None);
    }

    #[test]
    fn a_member_looks_for_a_leader_after_two_timeouts() {
        let mut cx = fixture::follower();
        let mut view = View::new(0);
        adopt(&mut view, &mut cx);
        assert!(view.is_near());
        view.time_out(&mut cx);
        assert!(view.is_near(), "once may be chance");
        view.time_out(&mut cx);
        assert!(!view.is_near() && view.elections() == 2);
        view.hear_leader(7);
        assert!(view.is_near() && view.since_reset_ms(9) == 2);
    }
}
