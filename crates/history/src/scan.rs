//! Where the records of a database file are, when they were written, and which database it is:
//! found in one pass over the text in pieces of any size, without parsing bodies.
//!
//! Three things are searched for in a body: `"_date":`, `"_comment":"` and `"eid":`. None of them
//! can occur in a string, because the quotes in a string are escaped; and tables and columns do not
//! have names that begin with an underscore. So the first two are members of the record, or of the
//! data of a cluster's entry. `"eid":` may be a column's name, but only in an entry that has data,
//! which has a member `eid` as well. If it occurs once, it is that member.
//!
//! Invariant: the state is bounded whatever the text is. Hashes are not checked: a text that was
//! written by this server needs no check, and any other is checked when its records are applied.
//! The writer of segments and the reader of plain files call this module.

mod head;

use corvid_json::{Number, Reader, hex};
use corvid_log::Magic;
use corvid_log::commit_client::LAST_COMMITS;
use corvid_log::decode::date_to_ms;
use corvid_log::header::{Header, LINE_BYTES_MAX};
use memchr::{memchr, memmem};

use crate::commit::ID_DIGITS_MIN;

pub(crate) use head::Head;

/// Bytes after a needle that are needed: the digits of a date, the beginning of a comment.
const AFTER_BYTES: usize = 64;

/// Text between `"eid":` and the digits of the id, at most.
const BEFORE_ID: &[u8] = b" \"";

const DATE: &[u8] = b"\"_date\":";
const COMMENT: &[u8] = b"\"_comment\":\"";
const EID: &[u8] = b"\"eid\":";

/// Bytes of the beginning of an id: as many as its shortest prefix that people may use.
pub(crate) const ID_BEGINNING_BYTES: usize = ID_DIGITS_MIN / 2;

/// The beginning of a commit's id.
pub(crate) type IdBeginning = [u8; ID_BEGINNING_BYTES];

/// A whole record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Its number in the file, counting from 0.
    pub(crate) number: u64,
    /// Offset of its header.
    pub(crate) start: u64,
    /// Offset just past its body.
    pub(crate) end: u64,
    /// When it was written, ms since the Unix epoch, if it says so.
    pub(crate) date_ms: Option<i64>,
    /// Its role in the file.
    pub(crate) role: Role,
    /// How its id begins, if it is a transaction and the pass can tell.
    pub(crate) id: Option<IdBeginning>,
}

/// The role of a record in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Record 0: the schema, or the header of a member's file.
    Head,
    /// Record 1 of a standalone file: every row, written by a compaction or another program.
    Contents,
    /// A transaction. In a member's file: an entry with data.
    Transaction,
    /// Another record of a member's file.
    Other,
}

/// A pass over a text.
#[derive(Debug)]
pub(crate) struct Scan {
    offset: u64,
    records: u64,
    good_end: u64,
    magic: Option<Magic>,
    head: Head,
    /// Whether record 1 has contents.
    has_contents: bool,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Within a header line, of which these bytes have been read.
    Line(Vec<u8>),
    /// Within a body of which so many bytes are missing.
    Body(u64, Box<Searches>),
    /// At a header line that cannot be read; nothing after it is a record.
    Broken,
}

/// The searches in one body.
#[derive(Debug)]
struct Searches {
    /// The hash that the header line claims for the body.
    sha1: [u8; 20],
    date: Search,
    comment: Search,
    eid: Search,
    eids: Occurrences,
    /// The last bytes.
    end: Vec<u8>,
}

/// The search for one needle in a body that comes in pieces.
#[derive(Debug)]
struct Search {
    needle: &'static [u8],
    /// The end of what was searched, as long as a needle and what is needed after it.
    tail: Vec<u8>,
    after: Option<Vec<u8>>,
}

impl Scan {
    /// A pass from the beginning of a file.
    pub(crate) fn new() -> Scan {
        Scan {
            offset: 0,
            records: 0,
            good_end: 0,
            magic: None,
            head: Head::default(),
            has_contents: false,
            state: State::Line(Vec::new()),
        }
    }

    /// Reads the next piece, and reports each record that ends in it.
    pub(crate) fn push(&mut self, mut text: &[u8], mut report: impl FnMut(Seen)) {
        while !text.is_empty() {
            text = match &mut self.state {
                State::Line(_) => self.line(text),
                State::Body(..) => self.body(text, &mut report),
                State::Broken => {
                    self.offset += text.len() as u64;
                    return;
                }
            };
        }
    }

