//! The records of a member's file, framed and in the reference's order (docs/spec/distribution.md
//! 1.4): term, vote, leader, entries, commit index.

use bytes::Bytes;
use corvid_log::cluster::{Index, Kind, Record, Sid, Term};
use corvid_log::header::{Header, Magic};
use corvid_log::record::Record as Frame;
use corvid_log::storage::{RecordText, SHARED_BYTES_MIN};

use crate::entry::EntryBody;
use crate::raft_node::LogEntry;

/// Records under construction, in the order in which they will be written.
#[derive(Debug, Default)]
pub(crate) struct Records {
    /// Finished pieces, alternating between composed bytes and the shared text of a long entry.
    pieces: Vec<Bytes>,
    /// The bytes after the last piece.
    bytes: Vec<u8>,
    /// Whether the records must be synced: they hold a term, a vote or an entry, or others rely on
    /// them.
    is_durable: bool,
}

impl Records {
    /// Appends term and vote. A candidate writes only its vote, which names the term; a voter
    /// writes both, one after the other.
    pub(crate) fn hard(&mut self, own: Sid, old: Term, (term, vote): (Term, Option<Sid>)) {
        if term > old && vote != Some(own) {
            self.push(Kind::Term(term));
        }
        if let Some(vote) = vote {
            self.push(Kind::Vote { term, vote });
        }
        self.is_durable = true;
    }

    /// Appends term and vote at the beginning of a file, as one record.
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
        self.is_durable = true;
        let text = entry.body.text();
        if text.len() >= SHARED_BYTES_MIN {
            return self.long_entry(entry);
        }
        let bytes = text.len() + 64;
        let mut frame = Frame::begin_long(&mut self.bytes, Magic::Clustered, bytes);
        entry
            .body
            .write_record(entry.term, entry.index, frame.body());
        frame.finish();
    }

    /// Appends an entry whose text is hashed but not copied.
    fn long_entry(&mut self, entry: &LogEntry) {
        let text = entry.body.text();
        let (mut begin, end) = (Vec::new(), b"}\n");
        EntryBody::begin_record(entry.term, entry.index, &mut begin);
        begin.push(b',');
        Header::of_pieces(&[&begin, text, end]).write(Magic::Clustered, &mut self.bytes);
        self.bytes.append(&mut begin);
        self.pieces.push(std::mem::take(&mut self.bytes).into());
        self.pieces.push(text.clone());
        self.bytes.extend_from_slice(end);
    }

    pub(crate) fn commit(&mut self, index: Index) {
        self.push(Kind::CommitIndex(index));
    }

    /// Requires a sync: others rely on these records, whatever they are.
    pub(crate) fn must_last(&mut self) {
        self.is_durable = true;
    }

    /// Appends the note that the member has left its cluster.
    pub(crate) fn left(&mut self) {
        self.push_record(&Record {
            comment: Some("this server left the cluster".to_owned()),
            kind: Kind::Note("left".to_owned()),
        });
        self.is_durable = true;
    }

    /// Appends a note for people.
    pub(crate) fn note(&mut self, note: &str, comment: String) {
        self.push_record(&Record {
            comment: Some(comment),
            kind: Kind::Note(note.to_owned()),
        });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.pieces.is_empty()
    }

    pub(crate) fn is_durable(&self) -> bool {
        self.is_durable
    }

    pub(crate) fn into_text(mut self) -> RecordText {
        if self.pieces.is_empty() {
            return self.bytes.into();
        }
        self.pieces.push(self.bytes.into());
        RecordText::Pieces(self.pieces)
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
