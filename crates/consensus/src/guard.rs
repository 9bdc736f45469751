//! The checks that a message of another member must pass before it reaches the consensus library: any message, from any sender, must leave
//! the library's assertions and the log's safety intact.
//!
//! Pure: a function of the message and a small view of the member. [`crate::peers`] has checked who the sender is. The member calls
//! [`check`] first of all for each message, and changes nothing when it is refused.

use corvid_data::Uuid;
use corvid_log::cluster::{ELECTION_TIMER_MAX_MS, Index, Servers, Sid, Term, address};
use corvid_rpc::Level;
use thiserror::Error;

use crate::database::{Forward, ForwardOutcome};
use crate::entry::EntryBody;
use crate::message::{CHUNK_BYTES_MAX, LIST_MAX, PeerMessage, Rejection, SnapshotMeta};

/// Terms, indexes, numbers and offsets are below, so that sums of them cannot overflow.
pub const NUMBER_END: u64 = 1 << 62;
/// Elections between this member's term and a peer's, at most: with one each second they take 136 years. A term is adopted for good by
/// every member that hears of it, so one forged message must not use up all terms that there are.
pub const TERMS_AHEAD_MAX: u64 = 1 << 32;
/// Servers of a cluster, at most.
pub const SERVERS_MAX: usize = 1024;
/// Bytes of an address, a name or a comment, at most.
pub const TEXT_BYTES_MAX: usize = 4096;

/// The state of a member, as far as checks need it.
#[derive(Clone, Copy, Debug)]
pub struct GuardView {
    /// The member's own id.
    pub sid: Sid,
    /// Its term.
    pub term: Term,
    /// The leader of that term, if it is known; itself when it leads.
    pub leader: Option<Sid>,
    /// Its last entry, written or not.
    pub last_index: Index,
    /// The last entry that it has synced.
    pub persisted: Index,
}

/// Why a message goes no further. Displays as the text of the log line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The message is malformed or forged.
    #[error("{0}")]
    Malformed(&'static str),
    /// It is not for this member in its present state; the sender may be honest.
    #[error("{0}")]
    Untimely(&'static str),
    /// Two servers claim to lead in one term.
    #[error("leader for term {term} changed from {known} to {claimant}")]
    SecondLeader {
        /// The term.
        term: Term,
        /// The leader that is known.
        known: Sid,
        /// The other one.
        claimant: Sid,
    },
    /// Another server claims to lead in the term in which this member leads.
    #[error("this server is leader but server {0} claims to be")]
    SecondToThis(Sid),
    /// The leader knows that this member has stored entries that it does not have: its file is older than its promises.
    #[error(
        "this member had stored entries through {promised}, but its log ends at {last}: its file was lost or replaced by an older one"
    )]
    LostLog {
        /// The entry that it once acknowledged.
        promised: Index,
        /// Its last entry.
        last: Index,
    },
}

/// The consequence of a refused message, beside its log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// Reset the connections to the sender ([`crate::Peers::refuse`]).
    Reset,
    /// Nothing: drop the message.
    Drop,
    /// Stop voting and serving until the member is rebuilt.
    Stop,
}

impl Refusal {
    /// The reaction.
    #[must_use]
    pub fn reaction(&self) -> Reaction {
        match self {
            Refusal::Malformed(_) => Reaction::Reset,
            Refusal::Untimely(_) | Refusal::SecondLeader { .. } | Refusal::SecondToThis(_) => {
                Reaction::Drop
            }
            Refusal::LostLog { .. } => Reaction::Stop,
        }
    }

    /// The level of the log line.
    #[must_use]
    pub fn level(&self) -> Level {
        match self {
            Refusal::Malformed(_) => Level::Warn,
            Refusal::Untimely(_) => Level::Debug,
            Refusal::SecondLeader { .. } | Refusal::SecondToThis(_) | Refusal::LostLog { .. } => {
                Level::Error
            }
        }
    }
}

