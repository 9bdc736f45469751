//! Pieces of output: bodies that many connections share, and heads for one connection.
//!
//! A shared body is never copied, only reference-counted; each client's message is its own small
//! head followed by the body.

use std::any::Any;
use std::sync::Arc;

/// A piece of output.
#[derive(Debug, Clone)]
pub enum Segment {
    /// Bytes that other connections send as well.
    Shared(Arc<[u8]>),
    /// Shared bytes with a value that is kept until they are sent or dropped.
    Guarded(Arc<[u8]>, Arc<dyn Any + Send + Sync>),
    /// Bytes of this connection alone.
    Owned(Vec<u8>),
    /// Bytes of the program.
    Static(&'static [u8]),
}

impl Segment {
    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Segment::Shared(bytes) | Segment::Guarded(bytes, _) => bytes,
            Segment::Owned(bytes) => bytes,
            Segment::Static(bytes) => bytes,
        }
    }

    /// The number of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.as_bytes().len()
    }

    /// Whether there is nothing to send.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.as_bytes().is_empty()
    }
}

impl AsRef<[u8]> for Segment {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl From<Arc<[u8]>> for Segment {
    fn from(bytes: Arc<[u8]>) -> Segment {
        Segment::Shared(bytes)
    }
}

impl From<Vec<u8>> for Segment {
    fn from(bytes: Vec<u8>) -> Segment {
        Segment::Owned(bytes)
    }
}
