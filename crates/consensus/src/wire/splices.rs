//! Long texts within a message, which are sent without a copy.
//!
//! The text of an entry is also held by the log in memory and by the messages to other members.
//! Copying hundreds of megabytes for each of them would take longer than followers wait for a
//! heartbeat.

use std::collections::VecDeque;

use bytes::Bytes;

/// A text of at least this length, bytes, is not copied.
const SPLICED_BYTES_MIN: usize = 64 * 1024;

/// The long texts of a message under construction, each with its offset among the other bytes.
#[derive(Debug, Default)]
pub(super) struct Splices(Vec<(usize, Bytes)>);

impl Splices {
    /// Appends a text to a message, as a splice if it is long.
    pub(super) fn append(&mut self, out: &mut Vec<u8>, text: &Bytes) {
        if Splices::takes(text) {
            self.0.push((out.len(), text.clone()));
        } else {
            out.extend_from_slice(text);
        }
    }

    /// Whether a text is long enough to be spliced.
    pub(super) fn takes(text: &Bytes) -> bool {
        text.len() >= SPLICED_BYTES_MIN
    }

    /// Combines the other bytes of the message with its long texts.
    pub(super) fn complete(self, out: Vec<u8>) -> MessageText {
        let mut rest = Bytes::from(out);
        let mut text = MessageText::default();
        let mut taken = 0;
        for (at, long) in self.0 {
            text.push(rest.split_to(at - taken));
            text.push(long);
            taken = at;
        }
        text.push(rest);
        text
    }
}

/// The text of a message, in pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageText {
    /// The first piece; empty only if there are no others.
    first: Bytes,
    others: VecDeque<Bytes>,
    bytes: usize,
}

impl MessageText {
    /// Number of bytes left.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether no bytes are left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Takes at most this many bytes from the beginning: at least one, unless it is empty.
    pub(crate) fn take(&mut self, bytes_max: usize) -> Bytes {
        let taken = self.first.split_to(self.first.len().min(bytes_max));
        if self.first.is_empty() {
            self.first = self.others.pop_front().unwrap_or_default();
        }
        self.bytes -= taken.len();
        taken
    }

    /// The bytes in one piece. Copies them if there are several pieces.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        if self.others.is_empty() {
            return self.first;
        }
        let mut bytes = Vec::with_capacity(self.bytes);
        let pieces = std::iter::once(&self.first).chain(&self.others);
        pieces.for_each(|piece| bytes.extend_from_slice(piece));
        bytes.into()
    }

    fn push(&mut self, piece: Bytes) {
        self.bytes += piece.len();
        if self.first.is_empty() {
            self.first = piece;
        } else if !piece.is_empty() {
            self.others.push_back(piece);
        }
    }
}

impl From<Bytes> for MessageText {
    fn from(bytes: Bytes) -> MessageText {
        let mut text = MessageText::default();
        text.push(bytes);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_its_long_texts_where_they_belong() {
        let long = |byte: u8| Bytes::from(vec![byte; SPLICED_BYTES_MIN]);
        let short = Bytes::from_static(b"short");
        let (mut out, mut splices) = (Vec::new(), Splices::default());
        let mut expected = Vec::new();
        for text in [&long(b'a'), &short, &long(b'b'), &long(b'c')] {
            out.push(b'<');
            expected.push(b'<');
            splices.append(&mut out, text);
            expected.extend_from_slice(text);
        }
        out.push(b'>');
        expected.push(b'>');
        let mut text = splices.complete(out);
        assert_eq!(text.len(), expected.len());
        assert_eq!(text.clone().into_bytes(), expected);
        let mut taken = Vec::new();
        while !text.is_empty() {
            let part = text.take(1000);
            assert!((1..=1000).contains(&part.len()));
            taken.extend_from_slice(&part);
            assert_eq!(text.len() + taken.len(), expected.len());
        }
        assert_eq!(taken, expected);
    }

    #[test]
    fn a_long_text_is_not_copied() {
        let long = Bytes::from(vec![b'x'; SPLICED_BYTES_MIN]);
        let (mut out, mut splices) = (b"[".to_vec(), Splices::default());
        splices.append(&mut out, &long);
        let mut text = splices.complete(out);
        assert_eq!(text.take(usize::MAX), b"["[..]);
        assert_eq!(text.take(usize::MAX).as_ptr(), long.as_ptr());
    }
}
