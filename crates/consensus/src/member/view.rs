//! The member's role, term and leader as others have been told: the database, `_Server` and the log.

use corvid_log::cluster::{Index, Sid, Term};
use corvid_rpc::Level;

use super::log_file::Trouble;
use super::status::Role;
use super::{Member, Output, Repeated, ServerRow};
use crate::database::MemberEvent;
use crate::peers::DialTarget;

/// See the module.
#[derive(Debug)]
pub(super) struct View {
    role: Role,
    term: Term,
    leader: Option<Sid>,
    /// The last event for the database about leadership.
    told: Option<Told>,
    /// The election timer that the database has heard, in milliseconds.
    told_timer_ms: Option<u64>,
    row: Option<ServerRow>,
    targets: Option<Vec<DialTarget>>,
    /// This member's leadership: its term, and the entry that begins it.
    leadership: Option<(Term, Index)>,
    /// A leader was seen since the start.
    has_seen_leader: bool,
    /// The newest commit that a leader has told.
    leader_commit: Index,
    /// Elections since a leader was seen.
    elections_in_vain: u32,
    pub(super) elections: u64,
    /// When the last election began, and whether a transfer was the reason.
    pub(super) election: Option<(u64, bool)>,
    pub(super) won_ms: Option<u64>,
    last_reset_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Leads(Term),
    Follows(Term, Option<Sid>),
}

impl View {
    pub(super) fn new(now_ms: u64) -> View {
        View {
            role: Role::Follower,
            term: Term(0),
            leader: None,
            told: None,
            told_timer_ms: None,
            row: None,
            targets: None,
            leadership: None,
            has_seen_leader: false,
            leader_commit: Index(0),
            elections_in_vain: 0,
            elections: 0,
            election: None,
            won_ms: None,
            last_reset_ms: now_ms,
        }
    }

    /// The term in which the database was told that it leads, unless it was told otherwise since.
    pub(super) fn announced_term(&self) -> Option<Term> {
        match self.told {
            Some(Told::Leads(term)) => Some(term),
            _ => None,
        }
    }

    /// A leader says how far the cluster has committed.
    pub(super) fn leader_committed(&mut self, commit: Index) {
        self.leader_commit = self.leader_commit.max(commit);
    }

    /// The newest commit that a leader has told.
    pub(super) fn leader_commit(&self) -> Index {
        self.leader_commit
    }

    pub(super) fn leadership_began(&mut self, term: Term, index: Index) {
        if self.leadership.is_none_or(|(known, _)| known != term) {
            self.leadership = Some((term, index));
        }
    }

    pub(super) fn election_began(&mut self, now_ms: u64, is_transfer: bool) {
        self.elections += 1;
        self.election = Some((now_ms, is_transfer));
        self.won_ms = None;
    }

    /// The election timeout has passed.
    pub(super) fn timeout_fired(&mut self, now_ms: u64) {
        self.election_began(now_ms, false);
        self.elections_in_vain += 1;
    }

    /// A message of the leader has come.
    pub(super) fn leader_heard(&mut self, now_ms: u64) {
        self.elections_in_vain = 0;
        self.last_reset_ms = now_ms;
    }

    /// A vote was given: the election timeout begins anew.
    pub(super) fn vote_given(&mut self, now_ms: u64) {
        self.last_reset_ms = now_ms;
    }

    /// The time since the election timeout began.
    pub(super) fn since_reset_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.last_reset_ms)
    }

    pub(super) fn is_retrying(&self) -> bool {
        self.elections_in_vain >= 2
    }
}

impl Member {
    /// The term in which the database leads, as it was told.
    pub(super) fn announced_term(&self) -> Option<Term> {
        let term = self.view.announced_term()?;
        (self.node.is_leader() && self.node.term() == term).then_some(term)
    }

    pub(super) fn log_election(&mut self) {
        let ms = self.view.since_reset_ms(self.now_ms);
        self.view.last_reset_ms = self.now_ms;
        let (term, kind) = (self.node.term(), self.election_kind());
        let text = format!("term {term}: {ms} ms timeout expired, starting election ({kind})");
        self.log_repeated(Level::Info, Repeated::Timeout, text);
    }

    /// An election begins for another reason than the timeout, or a pre-vote is won.
    pub(super) fn log_begun_election(&mut self, kind: &str) {
        let text = format!("term {}: starting election ({kind})", self.node.term());
        self.log_repeated(Level::Info, Repeated::Election, text);
    }

