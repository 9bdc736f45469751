//! The state of a member as `cluster/status` prints it (docs/spec/distribution.md 1.12), without its connections.

use corvid_log::cluster::{Cid, Index, Servers, Sid, Term};

use super::Member;
use super::log_file::Trouble;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The member.
    pub sid: Sid,
    /// Its cluster, if known.
    pub cid: Option<Cid>,
    /// The name of the database.
    pub name: String,
    /// The member's own address.
    pub address: String,
    /// The state of its membership.
    pub connected: Connected,
    /// The state of its file.
    pub file: FileState,
    /// Servers that are asked for admission.
    pub remote_addresses: Vec<String>,
    /// Its role.
    pub role: Role,
    /// Its term.
    pub term: Term,
    /// The leader of the term, if known.
    pub leader: Option<Sid>,
    /// The vote in the term.
    pub vote: Option<Sid>,
    /// Time since the last election began, ms, and whether a transfer of leadership was the reason.
    pub election_started: Option<(u64, bool)>,
    /// Time since it won an election, ms.
    pub election_won_ms: Option<u64>,
    /// The election timer, ms.
    pub election_timer_ms: u64,
    /// The election timer of an entry that is not committed yet.
    pub next_election_timer_ms: Option<u64>,
    /// The first entry of the log behind its snapshot.
    pub log_start: Index,
    /// The position behind the last entry.
    pub log_end: Index,
    /// The last committed entry.
    pub commit: Index,
    /// The last entry that the database has applied.
    pub applied: Index,
    /// The newest entry that this member knows to be committed anywhere.
    pub known_commit: Index,
    /// How long the database has applied nothing although the cluster has committed more, ms.
    pub index_age_ms: u64,
    /// The member stands still: that has lasted long enough to be told.
    pub is_still: bool,
    /// The members, this one included, by id; servers that are being added or removed follow.
    pub servers: Vec<PeerStatus>,
    /// Bytes of log entries in memory.
    pub log_bytes: u64,
    /// Elections that this member has begun.
    pub elections: u64,
}

/// The state of a member's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileState {
    /// It takes records.
    Intact,
    /// It took no record, and is tried again: the disk may be full.
    Failing,
    /// A sync has failed, or bytes of it have changed: it is being written again.
    Poisoned,
    /// It is damaged: a snapshot of the leader will replace it.
    Damaged,
    /// It is older than the member's promises, so the member has stopped.
    Lost,
    /// Its committed entries are not those of the leader, so the member has stopped.
    Diverged,
}

/// A server in the list of another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerStatus {
    /// Its id.
    pub sid: Sid,
    /// Its address.
    pub address: String,
    /// Its phase.
    pub phase: Phase,
    /// Its vote, if this member is a candidate and knows.
    pub voted_for: Option<Sid>,
    /// The next entry to send, if this member leads.
    pub next_index: Option<Index>,
    /// The last entry that it is known to have stored, if this member leads.
    pub match_index: Option<Index>,
    /// Time since its last message, ms.
    pub last_message_ms: Option<u64>,
    /// How much of a snapshot it has, of how much, bytes.
    pub snapshot: Option<(u64, u64)>,
    /// Messages can be sent to it.
    pub is_up: bool,
    /// How long it has not been heard of, ms; 0 for the member itself.
    pub silent_ms: u64,
    /// It is silent: that has lasted long enough to be told.
    pub is_silent: bool,
    /// If this member leads: how long the peer has stored nothing although it lacks entries, ms.
    pub index_age_ms: Option<u64>,
    /// It stands still: that has lasted long enough to be told.
    pub is_still: bool,
}

/// The role of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It follows a leader, or waits for one.
    Follower,
    /// It stands for election, or asks whether it may.
    Candidate,
    /// It leads.
    Leader,
}

/// The phase of a server's membership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// A member.
    Stable,
    /// It is to be added, and gets the log.
    CatchUp,
    /// It is to be added, and has the log.
    CaughtUp,
    /// The list with it is not committed yet.
    Committing,
    /// The list without it is not committed yet.
    Removing,
}

/// The state of a server's membership. The first that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Connected {
    /// It is not a member yet.
    Joining,
    /// Its file is damaged, and it waits for a snapshot, or has so many bytes of so many.
    Repairing(Option<(u64, u64)>),
    /// It has asked to leave.
    Leaving,
    /// It has left.
    Left,
    /// It cannot store anything, or has lost what it promised; the text says what to do.
    Failed(String),
    /// It has not heard of a leader in two elections.
    Disconnected,
    /// All is well.
    Member,
}

impl Member {
    /// Its role and its term, of [`Member::status`].
    #[must_use]
    pub fn role_and_term(&self) -> (Role, Term) {
        (self.node.role(), self.node.term())
    }

