//! From the bytes of a member's file to the state with which the member starts
//! (docs/spec/distribution.md 1.4).
//!
//! Invariant: the entries are held in memory; the body of the snapshot is skipped and never is. A
//! record that cannot be read ends the log, and [`super::tail`] says what that means. A readable
//! record that must not be there is an error, in the reference's words: the file is not opened.
//! Called when a database is opened; the database is loaded afterwards, from the same file.

use corvid_data::{Tag, WireError};
use thiserror::Error;

use super::header::{Header, Membership as Written};
use super::header_scan::HeaderScan;
use super::promises::{self, Obstacle, Proven};
use super::reader::check_object;
use super::record::{Kind, Record};
use super::recovered::{Joined, Membership, Recovered, StoredEntry};
use super::replay::{Replay, Step};
use super::tail::MemberDamage;
use super::{BodyLocation, ELECTION_TIMER_DEFAULT_MS, Index, SnapshotMeta, Term, Unfit};
use crate::feed::LONG_BYTES;
use crate::interruption::is_incomplete;
use crate::salvage::Bytes;
use crate::split::{Batch, Cut, Splitter};
use crate::{Magic, ReadError, Source};

/// Why a file cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RecoveryError {
    /// The disk failed to read the file, or the first record cannot be read.
    #[error("unreadable")]
    Read(ReadError),
    /// The first record is damaged, and the rest of the file does not compensate for it.
    #[error("damaged")]
    Damaged(ReadError, Obstacle),
    /// A record that must not be there; the text is the reference's.
    #[error("{0}")]
    Content(WireError),
}

impl RecoveryError {
    /// Renders the error about `file` in the reference's words.
    #[must_use]
    pub fn to_wire(&self, file: &str) -> WireError {
        match self {
            RecoveryError::Read(error) | RecoveryError::Damaged(error, _) => error.to_wire(file),
            RecoveryError::Content(error) => error.clone(),
        }
    }
}

impl From<WireError> for RecoveryError {
    fn from(error: WireError) -> RecoveryError {
        RecoveryError::Content(error)
    }
}

/// Reads a member's file of `length` bytes. The caller has checked that it begins with the header
/// line of such a file ([`Magic::identify`]).
///
/// # Errors
/// See [`RecoveryError`].
pub fn recover<B: Bytes>(bytes: B, length: u64) -> Result<Recovered, RecoveryError> {
    let source = Sequential {
        bytes,
        offset: 0,
        length,
    };
    let mut splitter = Splitter::new(source, Magic::Clustered);
    let first = match read_header(&mut splitter) {
        // A wrong hash may mean damage only in the snapshot's body, which the cluster has too. Any
        // other error in the first record leaves the identity unknown.
        Err(RecoveryError::Read(error @ ReadError::Hash { .. })) => {
            let bytes = splitter.into_source().bytes;
            return of_damaged_header(bytes, length, error);
        }
        first => first?,
    };
    let mut log = Log::new(first.header, first.body, first.end)?;
    let outcome = read_records(&mut splitter, first.rest, &mut log)?;
    let damage = match outcome {
        None => None,
        // A read error is not damage: the disk may recover, so nothing may be concluded or cut off.
        Some(error @ ReadError::Source { .. }) => return Err(RecoveryError::Read(error)),
        Some(error) => {
            let mut bytes = splitter.into_source().bytes;
            let offset = log.recovered.good_end;
            let unreadable = |reason| unreadable(length, offset, reason);
            let is_unsynced = is_incomplete(&mut bytes, Magic::Clustered, offset, &error);
            let is_unsynced = is_unsynced.map_err(unreadable)?;
            let damage = MemberDamage {
                record: log.recovered.records,
                offset,
                error,
                is_unsynced,
                obstacle: None,
            };
            if damage.may_have_forgotten() {
                // Both readings are needed: the good prefix gives identity and log, and the whole
                // file, past the damage, gives the promises that still bind the member.
                let recovered = log.finish(Some(damage))?;
                let proven = promises::read(bytes, length).map_err(unreadable)?;
                return Ok(damaged(recovered, proven));
            }
            Some(damage)
        }
    };
    log.finish(damage)
}

fn unreadable(length: u64, offset: u64, reason: String) -> RecoveryError {
    RecoveryError::Read(ReadError::Source {
        length: length.saturating_sub(offset),
        offset,
        reason,
    })
}

/// Combines the state of a file that may have forgotten promises with the promises that it proves.
fn damaged(mut recovered: Recovered, proven: Result<Proven, Obstacle>) -> Recovered {
    match proven {
        Ok(proven) => {
            (recovered.term, recovered.vote) = (proven.term, proven.vote);
            recovered.leader = None;
            recovered.membership = Membership::Damaged(proven.promises);
        }
        Err(obstacle) => {
            if let Some(damage) = &mut recovered.damage {
                damage.obstacle = Some(obstacle);
            }
        }
    }
    recovered
}