    /// The name of the election under way in log lines.
    pub(super) fn election_kind(&self) -> &'static str {
        match self.node.is_precandidate() {
            true => "pre-vote",
            false => "vote",
        }
    }

    /// Tells everybody of changes.
    pub(super) fn update_view(&mut self) {
        self.update_role();
        self.tell_database();
        self.update_targets();
        self.update_row();
    }

    fn update_role(&mut self) {
        let (role, term, leader) = (self.node.role(), self.node.term(), self.node.leader());
        let is_same = (role, term, leader) == (self.view.role, self.view.term, self.view.leader);
        if is_same {
            return;
        }
        let was_leader = self.view.role == Role::Leader;
        let is_new_term = term != self.view.term;
        if was_leader && (role != Role::Leader || is_new_term) {
            self.leadership_lost();
        }
        if is_new_term {
            self.keep_outcomes();
            self.forwarding.restart(term);
            for peer in self.peers.values_mut() {
                peer.voted_for = None;
            }
        }
        if role == Role::Candidate && is_new_term && !self.node.is_precandidate() {
            self.log_begun_election("vote");
        }
        if role == Role::Leader && !was_leader {
            self.view.won_ms = Some(self.now_ms);
            let (quorum, count) = (self.quorum(), self.membership.count());
            let text = format!("term {term}: elected leader by {quorum}+ of {count} servers");
            self.log_repeated(Level::Info, Repeated::Elected, text);
        }
        if leader.is_some() {
            self.view.has_seen_leader = true;
            self.view.elections_in_vain = 0;
            self.view.last_reset_ms = self.now_ms;
        }
        if let Some(leader) = leader
            && leader != self.settings.sid
            && (is_new_term || self.view.leader != Some(leader))
        {
            let text = format!("server {} is leader for term {term}", self.name_of(leader));
            self.log(Level::Info, text);
        }
        (self.view.role, self.view.term, self.view.leader) = (role, term, leader);
        self.draw_timeout();
        self.transfer_changed();
    }

    fn tell_database(&mut self) {
        let is_empty = self.joining.is_some() || self.repairing.is_some();
        if is_empty && self.snapshot_index() == Index(0) {
            return;
        }
        let (term, is_leader) = (self.view.term, self.view.role == Role::Leader);
        let leads = is_leader
            && self.failure.is_none()
            && self
                .view
                .leadership
                .is_some_and(|(known, index)| known == term && self.applied >= index);
        let told = if leads {
            Told::Leads(term)
        } else if self.failure.is_some() {
            Told::Follows(term, None)
        } else {
            Told::Follows(term, self.reachable_leader())
        };
        if self.view.told == Some(told) {
            return;
        }
        self.view.told = Some(told);
        self.tell_election_timer();
        self.outputs.push_back(Output::Database(match told {
            Told::Leads(term) => MemberEvent::Leads { term },
            Told::Follows(term, leader) => MemberEvent::Follows { term, leader },
        }));
        match told {
            Told::Leads(_) => self.execute_forwards(),
            Told::Follows(..) => self.resend_forwards(),
        }
    }

    /// Tells the database of a leader the election timer, if it has not heard it.
    pub(super) fn tell_election_timer(&mut self) {
        let timer_ms = self.ticker.timer_ms();
        let leads = matches!(self.view.told, Some(Told::Leads(_)));
        if leads && self.view.told_timer_ms != Some(timer_ms) {
            self.view.told_timer_ms = Some(timer_ms);
            let event = MemberEvent::ElectionTimer { timer_ms };
            self.outputs.push_back(Output::Database(event));
        }
    }

    fn update_targets(&mut self) {
        // Compared in every turn, and made when it has changed.
        let known = self.view.targets.as_ref();
        let is_same = known.is_some_and(|known| {
            let known = known.iter();
            known
                .map(|target| (target.sid, target.address.as_str()))
                .eq(self.wanted_connections())
        });
        if is_same {
            return;
        }
        let wanted = self.wanted_connections();
        let targets: Vec<DialTarget> = wanted
            .map(|(sid, address)| DialTarget {
                address: address.to_owned(),
                sid,
            })
            .collect();
        self.view.targets = Some(targets.clone());
        self.outputs.push_back(Output::Dial(targets));
    }

    fn update_row(&mut self) {
        let is_member = self.joining.is_none()
            && self.repairing.is_none()
            && self.leaving.is_none()
            && !self.has_left
            && self.failure.is_none();
        // A member that can store nothing stays behind for as long as that lasts. Its clients are better served elsewhere.
        let is_stuck = self.file.trouble != Trouble::None
            && !self.node.is_leader()
            && self.view.leader_commit > self.applied;
        let is_near = self.view.has_seen_leader && !self.view.is_retrying();
        let is_leader = self.announced_term().is_some();
        let is_in_touch = is_member && is_near;
        let has_caught_up = self.catching_up.look(is_in_touch, is_leader, self.applied);
        let row = ServerRow {
            is_connected: is_in_touch && has_caught_up && !is_stuck,
            is_leader,
            cid: self.cid,
            sid: self.settings.sid,
            absence: self.absence(),
        };
        let known = self.view.row.as_ref();
        if known.is_none_or(|known| known.is_connected != row.is_connected) {
            let text = format!("raft_is_connected: {}", row.is_connected);
            self.log(Level::Debug, text);
        }
        if self.view.row.as_ref() != Some(&row) {
            self.view.row = Some(row.clone());
            self.outputs.push_back(Output::Row(row));
        }
    }

    /// Members that must agree.
    pub(super) fn quorum(&self) -> usize {
        self.membership.count() / 2 + 1
    }
}
