//! The checks that a message from another member must pass before it reaches the consensus library.
//! No message from any sender may trip the library's assertions or violate the log's safety.
//!
//! Pure: a function of the message and a small view of the member. [`crate::peers`] has already
//! authenticated the sender. The member calls [`check`] on each message before anything else, and
//! changes nothing if the message is refused.

use corvid_data::Uuid;
use corvid_log::cluster::{ELECTION_TIMER_MAX_MS, Index, Servers, Sid, Term, Unfit, address};
use corvid_rpc::Level;
use thiserror::Error;

use crate::database::{Forward, ForwardOutcome};
use crate::entry::EntryBody;
use crate::limits::{self, TEXT_BYTES_MAX};
use crate::member::Repeated;
use crate::message::{CHUNK_BYTES_MAX, LIST_MAX, PeerMessage, Rejection, SnapshotMeta};
pub use committed::{CommittedLog, Divergence};

mod committed;

/// Exclusive upper bound of terms, indexes, numbers and offsets, so that their sums cannot
/// overflow.
pub const NUMBER_END: u64 = 1 << 62;
/// Maximum distance of a peer's term ahead of this member's. At one election per second it lasts
/// 136 years. Every member that hears of a term adopts it for good, so one forged message must not
/// exhaust all terms.
pub const TERMS_AHEAD_MAX: u64 = 1 << 32;
/// Maximum number of servers in a cluster.
pub const SERVERS_MAX: usize = 1024;

/// The part of a member's state that the checks need.
#[derive(Clone, Copy, Debug)]
pub struct GuardView<'a> {
    /// The member's own id.
    pub sid: Sid,
    /// The member's term.
    pub term: Term,
    /// The leader of that term, if known; the member itself if it leads.
    pub leader: Option<Sid>,
    /// The member's last entry, stored or not.
    pub last_index: Index,
    /// The last entry that the member has synced.
    pub persisted: Index,
    /// The last entry that the member, as leader of its term, has sent to the sender of this
    /// message; 0 if none.
    pub sent: Index,
    /// The part of the log that the member knows to be committed.
    pub log: &'a dyn CommittedLog,
}

/// Why a message is refused. Displays as the text of the log line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The message is malformed or forged.
    #[error("{0}")]
    Malformed(&'static str),
    /// The message does not suit the member's present state; the sender may be honest.
    #[error("{0}")]
    Untimely(&'static str),
    /// Two servers claim to lead in one term.
    #[error("leader for term {term} changed from {known} to {claimant}")]
    SecondLeader {
        /// The term.
        term: Term,
        /// The leader known so far.
        known: Sid,
        /// The server that claims to lead too.
        claimant: Sid,
    },
    /// Another server claims to lead in the term in which this member leads.
    #[error("this server is leader but server {0} claims to be")]
    SecondToThis(Sid),
    /// The leader knows that this member has stored entries that its log lacks: the file is older
    /// than the member's promises.
    #[error(
        "this member has acknowledged entries through {promised}, but its log ends at {last}: its file was lost or replaced by an older one"
    )]
    LostLog {
        /// The entry that the member once acknowledged.
        promised: Index,
        /// The member's last entry.
        last: Index,
    },
    /// The leader's log contradicts entries that this member has committed.
    #[error(
        "{0}: files of other members were lost or replaced by older ones, and the cluster went on without what this file has"
    )]
    Diverged(Divergence),
    /// A candidate's or voter's committed log contradicts this member's. Only a leader's log can
    /// show which of the two is wrong.
    #[error(
        "server {from} has committed entry {index} in term {theirs}, but this server in term {own}: files of members were lost or replaced by \
         older ones, and the two have no election together"
    )]
    OtherHistory {
        /// The other member.
        from: Sid,
        /// The entry where the logs differ.
        index: Index,
        /// Its term in this member's log.
        own: Term,
        /// Its term in the other member's log.
        theirs: Term,
    },
    /// A member acknowledges entries that this leader never sent it, so nobody has compared them
    /// with the leader's.
    #[error(
        "server {from} acknowledges entry {index}, but this leader has sent it no more than {sent}: not counted"
    )]
    Unsent {
        /// The member that acknowledges.
        from: Sid,
        /// The entry that it acknowledges.
        index: Index,
        /// The last entry that was sent.
        sent: Index,
    },
}

