//! 128-bit UUIDs of rows, and their text form (docs/spec/protocol.md 2.1).
//!
//! Bytes are stored in the order of the text, so byte order is text order. Nothing here draws
//! random numbers: fresh UUIDs come from a [`UuidSource`].

use std::fmt;

use corvid_json::hex;
use corvid_json::write::hexadecimal;

/// A UUID, ordered like its text form. Aligned to words, so that atoms are copied by words.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(align(8))]
pub struct Uuid(pub [u8; 16]);

/// Offsets of the hyphens in the text form.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];

impl Uuid {
    /// All zeros, the default of uuid columns.
    pub const ZERO: Uuid = Uuid([0; 16]);

    /// Length of the text form in bytes.
    pub const TEXT_LEN: usize = 36;

    /// Makes a version 4 UUID (RFC 4122 4.4) from 16 random bytes.
    #[must_use]
    pub fn from_random(bytes: [u8; 16]) -> Uuid {
        let mut bytes = bytes;
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        Uuid(bytes)
    }

    /// Parses exactly `8-4-4-4-12` hex digits of either case. Version and variant are not checked.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Uuid> {
        let text: &[u8; Uuid::TEXT_LEN] = text.try_into().ok()?;
        if HYPHENS.iter().any(|&at| text[at] != b'-') {
            return None;
        }
        let mut digits = [[0; 8]; 4];
        let flat = digits.as_flattened_mut();
        flat[..8].copy_from_slice(&text[..8]);
        flat[8..12].copy_from_slice(&text[9..13]);
        flat[12..16].copy_from_slice(&text[14..18]);
        flat[16..20].copy_from_slice(&text[19..23]);
        flat[20..].copy_from_slice(&text[24..]);
        let bytes = hex::bytes(&digits)?;
        bytes.as_flattened().try_into().ok().map(Uuid)
    }

    /// The 36 lower-case characters.
    #[must_use]
    pub fn to_text(self) -> [u8; Uuid::TEXT_LEN] {
        let mut digits = [0; 32];
        let words = self.0.as_chunks::<4>().0.iter();
        for (eight, word) in digits.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *eight = hexadecimal(*word);
        }
        let mut text = [b'-'; Uuid::TEXT_LEN];
        text[..8].copy_from_slice(&digits[..8]);
        text[9..13].copy_from_slice(&digits[8..12]);
        text[14..18].copy_from_slice(&digits[12..16]);
        text[19..23].copy_from_slice(&digits[16..20]);
        text[24..].copy_from_slice(&digits[20..]);
        text
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

/// A source of fresh UUIDs. It is an input, so that runs can be replayed.
pub trait UuidSource {
    /// A UUID that was not returned before.
    fn fresh(&mut self) -> Uuid;
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "01234567-89ab-cdef-0123-456789abcdef";

    #[test]
    fn text_round_trips_and_is_lower_case() {
        let uuid = Uuid::parse(TEXT.to_uppercase().as_bytes()).expect("valid");
        assert_eq!(uuid.to_string(), TEXT);
        assert_eq!(Uuid::parse(TEXT.as_bytes()), Some(uuid));
    }

    #[test]
    fn every_damaged_character_is_refused() {
        for at in 0..TEXT.len() {
            for bad in [b'g', b' ', b'-', b'0', 0xff] {
                let mut text = TEXT.as_bytes().to_vec();
                let was_hyphen = text[at] == b'-';
                text[at] = bad;
                let fine = if was_hyphen { bad == b'-' } else { bad == b'0' };
                assert_eq!(Uuid::parse(&text).is_some(), fine, "{bad:#x} at {at}");
            }
        }
        assert_eq!(Uuid::parse(&TEXT.as_bytes()[1..]), None);
        assert_eq!(Uuid::parse(b""), None);
    }

    #[test]
    fn random_identities_are_version_4() {
        let text = Uuid::from_random([0xff; 16]).to_string();
        assert_eq!(text, "ffffffff-ffff-4fff-bfff-ffffffffffff");
    }
}
