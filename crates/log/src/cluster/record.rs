//! The records after the header: entries of the log, and state that a member must keep across a
//! restart.

use corvid_data::{Kinds, Members, Subject, Uuid, WireError};
use corvid_json::ObjectWriter;

use super::fields::{
    Fields, take_number, take_required_number, take_required_uuid, take_text, take_uuid,
    write_number, write_text, write_uuid,
};
use super::{Data, Eid, Index, Servers, Sid, Term};
use crate::{Magic, Record as Framed};

/// Approximate bytes of a record of the member's own state: a term and a vote.
const RECORD_BYTES: usize = 60;

/// A record with its comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// For people to read.
    pub comment: Option<String>,
    /// The record itself.
    pub kind: Kind,
}

/// The kinds of record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An entry of the log. If the log already has its index, the log is cut off before it.
    Entry(Entry),
    /// The member has entered this term.
    Term(Term),
    /// The member has voted in this term.
    Vote {
        /// The term of the election.
        term: Term,
        /// The server voted for; never zero.
        vote: Sid,
    },
    /// A server has won an election. Only people and checkers read it.
    Leader {
        /// The term of the election.
        term: Term,
        /// The winner; never zero.
        leader: Sid,
    },
    /// Entries up to this index are committed. Not zero.
    CommitIndex(Index),
    /// `left` once the member has left its cluster. [`Unfit`](super::Unfit) defines further notes;
    /// any other text is for people.
    Note(String),
}

/// An entry of the log. Each new leader first writes an entry without servers, timer and payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The term of the leader that created it.
    pub term: Term,
    /// Its position in the log; not zero.
    pub index: Index,
    /// The new list of members, if it changes.
    pub servers: Option<Servers>,
    /// The new election timer, ms, if it changes; not zero.
    pub election_timer_ms: Option<u64>,
    /// A change of the database, if there is one.
    pub payload: Option<Payload>,
}

/// A change of the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    /// The transaction id.
    pub eid: Eid,
    /// Schema and transaction.
    pub data: Data,
}

/// Appends a record with its header line. `write` appends the body, of about `bytes` bytes and
/// without its LF, in place. Returns the number of bytes added.
pub fn append_record(out: &mut Vec<u8>, bytes: usize, write: impl FnOnce(&mut Vec<u8>)) -> usize {
    let mut record = Framed::begin_long(out, Magic::Clustered, bytes);
    write(record.body());
    record.finish()
}

impl Record {
    /// A record without a comment.
    #[must_use]
    pub fn new(kind: Kind) -> Record {
        Record {
            comment: None,
            kind,
        }
    }

    /// Decodes a body, which must be a valid JSON object.
    ///
    /// # Errors
    /// The first problem, in the reference's words.
    pub fn decode(body: &[u8]) -> Result<Record, WireError> {
        let mut members = Members::parse(Subject::RaftRecord, body)?;
        let comment = take_text(&mut members, "comment")?;
        let kind = take_kind(&mut members)?;
        members.finish()?;
        Ok(Record { comment, kind })
    }

    /// Appends the record, header line included. Returns the number of bytes added.
    pub fn append(&self, out: &mut Vec<u8>) -> usize {
        append_record(out, RECORD_BYTES, |body| self.encode(body))
    }

    /// Appends the body, without its LF.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut object = ObjectWriter::new(out);
        if let Some(comment) = &self.comment {
            write_text(&mut object, "comment", comment);
        }
        match &self.kind {
            Kind::Entry(entry) => entry.encode(&mut object),
            Kind::Term(term) => write_number(&mut object, "term", term.0),
            Kind::Vote { term, vote } => {
                write_number(&mut object, "term", term.0);
                write_uuid(&mut object, "vote", vote.0);
            }
            Kind::Leader { term, leader } => {
                write_number(&mut object, "term", term.0);
                write_uuid(&mut object, "leader", leader.0);
            }
            Kind::CommitIndex(index) => write_number(&mut object, "commit_index", index.0),
            Kind::Note(note) => write_text(&mut object, "note", note),
        }
        object.end();
    }

    /// The term that the record names, if any.
    #[must_use]
    pub fn term(&self) -> Option<Term> {
        match &self.kind {
            Kind::Entry(entry) => Some(entry.term),
            Kind::Term(term) | Kind::Vote { term, .. } | Kind::Leader { term, .. } => Some(*term),
            Kind::CommitIndex(_) | Kind::Note(_) => None,
        }
    }
}

impl Entry {
    fn encode(&self, object: &mut ObjectWriter<'_>) {
        write_number(object, "term", self.term.0);
        write_number(object, "index", self.index.0);
        self.encode_members(object);
    }

    /// Appends the members other than `term` and `index`; `data` comes last.
    pub(super) fn encode_members(&self, object: &mut ObjectWriter<'_>) {
        if let Some(servers) = &self.servers {
            servers.encode(object.member("servers"));
        }
        if let Some(timer) = self.election_timer_ms {
            write_number(object, "election_timer", timer);
        }
        if let Some(Payload { eid, data }) = &self.payload {
            write_uuid(object, "eid", eid.0);
            object.member("data").extend_from_slice(data.json());
        }
    }
}

/// Decodes the kind of a record. The first of these members that is present decides.
fn take_kind(members: &mut Fields<'_>) -> Result<Kind, WireError> {
    if let Some(note) = take_text(members, "note")? {
        return Ok(Kind::Note(note));
    }
    if let Some(index) = take_number(members, "commit_index")? {
        return Ok(Kind::CommitIndex(Index(index)));
    }
    let term = Term(take_required_number(members, "term")?);
    if let Some(leader) = take_uuid(members, "leader")? {
        if leader == Uuid::ZERO {
            return Err(members.error("record says leader is all-zeros SID"));
        }
        let leader = Sid(leader);
        return Ok(Kind::Leader { term, leader });
    }
    if let Some(vote) = take_uuid(members, "vote")? {
        if vote == Uuid::ZERO {
            return Err(members.error("record votes for all-zeros SID"));
        }
        let vote = Sid(vote);
        return Ok(Kind::Vote { term, vote });
    }
    match take_number(members, "index")? {
        Some(index) => take_entry(members, term, Index(index)).map(Kind::Entry),
        None => Ok(Kind::Term(term)),
    }
}

fn take_entry(members: &mut Fields<'_>, term: Term, index: Index) -> Result<Entry, WireError> {
    let servers = members.optional("servers", Kinds::OBJECT)?;
    let servers = servers.map(Servers::decode).transpose()?;
    let election_timer_ms = take_number(members, "election_timer")?;
    let data = members.optional("data", Kinds::OBJECT.or(Kinds::ARRAY))?;
    let payload = match data {
        Some(data) => Some(Payload {
            eid: Eid(take_required_uuid(members, "eid")?),
            data: Data::from_valid(data),
        }),
        None => None,
    };
    Ok(Entry {
        term,
        index,
        servers,
        election_timer_ms,
        payload,
    })
}
