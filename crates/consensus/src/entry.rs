//! The text of a log entry, composed once and spliced unchanged into the file's record and into
//! messages to peers.
//!
//! An entry's record is `{"term":T,"index":I,BODY}`. BODY holds the other members of
//! docs/spec/distribution.md 1.4; it is empty for the entry that begins a leadership.

use bytes::Bytes;
use corvid_data::WireError;
use corvid_json::ObjectWriter;
use corvid_log::cluster::fields::write_number;
use corvid_log::cluster::{Eid, Entry, Index, Kind, Payload, Record, Servers, Term};

/// Offset of the data in a body made by [`EntryBody::commit`].
const DATA_AT: usize = br#""eid":"00000000-0000-0000-0000-000000000000","data":"#.len();

/// The members of an entry except `term` and `index`, without braces: valid JSON members, separated
/// by commas.
#[derive(Clone, Debug, Default)]
pub struct EntryBody {
    text: Bytes,
    /// The result of the transaction, which is not part of the entry. Empty if unknown.
    result: Bytes,
}

/// Compares the entries only, not the results.
impl PartialEq for EntryBody {
    fn eq(&self, other: &EntryBody) -> bool {
        self.text == other.text
    }
}

impl Eq for EntryBody {}

impl EntryBody {
    /// The body of the entry that begins a leadership.
    #[must_use]
    pub fn empty() -> EntryBody {
        EntryBody::default()
    }

    /// The body of a commit. `data` must be valid JSON.
    #[must_use]
    pub fn commit(eid: Eid, data: &[u8]) -> EntryBody {
        let mut text = Vec::with_capacity(data.len() + 64);
        text.extend_from_slice(b"\"eid\":\"");
        text.extend_from_slice(eid.0.to_string().as_bytes());
        text.extend_from_slice(b"\",\"data\":");
        text.extend_from_slice(data);
        EntryBody::from_text(text.into())
    }

    /// Attaches the result of the transaction, which must be valid JSON, or empty.
    #[must_use]
    pub fn with_result(mut self, result: Bytes) -> EntryBody {
        self.result = result;
        self
    }

    /// The body of an entry that changes the list of members.
    #[must_use]
    pub fn servers(servers: &Servers) -> EntryBody {
        EntryBody::of_members(|object| servers.encode(object.member("servers")))
    }

    /// The body of an entry that sets the election timer, ms.
    #[must_use]
    pub fn election_timer(timer_ms: u64) -> EntryBody {
        EntryBody::of_members(|object| write_number(object, "election_timer", timer_ms))
    }

    /// The body of an entry read from a file.
    #[must_use]
    pub fn of(entry: &Entry) -> EntryBody {
        EntryBody::of_members(|object| {
            if let Some(servers) = &entry.servers {
                servers.encode(object.member("servers"));
            }
            if let Some(timer) = entry.election_timer_ms {
                write_number(object, "election_timer", timer);
            }
            if let Some(Payload { eid, data }) = &entry.payload {
                let text = object.member("eid");
                text.push(b'"');
                text.extend_from_slice(eid.0.to_string().as_bytes());
                text.push(b'"');
                object.member("data").extend_from_slice(data.json());
            }
        })
    }

    /// A body received from a peer, which must be valid JSON members. [`EntryBody::parse`] checks
    /// the rest.
    #[must_use]
    pub fn from_text(text: Bytes) -> EntryBody {
        EntryBody {
            text,
            result: Bytes::new(),
        }
    }

    /// The text of the body.
    #[must_use]
    pub fn text(&self) -> &Bytes {
        &self.text
    }

    /// The result of the transaction; empty if unknown.
    #[must_use]
    pub fn result(&self) -> &Bytes {
        &self.result
    }

    /// Whether the entry has no members besides term and index.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Appends the record's JSON object, without LF.
    pub fn write_record(&self, term: Term, index: Index, out: &mut Vec<u8>) {
        EntryBody::begin_record(term, index, out);
        if !self.is_empty() {
            out.push(b',');
            out.extend_from_slice(&self.text);
        }
        out.push(b'}');
    }

    /// Appends the beginning of a record's JSON object, up to the body.
    pub(crate) fn begin_record(term: Term, index: Index, out: &mut Vec<u8>) {
        let (term, index) = (term.0.cast_signed(), index.0.cast_signed());
        out.extend_from_slice(format!("{{\"term\":{term},\"index\":{index}").as_bytes());
    }

    /// Parses the body into the parts of an entry.
    ///
    /// # Errors
    /// The text has members that no entry has, or values of the wrong type.
    pub fn parse(&self, term: Term, index: Index) -> Result<Entry, WireError> {
        let mut record = Vec::with_capacity(self.text.len() + 64);
        self.write_record(term, index, &mut record);
        match Record::decode(&record)?.kind {
            Kind::Entry(entry) => Ok(entry),
            _ => Err(WireError::syntax(&record, "not an entry")),
        }
    }

    /// The id and data of a commit; no copy is made if [`EntryBody::commit`] made the body.
    #[must_use]
    pub fn as_commit(&self) -> Option<(Eid, Bytes)> {
        if self.is_own_form() {
            let eid = corvid_data::Uuid::parse(self.text.get(7..43)?)?;
            return Some((Eid(eid), self.text.slice(DATA_AT..)));
        }
        let entry = self.parse(Term(1), Index(1)).ok()?;
        let Payload { eid, data } = entry.payload?;
        Some((eid, Bytes::copy_from_slice(data.json())))
    }

    /// Whether the body has the form that [`EntryBody::commit`] writes.
    #[must_use]
    pub(crate) fn is_own_form(&self) -> bool {
        self.text.starts_with(b"\"eid\":\"")
            && self.text.get(43..DATA_AT) == Some(br#"","data":"#.as_slice())
    }

    fn of_members(write: impl FnOnce(&mut ObjectWriter<'_>)) -> EntryBody {
        let mut text = Vec::new();
        let mut object = ObjectWriter::new(&mut text);
        write(&mut object);
        object.end();
        let inner = text.len().saturating_sub(1).max(1);
        EntryBody::from_text(Bytes::from(text).slice(1..inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corvid_data::Uuid;

    #[test]
    fn bodies_are_read_as_they_were_written() {
        let eid = Eid(Uuid([7; 16]));
        let commit = EntryBody::commit(eid, br#"[null,{"t":{}}]"#);
        let read = commit.parse(Term(3), Index(9)).expect("an entry");
        assert_eq!((read.term, read.index), (Term(3), Index(9)));
        assert_eq!(EntryBody::of(&read), commit);
        let (found, data) = commit.as_commit().expect("a commit");
        assert_eq!((found, &data[..]), (eid, &br#"[null,{"t":{}}]"#[..]));
        let timer = EntryBody::election_timer(2000);
        assert_eq!(timer.as_commit(), None);
        let read = timer.parse(Term(1), Index(2)).expect("an entry");
        assert_eq!(read.election_timer_ms, Some(2000));
        let empty = EntryBody::empty()
            .parse(Term(1), Index(2))
            .expect("an entry");
        assert_eq!(EntryBody::of(&empty), EntryBody::empty());
    }

    #[test]
    fn commits_in_another_order_of_members_are_read_too() {
        let text = br#""data":[null,{}],"eid":"07070707-0707-0707-0707-070707070707""#;
        let body = EntryBody::from_text(Bytes::from_static(text));
        let (eid, data) = body.as_commit().expect("a commit");
        assert_eq!((eid, &data[..]), (Eid(Uuid([7; 16])), &b"[null,{}]"[..]));
    }
}
