//! Which database a file belongs to, from the text of its record 0 in pieces: the name and the
//! schema's version, and in a member's file the ids of cluster and server.
//!
//! A member's header may hold every row (`prev_data`), so it is not parsed as a whole. Only strings
//! near the top are kept, of bounded length, and the search ends with the schema.

use corvid_data::Uuid;
use memchr::memchr2;

/// Objects and arrays within one another that can hold something of interest: the header, its
/// `prev_data`, the schema in that.
const LEVELS: usize = 3;

/// The longest string that is kept, bytes.
const STRING_BYTES_MAX: usize = 1024;

/// The facts about the database in record 0.
#[derive(Debug, Default)]
pub(crate) struct Head {
    /// The database name.
    pub(crate) name: Option<String>,
    /// The schema's version.
    pub(crate) version: Option<String>,
    /// The cluster's id.
    pub(crate) cluster_id: Option<Uuid>,
    /// The member's id.
    pub(crate) server_id: Option<Uuid>,
    depth: usize,
    string: Option<StringState>,
    /// On each level the name of the present member, and the last string.
    names: [Vec<u8>; LEVELS],
    strings: [Option<Vec<u8>>; LEVELS],
    ended: bool,
}

/// Within a string.
#[derive(Debug, Default)]
struct StringState {
    text: Vec<u8>,
    is_escaped: bool,
}

impl Head {
    /// Reads the next piece.
    pub(crate) fn push(&mut self, mut piece: &[u8]) {
        while let Some(byte) = piece.first() {
            if self.ended {
                return;
            }
            if self.string.is_some() {
                piece = self.within_string(piece);
                continue;
            }
            match byte {
                b'"' => self.string = Some(StringState::default()),
                b'{' | b'[' => {
                    self.depth += 1;
                    if let Some(level) = self.level() {
                        self.names[level].clear();
                        self.strings[level] = None;
                    }
                }
                b'}' | b']' => {
                    self.end_value();
                    self.depth = self.depth.saturating_sub(1);
                }
                b':' => {
                    if let Some(level) = self.level() {
                        self.names[level] = self.strings[level].take().unwrap_or_default();
                    }
                }
                b',' => {
                    self.end_value();
                    // The rows come after the schema.
                    let is_within = self.depth == 2 && self.names[0] == b"prev_data";
                    self.ended = is_within && self.is_complete();
                }
                _ => {}
            }
            piece = &piece[1..];
        }
    }

    /// The index of the present level, if it can hold something of interest.
    fn level(&self) -> Option<usize> {
        self.depth.checked_sub(1).filter(|level| *level < LEVELS)
    }

    /// Whether the header has all that it can have besides the rows.
    fn is_complete(&self) -> bool {
        self.name.is_some() && self.server_id.is_some() && self.cluster_id.is_some()
    }

    fn within_string<'t>(&mut self, piece: &'t [u8]) -> &'t [u8] {
        let Some(string) = &mut self.string else {
            return piece;
        };
        if string.is_escaped {
            string.is_escaped = false;
            string.text.push(piece[0]);
            return &piece[1..];
        }
        let end = memchr2(b'"', b'\\', piece);
        let plain = &piece[..end.unwrap_or(piece.len())];
        let room = STRING_BYTES_MAX.saturating_sub(string.text.len());
        string
            .text
            .extend_from_slice(&plain[..plain.len().min(room)]);
        let Some(end) = end else {
            return &[];
        };
        if piece[end] == b'\\' {
            string.is_escaped = true;
        } else {
            let text = self.string.take().map(|string| string.text);
            if let Some(level) = self.level() {
                self.strings[level] = text;
            }
        }
        &piece[end + 1..]
    }

    /// The end of an element or member: keeps its value if that is a string of interest.
    fn end_value(&mut self) {
        let Some(level) = self.level() else {
            return;
        };
        let Some(value) = self.strings[level].take() else {
            return;
        };
        let is_schema = level == 2 && self.names[0] == b"prev_data";
        let text = || Some(String::from_utf8_lossy(&value).into_owned());
        match (level, &self.names[level][..]) {
            (0, b"name") => self.name = text(),
            (0, b"version") => self.version = text(),
            (0, b"cluster_id") => self.cluster_id = Uuid::parse(&value),
            (0, b"server_id") => self.server_id = Uuid::parse(&value),
            (2, b"version") if is_schema => self.version = text(),
            _ => {}
        }
    }
}