/// Recovers a file whose header is damaged, perhaps only in the snapshot's body.
fn of_damaged_header<B: Bytes>(
    bytes: B,
    length: u64,
    error: ReadError,
) -> Result<Recovered, RecoveryError> {
    let proven = promises::read(bytes, length).map_err(|reason| unreadable(length, 0, reason))?;
    let proven = match proven {
        Ok(proven) => proven,
        Err(obstacle) => return Err(RecoveryError::Damaged(error, obstacle)),
    };
    Ok(Recovered {
        server_id: proven.header.server_id,
        cluster_id: proven.header.cluster_id,
        name: proven.header.name,
        local_address: proven.header.local_address,
        term: proven.term,
        vote: proven.vote,
        leader: None,
        membership: Membership::Damaged(proven.promises),
        unfit: None,
        records: 0,
        base: proven.header_end,
        good_end: 0,
        damage: Some(MemberDamage {
            record: 0,
            offset: 0,
            error,
            is_unsynced: false,
            obstacle: None,
        }),
    })
}

/// A sequential source over bytes that are read by offset.
struct Sequential<B> {
    bytes: B,
    offset: u64,
    length: u64,
}

impl<B: Bytes> Source for Sequential<B> {
    fn read(&mut self, room: &mut [u8]) -> Result<usize, String> {
        let got = self.bytes.read_at(room, self.offset)?;
        self.offset += got as u64;
        Ok(got)
    }

    fn bytes_left(&self) -> Option<u64> {
        Some(self.length.saturating_sub(self.offset))
    }
}

/// The header record, and the records that were read together with it.
struct First {
    header: Header,
    /// The location of the snapshot's body in the file.
    body: Option<BodyLocation>,
    end: u64,
    rest: Option<Batch>,
}

fn read_header<S: Source>(splitter: &mut Splitter<S>) -> Result<First, RecoveryError> {
    let mut scan = HeaderScan::default();
    let malformed = |_| {
        let details = "the header of the file has another form than any known writer gives it";
        RecoveryError::Content(WireError::new(Tag::SyntaxError, details))
    };
    let (offset, end, rest) = match splitter.cut(LONG_BYTES).map_err(RecoveryError::Read)? {
        None => {
            let details = "unexpected end of file reading header";
            return Err(WireError::new(Tag::OvsdbError, details).into());
        }
        // The record may be as long as the database, so it passes in pieces, and only the members
        // around the body are kept.
        Some(Cut::Long(mut long)) => {
            let (offset, end) = (long.offset(), long.end);
            while let Some(piece) = splitter.piece(&mut long).map_err(RecoveryError::Read)? {
                scan.feed(&piece).map_err(malformed)?;
                splitter.reuse_piece(piece);
            }
            (offset, end, None)
        }
        Some(Cut::Batch(batch)) => {
            let raw = batch.raw(0).map_err(RecoveryError::Read)?;
            scan.feed(raw.body).map_err(malformed)?;
            (raw.offset, batch.end(0), Some(batch))
        }
    };
    let (text, body) = scan.finish();
    check_object(&text)
        .map_err(|reason| RecoveryError::Read(reason.of_body(text.len() as u64, offset)))?;
    let body = body.map(|body| BodyLocation {
        offset: offset + body.offset,
        ..body
    });
    Ok(First {
        header: Header::decode(&text)?,
        body,
        end,
        rest,
    })
}

/// Reads the records after the header. Returns the error that ended reading, if any.
fn read_records<S: Source>(
    splitter: &mut Splitter<S>,
    rest: Option<Batch>,
    log: &mut Log,
) -> Result<Option<ReadError>, RecoveryError> {
    // The header is the first record of `rest`.
    let mut next = rest.map(|batch| (batch, 1));
    loop {
        let (batch, from) = match next.take() {
            Some(next) => next,
            None => match splitter.batch() {
                Ok(None) => return Ok(None),
                Ok(Some(batch)) => (batch, 0),
                Err(error) => return Ok(Some(error)),
            },
        };
        for index in from..batch.len() {
            let raw = match batch.raw(index) {
                Ok(raw) => raw,
                Err(error) => return Ok(Some(error)),
            };
            if let Err(reason) = check_object(raw.body) {
                return Ok(Some(reason.of_body(raw.body.len() as u64, raw.offset)));
            }
            log.apply(raw.body, batch.end(index))?;
        }
        splitter.reuse(batch);
    }
}

/// The state of the file after some of its records.
struct Log {
    recovered: Recovered,
    /// `None` for a server that has not joined.
    replay: Option<Replay>,
    /// The position of the first entry after the snapshot.
    start: Index,
    entries: Vec<StoredEntry>,
}