    /// The state for operators.
    #[must_use]
    pub fn status(&self, now_ms: u64) -> Status {
        let ago = |then_ms: u64| now_ms.saturating_sub(then_ms);
        let election = self.view.election;
        Status {
            sid: self.settings.sid,
            cid: self.cid,
            name: self.settings.name.clone(),
            address: self.settings.address.clone(),
            connected: self.connected(),
            file: self.file_state(),
            remote_addresses: self
                .joining
                .as_ref()
                .map_or_else(Vec::new, |joining| joining.remotes.clone()),
            role: self.node.role(),
            term: self.node.term(),
            leader: self.node.leader(),
            vote: self.node.vote(),
            election_started: election.map(|(then_ms, is_transfer)| (ago(then_ms), is_transfer)),
            election_won_ms: self.view.won_ms.map(ago),
            election_timer_ms: self.ticker.timer_ms(),
            next_election_timer_ms: self.next_timer_ms,
            log_start: self.snapshot.0.next(),
            log_end: self.node.last_index().next(),
            commit: self.node.commit(),
            applied: self.applied,
            known_commit: self.known_commit(),
            index_age_ms: self.index_age_ms(now_ms),
            is_still: self.is_late(self.index_age_ms(now_ms)),
            servers: self.peer_statuses(now_ms),
            log_bytes: self.node.log_bytes(),
            elections: self.view.elections,
        }
    }

    fn connected(&self) -> Connected {
        if self.has_left {
            Connected::Left
        } else if let Some(failure) = &self.failure {
            // An older file may say that the server is still joining, or leaving.
            Connected::Failed(failure.text.clone())
        } else if self.joining.is_some() {
            Connected::Joining
        } else if self.repairing.is_some() {
            Connected::Repairing(self.received())
        } else if self.leaving.is_some() {
            Connected::Leaving
        } else if self.view.is_retrying() {
            Connected::Disconnected
        } else {
            Connected::Member
        }
    }

    fn file_state(&self) -> FileState {
        if self.repairing.is_some() {
            return FileState::Damaged;
        }
        if let Some(failure) = &self.failure {
            return failure.file_state();
        }
        match self.file.trouble {
            Trouble::None => FileState::Intact,
            Trouble::Failed { .. } => FileState::Failing,
            Trouble::Poisoned => FileState::Poisoned,
        }
    }

    fn peer_statuses(&self, now_ms: u64) -> Vec<PeerStatus> {
        let servers = self
            .membership
            .servers()
            .into_iter()
            .flat_map(Servers::iter);
        let members = servers.map(|(sid, address)| {
            let is_going = self.membership.removals.iter().any(|it| it.target == sid);
            let phase = if is_going {
                Phase::Removing
            } else {
                Phase::Stable
            };
            self.peer_status(now_ms, sid, address, phase)
        });
        let joiners = self.membership.joiners.iter().map(|(sid, joiner)| {
            let phase = match (joiner.is_proposed, joiner.is_caught_up) {
                (true, _) => Phase::Committing,
                (false, true) => Phase::CaughtUp,
                (false, false) => Phase::CatchUp,
            };
            self.peer_status(now_ms, *sid, &joiner.address, phase)
        });
        members.chain(joiners).collect()
    }

    fn peer_status(&self, now_ms: u64, sid: Sid, address: &str, phase: Phase) -> PeerStatus {
        let peer = self.peers.get(&sid).copied().unwrap_or_default();
        let progress = self.node.progress(sid).filter(|_| self.node.is_leader());
        let is_candidate = self.node.role() == Role::Candidate;
        let is_self = sid == self.settings.sid;
        let voted_for = if is_self {
            self.node.vote()
        } else {
            peer.voted_for
        };
        let silent_ms = if is_self {
            0
        } else {
            self.silent_ms(now_ms, sid)
        };
        let age_ms = self.peer_index_age_ms(now_ms, sid);
        PeerStatus {
            silent_ms,
            is_silent: self.is_late(silent_ms),
            index_age_ms: progress.map(|_| age_ms),
            is_still: progress.is_some() && self.is_late(age_ms),
            sid,
            address: address.to_owned(),
            phase,
            voted_for: voted_for.filter(|_| is_candidate),
            next_index: progress.map(|it| it.next),
            match_index: progress.map(|it| it.matched),
            last_message_ms: peer
                .last_message_ms
                .map(|then_ms| now_ms.saturating_sub(then_ms)),
            snapshot: self
                .sending
                .get(&sid)
                .and_then(|sending| Some((sending.confirmed, sending.body_bytes?))),
            is_up: is_self || peer.is_up,
        }
    }
}