/// The consequence of a refused message, in addition to its log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// Reset the connections to the sender ([`crate::Peers::refuse`]).
    Reset,
    /// Drop the message.
    Drop,
    /// Stop voting and serving until the member's file is replaced.
    Stop(Unfit),
}

impl Refusal {
    /// How the member reacts.
    #[must_use]
    pub fn reaction(&self) -> Reaction {
        match self {
            Refusal::Malformed(_) => Reaction::Reset,
            Refusal::Untimely(_)
            | Refusal::SecondLeader { .. }
            | Refusal::SecondToThis(_)
            | Refusal::OtherHistory { .. }
            | Refusal::Unsent { .. } => Reaction::Drop,
            Refusal::LostLog { .. } => Reaction::Stop(Unfit::Lost),
            Refusal::Diverged(_) => Reaction::Stop(Unfit::Diverged),
        }
    }

    /// The level of the log line.
    #[must_use]
    pub fn level(&self) -> Level {
        match self {
            Refusal::Malformed(_) | Refusal::Unsent { .. } => Level::Warn,
            Refusal::Untimely(_) => Level::Debug,
            Refusal::SecondLeader { .. }
            | Refusal::SecondToThis(_)
            | Refusal::OtherHistory { .. }
            | Refusal::LostLog { .. }
            | Refusal::Diverged(_) => Level::Error,
        }
    }

    /// The kind of the log line; lines of one kind share a rate limit.
    #[must_use]
    pub fn kind(&self) -> Repeated {
        match self {
            Refusal::SecondLeader { .. } | Refusal::SecondToThis(_) => Repeated::SecondLeader,
            Refusal::OtherHistory { .. } => Repeated::OtherHistory,
            Refusal::Unsent { .. } => Repeated::Unsent,
            Refusal::Malformed(_)
            | Refusal::Untimely(_)
            | Refusal::LostLog { .. }
            | Refusal::Diverged(_) => Repeated::Untimely,
        }
    }
}

/// Checks a message before it takes any effect.
///
/// # Errors
/// The reason of the refusal.
pub fn check(from: Sid, message: &PeerMessage, view: &GuardView<'_>) -> Result<(), Refusal> {
    malformed_if(from.number() == 0, "the sender's id is zero")?;
    malformed_if(from == view.sid, "the sender has this member's id")?;
    if let Some(term) = message.term() {
        let is_in_range = (1..NUMBER_END).contains(&term.0);
        malformed_if(!is_in_range, "term out of range")?;
        let is_too_far = term.0 > view.term.0.saturating_add(TERMS_AHEAD_MAX);
        malformed_if(is_too_far, "a term too far ahead")?;
    }
    match message {
        PeerMessage::Append { .. }
        | PeerMessage::Heartbeat { .. }
        | PeerMessage::TimeoutNow { .. }
        | PeerMessage::SnapshotOffer { .. }
        | PeerMessage::SnapshotChunk { .. } => check_of_leader(from, message, view),
        PeerMessage::AppendReply { .. }
        | PeerMessage::HeartbeatReply { .. }
        | PeerMessage::SnapshotProgress { .. } => check_reply(from, message, view),
        PeerMessage::Vote { .. } | PeerMessage::VoteReply { .. } => {
            check_election(from, message, view)
        }
        PeerMessage::Forward { .. }
        | PeerMessage::Outcomes { .. }
        | PeerMessage::FindEntries { .. }
        | PeerMessage::FoundEntries { .. } => check_transactions(message),
        PeerMessage::AddServer { .. }
        | PeerMessage::AddServerReply { .. }
        | PeerMessage::RemoveServer { .. }
        | PeerMessage::RemoveServerReply { .. }
        | PeerMessage::NotMember { .. }
        | PeerMessage::SnapshotRequest { .. } => check_membership(message),
    }
}

