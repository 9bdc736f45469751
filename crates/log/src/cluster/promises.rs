//! Reads a damaged member's file for the promises that its intact records still prove
//! (docs/internals/cluster.md, "Damage").
//!
//! ```text
//! [header][vote 3] [entry 7] [entry 8] [ damaged ] [entry 10][commit 9]
//!                   Known: identity, term 3 and its vote, last entry 10.
//!                   Lost: entry 9, which the cluster still has.
//! [header][vote 3] [entry 7] [ damaged: 512 unrelated bytes ] [entry 10]
//!                   They may have held a vote in term 4: nothing is known.
//! ```
//!
//! Invariant: [`read`] never returns less than the member has promised. The member has voted in no
//! later term than the returned one, and for no other server in that term. Its log has no entry
//! after `last`. So damaged bytes may hide a vote only if a later record states the term and vote
//! again. Otherwise the damage must be proved to hold no vote:
//!
//! - a record with a damaged header line is intact if the line still holds the hash of its body;
//! - a record with a damaged hash is intact if nearly all digits agree, which no other body would
//!   achieve;
//! - a short record with one flipped bit is restored with the help of its hash;
//! - a record with an intact header line, followed by the next record exactly where the line says,
//!   holds no vote if it is long.
//!
//! [`super::recovery`] calls this module for files that may have forgotten something. Entries are
//! read one at a time.

use sha1::{Digest, Sha1};
use thiserror::Error;

use super::header::{Header, Membership};
use super::header_scan::HeaderScan;
use super::reader::check_object;
use super::record::{Kind, Record};
use super::{ELECTION_TIMER_DEFAULT_MS, Index, Servers, Sid, Term, Unfit};
use crate::header::{Header as Line, LINE_BYTES_MAX, first_line};
use crate::interruption::is_incomplete;
use crate::salvage::restore::{find_body, is_nearly, read_range, restore};
use crate::salvage::{self, Bytes};
use crate::{Magic, ReadError};

/// A longer record holds neither a term nor a vote, bytes: a vote in the highest possible term has
/// 75 bytes.
const SHORT_BYTES_MAX: u64 = 80;

/// Minimum length of a record, bytes: a header line alone is longer.
const RECORD_BYTES_MIN: u64 = 57;

/// Bytes per read.
const PIECE_BYTES: usize = 128 * 1024;

/// The promises of a member whose file is damaged, apart from term and vote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promises {
    /// The members, from the last readable list.
    pub servers: Servers,
    /// Term and position of the last entry of the log. If that entry was damaged, an upper bound.
    pub last: (Term, Index),
    /// The election timer of the snapshot, ms.
    pub election_timer_ms: u64,
}

/// Why a damaged file does not prove what the member has promised, or why the cluster cannot
/// replace what it lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Obstacle {
    /// The header's identity is damaged, or the end of the header cannot be found.
    #[error("the record with its identity is damaged")]
    Identity,
    /// After bytes that may have held a vote, no intact record states term and vote again.
    #[error("a vote may have been among the damaged bytes")]
    Vote,
    /// The position of the last entry was in the header, which is damaged.
    #[error("the position of its last entry is not known")]
    Log,
    /// The intact records contradict each other, or are of an unknown kind.
    #[error("its intact records contradict each other")]
    Contradiction,
    /// The list of members does not contain the server.
    #[error("it is not known to be a member of its cluster")]
    Membership,
    /// The member stopped earlier, because it had lost entries or its log differed from the
    /// cluster's.
    #[error("it had lost entries, or its log was not that of its cluster")]
    Unfit,
    /// The cluster has no other member, so nobody else has the data.
    #[error("it is the only member of its cluster")]
    Alone,
}

/// The promises and identity that a damaged file proves.
#[derive(Debug)]
pub(super) struct Proven {
    /// The header, without the body of the snapshot.
    pub(super) header: Header,
    pub(super) header_end: u64,
    pub(super) term: Term,
    pub(super) vote: Option<Sid>,
    pub(super) promises: Promises,
}

