//! Errors that clients see: a tag, details and the offending fragment, in the form of
//! docs/spec/protocol.md 1.7.
//!
//! Errors are made wherever a request can be wrong, and rendered only here. JSON-RPC errors that
//! are bare strings are made elsewhere.
//!
//! Errors quote the faulty text, and a request of gigabytes can be wrong as a whole. Invariant of
//! errors made by the constructors: `details` and `syntax` have at most [`QUOTED_BYTES_MAX`] bytes
//! and an ellipsis, so an error is short however long its request was.

use std::borrow::Cow;

use corvid_json::{Value, write};
use thiserror::Error;

/// The `error` member of an error object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum Tag {
    SyntaxError,
    UnknownColumn,
    UnknownFunction,
    UnknownMutator,
    UnknownDatabase,
    UnknownTable,
    DatabaseNotAvailable,
    OvsdbError,
    ConstraintViolation,
    ReferentialIntegrityViolation,
    DomainError,
    RangeError,
    DuplicateUuid,
    DuplicateUuidName,
    TimedOut,
    NotSupported,
    Aborted,
    NotOwner,
    NotAllowed,
    PermissionError,
    InvalidParameters,
    Canceled,
    IoError,
    InternalError,
    ConsistencyViolation,
    ClusterError,
    ResourcesExhausted,
}

impl Tag {
    /// All tags.
    pub const ALL: [Tag; 27] = [
        Tag::SyntaxError,
        Tag::UnknownColumn,
        Tag::UnknownFunction,
        Tag::UnknownMutator,
        Tag::UnknownDatabase,
        Tag::UnknownTable,
        Tag::DatabaseNotAvailable,
        Tag::OvsdbError,
        Tag::ConstraintViolation,
        Tag::ReferentialIntegrityViolation,
        Tag::DomainError,
        Tag::RangeError,
        Tag::DuplicateUuid,
        Tag::DuplicateUuidName,
        Tag::TimedOut,
        Tag::NotSupported,
        Tag::Aborted,
        Tag::NotOwner,
        Tag::NotAllowed,
        Tag::PermissionError,
        Tag::InvalidParameters,
        Tag::Canceled,
        Tag::IoError,
        Tag::InternalError,
        Tag::ConsistencyViolation,
        Tag::ClusterError,
        Tag::ResourcesExhausted,
    ];

    /// The tag of a text on the wire; `None` for an unknown one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Tag> {
        Tag::ALL.into_iter().find(|tag| tag.text() == text)
    }

    /// The text on the wire, for example `constraint violation`.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Tag::SyntaxError => "syntax error",
            Tag::UnknownColumn => "unknown column",
            Tag::UnknownFunction => "unknown function",
            Tag::UnknownMutator => "unknown mutator",
            Tag::UnknownDatabase => "unknown database",
            Tag::UnknownTable => "unknown table",
            Tag::DatabaseNotAvailable => "database not available",
            Tag::OvsdbError => "ovsdb error",
            Tag::ConstraintViolation => "constraint violation",
            Tag::ReferentialIntegrityViolation => "referential integrity violation",
            Tag::DomainError => "domain error",
            Tag::RangeError => "range error",
            Tag::DuplicateUuid => "duplicate uuid",
            Tag::DuplicateUuidName => "duplicate uuid-name",
            Tag::TimedOut => "timed out",
            Tag::NotSupported => "not supported",
            Tag::Aborted => "aborted",
            Tag::NotOwner => "not owner",
            Tag::NotAllowed => "not allowed",
            Tag::PermissionError => "permission error",
            Tag::InvalidParameters => "invalid parameters",
            Tag::Canceled => "canceled",
            Tag::IoError => "I/O error",
            Tag::InternalError => "internal error",
            Tag::ConsistencyViolation => "consistency violation",
            Tag::ClusterError => "cluster error",
            Tag::ResourcesExhausted => "resources exhausted",
        }
    }
}

/// Limit on the bytes of `details` and of `syntax`; the rest is cut off.
pub const QUOTED_BYTES_MAX: usize = 64 << 10;

/// Marks a text that was cut off.
const ELLIPSIS: &str = "...";

/// An error object. Displays as the tools print it: `syntax "S": TAG: DETAILS (IO-ERROR)`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct WireError {
    /// `error`
    pub tag: Tag,
    /// `details`
    pub details: String,
    /// `syntax`: compact JSON with sorted members. Bytes, because strings in it need not be UTF-8.
    pub syntax: Option<Box<[u8]>>,
    /// `io-error`: the operating system's text, only with [`Tag::IoError`].
    pub io_error: Option<Box<str>>,
}

impl WireError {
    /// An error without a fragment.
    pub fn new(tag: Tag, details: impl Into<String>) -> WireError {
        let mut details = details.into();
        if details.len() > QUOTED_BYTES_MAX {
            let end = details.floor_char_boundary(QUOTED_BYTES_MAX);
            details.truncate(end);
            details.push_str(ELLIPSIS);
            details.shrink_to_fit();
        }
        WireError {
            tag,
            details,
            syntax: None,
            io_error: None,
        }
    }

    /// A `syntax error` about `fragment`, the raw JSON text of the offending value (serialized
    /// again with sorted members).
    pub fn syntax(fragment: &[u8], details: impl Into<String>) -> WireError {
        WireError::new(Tag::SyntaxError, details).with_fragment(fragment)
    }