/// Checks a message that only a leader sends.
fn check_of_leader(from: Sid, message: &PeerMessage, view: &GuardView<'_>) -> Result<(), Refusal> {
    match message {
        PeerMessage::Append {
            term,
            prev_index,
            prev_term,
            commit,
            entries,
        } => {
            check_numbers(&[prev_index.0, commit.0])?;
            check_entries(*term, *prev_index, *prev_term, entries)?;
            // The library uses term 0 for an entry that it does not have, so it would take the two
            // for equal.
            untimely_if(
                *prev_term == Term(0),
                "an append behind an entry of no term",
            )?;
            // An append of an older term is stale: the library rejects it. Only a leader of this or
            // a later term must have every entry that this member has committed.
            check_leader(from, *term, view)?;
            if *term >= view.term {
                committed::check_append(view, (*prev_index, *prev_term), entries)?;
            }
        }
        PeerMessage::Heartbeat { term, commit } => {
            check_numbers(&[commit.0])?;
            check_leader(from, *term, view)?;
            // A leader announces at most what this member has acknowledged, so a higher index
            // proves that this log lost entries. The library would panic on it.
            if *commit > view.last_index && *term >= view.term {
                return Err(Refusal::LostLog {
                    promised: *commit,
                    last: view.last_index,
                });
            }
        }
        PeerMessage::TimeoutNow { term } => {
            let is_of_leader = *term == view.term && view.leader == Some(from);
            untimely_if(!is_of_leader, "only the leader may ask for an election")?;
        }
        PeerMessage::SnapshotOffer { term, snapshot } => {
            check_snapshot(*term, snapshot)?;
            check_leader(from, *term, view)?;
            if *term >= view.term {
                committed::check_snapshot(view, snapshot)?;
            }
        }
        PeerMessage::SnapshotChunk {
            index,
            offset,
            bytes,
            ..
        } => {
            check_numbers(&[index.0, *offset])?;
            let is_in_range = (1..=CHUNK_BYTES_MAX).contains(&bytes.len());
            malformed_if(!is_in_range, "a chunk that is empty or too long")?;
        }
        _ => {}
    }
    match message.term() {
        Some(term) => check_leader(from, term, view),
        None => Ok(()),
    }
}

/// Checks that there is only one leader per term.
fn check_leader(from: Sid, term: Term, view: &GuardView<'_>) -> Result<(), Refusal> {
    match view.leader {
        Some(known) if term == view.term && known == view.sid => Err(Refusal::SecondToThis(from)),
        Some(known) if term == view.term && known != from => Err(Refusal::SecondLeader {
            term,
            known,
            claimant: from,
        }),
        _ => Ok(()),
    }
}

/// Checks that terms grow along the log and that none exceeds the leader's. The library asserts
/// both.
fn check_entries(
    term: Term,
    prev_index: Index,
    prev_term: Term,
    entries: &[(Term, EntryBody)],
) -> Result<(), Refusal> {
    // Index 1 is the initial snapshot of every cluster.
    malformed_if(prev_index == Index(0), "an append before the first entry")?;
    malformed_if(entries.len() > LIST_MAX, "too many entries")?;
    malformed_if(
        prev_term > term,
        "an entry's term is later than its leader's",
    )?;
    let mut last_term = prev_term.max(Term(1));
    for (entry_term, body) in entries {
        malformed_if(*entry_term < last_term, "terms of entries decrease")?;
        malformed_if(
            *entry_term > term,
            "an entry's term is later than its leader's",
        )?;
        last_term = *entry_term;
        if !body.is_empty() && body.as_commit().is_none() {
            check_configuration(body)?;
        }
    }
    Ok(())
}

/// Checks an entry that changes the cluster's configuration.
fn check_configuration(body: &EntryBody) -> Result<(), Refusal> {
    let Ok(entry) = body.parse(Term(1), Index(1)) else {
        return Err(Refusal::Malformed("an entry of another form"));
    };
    if let Some(servers) = &entry.servers {
        check_servers(servers)?;
    }
    match entry.election_timer_ms {
        Some(timer_ms) => check_timer(timer_ms),
        None => Ok(()),
    }
}

