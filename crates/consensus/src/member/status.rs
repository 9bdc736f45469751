//! The state of a member as `cluster/status` prints it (docs/spec/distribution.md 1.12), without
//! its connections.

use corvid_log::cluster::{Cid, Index, Sid, Term};

/// The state of a member, for operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The member's id.
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
    /// Why the file takes no records at present, in the operating system's words; `None`: it does,
    /// or the system has reported nothing.
    pub file_error: Option<String>,
    /// Servers that are asked for admission while joining.
    pub remote_addresses: Vec<String>,
    /// Its role.
    pub role: Role,
    /// Its term.
    pub term: Term,
    /// The leader of the term, if known.
    pub leader: Option<Sid>,
    /// The member's vote in the term.
    pub vote: Option<Sid>,
    /// Time since the last election began, ms, and whether a leadership transfer caused it.
    pub election_started: Option<(u64, bool)>,
    /// Time since this member won an election, ms.
    pub election_won_ms: Option<u64>,
    /// The election timer, ms.
    pub election_timer_ms: u64,
    /// The election timer of an entry that is not committed yet, ms.
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
    /// Time for which the database has applied nothing although the cluster has committed more, ms.
    pub index_age_ms: u64,
    /// Whether that has lasted long enough to be reported.
    pub is_still: bool,
    /// The members by id, including this one, followed by servers that are being added.
    pub servers: Vec<PeerStatus>,
    /// While a snapshot arrives: its stored bytes and its length.
    pub receiving: Option<(u64, u64)>,
    /// Bytes of log entries in memory.
    pub log_bytes: u64,
    /// Number of elections that this member has begun.
    pub elections: u64,
}

/// The state of a member's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileState {
    /// The file accepts records.
    Intact,
    /// The file failed to take a record and is being retried; the disk may be full.
    Failing,
    /// A sync failed, or bytes of the file changed: it is being rewritten.
    Poisoned,
    /// The file is damaged; a snapshot from the leader will replace it.
    Damaged,
    /// The file is older than the member's promises, so the member has stopped.
    Lost,
    /// The file's committed entries contradict the leader's, so the member has stopped.
    Diverged,
}

/// A server as another member's report lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerStatus {
    /// The server's id.
    pub sid: Sid,
    /// The server's address.
    pub address: String,
    /// The phase of its membership.
    pub phase: Phase,
    /// Its vote, if this member is a candidate and knows it.
    pub voted_for: Option<Sid>,
    /// The next entry to send to it, if this member leads.
    pub next_index: Option<Index>,
    /// The last entry that it is known to have stored, if this member leads.
    pub match_index: Option<Index>,
    /// Time since its last message, ms.
    pub last_message_ms: Option<u64>,
    /// Bytes of a snapshot that it has, and the snapshot's length; `None` if none is being sent.
    pub snapshot: Option<(u64, u64)>,
    /// Whether messages can be sent to it.
    pub is_up: bool,
    /// Time since it was last heard from, ms; 0 for the member itself.
    pub silent_ms: u64,
    /// Whether that has lasted long enough to be reported.
    pub is_silent: bool,
    /// If this member leads: time for which the peer has stored nothing although it lacks entries,
    /// ms.
    pub index_age_ms: Option<u64>,
    /// Whether that has lasted long enough to be reported.
    pub is_still: bool,
}

/// The role of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Follows a leader, or waits for one.
    Follower,
    /// Stands for election, or is in the pre-vote phase of one.
    Candidate,
    /// Leads.
    Leader,
}

/// The phase of a server's membership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The server is a member.
    Stable,
    /// The server is being added, and is receiving the log.
    CatchUp,
    /// The server is being added, and has the log.
    CaughtUp,
    /// The list that adds it is not committed yet.
    Committing,
    /// The list that removes it is not committed yet.
    Removing,
}

/// The state of a server's membership; the first variant that applies counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Connected {
    /// The server is not a member yet.
    Joining,
    /// The file is damaged and waits for a snapshot. While one arrives: its stored bytes and its
    /// length.
    Repairing(Option<(u64, u64)>),
    /// The member has asked to leave.
    Leaving,
    /// The member has left.
    Left,
    /// The member no longer takes part; the text says why and what to do.
    Failed(String),
    /// The member has not heard from a leader for two elections.
    Disconnected,
    /// The member takes part normally.
    Member,
}