    /// A `syntax error` about a tree.
    pub fn syntax_value(fragment: &Value, details: impl Into<String>) -> WireError {
        WireError {
            syntax: Some(quoted(Cow::Owned(fragment.to_bytes()))),
            ..WireError::new(Tag::SyntaxError, details)
        }
    }

    /// Attaches the raw JSON text of the offending value. For a long value, attaches its beginning
    /// as it was sent.
    #[must_use]
    pub fn with_fragment(self, fragment: &[u8]) -> WireError {
        // The tree of a long text takes ten times its memory, and would be thrown away.
        let parsed = match fragment.len() <= QUOTED_BYTES_MAX {
            true => Value::parse(fragment).ok(),
            false => None,
        };
        let syntax = parsed.map_or(Cow::Borrowed(fragment), |value| {
            Cow::Owned(value.to_bytes())
        });
        WireError {
            syntax: Some(quoted(syntax)),
            ..self
        }
    }

    /// Bytes of the error's texts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.details.len() + self.syntax.as_ref().map_or(0, |syntax| syntax.len())
    }

    /// Whether the error has no texts except its tag.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends the error object as JSON, with sorted members.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"details\":");
        write::string(out, self.details.as_bytes());
        out.extend_from_slice(b",\"error\":");
        write::string(out, self.tag.text().as_bytes());
        if let Some(io_error) = &self.io_error {
            out.extend_from_slice(b",\"io-error\":");
            write::string(out, io_error.as_bytes());
        }
        if let Some(syntax) = &self.syntax {
            out.extend_from_slice(b",\"syntax\":");
            write::string(out, syntax);
        }
        out.push(b'}');
    }
}

/// A text for `syntax`. A long text is cut off between two characters.
fn quoted(text: Cow<'_, [u8]>) -> Box<[u8]> {
    if text.len() <= QUOTED_BYTES_MAX {
        return text.into_owned().into_boxed_slice();
    }
    let is_continuation = |byte: &u8| byte & 0xc0 == 0x80;
    let mut end = QUOTED_BYTES_MAX;
    // Bytes that are not UTF-8 need no care, so a few steps are enough.
    while end > QUOTED_BYTES_MAX - 4 && text.get(end).is_some_and(is_continuation) {
        end -= 1;
    }
    [&text[..end], ELLIPSIS.as_bytes()]
        .concat()
        .into_boxed_slice()
}

impl std::fmt::Display for WireError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(syntax) = &self.syntax {
            write!(f, "syntax \"{}\": ", String::from_utf8_lossy(syntax))?;
        }
        write!(f, "{}: {}", self.tag.text(), self.details)?;
        if let Some(io_error) = &self.io_error {
            write!(f, " ({io_error})")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_found_by_their_texts() {
        for tag in Tag::ALL {
            assert_eq!(Tag::parse(tag.text()), Some(tag));
        }
        assert_eq!(Tag::parse("constraint"), None);
    }

    #[test]
    fn objects_have_sorted_members_and_sorted_fragments() {
        let error = WireError::syntax(br#"{"b":[1.0, 2.50],"a":"x"}"#, "oh \"no\"");
        let mut json = Vec::new();
        error.write_json(&mut json);
        assert_eq!(
            String::from_utf8_lossy(&json),
            r#"{"details":"oh \"no\"","error":"syntax error","syntax":"{\"a\":\"x\",\"b\":[1,2.5]}"}"#
        );
        assert_eq!(
            error.to_string(),
            r#"syntax "{"a":"x","b":[1,2.5]}": syntax error: oh "no""#
        );
    }

    #[test]
    fn long_quotations_are_cut_off() {
        let value = "é".repeat(QUOTED_BYTES_MAX);
        let error = WireError::syntax(format!("[\"{value}\"]").as_bytes(), value);
        let syntax = error.syntax.as_deref().expect("there is one");
        for text in [error.details.as_bytes(), syntax] {
            assert!(text.len() <= QUOTED_BYTES_MAX + ELLIPSIS.len());
            assert!(text.len() > QUOTED_BYTES_MAX - 4);
            assert!(std::str::from_utf8(text).is_ok_and(|text| text.ends_with("é...")));
        }
        assert!(syntax.starts_with("[\"é".as_bytes()));

        // Nothing is cut off at exactly the limit.
        let value = "x".repeat(QUOTED_BYTES_MAX - 4);
        let error = WireError::syntax(format!("[\"{value}\"]").as_bytes(), value.clone());
        assert_eq!(error.details, value);
        assert_eq!(error.syntax.map(|it| it.len()), Some(QUOTED_BYTES_MAX));
    }

    #[test]
    fn the_io_error_comes_last() {
        let error = WireError {
            io_error: Some("No space left on device".into()),
            ..WireError::new(Tag::IoError, "a.db: write failed")
        };
        assert_eq!(
            error.to_string(),
            "I/O error: a.db: write failed (No space left on device)"
        );
        let mut json = Vec::new();
        error.write_json(&mut json);
        assert_eq!(
            String::from_utf8_lossy(&json),
            r#"{"details":"a.db: write failed","error":"I/O error","io-error":"No space left on device"}"#
        );
    }
}
