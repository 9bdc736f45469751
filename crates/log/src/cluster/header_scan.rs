//! Finds the snapshot's body in a header record that arrives in pieces. The record may be as long
//! as the database.
//!
//! ```text
//! {"server_id":"...",...,"prev_data":[{schema},{rows}],"prev_index":1}
//!                                    ^ body             ^
//! {"server_id":"...",...,"prev_data":[]               ,"prev_index":1}     the rest, with `[]`
//!                                                                          for the body
//! ```
//!
//! Invariant: memory is bounded by `REST_BYTES_MAX` and does not grow with the body. Only brackets
//! and strings are recognised here. The rest is validated when it is decoded, the body when the
//! database is loaded. [`super::recovery`] calls this module.

use corvid_json::Framer;
use corvid_json::frame::Framed;

use super::BodyLocation;

/// Maximum bytes of a header record without its body.
const REST_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The name of the member that holds the body.
const NAME: &[u8] = b"\"prev_data\"";

/// The record has another form, or too many bytes apart from the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// Scans a header record and separates the body from the rest.
#[derive(Debug, Default)]
pub(super) struct HeaderScan {
    /// Everything except the body.
    rest: Vec<u8>,
    /// Number of bytes that have arrived.
    passed: u64,
    depth: usize,
    state: State,
    /// Whether the last string outside all inner brackets was the name of the body's member. A
    /// colon confirms that it is a name.
    is_body_next: bool,
    body: Option<BodyLocation>,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Between,
    /// In a string that begins at this offset of `rest`.
    Text { start: usize, is_escaped: bool },
    /// In the body or in the white space before it; the value is the offset of the body's first
    /// byte, once known.
    Body(Framer, Option<u64>),
}

impl HeaderScan {
    /// Accepts the next bytes of the record's body.
    pub(super) fn feed(&mut self, mut piece: &[u8]) -> Result<(), Malformed> {
        while !piece.is_empty() {
            let taken = match &mut self.state {
                State::Body(..) => self.body(piece)?,
                _ => self.rest(piece),
            };
            self.passed += taken as u64;
            piece = &piece[taken..];
            if self.rest.len() > REST_BYTES_MAX {
                return Err(Malformed);
            }
        }
        Ok(())
    }

    /// Returns the record with `[]` in place of the snapshot's body, and the location of that body
    /// relative to the record's first byte.
    pub(super) fn finish(self) -> (Vec<u8>, Option<BodyLocation>) {
        (self.rest, self.body)
    }

    /// The number of bytes before the body, if the body begins within `text`, the record's first
    /// bytes.
    pub(super) fn before_body(text: &[u8]) -> Option<usize> {
        let mut scan = HeaderScan::default();
        let taken = scan.rest(text);
        matches!(scan.state, State::Body(..)).then_some(taken)
    }

    /// Consumes bytes up to the beginning of the body, or all of them. Returns their number.
    fn rest(&mut self, piece: &[u8]) -> usize {
        for (at, byte) in piece.iter().enumerate() {
            self.rest.push(*byte);
            match &mut self.state {
                State::Text { is_escaped, .. } if *is_escaped => *is_escaped = false,
                State::Text { start, is_escaped } => match byte {
                    b'\\' => *is_escaped = true,
                    b'"' => {
                        self.is_body_next = self.depth == 1 && &self.rest[*start..] == NAME;
                        self.state = State::Between;
                    }
                    _ => {}
                },
                _ => match byte {
                    b'"' => {
                        self.state = State::Text {
                            start: self.rest.len() - 1,
                            is_escaped: false,
                        }
                    }
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                    b':' if self.is_body_next => {
                        self.is_body_next = false;
                        self.state = State::Body(Framer::new(), None);
                        return at + 1;
                    }
                    b',' => self.is_body_next = false,
                    _ => {}
                },
            }
        }
        piece.len()
    }

    /// Consumes bytes up to the end of the body, or all of them. Returns their number.
    fn body(&mut self, piece: &[u8]) -> Result<usize, Malformed> {
        let State::Body(framer, begin) = &mut self.state else {
            return Err(Malformed);
        };
        match framer.advance(piece).map_err(|_| Malformed)? {
            Framed::Partial { start } => {
                if framer.is_mid_text() {
                    begin.get_or_insert(self.passed + start as u64);
                }
                Ok(piece.len())
            }
            Framed::Complete { start, end } => {
                let offset = begin.unwrap_or(self.passed + start as u64);
                let length = self.passed + end as u64 - offset;
                self.body = Some(BodyLocation { offset, length });
                self.rest.extend_from_slice(b"[]");
                self.state = State::Between;
                Ok(end)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rest and the body, scanned in pieces of `size` bytes.
    fn scan(text: &str, size: usize) -> (String, Option<String>) {
        let mut scan = HeaderScan::default();
        for piece in text.as_bytes().chunks(size) {
            scan.feed(piece).expect("well-formed");
        }
        let (rest, body) = scan.finish();
        let body = body.map(|body| {
            let from = usize::try_from(body.offset).expect("small");
            let to = usize::try_from(body.end()).expect("small");
            text[from..to].to_owned()
        });
        (String::from_utf8(rest).expect("ASCII"), body)
    }

    #[test]
    fn the_body_is_found_in_pieces_of_any_size() {
        let body = r#"[{"a":"]}\""},{"t":{}}]"#;
        for (before, after) in [
            (r#"{"prev_data": "#, "}\n"),
            (r#"{"x":{"prev_data":[1]},"prev_data":"#, r#" ,"y":[1]}"#),
            (r#"{"name":"prev_data","prev_data":"#, "}"),
            (r#"{"a\"prev_data":1,"prev_data":"#, "}"),
        ] {
            let text = format!("{before}{body}{after}");
            for size in 1..=text.len() {
                let (rest, found) = scan(&text, size);
                assert_eq!(found.as_deref(), Some(body), "{text} {size}");
                let expected = format!("{}[]{after}", before.trim_end());
                assert_eq!(rest, expected, "{size}");
            }
        }
    }

    #[test]
    fn records_without_a_body_have_none() {
        let text = r#"{"name":"prev_data","x":["prev_data",{"prev_data":[]}]}"#;
        assert_eq!(scan(text, 3), (text.to_owned(), None));
        let mut malformed = HeaderScan::default();
        assert_eq!(malformed.feed(br#"{"prev_data":7}"#), Err(Malformed));
    }
}
