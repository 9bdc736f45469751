//! Reading the body of a snapshot, `[schema,rows]`: the schema at once, the rows in pieces.
//!
//! Invariant: the caller has checked the bytes against the record's hash, so they are as written,
//! but they need not be JSON. This module parses the schema and checks the brackets around schema
//! and rows; the decoder validates the rows. Loading a database calls this module through
//! [`crate::Feed`].

use corvid_data::{Arc, Schema, Tag, WireError};
use corvid_json::frame::Framed;
use corvid_json::{Framer, Reader, Value};

use super::BodyLocation;
use crate::split::BATCH_BYTES;
use crate::{ReadError, Source};

/// The beginning of the rows that a Corvid server writes.
const COMMENT_FIRST: &[u8] = br#"{"_comment":"#;

/// The longest comment that is looked for, bytes: several times what a server writes.
const COMMENT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A snapshot's schema, and its rows that are still to be read.
#[derive(Debug)]
pub struct SnapshotBody<S> {
    text: BodyText<S>,
    schema: Arc<Schema>,
    /// Bytes of rows that were read together with the schema.
    rest: Vec<u8>,
    piece: Vec<u8>,
}

/// The bytes of a body that are still to be read.
#[derive(Debug)]
struct BodyText<S> {
    source: S,
    location: BodyLocation,
    /// Number of bytes read so far.
    passed: u64,
}

impl<S: Source> SnapshotBody<S> {
    /// Reads the schema. `source` yields the bytes of `location`, starting with the first.
    ///
    /// # Errors
    /// Reading failed, or the body does not begin with a schema.
    pub fn open(source: S, location: BodyLocation) -> Result<SnapshotBody<S>, WireError> {
        let invalid = |details: &str| WireError::new(Tag::SyntaxError, details.to_owned());
        let unreadable = |error: ReadError| error.to_wire("snapshot");
        let mut body = BodyText {
            source,
            location,
            passed: 0,
        };
        let mut framer = Framer::new();
        let mut text = Vec::new();
        // Find the opening bracket of the array.
        let mut scanned = loop {
            if let Some(at) = text
                .iter()
                .position(|byte: &u8| !byte.is_ascii_whitespace())
            {
                if text[at] != b'[' {
                    return Err(invalid("a snapshot is not an array of a schema and rows"));
                }
                break at + 1;
            }
            if !body.read(&mut text).map_err(unreadable)? {
                return Err(invalid("a snapshot ends before its schema"));
            }
        };
        let begin = scanned;
        let end = loop {
            match framer.advance(&text[scanned..]) {
                Ok(Framed::Complete { end, .. }) => break scanned + end,
                Ok(Framed::Partial { .. }) => scanned = text.len(),
                Err(_) => return Err(invalid("a snapshot has no schema")),
            }
            if !body.read(&mut text).map_err(unreadable)? {
                return Err(invalid("a snapshot ends within its schema"));
            }
        };
        let json = Value::parse(&text[begin..end])
            .map_err(|error| WireError::new(Tag::SyntaxError, error.to_string()))?;
        let schema = Arc::new(Schema::from_json(&json)?);
        // Find the comma between schema and rows.
        let comma = loop {
            let mut rest = text[end..].iter();
            if let Some(at) = rest.position(|byte| !byte.is_ascii_whitespace()) {
                if text[end + at] != b',' {
                    return Err(invalid("a snapshot has no rows"));
                }
                break end + at + 1;
            }
            if !body.read(&mut text).map_err(unreadable)? {
                return Err(invalid("a snapshot ends after its schema"));
            }
        };
        Ok(SnapshotBody {
            text: body,
            schema,
            rest: text.split_off(comma),
            piece: Vec::new(),
        })
    }

    /// The schema of the snapshot.
    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// The offset just past the body.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.text.location.end()
    }

    /// Number of bytes that are still to be read.
    #[must_use]
    pub fn bytes_left(&self) -> u64 {
        self.text.left()
    }

    /// `_comment` of the rows, if they begin with it, as those of a Corvid server do. To be called
    /// before the first [`SnapshotBody::piece`], which still begins with it.
    ///
    /// # Errors
    /// Reading failed.
    pub fn comment(&mut self) -> Result<Option<String>, ReadError> {
        let start = COMMENT_FIRST.len();
        while self.rest.len() <= start && self.text.read(&mut self.rest)? {}
        if !self.rest.starts_with(COMMENT_FIRST) || self.rest.get(start) != Some(&b'"') {
            return Ok(None);
        }
        // The quote that ends the text is the first without a backslash before it.
        let mut at = start + 1;
        loop {
            match self.rest.get(at).copied() {
                Some(b'"') => break,
                Some(b'\\') => at += 2,
                Some(_) => at += 1,
                None if self.rest.len() > COMMENT_BYTES_MAX => return Ok(None),
                None if self.text.read(&mut self.rest)? => {}
                None => return Ok(None),
            }
        }
        // Whether it is valid is up to the decoder, which reads it again.
        let text = Reader::new(&self.rest[start..=at]).string();
        Ok(text
            .ok()
            .and_then(|text| String::from_utf8(text.into_owned()).ok()))
    }

    /// The next piece of the rows; `None` at the end. White space may follow the rows.
    ///
    /// # Errors
    /// Reading failed, or the body does not end with the bracket of the array.
    pub fn piece(&mut self) -> Result<Option<&[u8]>, ReadError> {
        let mut piece = std::mem::take(&mut self.piece);
        piece.clear();
        if self.rest.is_empty() {
            self.text.read(&mut piece)?;
        } else {
            std::mem::swap(&mut piece, &mut self.rest);
        }
        self.piece = piece;
        if self.bytes_left() == 0 && !self.piece.is_empty() {
            // The closing bracket may arrive in a piece of its own.
            if self.piece.pop() != Some(b']') {
                return Err(self.text.malformed());
            }
        }
        Ok((!self.piece.is_empty()).then_some(&self.piece[..]))
    }

    /// All remaining rows as one text.
    ///
    /// # Errors
    /// As [`SnapshotBody::piece`].
    pub fn all(&mut self) -> Result<Vec<u8>, ReadError> {
        let mut all = Vec::new();
        while let Some(piece) = self.piece()? {
            all.extend_from_slice(piece);
        }
        Ok(all)
    }
}