fn check_snapshot(term: Term, snapshot: &SnapshotMeta) -> Result<(), Refusal> {
    check_numbers(&[snapshot.index.0, snapshot.body_bytes])?;
    malformed_if(snapshot.index == Index(0), "a snapshot of index 0")?;
    malformed_if(snapshot.term == Term(0), "a snapshot of term 0")?;
    malformed_if(
        snapshot.term > term,
        "a snapshot's term is later than its leader's",
    )?;
    check_timer(snapshot.election_timer_ms)?;
    check_servers(&snapshot.servers)
}

/// Checks that the servers' ids differ in their first halves, by which the library knows them.
fn check_servers(servers: &Servers) -> Result<(), Refusal> {
    let mut ids: Vec<u64> = servers.iter().map(|(sid, _)| sid.number()).collect();
    malformed_if(ids.len() > SERVERS_MAX, "too many servers")?;
    malformed_if(ids.contains(&0), "a server's id is zero")?;
    ids.sort_unstable();
    let is_twice = ids.windows(2).any(|pair| pair[0] == pair[1]);
    malformed_if(is_twice, "two servers have ids that begin alike")
}

fn check_timer(timer_ms: u64) -> Result<(), Refusal> {
    let is_in_range = (1..=ELECTION_TIMER_MAX_MS).contains(&timer_ms);
    malformed_if(!is_in_range, "election timer out of range")
}

/// Checks an answer to a leader.
fn check_reply(from: Sid, message: &PeerMessage, view: &GuardView<'_>) -> Result<(), Refusal> {
    match message {
        PeerMessage::AppendReply {
            term,
            index,
            commit,
            rejection,
        } => {
            let Rejection { hint, hint_term } = rejection.unwrap_or(Rejection {
                hint: Index(0),
                hint_term: Term(0),
            });
            check_numbers(&[index.0, commit.0, hint.0, hint_term.0])?;
            let is_of_this_term = *term == view.term && view.leader == Some(view.sid);
            // Checked before anything counts the reply: an acknowledgement of entries that this
            // leader never sent would let it commit entries that no majority has.
            if is_of_this_term && rejection.is_none() && *index > view.sent {
                return Err(Refusal::Unsent {
                    from,
                    index: *index,
                    sent: view.sent,
                });
            }
            // The library would look up entries that it does not have. It never sees a hint past
            // the rejected entry: the member handles such a rejection itself.
            untimely_if(
                *index > view.last_index,
                "a reply about an entry behind the end of the log",
            )
        }
        PeerMessage::HeartbeatReply { commit, .. } => check_numbers(&[commit.0]),
        PeerMessage::SnapshotProgress { index, offset, .. } => check_numbers(&[index.0, *offset]),
        _ => Ok(()),
    }
}

fn check_election(from: Sid, message: &PeerMessage, view: &GuardView<'_>) -> Result<(), Refusal> {
    match message {
        PeerMessage::Vote {
            term,
            last_index,
            last_term,
            commit,
            commit_term,
            ..
        } => {
            check_numbers(&[last_index.0, commit.0])?;
            malformed_if(last_term > term, "a candidate's log is later than its term")?;
            malformed_if(
                commit > last_index,
                "a candidate's commit index is behind its log",
            )?;
            malformed_if(
                commit_term > last_term,
                "a commit index is later than its log",
            )?;
            committed::check_history(view, from, (*commit, *commit_term))
        }
        PeerMessage::VoteReply {
            commit,
            commit_term,
            ..
        } => {
            check_numbers(&[commit.0, commit_term.0])?;
            committed::check_history(view, from, (*commit, *commit_term))?;
            // A leader whose own log is not synced must not win. It would count its own copy of
            // entries, which a crash can still take back.
            let is_unsynced = view.persisted < view.last_index;
            untimely_if(is_unsynced, "a vote before this member's own log is synced")
        }
        _ => Ok(()),
    }
}