/// Reads a file of `length` bytes.
///
/// # Errors
/// Outer: the file cannot be read. Inner: see [`Obstacle`].
pub(super) fn read<B: Bytes>(
    mut bytes: B,
    length: u64,
) -> Result<Result<Proven, Obstacle>, String> {
    let (header, header_end, is_proven) = match read_header(&mut bytes, length)? {
        Ok(read) => read,
        Err(obstacle) => return Ok(Err(obstacle)),
    };
    let Membership::Joined {
        servers,
        snapshot: Some(snapshot),
    } = &header.membership
    else {
        return Ok(Err(Obstacle::Membership));
    };
    let mut state = State {
        term: Term(0),
        vote: None,
        is_vote_hidden: false,
        last: is_proven.then_some((snapshot.term, snapshot.index)),
        lost: 0,
        servers: servers.clone(),
    };
    let mut at = header_end;
    while at < length {
        match read_record(&mut bytes, at, length)? {
            Found::Record(body, end) => {
                let Ok(record) = Record::decode(&body) else {
                    return Ok(Err(Obstacle::Contradiction));
                };
                if let Err(obstacle) = state.apply(record.kind) {
                    return Ok(Err(obstacle));
                }
                at = end;
            }
            Found::Lost {
                end,
                records_max,
                may_hide_vote,
            } => {
                state.is_vote_hidden |= may_hide_vote;
                state.lost += records_max;
                at = end;
            }
            // No promise relies on records that were never synced, so the log ends here.
            Found::Unsynced => break,
        }
    }
    let election_timer_ms = snapshot
        .election_timer_ms
        .unwrap_or(ELECTION_TIMER_DEFAULT_MS);
    let own = header.server_id;
    Ok(match state.finish(own, election_timer_ms) {
        Ok((term, vote, promises)) => Ok(Proven {
            header,
            header_end,
            term,
            vote,
            promises,
        }),
        Err(obstacle) => Err(obstacle),
    })
}

/// The content at an offset of the file.
enum Found {
    /// A record that is proved to be as written, and the offset of its end.
    Record(Vec<u8>, u64),
    /// Damage up to `end`, which hides at most `records_max` records.
    Lost {
        end: u64,
        records_max: u64,
        may_hide_vote: bool,
    },
    /// The rest of the file was never synced, so it promises nothing.
    Unsynced,
}

/// The state after some of the records.
struct State {
    term: Term,
    vote: Option<Sid>,
    is_vote_hidden: bool,
    /// The last entry read; `None` if the snapshot's position is unproved and no entry has been
    /// read.
    last: Option<(Term, Index)>,
    /// Number of entries that may have been lost after `last`.
    lost: u64,
    servers: Servers,
}

impl State {
    fn apply(&mut self, kind: Kind) -> Result<(), Obstacle> {
        match kind {
            Kind::Entry(entry) => {
                self.advance(entry.term);
                self.last = Some((entry.term, entry.index));
                self.lost = 0;
                if let Some(servers) = entry.servers {
                    self.servers = servers;
                }
            }
            Kind::Leader { term, .. } => self.advance(term),
            Kind::Term(term) => {
                // A writer writes this record on entering a term, before any vote in it. So damage
                // before it can hide only votes in older terms.
                if term < self.term {
                    return Err(Obstacle::Contradiction);
                }
                self.advance(term);
                self.is_vote_hidden = false;
            }
            Kind::Vote { term, vote } => {
                let is_other = self.vote.is_some_and(|known| known != vote);
                if term < self.term || term == self.term && is_other {
                    return Err(Obstacle::Contradiction);
                }
                self.term = term;
                self.vote = Some(vote);
                self.is_vote_hidden = false;
            }
            Kind::CommitIndex(_) => {}
            Kind::Note(note) if note == "left" => return Err(Obstacle::Membership),
            Kind::Note(note) if Unfit::of_note(&note).is_some() => return Err(Obstacle::Unfit),
            Kind::Note(_) => {}
        }
        Ok(())
    }

    fn advance(&mut self, term: Term) {
        if term > self.term {
            self.term = term;
            self.vote = None;
        }
    }

    fn finish(
        self,
        own: Sid,
        election_timer_ms: u64,
    ) -> Result<(Term, Option<Sid>, Promises), Obstacle> {
        // A vote may be hidden if damage was followed by no record of term or vote. Term 0 means
        // that no record names a term at all: even the term is unknown then.
        if self.is_vote_hidden || self.term == Term(0) {
            return Err(Obstacle::Vote);
        }
        let (term, index) = self.last.ok_or(Obstacle::Log)?;
        let last = match self.lost {
            0 => (term, index),
            // Each lost entry had its own record, and none had a later term than the member.
            // Overstating is safe: the member only waits for a snapshot that reaches further.
            lost => (self.term, Index(index.0.saturating_add(lost))),
        };
        if !self.servers.contains(own) {
            return Err(Obstacle::Membership);
        }
        if self.servers.iter().count() < 2 {
            return Err(Obstacle::Alone);
        }
        let promises = Promises {
            servers: self.servers,
            last,
            election_timer_ms,
        };
        Ok((self.term, self.vote, promises))
    }
}