impl<S: Source> BodyText<S> {
    fn left(&self) -> u64 {
        self.location.length - self.passed
    }

    /// Appends more bytes to `out`; `false` at the end of the body.
    fn read(&mut self, out: &mut Vec<u8>) -> Result<bool, ReadError> {
        let left = usize::try_from(self.left()).unwrap_or(BATCH_BYTES);
        if left == 0 {
            return Ok(false);
        }
        let held = out.len();
        out.resize(held + left.min(BATCH_BYTES), 0);
        let offset = self.location.offset + self.passed;
        let got = self.source.read(&mut out[held..]);
        let got = got.map_err(|reason| ReadError::Source {
            length: left as u64,
            offset,
            reason,
        })?;
        out.truncate(held + got);
        self.passed += got as u64;
        if got == 0 {
            return Err(ReadError::Short {
                length: self.location.length,
                offset: self.location.offset,
            });
        }
        Ok(true)
    }

    fn malformed(&self) -> ReadError {
        ReadError::NotObject {
            length: self.location.length,
            offset: self.location.offset,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A source that yields a few bytes at a time.
    #[derive(Debug)]
    struct Slow<'t>(&'t [u8], usize);

    impl Source for Slow<'_> {
        fn read(&mut self, room: &mut [u8]) -> Result<usize, String> {
            let count = self.1.min(room.len());
            self.0.read(&mut room[..count])
        }
    }

    fn open(text: &str, size: usize) -> Result<SnapshotBody<Slow<'_>>, WireError> {
        let location = BodyLocation {
            offset: 0,
            length: text.len() as u64,
        };
        SnapshotBody::open(Slow(text.as_bytes(), size), location)
    }

    const SCHEMA: &str = r#"{"name":"D","tables":{}}"#;

    #[test]
    fn schema_and_rows_are_read_in_pieces_of_any_size() {
        let rows = r#"{"t":["]",{}],"_comment":"]]"}"#;
        for text in [
            format!("[{SCHEMA},{rows}]"),
            format!(" [ {SCHEMA} , {rows} ]"),
        ] {
            for size in 1..=text.len() {
                let mut body = open(&text, size).expect("a snapshot");
                assert_eq!(&*body.schema().name, "D");
                let read = body.all().expect("rows");
                assert_eq!(String::from_utf8_lossy(&read).trim(), rows, "{size}");
                assert_eq!(body.piece(), Ok(None));
                assert_eq!(body.bytes_left(), 0);
            }
        }
    }

    #[test]
    fn a_comment_at_the_beginning_is_read_before_the_rows() {
        for (rows, comment) in [
            (r#"{"_comment":"a\n\"b\\","t":{}}"#, Some("a\n\"b\\")),
            (r#"{"_comment":"","_date":1}"#, Some("")),
            (r#"{"_comment":7}"#, None),
            (r#"{"_date":1,"_comment":"x"}"#, None),
            (r#"{"_comment":"x}"#, None),
            (r#"{"_comment":"x\"#, None),
            ("{", None),
            ("{}", None),
        ] {
            let text = format!("[{SCHEMA},{rows}]");
            for size in 1..=text.len() {
                let mut body = open(&text, size).expect("a snapshot");
                let found = body.comment().expect("the source yields all");
                assert_eq!(found.as_deref(), comment, "{rows}");
                let read = body.all().expect("rows");
                assert_eq!(String::from_utf8_lossy(&read), rows, "{size}");
            }
        }
    }

    #[test]
    fn malformed_bodies_are_refused() {
        for text in ["", " ", "{}", "[", "[7,{}]", "[{}", "[{},{}]"] {
            assert!(open(text, 3).is_err(), "{text}");
        }
        for rest in ["", ";{}]", "]"] {
            assert!(open(&format!("[{SCHEMA}{rest}"), 3).is_err(), "{rest}");
        }
        for end in [",{}", ",{}}"] {
            let text = format!("[{SCHEMA}{end}");
            let outcome = open(&text, 3).expect("a schema").all();
            assert!(outcome.is_err(), "{end}");
        }
    }

    #[test]
    fn a_file_that_became_shorter_is_an_error() {
        let text = format!("[{SCHEMA},{{}}]");
        let location = BodyLocation {
            offset: 0,
            length: text.len() as u64 + 5,
        };
        let body = SnapshotBody::open(Slow(text.as_bytes(), 4), location);
        let outcome = body.expect("a schema").all();
        assert!(
            matches!(outcome, Err(ReadError::Short { .. })),
            "{outcome:?}"
        );
    }
}