fn check_transactions(message: &PeerMessage) -> Result<(), Refusal> {
    match message {
        PeerMessage::Forward {
            first,
            answered,
            forwards,
            ..
        } => {
            check_numbers(&[*first, *answered])?;
            malformed_if(forwards.len() > LIST_MAX, "too many transactions")?;
            malformed_if(*first == 0, "transactions are numbered from 1")?;
            let is_ahead = *answered >= first + forwards.len() as u64;
            malformed_if(
                is_ahead,
                "an outcome of a transaction that was not forwarded",
            )?;
            forwards.iter().try_for_each(check_forward)
        }
        PeerMessage::Outcomes { outcomes, .. } => {
            malformed_if(outcomes.len() > LIST_MAX, "too many outcomes")?;
            for (number, _, outcome) in outcomes {
                malformed_if(*number == 0, "transactions are numbered from 1")?;
                check_numbers(&[*number])?;
                check_outcome(outcome)?;
            }
            Ok(())
        }
        PeerMessage::FindEntries {
            after,
            through,
            ids,
        } => {
            check_numbers(&[after.0, through.0])?;
            malformed_if(ids.is_empty() || ids.len() > LIST_MAX, "no ids or too many")?;
            // An id of zeros stands for an entry without data, so it cannot be searched for.
            let has_zero = ids.iter().any(|id| id.0 == Uuid::ZERO);
            malformed_if(has_zero, "an entry's id is zero")
        }
        PeerMessage::FoundEntries {
            after,
            through,
            found,
            outcomes,
            ..
        } => {
            check_numbers(&[after.0, through.0])?;
            let is_long = found.len().max(outcomes.len()) > LIST_MAX;
            malformed_if(is_long, "too many entries")?;
            let mut outcomes = outcomes.iter();
            outcomes.try_for_each(|(_, outcome)| check_outcome(outcome))
        }
        _ => Ok(()),
    }
}

fn check_outcome(outcome: &ForwardOutcome) -> Result<(), Refusal> {
    match outcome {
        ForwardOutcome::Proposed(_) => Ok(()),
        ForwardOutcome::Unchanged(index, _)
        | ForwardOutcome::Refused(index, _)
        | ForwardOutcome::Blocked(index) => check_numbers(&[index.0]),
    }
}

fn check_forward(forward: &Forward) -> Result<(), Refusal> {
    malformed_if(forward.id.0 == Uuid::ZERO, "a transaction's id is zero")?;
    check_numbers(&[forward.elapsed_ms])?;
    // The sender runs the same check, so an honest one is never refused here.
    limits::check_forward(forward).map_err(|why| Refusal::Malformed(why.reason()))
}

fn check_membership(message: &PeerMessage) -> Result<(), Refusal> {
    match message {
        PeerMessage::AddServer { address, name } => {
            check_text(name)?;
            check_text(address)?;
            malformed_if(
                address::check(address).is_err(),
                "an address of another form",
            )
        }
        PeerMessage::SnapshotRequest {
            term,
            last_index,
            last_term,
            address,
            name,
        } => {
            check_numbers(&[last_index.0])?;
            check_text(name)?;
            check_text(address)?;
            malformed_if(last_term > term, "a log that is later than its term")
        }
        PeerMessage::AddServerReply {
            comment,
            remote_addresses,
            ..
        } => {
            check_text(comment)?;
            malformed_if(remote_addresses.len() > SERVERS_MAX, "too many addresses")?;
            let mut addresses = remote_addresses.iter();
            addresses.try_for_each(|address| check_text(address))
        }
        PeerMessage::RemoveServer { server_id, .. } => {
            malformed_if(server_id.0 == Uuid::ZERO, "a server's id is zero")
        }
        PeerMessage::RemoveServerReply { comment, .. } => check_text(comment),
        _ => Ok(()),
    }
}

fn check_numbers(numbers: &[u64]) -> Result<(), Refusal> {
    let is_absurd = numbers.iter().any(|number| *number >= NUMBER_END);
    malformed_if(is_absurd, "index out of range")
}

fn check_text(text: &str) -> Result<(), Refusal> {
    malformed_if(text.len() > TEXT_BYTES_MAX, "a text that is too long")
}

fn malformed_if(is_malformed: bool, reason: &'static str) -> Result<(), Refusal> {
    if is_malformed {
        return Err(Refusal::Malformed(reason));
    }
    Ok(())
}

fn untimely_if(is_untimely: bool, reason: &'static str) -> Result<(), Refusal> {
    if is_untimely {
        return Err(Refusal::Untimely(reason));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
