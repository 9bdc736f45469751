//! A shared, immutable UTF-8 string, one word wide. Cloning it increments a reference count.
//!
//! Invariant: the empty string owns no memory, so that empty columns cost nothing. Every string
//! atom of messages, rows, records and updates has this type, which knows nothing of atoms.

use std::cmp::Ordering;
use std::fmt;
use std::fmt::Write as _;
use std::ops::Deref;

use triomphe::ThinArc;

use crate::{Tag, WireError};

/// Strings up to this length are first tried as ASCII: the vectorized check pays only for longer
/// ones.
const ASCII_BYTES_MAX: usize = 64;

/// A string atom: 8 bytes, shared between parsed message, row, log and update. `None` is the empty
/// string.
#[derive(Clone, Default)]
pub struct Str(Option<ThinArc<(), u8>>);

impl Str {
    /// Copies `text`.
    #[must_use]
    pub fn new(text: &str) -> Str {
        if text.is_empty() {
            return Str(None);
        }
        Str(Some(ThinArc::from_header_and_slice((), text.as_bytes())))
    }

    /// Copies `bytes` into a string atom.
    ///
    /// # Errors
    /// `constraint violation` if `bytes` are not valid UTF-8 (docs/spec/protocol.md 2.3).
    pub fn from_utf8(bytes: &[u8]) -> Result<Str, WireError> {
        if bytes.len() <= ASCII_BYTES_MAX
            && let Some(ascii) = Str::from_ascii(bytes)
        {
            return Ok(ascii);
        }
        match simdutf8::basic::from_utf8(bytes) {
            Ok(text) => Ok(Str::new(text)),
            Err(_) => Err(WireError::new(
                Tag::ConstraintViolation,
                utf8_details(bytes),
            )),
        }
    }

    /// Copies `bytes` if they are ASCII, which is faster to check than UTF-8.
    fn from_ascii(bytes: &[u8]) -> Option<Str> {
        if bytes.is_empty() {
            return Some(Str(None));
        }
        let shared = || ThinArc::from_header_and_slice((), bytes);
        bytes.is_ascii().then(|| Str(Some(shared())))
    }

    /// The text.
    #[must_use]
    #[allow(unsafe_code)]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            None => "",
            // SAFETY: the constructors copy a `&str` or ASCII, and the bytes are never changed
            // afterwards.
            Some(shared) => unsafe { std::str::from_utf8_unchecked(&shared.slice) },
        }
    }

    /// Whether both share their memory, and so are equal. No bytes are compared.
    #[must_use]
    pub fn ptr_eq(&self, other: &Str) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(left), Some(right)) => std::ptr::eq(left.slice.as_ptr(), right.slice.as_ptr()),
            _ => false,
        }
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

impl PartialEq for Str {
    fn eq(&self, other: &Str) -> bool {
        self.ptr_eq(other) || self.as_str() == other.as_str()
    }
}

impl Eq for Str {}

/// Hashes like `str`, so that maps keyed by `Str` can be searched with `&str`.
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
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Orders bytewise, as the reference sorts strings.
impl Ord for Str {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.ptr_eq(other) {
            return Ordering::Equal;
        }
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

/// The details of the error, with the first bad sequence: its bytes up to the first invalid one,
/// which at the end of the string is a NUL.
fn utf8_details(bytes: &[u8]) -> String {
    let rest = match std::str::from_utf8(bytes) {
        Err(error) => &bytes[error.valid_up_to()..],
        Ok(_) => &[],
    };
    // The longest prefix with which some valid sequence begins. The bad byte follows it.
    let good = (1..rest.len().min(4))
        .take_while(|&len| {
            std::str::from_utf8(&rest[..len])
                .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
        })
        .last()
        .unwrap_or(0);
    let is_cut =
        rest.len() < 4 && std::str::from_utf8(rest).is_err_and(|error| error.error_len().is_none());
    let mut details = "not a valid UTF-8 string: invalid UTF-8 sequence".to_owned();
    let shown = if is_cut {
        rest
    } else {
        &rest[..rest.len().min(good + 1)]
    };
    for byte in shown.iter().chain(is_cut.then_some(&0)) {
        // Writing to a string cannot fail.
        let _ = write!(details, " 0x{byte:02x}");
    }
    details
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_is_one_word() {
        assert_eq!(size_of::<Str>(), size_of::<usize>());
    }

    #[test]
    fn clones_share_and_equal_texts_compare_equal() {
        let text = Str::new("br-int");
        assert!(text.clone().ptr_eq(&text));
        assert!(!Str::new("br-int").ptr_eq(&text));
        assert_eq!(Str::new("br-int"), text);
        assert_eq!(Str::new(""), Str::default());
        assert!(Str::new("") < text);
    }

    #[test]
    fn order_is_bytewise() {
        assert!(Str::new("Z") < Str::new("a"));
        assert!(Str::new("z") < Str::new("\u{e9}"));
        assert!(Str::new("ab") < Str::new("abc"));
    }

    #[test]
    fn bad_utf8_is_shown_up_to_the_first_bad_byte() {
        for (bytes, shown) in [
            (&b"\xff"[..], "0xff"),
            (b"ab\xed\xb0\x80", "0xed 0xb0"),
            (b"\xe2\x82", "0xe2 0x82 0x00"),
            (b"\xc0\x80", "0xc0"),
            (b"\xe2\x82A", "0xe2 0x82 0x41"),
            (b"\xf0\x9f\x98A", "0xf0 0x9f 0x98 0x41"),
            (b"\xf0\x9f\x98", "0xf0 0x9f 0x98 0x00"),
            (b"\x80x", "0x80"),
            (b"\xf4\x90\x80\x80", "0xf4 0x90"),
            (b"\xc3\x28", "0xc3 0x28"),
        ] {
            let error = Str::from_utf8(bytes).expect_err("invalid");
            assert_eq!(error.tag, Tag::ConstraintViolation);
            assert_eq!(
                error.details,
                format!("not a valid UTF-8 string: invalid UTF-8 sequence {shown}")
            );
        }
    }
}