impl Log {
    fn new(header: Header, body: Option<BodyLocation>, end: u64) -> Result<Log, RecoveryError> {
        let replay = Replay::new(&header);
        let membership = match header.membership {
            Written::Joining { remote_addresses } => Membership::Joining { remote_addresses },
            Written::Joined { servers, snapshot } => {
                let (Some(snapshot), Some(body)) = (snapshot, body) else {
                    let details = "the header of the file has no snapshot";
                    return Err(WireError::new(Tag::SyntaxError, details).into());
                };
                Membership::Joined(Box::new(Joined {
                    commit: snapshot.index,
                    snapshot: SnapshotMeta {
                        index: snapshot.index,
                        term: snapshot.term,
                        eid: snapshot.eid,
                        servers,
                        election_timer_ms: snapshot
                            .election_timer_ms
                            .unwrap_or(ELECTION_TIMER_DEFAULT_MS),
                        body_bytes: body.length,
                    },
                    body,
                    entries: Vec::new(),
                }))
            }
        };
        Ok(Log {
            start: replay.as_ref().map_or(Index(0), Replay::start),
            replay,
            entries: Vec::new(),
            recovered: Recovered {
                server_id: header.server_id,
                cluster_id: header.cluster_id,
                name: header.name,
                local_address: header.local_address,
                term: Term(0),
                vote: None,
                leader: None,
                membership,
                unfit: None,
                records: 1,
                base: end,
                good_end: end,
                damage: None,
            },
        })
    }

    /// Applies the next record, whose body is an object and ends at `end`.
    fn apply(&mut self, body: &[u8], end: u64) -> Result<(), RecoveryError> {
        let number = self.recovered.records;
        let record = Record::decode(body).map_err(|error| self.in_record(error))?;
        // The note binds a joining server too, so it is read before the two cases part.
        if let Kind::Note(note) = &record.kind
            && let Some(unfit) = Unfit::of_note(note)
        {
            let reason = record.comment.clone().unwrap_or_default();
            self.recovered.unfit = Some((unfit, reason));
        }
        match &mut self.replay {
            Some(replay) => {
                let step = replay.apply(&record);
                match step.map_err(|violation| violation.text(number, |sid| sid.to_string())) {
                    Ok(Step::Left) => return Err(self.refusal(left(number))),
                    Ok(_) => {}
                    Err(text) => return Err(self.refusal(text)),
                }
                if let Kind::Entry(entry) = record.kind {
                    // A foreign header may name the highest possible index, so positions may wrap.
                    let kept = entry.index.0.wrapping_sub(self.start.0);
                    self.entries
                        .truncate(usize::try_from(kept).unwrap_or(usize::MAX));
                    self.entries.push(StoredEntry::of(entry));
                    assert_eq!(
                        self.start.0.wrapping_add(self.entries.len() as u64),
                        replay.end().0,
                        "the entries are those of the log, each in its place"
                    );
                }
            }
            None => self.apply_joining(&record.kind)?,
        }
        self.recovered.records += 1;
        assert!(
            self.recovered.good_end < end,
            "every record takes the log further"
        );
        self.recovered.good_end = end;
        Ok(())
    }

    /// A joining server has no log, but it keeps its term and vote. The reference forgets them on a
    /// restart.
    fn apply_joining(&mut self, kind: &Kind) -> Result<(), RecoveryError> {
        let recovered = &mut self.recovered;
        let (Kind::Term(term) | Kind::Vote { term, .. } | Kind::Leader { term, .. }) = kind else {
            return match kind {
                Kind::Note(note) if note == "left" => Err(self.refusal(left(self.number()))),
                Kind::Note(_) => Ok(()),
                _ => Err(self.refusal(format!(
                    "record {} belongs to a log, but the server has not joined its cluster",
                    self.number()
                ))),
            };
        };
        // Vote and leader belong to a term: a later term ends both.
        if *term > recovered.term {
            recovered.term = *term;
            recovered.vote = None;
            recovered.leader = None;
        }
        if *term == recovered.term {
            match kind {
                Kind::Vote { vote, .. } => recovered.vote = recovered.vote.or(Some(*vote)),
                Kind::Leader { leader, .. } => recovered.leader = Some(*leader),
                _ => {}
            }
        }
        Ok(())
    }

    fn finish(self, damage: Option<MemberDamage>) -> Result<Recovered, RecoveryError> {
        let mut recovered = self.recovered;
        recovered.damage = damage;
        if let (Some(replay), Membership::Joined(joined)) = (self.replay, &mut recovered.membership)
        {
            // Do not check that the server is in a list. A joining server receives its snapshot
            // before any list contains it. A removed server may be the only one that knows of its
            // removal, and the others may need its vote until they learn it too.
            recovered.term = replay.term();
            recovered.vote = replay.vote_cast();
            recovered.leader = replay.leader();
            joined.commit = replay.commit_index();
            joined.entries = self.entries;
        }
        Ok(recovered)
    }

    fn number(&self) -> u64 {
        self.recovered.records
    }

    /// The error about a record that must not be there.
    fn refusal(&self, text: String) -> RecoveryError {
        self.in_record(WireError::new(Tag::OvsdbError, text))
    }

    /// Adds the number of the current record and the name of the log to the error.
    fn in_record(&self, mut error: WireError) -> RecoveryError {
        error.details = format!(
            "error reading record {} from {} log: {}",
            self.number(),
            self.recovered.name,
            error.details
        );
        RecoveryError::Content(error)
    }
}

fn left(number: u64) -> String {
    format!(
        "record {number} indicates server has left the cluster; it cannot be added back (use \"ovsdb-tool join-cluster\" to add a new server)"
    )
}

#[cfg(test)]
mod tests;
