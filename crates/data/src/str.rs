//! A shared, immutable UTF-8 string of one word; clones count references.

use std::fmt;
use std::ops::Deref;

use triomphe::ThinArc;

/// String atoms: 8 bytes, shared between parsed message, row, log and update.
#[derive(Clone, PartialEq, Eq)]
pub struct Str(ThinArc<(), u8>);

impl Str {
    /// Copies `text`.
    #[must_use]
    pub fn new(text: &str) -> Str {
        Str(ThinArc::from_header_and_slice((), text.as_bytes()))
    }

    /// The text.
    #[must_use]
    #[allow(unsafe_code)]
    pub fn as_str(&self) -> &str {
        // SAFETY: the only constructor copies a `&str`, and the bytes are never changed afterwards.
        unsafe { std::str::from_utf8_unchecked(&self.0.slice) }
    }
}

impl Deref for Str {
    type Target = str;
    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl From<&str> for Str {
    fn from(text: &str) -> Str {
        Str::new(text)
    }
}

/// Hashes like `str`, so that maps keyed by `Str` can be asked with `&str`.
impl std::hash::Hash for Str {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl std::borrow::Borrow<str> for Str {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl PartialOrd for Str {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Str {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl fmt::Display for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}