/// Checks a message.
///
/// # Errors
/// [`Refusal`].
pub fn check(from: Sid, message: &PeerMessage, view: &GuardView) -> Result<(), Refusal> {
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
        | PeerMessage::SnapshotProgress { .. } => check_reply(message, view),
        PeerMessage::Vote { .. } | PeerMessage::VoteReply { .. } => check_election(message, view),
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

/// Messages that only a leader sends.
fn check_of_leader(from: Sid, message: &PeerMessage, view: &GuardView) -> Result<(), Refusal> {
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
            // The library takes the term 0 for that of an entry that it does not have, and would find it to match.
            untimely_if(
                *prev_term == Term(0),
                "an append behind an entry of no term",
            )?;
        }
        PeerMessage::Heartbeat { term, commit } => {
            check_numbers(&[commit.0])?;
            check_leader(from, *term, view)?;
            // A leader tells no more than this member has acknowledged. The library would panic.
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
        PeerMessage::SnapshotOffer { term, snapshot } => check_snapshot(*term, snapshot)?,
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

/// One leader a term.
fn check_leader(from: Sid, term: Term, view: &GuardView) -> Result<(), Refusal> {
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

/// Terms grow along the log, and none is later than the leader's: the library asserts it.
fn check_entries(
    term: Term,
    prev_index: Index,
    prev_term: Term,
    entries: &[(Term, EntryBody)],
) -> Result<(), Refusal> {
    // Index 1 is the first snapshot of every cluster.
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

/// An entry that changes the cluster.
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

/// The library knows servers by half of their ids.
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

/// Answers to a leader.
fn check_reply(message: &PeerMessage, view: &GuardView) -> Result<(), Refusal> {
    match message {
        PeerMessage::AppendReply {
            index,
            commit,
            rejection,
            ..
        } => {
            let rejection = rejection.unwrap_or(Rejection {
                hint: Index(0),
                hint_term: Term(0),
            });
            check_numbers(&[index.0, commit.0, rejection.hint.0, rejection.hint_term.0])?;
            // The library would look for entries that it does not have.
            let is_ahead = *index > view.last_index || rejection.hint > view.last_index;
            untimely_if(is_ahead, "a reply about an entry behind the end of the log")
        }
        PeerMessage::HeartbeatReply { commit, .. } => check_numbers(&[commit.0]),
        PeerMessage::SnapshotProgress { index, offset, .. } => check_numbers(&[index.0, *offset]),
        _ => Ok(()),
    }
}

fn check_election(message: &PeerMessage, view: &GuardView) -> Result<(), Refusal> {
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
            )
        }
        PeerMessage::VoteReply {
            commit,
            commit_term,
            ..
        } => {
            check_numbers(&[commit.0, commit_term.0])?;
            // A leader that has not synced its own log must not win: a later append would count entries that a crash can take back.
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
            // Entries without data have none.
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
    let client = &forward.client;
    let names = client.locks.iter().chain(&client.client_id);
    names
        .chain([&client.role])
        .try_for_each(|name| check_text(name))
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
mod tests {
    use super::*;
    use bytes::Bytes;
    use corvid_log::cluster::Eid;

    const OWN: Sid = Sid(Uuid([1; 16]));
    const PEER: Sid = Sid(Uuid([2; 16]));
    const OTHER: Sid = Sid(Uuid([3; 16]));

    fn view() -> GuardView {
        GuardView {
            sid: OWN,
            term: Term(5),
            leader: Some(PEER),
            last_index: Index(10),
            persisted: Index(10),
        }
    }

    fn append(term: u64, prev: (u64, u64), terms: &[u64]) -> PeerMessage {
        let body = EntryBody::commit(Eid(Uuid([9; 16])), b"[null,{}]");
        PeerMessage::Append {
            term: Term(term),
            prev_index: Index(prev.0),
            prev_term: Term(prev.1),
            commit: Index(1),
            entries: terms
                .iter()
                .map(|term| (Term(*term), body.clone()))
                .collect(),
        }
    }

    fn configuration(body: EntryBody) -> PeerMessage {
        PeerMessage::Append {
            term: Term(5),
            prev_index: Index(10),
            prev_term: Term(5),
            commit: Index(1),
            entries: vec![(Term(5), body)],
        }
    }

    fn reply(index: u64, hint: Option<u64>) -> PeerMessage {
        PeerMessage::AppendReply {
            term: Term(5),
            index: Index(index),
            commit: Index(1),
            rejection: hint.map(|hint| Rejection {
                hint: Index(hint),
                hint_term: Term(1),
            }),
        }
    }

    fn vote(last: (u64, u64), commit: (u64, u64)) -> PeerMessage {
        PeerMessage::Vote {
            term: Term(6),
            last_index: Index(last.0),
            last_term: Term(last.1),
            commit: Index(commit.0),
            commit_term: Term(commit.1),
            is_prevote: false,
            is_transfer: false,
        }
    }

    fn request(term: u64, last: (u64, u64), address: &str) -> PeerMessage {
        PeerMessage::SnapshotRequest {
            term: Term(term),
            last_index: Index(last.0),
            last_term: Term(last.1),
            address: address.to_owned(),
            name: "D".to_owned(),
        }
    }

    fn offer(index: u64, term: u64, timer_ms: u64, servers: &str) -> PeerMessage {
        PeerMessage::SnapshotOffer {
            term: Term(5),
            snapshot: SnapshotMeta {
                index: Index(index),
                term: Term(term),
                eid: Eid(Uuid([4; 16])),
                servers: Servers::decode(servers.as_bytes()).expect("servers"),
                election_timer_ms: timer_ms,
                body_bytes: 100,
            },
        }
    }

    const SERVERS: &str = r#"{"01010101-0101-0101-0101-010101010101":"tcp:1.2.3.4:5","02020202-0202-0202-0202-020202020202":"tcp:1.2.3.4:6"}"#;
    const ALIKE: &str = r#"{"01010101-0101-0101-0101-010101010101":"tcp:1.2.3.4:5","01010101-0101-0101-0202-020202020202":"tcp:1.2.3.4:6"}"#;
    const ZERO: &str = r#"{"00000000-0000-0000-0101-010101010101":"tcp:1.2.3.4:5"}"#;

    #[test]
    fn honest_messages_pass() {
        let servers = Servers::decode(SERVERS.as_bytes()).expect("servers");
        for message in [
            append(5, (10, 5), &[5, 5]),
            append(5, (3, 1), &[1, 2, 5]),
            append(6, (200, 5), &[]),
            configuration(EntryBody::servers(&servers)),
            configuration(EntryBody::election_timer(2000)),
            configuration(EntryBody::empty()),
            reply(10, None),
            reply(10, Some(9)),
            vote((20, 5), (10, 5)),
            vote((0, 0), (0, 0)),
            offer(9, 5, 1000, SERVERS),
            PeerMessage::TimeoutNow { term: Term(5) },
            PeerMessage::NotMember { term: Term(1) },
            request(9, (20, 5), "tcp:1.2.3.4:5"),
        ] {
            assert_eq!(check(PEER, &message, &view()), Ok(()), "{message:?}");
        }
        let far = append((1 << 32) + 5, (10, 5), &[]);
        assert_eq!(check(PEER, &far, &view()), Ok(()));
        // The first leader of a later term that this member hears of.
        assert_eq!(check(OTHER, &append(6, (10, 5), &[6]), &view()), Ok(()));
    }

    #[test]
    fn forged_messages_reset_the_connection() {
        let twice = Servers::decode(ALIKE.as_bytes()).expect("servers");
        let chunk = |offset, length| PeerMessage::SnapshotChunk {
            term: Term(5),
            index: Index(3),
            offset,
            bytes: Bytes::from(vec![b'x'; length]),
        };
        let forward = |first, answered, id| PeerMessage::Forward {
            term: Term(5),
            first,
            answered,
            forwards: vec![Forward {
                id: Eid(Uuid([id; 16])),
                method: crate::database::ForwardMethod::Transact,
                params: Bytes::from_static(b"[]"),
                client: crate::ClientIdentity::default(),
                elapsed_ms: 0,
            }],
        };
        for (message, reason) in [
            (append(0, (10, 0), &[]), "term out of range"),
            (append(1 << 62, (10, 5), &[]), "term out of range"),
            (append((1 << 32) + 6, (10, 5), &[]), "a term too far ahead"),
            (append(u64::MAX, (10, 5), &[]), "term out of range"),
            (append(5, (1 << 62, 5), &[]), "index out of range"),
            (
                request(9, (1 << 62, 5), "tcp:1.2.3.4:5"),
                "index out of range",
            ),
            (
                request(9, (20, 10), "tcp:1.2.3.4:5"),
                "a log that is later than its term",
            ),
            (
                request(9, (20, 5), &"x".repeat(5000)),
                "a text that is too long",
            ),
            (append(5, (u64::MAX, 5), &[]), "index out of range"),
            (append(5, (0, 0), &[]), "an append before the first entry"),
            (
                append(5, (10, 6), &[]),
                "an entry's term is later than its leader's",
            ),
            (
                append(5, (10, 5), &[5, 6]),
                "an entry's term is later than its leader's",
            ),
            (append(5, (10, 4), &[5, 4]), "terms of entries decrease"),
            (append(5, (10, 4), &[3]), "terms of entries decrease"),
            (append(5, (10, 0), &[0]), "terms of entries decrease"),
            (
                append(5, (10, 5), &vec![5; LIST_MAX + 1]),
                "too many entries",
            ),
            (
                configuration(EntryBody::servers(&twice)),
                "two servers have ids that begin alike",
            ),
            (
                configuration(EntryBody::election_timer(600_001)),
                "election timer out of range",
            ),
            (reply(1 << 62, None), "index out of range"),
            (reply(1, Some(1 << 62)), "index out of range"),
            (
                vote((20, 7), (10, 5)),
                "a candidate's log is later than its term",
            ),
            (
                vote((20, 5), (21, 5)),
                "a candidate's commit index is behind its log",
            ),
            (
                vote((20, 4), (10, 5)),
                "a commit index is later than its log",
            ),
            (offer(0, 5, 1000, SERVERS), "a snapshot of index 0"),
            (offer(9, 0, 1000, SERVERS), "a snapshot of term 0"),
            (
                offer(9, 6, 1000, SERVERS),
                "a snapshot's term is later than its leader's",
            ),
            (offer(9, 5, 0, SERVERS), "election timer out of range"),
            (
                offer(9, 5, 1000, ALIKE),
                "two servers have ids that begin alike",
            ),
            (offer(9, 5, 1000, ZERO), "a server's id is zero"),
            (chunk(0, 0), "a chunk that is empty or too long"),
            (
                chunk(0, CHUNK_BYTES_MAX + 1),
                "a chunk that is empty or too long",
            ),
            (chunk(1 << 62, 1), "index out of range"),
            (forward(0, 0, 1), "transactions are numbered from 1"),
            (
                forward(3, 4, 1),
                "an outcome of a transaction that was not forwarded",
            ),
            (forward(3, 2, 0), "a transaction's id is zero"),
            (
                PeerMessage::AddServer {
                    address: "x".to_owned(),
                    name: "n".to_owned(),
                },
                "an address of another form",
            ),
            (
                PeerMessage::RemoveServerReply {
                    is_success: true,
                    target: None,
                    comment: "x".repeat(TEXT_BYTES_MAX + 1),
                },
                "a text that is too long",
            ),
        ] {
            let refusal = check(PEER, &message, &view()).expect_err(reason);
            assert_eq!(refusal, Refusal::Malformed(reason), "{message:?}");
            assert_eq!(refusal.reaction(), Reaction::Reset);
        }
        let message = append(5, (10, 5), &[]);
        let of_nobody = check(Sid(Uuid::ZERO), &message, &view());
        assert_eq!(
            of_nobody,
            Err(Refusal::Malformed("the sender's id is zero"))
        );
        assert!(check(OWN, &message, &view()).is_err());
    }

    #[test]
    fn messages_at_a_wrong_time_are_dropped() {
        let later = PeerMessage::VoteReply {
            term: Term(5),
            is_prevote: false,
            is_granted: true,
            commit: Index(1),
            commit_term: Term(1),
        };
        let unsynced = GuardView {
            persisted: Index(9),
            ..view()
        };
        assert_eq!(check(PEER, &later, &view()), Ok(()));
        let transfer = PeerMessage::TimeoutNow { term: Term(5) };
        for (from, message, view) in [
            (PEER, append(5, (10, 0), &[]), view()),
            (PEER, reply(11, None), view()),
            (PEER, reply(10, Some(11)), view()),
            (PEER, later, unsynced),
            (OTHER, transfer.clone(), view()),
            (PEER, PeerMessage::TimeoutNow { term: Term(6) }, view()),
        ] {
            let refusal = check(from, &message, &view).expect_err("dropped");
            assert_eq!(refusal.reaction(), Reaction::Drop, "{message:?}");
        }
    }

    #[test]
    fn a_second_leader_of_a_term_is_told_of_and_dropped() {
        for message in [
            append(5, (10, 5), &[]),
            offer(9, 5, 1000, SERVERS),
            PeerMessage::Heartbeat {
                term: Term(5),
                commit: Index(1),
            },
        ] {
            let refusal = check(OTHER, &message, &view()).expect_err("a second leader");
            assert_eq!(refusal.reaction(), Reaction::Drop);
            assert_eq!(refusal.level(), Level::Error);
            assert_eq!(
                refusal.to_string(),
                "leader for term 5 changed from 0202 to 0303"
            );
        }
    }

    #[test]
    fn a_leader_is_told_of_another_one_in_its_term() {
        let leads = GuardView {
            leader: Some(OWN),
            ..view()
        };
        let refusal = check(OTHER, &append(5, (10, 5), &[]), &leads).expect_err("a second leader");
        assert_eq!(refusal.reaction(), Reaction::Drop);
        assert_eq!(refusal.level(), Level::Error);
        assert_eq!(
            refusal.to_string(),
            "this server is leader but server 0303 claims to be"
        );
    }

    #[test]
    fn a_member_that_has_lost_its_log_is_told_so() {
        let heartbeat = |term, commit| PeerMessage::Heartbeat {
            term: Term(term),
            commit: Index(commit),
        };
        let refusal = check(PEER, &heartbeat(5, 11), &view()).expect_err("lost");
        assert_eq!(refusal.reaction(), Reaction::Stop);
        assert_eq!(
            refusal.to_string(),
            "this member had stored entries through 11, but its log ends at 10: its file was lost or replaced by an older one"
        );
        assert_eq!(check(PEER, &heartbeat(5, 10), &view()), Ok(()));
        assert_eq!(check(PEER, &heartbeat(4, 11), &view()), Ok(()), "stale");
    }
}