/// Reads the header without the snapshot's body. Returns it with its end, and whether it is proved
/// to be as written. An unproved header still suffices for the identity, which the leader compares
/// with its own list.
fn read_header<B: Bytes>(
    bytes: &mut B,
    length: u64,
) -> Result<Result<(Header, u64, bool), Obstacle>, String> {
    let no = Ok(Err(Obstacle::Identity));
    let head = read_range(bytes, 0, LINE_BYTES_MAX as u64)?;
    let Some(line) = first_line(&head) else {
        return no;
    };
    let Ok(parsed) = Line::parse(line, Magic::Clustered) else {
        return no;
    };
    let begin = line.len() as u64 + 1;
    let Some(end) = begin
        .checked_add(parsed.length)
        .filter(|end| *end <= length)
    else {
        return no;
    };
    let mut scan = HeaderScan::default();
    let mut hash = Sha1::new();
    let mut at = begin;
    while at < end {
        let piece = read_range(bytes, at, (end - at).min(PIECE_BYTES as u64))?;
        if piece.is_empty() || scan.feed(&piece).is_err() {
            return no;
        }
        hash.update(&piece);
        at += piece.len() as u64;
    }
    let actual: [u8; 20] = hash.finalize().into();
    let is_proven = is_nearly(&actual, &parsed.sha1);
    // An unproved header must at least end where it says: the next intact record has to begin
    // there.
    if !is_proven && salvage::next_whole(&mut *bytes, Magic::Clustered, 0)? != Some(end) {
        return no;
    }
    let (text, body) = scan.finish();
    if check_object(&text).is_err() || body.is_none() {
        return no;
    }
    Ok(match Header::decode(&text) {
        Ok(header) => Ok((header, end, is_proven)),
        Err(_) => Err(Obstacle::Identity),
    })
}

fn read_record<B: Bytes>(bytes: &mut B, at: u64, length: u64) -> Result<Found, String> {
    let head = read_range(bytes, at, LINE_BYTES_MAX as u64)?;
    let line = first_line(&head);
    let begin = at + line.map_or(0, |line| line.len() as u64 + 1);
    let parsed = line.and_then(|line| Line::parse(line, Magic::Clustered).ok());
    let end = parsed.and_then(|parsed| begin.checked_add(parsed.length));
    let end = end.filter(|end| *end <= length);
    let error = match (parsed, end) {
        (Some(parsed), Some(end)) => {
            let mut body = read_range(bytes, begin, parsed.length)?;
            let actual: [u8; 20] = Sha1::digest(&body).into();
            let is_proven = is_nearly(&actual, &parsed.sha1)
                || parsed.length <= SHORT_BYTES_MAX && restore(&mut body, &parsed.sha1);
            if is_proven && check_object(&body).is_ok() {
                return Ok(Found::Record(body, end));
            }
            ReadError::Hash {
                length: parsed.length,
                offset: begin,
                actual,
                expected: parsed.sha1,
            }
        }
        (Some(parsed), None) => ReadError::Short {
            length: parsed.length,
            offset: begin,
        },
        (None, _) => ReadError::Header {
            offset: at,
            shown: line.unwrap_or(&head).to_vec(),
        },
    };
    // A write that never completed was never synced. A member promises only after a sync, so
    // nothing that follows counts either.
    if is_incomplete(bytes, Magic::Clustered, at, &error)? {
        return Ok(Found::Unsynced);
    }
    let next = salvage::next_whole(&mut *bytes, Magic::Clustered, at)?;
    let limit = next.unwrap_or(length);
    if let Some(body) = find_body(bytes, &head, at, limit)? {
        return Ok(Found::Record(body, limit));
    }
    // The header line is intact and the record fits before the next one: only its body is lost.
    // Otherwise every byte up to the next intact record may have been any record, a vote included.
    if let (Some(parsed), Some(end)) = (parsed, end)
        && end <= limit
    {
        return Ok(Found::Lost {
            end,
            records_max: if end == limit {
                1
            } else {
                records_max(end - at)
            },
            may_hide_vote: parsed.length <= SHORT_BYTES_MAX,
        });
    }
    Ok(Found::Lost {
        end: limit,
        records_max: records_max(limit - at),
        may_hide_vote: true,
    })
}

/// The maximum number of records that fit into this many bytes.
fn records_max(bytes: u64) -> u64 {
    (bytes / RECORD_BYTES_MIN).max(1)
}