    /// The kind of the file; `None` before the first header line or if that is not one.
    pub(crate) fn magic(&self) -> Option<Magic> {
        self.magic
    }

    /// The facts about the database in record 0.
    pub(crate) fn head(&self) -> &Head {
        &self.head
    }

    /// Number of whole records so far.
    pub(crate) fn records(&self) -> u64 {
        self.records
    }

    /// Offset just past the last whole record.
    pub(crate) fn good_end(&self) -> u64 {
        self.good_end
    }

    /// Whether a header line cannot be read.
    pub(crate) fn is_broken(&self) -> bool {
        matches!(self.state, State::Broken)
    }

    /// Reads a header line as far as the text has it. Returns the text after it.
    fn line<'t>(&mut self, text: &'t [u8]) -> &'t [u8] {
        let State::Line(held) = &mut self.state else {
            return text;
        };
        let window = &text[..text.len().min(LINE_BYTES_MAX - held.len())];
        let Some(end) = memchr(b'\n', window) else {
            held.extend_from_slice(window);
            self.offset += window.len() as u64;
            if held.len() == LINE_BYTES_MAX {
                self.state = State::Broken;
            }
            return &text[window.len()..];
        };
        held.extend_from_slice(&window[..=end]);
        self.offset += end as u64 + 1;
        let magic = self.magic.or_else(|| Magic::identify(held).ok());
        let header = magic.and_then(|magic| Header::parse(&held[..held.len() - 1], magic).ok());
        self.magic = magic;
        self.state = match header {
            Some(header) => State::Body(header.length, Box::new(Searches::new(header.sha1))),
            None => State::Broken,
        };
        &text[end + 1..]
    }

    /// Reads a body as far as the text has it. Returns the text after it.
    fn body<'t>(&mut self, text: &'t [u8], report: &mut impl FnMut(Seen)) -> &'t [u8] {
        let State::Body(left, searches) = &mut self.state else {
            return text;
        };
        let taken = usize::try_from(*left).map_or(text.len(), |left| left.min(text.len()));
        let (piece, rest) = text.split_at(taken);
        *left -= taken as u64;
        self.offset += taken as u64;
        if self.records == 0 {
            self.head.push(piece);
        }
        let is_cluster = self.magic == Some(Magic::Clustered);
        searches.date.push(piece);
        if is_cluster {
            searches.eid.push(piece);
            searches.eids.push(piece);
        } else if self.records <= 2 {
            searches.comment.push(piece);
            searches.keep_end(piece);
        }
        if *left > 0 {
            return rest;
        }
        let date_ms = searches.date.finish().and_then(parse_date);
        let role = match (self.records, is_cluster) {
            (0, _) => Role::Head,
            (_, true) if searches.eid.finish().is_some() => Role::Transaction,
            (_, true) => Role::Other,
            (1, false) if searches.comment.finish().is_some_and(is_of_contents) => Role::Contents,
            // A compaction repeats the ids of commits here, which are in the files before.
            (2, false) if self.has_contents && searches.are_last_commits() => Role::Contents,
            (_, false) => Role::Transaction,
        };
        self.has_contents |= role == Role::Contents;
        let id = match (role, is_cluster) {
            (Role::Transaction, true) => searches.entry_id(),
            (Role::Transaction, false) => searches.sha1.first_chunk().copied(),
            _ => None,
        };
        report(Seen {
            number: self.records,
            start: self.good_end,
            end: self.offset,
            date_ms,
            role,
            id,
        });
        self.records += 1;
        self.good_end = self.offset;
        self.state = State::Line(Vec::new());
        rest
    }
}

impl Searches {
    fn new(sha1: [u8; 20]) -> Searches {
        Searches {
            sha1,
            date: Search::new(DATE),
            comment: Search::new(COMMENT),
            eid: Search::new(EID),
            eids: Occurrences::new(EID),
            end: Vec::new(),
        }
    }

    fn keep_end(&mut self, piece: &[u8]) {
        const BYTES: usize = 3;
        self.end
            .extend_from_slice(&piece[piece.len().saturating_sub(BYTES)..]);
        let excess = self.end.len().saturating_sub(BYTES);
        self.end.drain(..excess);
    }

