//! The bytes of records on their way to the file.
//!
//! Nearly all records are short and are composed in one buffer. The text of a long entry is also
//! held by the log in memory and by the messages to peers. It is written from where it is: copying
//! hundreds of megabytes would take longer than a leader's followers wait before they call an
//! election.

use std::borrow::Cow;

use bytes::Bytes;

/// From this length on, bytes, a text becomes a piece of its own instead of being copied.
pub const SHARED_BYTES_MIN: usize = 64 * 1024;

/// Headers and bodies of whole records, to be written one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordText {
    /// All bytes in one buffer, owned by this record.
    Whole(Vec<u8>),
    /// The bytes in pieces, some of which are shared.
    Pieces(Vec<Bytes>),
}

impl RecordText {
    /// The bytes, in order.
    pub fn slices(&self) -> impl Iterator<Item = &[u8]> {
        let (whole, pieces) = match self {
            RecordText::Whole(bytes) => (Some(bytes.as_slice()), [].as_slice()),
            RecordText::Pieces(pieces) => (None, pieces.as_slice()),
        };
        whole.into_iter().chain(pieces.iter().map(Bytes::as_ref))
    }

    /// Number of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slices().map(<[u8]>::len).sum()
    }

    /// Whether there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes in one slice. Copies them if they are in pieces.
    #[must_use]
    pub fn to_slice(&self) -> Cow<'_, [u8]> {
        match self {
            RecordText::Whole(bytes) => Cow::Borrowed(bytes),
            RecordText::Pieces(pieces) => Cow::Owned(pieces.concat()),
        }
    }
}

impl From<RecordText> for Vec<u8> {
    fn from(text: RecordText) -> Vec<u8> {
        match text {
            RecordText::Whole(bytes) => bytes,
            RecordText::Pieces(pieces) => pieces.concat(),
        }
    }
}

impl From<Vec<u8>> for RecordText {
    fn from(bytes: Vec<u8>) -> RecordText {
        RecordText::Whole(bytes)
    }
}
