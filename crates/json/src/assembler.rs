//! The texts of one stream: the only place where bytes that were read become whole texts.
//!
//! Guarantees:
//!
//! - Texts come out whole, unchanged and in order, wherever the reads cut them.
//! - No byte is scanned twice, and a text that lies within one read is not copied.
//! - The text being gathered never exceeds the byte limit: a part that would exceed it is rejected
//!   before it is kept. A text never nests deeper than the depth limit.
//! - After an error the stream is unreadable, because the start of its next text is unknown.
//!
//! A caller with limits of its own (a shard charges its clients for the bytes they send) takes the
//! parts one by one with [`Assembler::part`] and decides about each. The assembler knows no socket
//! and validates nothing: the reader validates the whole text.

use std::borrow::Cow;

use thiserror::Error;

use crate::frame::Framed;
use crate::{Framer, Pieces};

/// Cuts a stream into texts.
///
/// ```
/// use corvid_json::Assembler;
/// let mut assembler = Assembler::default();
/// let texts: Vec<_> = assembler.texts(b"[1] {\"a\"").map(Result::unwrap).collect();
/// assert_eq!(texts, [b"[1]".as_slice()]);
/// let texts: Vec<_> = assembler.texts(b":2}").map(Result::unwrap).collect();
/// assert_eq!(texts, [b"{\"a\":2}".as_slice()]);
/// ```
#[derive(Debug)]
pub struct Assembler {
    framer: Framer,
    begun: Pieces,
    bytes_max: usize,
}

/// Why the rest of the stream cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StreamError {
    /// The bytes are not JSON, or nest too deeply.
    #[error(transparent)]
    Syntax(#[from] crate::Error),
    /// A text is longer than this many bytes.
    #[error("message is longer than {0} bytes")]
    TooLong(usize),
}

/// The next bytes of a text, without the white space before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part<'i> {
    /// The bytes. Empty if the input was white space.
    pub bytes: &'i [u8],
    /// Whether the text ends with these bytes.
    pub is_last: bool,
}

impl Default for Assembler {
    /// Accepts texts of any length that nest as deeply as a client's may.
    fn default() -> Assembler {
        Assembler::new(Framer::new())
    }
}

impl Assembler {
    /// Accepts texts of any length, with the framer's depth limit.
    #[must_use]
    pub fn new(framer: Framer) -> Assembler {
        Assembler {
            framer,
            begun: Pieces::default(),
            bytes_max: usize::MAX,
        }
    }

    /// Limits the length of texts, in bytes, from now on.
    pub fn set_bytes_max(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
    }

    /// The bytes that are kept of the text that has begun.
    #[must_use]
    pub fn begun(&self) -> &Pieces {
        &self.begun
    }

    /// Whether the text that has begun, or that has just ended, nests deeper than a client's may.
    #[must_use]
    pub fn is_deep(&self) -> bool {
        self.framer.is_deep()
    }

    /// Takes the next text from the front of `input`. `None` if all of `input` was taken and the
    /// text needs more.
    ///
    /// # Errors
    /// See [`StreamError`]; the assembler is unusable afterwards.
    pub fn next<'i>(&mut self, input: &mut &'i [u8]) -> Result<Option<Cow<'i, [u8]>>, StreamError> {
        let Part { bytes, is_last } = self.part(input)?;
        if self.begun.len() + bytes.len() > self.bytes_max {
            return Err(StreamError::TooLong(self.bytes_max));
        }
        if is_last && self.begun.is_empty() {
            return Ok(Some(Cow::Borrowed(bytes)));
        }
        self.keep(bytes);
        Ok(is_last.then(|| Cow::Owned(self.take().into_bytes())))
    }

    /// The texts that end within `input`. If the iterator is used to its end, the rest of `input`
    /// is kept.
    pub fn texts<'a, 'i>(&'a mut self, input: &'i [u8]) -> Texts<'a, 'i> {
        Texts {
            assembler: self,
            rest: input,
        }
    }

    /// Takes the next part of a text from the front of `input`, without keeping it. The caller
    /// decides about it and calls [`Assembler::keep`], and [`Assembler::take`] if the part is the
    /// last one.
    ///
    /// # Errors
    /// The bytes are not JSON, or nest too deeply.
    #[inline]
    pub fn part<'i>(&mut self, input: &mut &'i [u8]) -> Result<Part<'i>, crate::Error> {
        let (start, end, is_last) = match self.framer.advance(input)? {
            Framed::Complete { start, end } => (start, end, true),
            Framed::Partial { start } => (start, input.len(), false),
        };
        let bytes = &input[start..end];
        *input = &input[end..];
        Ok(Part { bytes, is_last })
    }

    /// Keeps bytes of the text that has begun.
    pub fn keep(&mut self, bytes: &[u8]) {
        self.begun.extend(bytes);
    }

    /// Takes the kept bytes: a whole text after its last part.
    pub fn take(&mut self) -> Pieces {
        std::mem::take(&mut self.begun)
    }
}

/// Iterates over the texts of an input: see [`Assembler::texts`].
#[derive(Debug)]
pub struct Texts<'a, 'i> {
    assembler: &'a mut Assembler,
    rest: &'i [u8],
}

impl<'i> Iterator for Texts<'_, 'i> {
    type Item = Result<Cow<'i, [u8]>, StreamError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let text = self.assembler.next(&mut self.rest);
        if text.is_err() {
            self.rest = &[];
        }
        text.transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_wherever_reads_end() {
        let stream = br#"{"a":["}"]}  {"b":1}[2]"#;
        for size in 1..=stream.len() {
            let mut assembler = Assembler::default();
            assembler.set_bytes_max(11);
            let mut texts = Vec::new();
            for part in stream.chunks(size) {
                texts.extend(
                    assembler
                        .texts(part)
                        .map(|text| text.expect("valid").into_owned()),
                );
            }
            assert_eq!(texts, [&br#"{"a":["}"]}"#[..], br#"{"b":1}"#, b"[2]"]);
            assert!(assembler.begun().is_empty());
        }
    }

    #[test]
    fn a_text_within_one_read_is_not_copied() {
        let stream = b" [1][2";
        let mut assembler = Assembler::default();
        let text = assembler.texts(stream).next().expect("one").expect("valid");
        assert_eq!(text, Cow::Borrowed(b"[1]".as_slice()));
        assert!(matches!(text, Cow::Borrowed(_)));
    }

    #[test]
    fn a_long_text_is_refused_before_it_ends_and_is_not_kept() {
        let mut assembler = Assembler::default();
        assembler.set_bytes_max(12);
        assert_eq!(assembler.next(&mut &br#"{"a":"1234"#[..]), Ok(None));
        let error = assembler.next(&mut &b"567"[..]);
        assert_eq!(error, Err(StreamError::TooLong(12)));
        assert_eq!(assembler.begun().len(), 10);
    }

    #[test]
    fn bytes_that_are_not_json_end_the_stream() {
        let mut assembler = Assembler::default();
        let mut texts = assembler.texts(b"[1] xyz");
        assert!(texts.next().is_some_and(|text| text.is_ok()));
        let error = texts.next().expect("an error").expect_err("not JSON");
        assert!(matches!(error, StreamError::Syntax(_)), "{error}");
        assert!(texts.next().is_none());
    }
}