    /// How the id of an entry begins; `None` if a column may have the name of its member.
    fn entry_id(&mut self) -> Option<IdBeginning> {
        if self.eids.count != 1 {
            return None;
        }
        let value = self.eid.finish()?;
        let space = value.iter().position(|byte| !BEFORE_ID.contains(byte))?;
        let digits = value[space..].first_chunk::<{ 2 * ID_BEGINNING_BYTES }>()?;
        hex::bytes(&[*digits]).map(|[id]| id)
    }

    /// Whether the record names the last commits and has no row: it ends with its date. A client
    /// may give its own commit such a comment.
    fn are_last_commits(&mut self) -> bool {
        let comment = self.comment.finish();
        let is_heading =
            comment.is_some_and(|comment| comment.starts_with(LAST_COMMITS.as_bytes()));
        let body = self.end.trim_ascii_end();
        let date = body.strip_suffix(b"}").and_then(|rest| rest.last());
        is_heading && date.is_some_and(u8::is_ascii_digit)
    }
}

impl Search {
    fn new(needle: &'static [u8]) -> Search {
        Search {
            needle,
            tail: Vec::new(),
            after: None,
        }
    }

    fn push(&mut self, piece: &[u8]) {
        if self.after.is_some() {
            return;
        }
        let window = self.needle.len() + AFTER_BYTES;
        if !self.tail.is_empty() {
            self.tail
                .extend_from_slice(&piece[..piece.len().min(window)]);
            self.after = after(&self.tail, self.needle, AFTER_BYTES);
        }
        if self.after.is_none() {
            self.after = after(piece, self.needle, AFTER_BYTES);
        }
        if piece.len() >= window {
            self.tail.clear();
            self.tail.extend_from_slice(&piece[piece.len() - window..]);
        } else {
            if self.tail.is_empty() {
                self.tail.extend_from_slice(piece);
            }
            let excess = self.tail.len().saturating_sub(window);
            self.tail.drain(..excess);
        }
    }

    /// The bytes after the needle, at least one value of a member long; `None` without a needle.
    fn finish(&mut self) -> Option<&[u8]> {
        if self.after.is_none() {
            self.after = after(&self.tail, self.needle, 0);
        }
        self.after.as_deref()
    }
}

/// Counts a needle in a body that comes in pieces.
#[derive(Debug)]
struct Occurrences {
    needle: &'static [u8],
    /// The end of what was searched, one byte shorter than the needle.
    tail: Vec<u8>,
    count: usize,
}

impl Occurrences {
    fn new(needle: &'static [u8]) -> Occurrences {
        Occurrences {
            needle,
            tail: Vec::new(),
            count: 0,
        }
    }

    fn push(&mut self, piece: &[u8]) {
        let overlap = self.needle.len() - 1;
        // Only what begins in the tail is counted here; the needle does not overlap itself.
        self.tail
            .extend_from_slice(&piece[..piece.len().min(overlap)]);
        self.count += memmem::find_iter(&self.tail, self.needle).count();
        self.count += memmem::find_iter(piece, self.needle).count();
        if piece.len() >= overlap {
            self.tail.clear();
            self.tail.extend_from_slice(&piece[piece.len() - overlap..]);
        } else {
            let excess = self.tail.len().saturating_sub(overlap);
            self.tail.drain(..excess);
        }
    }
}

/// The bytes after the first `needle`, if there are at least `enough`; no more than needed.
fn after(text: &[u8], needle: &[u8], enough: usize) -> Option<Vec<u8>> {
    let at = memmem::find(text, needle)? + needle.len();
    let rest = &text[at..];
    (rest.len() >= enough).then(|| rest[..rest.len().min(AFTER_BYTES)].to_vec())
}

/// The integer at the beginning of a text, as ms since the Unix epoch.
pub(crate) fn parse_date(text: &[u8]) -> Option<i64> {
    let digits = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'-' | b' ');
    let end = text
        .iter()
        .position(|byte| !digits(byte))
        .unwrap_or(text.len());
    match Reader::new(&text[..end]).number().ok()? {
        Number::Integer(date) => Some(date_to_ms(date)),
        Number::Real(_) => None,
    }
}

/// When the record with this body was written, ms since the Unix epoch, if it says so.
pub(crate) fn date_of(body: &[u8]) -> Option<i64> {
    let at = memmem::find(body, DATE)? + DATE.len();
    parse_date(&body[at..body.len().min(at + AFTER_BYTES)])
}

/// Whether a comment that begins like this is one of contents.
fn is_of_contents(comment: &[u8]) -> bool {
    corvid_log::ending::is_of_contents(comment)
}

#[cfg(test)]
mod tests;
