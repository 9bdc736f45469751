//! The records of a member's file, framed and in the reference's order (docs/spec/distribution.md
//! 1.4): term, vote, leader, entries, commit index.

use corvid_log::cluster::{Index, Kind, Record, Sid, Term};
use corvid_log::header::Magic;
use corvid_log::record::Record as Frame;

use crate::raft_node::LogEntry;

/// Records under construction.
#[derive(Debug, Default)]
pub(crate) struct Records {
    bytes: Vec<u8>,
    /// The records hold a promise: a term, a vote or an entry.
    is_durable: bool,
}

impl Records {
    /// Term and vote. A candidate writes its vote only, which names the term; a voter both, one
    /// after the other.
    pub(crate) fn hard(&mut self, own: Sid, old: Term, (term, vote): (Term, Option<Sid>)) {
        if term > old && vote != Some(own) {
            self.push(Kind::Term(term));
        }
        if let Some(vote) = vote {
            self.push(Kind::Vote { term, vote });
        }
        self.is_durable = true;
    }

    /// Term and vote at the beginning of a file: one record.
    pub(crate) fn state(&mut self, (term, vote): (Term, Option<Sid>)) {
        match vote {
            Some(vote) => self.push(Kind::Vote { term, vote }),
            None if term > Term(0) => self.push(Kind::Term(term)),
            None => return,
        }
        self.is_durable = true;
    }

    pub(crate) fn leader(&mut self, term: Term, leader: Sid) {
        self.push(Kind::Leader { term, leader });
    }

    pub(crate) fn entry(&mut self, entry: &LogEntry) {
        let bytes = entry.body.text().len() + 64;
        let mut frame = Frame::begin_long(&mut self.bytes, Magic::Clustered, bytes);
        entry
            .body
            .write_record(entry.term, entry.index, frame.body());
        frame.finish();
        self.is_durable = true;
    }

    pub(crate) fn commit(&mut self, index: Index) {
        self.push(Kind::CommitIndex(index));
    }

    /// Others rely on these records, whatever they are.
    pub(crate) fn must_last(&mut self) {
        self.is_durable = true;
    }

    /// The member has left its cluster.
    pub(crate) fn left(&mut self) {
        self.push_record(&Record {
            comment: Some("this server left the cluster".to_owned()),
            kind: Kind::Note("left".to_owned()),
        });
        self.is_durable = true;
    }

    /// A remark for people.
    pub(crate) fn note(&mut self, note: &str, comment: String) {
        self.push_record(&Record {
            comment: Some(comment),
            kind: Kind::Note(note.to_owned()),
        });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn is_durable(&self) -> bool {
        self.is_durable
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn push(&mut self, kind: Kind) {
        self.push_record(&Record::new(kind));
    }

    fn push_record(&mut self, record: &Record) {
        let mut frame = Frame::begin(&mut self.bytes, Magic::Clustered);
        record.encode(frame.body());
        frame.finish();
    }
}
