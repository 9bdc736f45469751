//! 128-bit row identities and their text form (protocol.md 2.1).

use std::fmt;

/// A UUID; ordered like its text form.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Uuid(pub [u8; 16]);

impl Uuid {
    /// All zeros, the default of uuid columns.
    pub const ZERO: Uuid = Uuid([0; 16]);

    /// Makes a version 4 UUID of 16 random bytes.
    #[must_use]
    pub fn from_random(bytes: [u8; 16]) -> Uuid {
        let _ = bytes;
        todo!()
    }

    /// Parses exactly `8-4-4-4-12` hex digits, either case.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Uuid> {
        let _ = text;
        todo!()
    }

    /// The 36 lower-case characters.
    #[must_use]
    pub fn to_text(self) -> [u8; 36] {
        todo!()
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.to_text()).unwrap_or_default())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Where fresh row identities come from; an input, so that runs can be replayed.
pub trait UuidSource {
    /// A UUID never handed out before.
    fn fresh(&mut self) -> Uuid;
}
