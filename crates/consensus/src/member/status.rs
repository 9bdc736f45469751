//! The state of a member as `cluster/status` prints it (docs/spec/distribution.md 1.12), without its connections.

use corvid_log::cluster::{Cid, Index, Sid, Term};

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
    /// The first entry of the log after its snapshot.
    pub log_start: Index,
    /// The position after the last entry.
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
