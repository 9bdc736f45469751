//! Errors that clients see: a tag, details and the offending fragment, as docs/spec/protocol.md 1.7 shapes them.
//!
//! Made wherever a request can be wrong; rendered only here. JSON-RPC errors that are bare strings are made elsewhere.

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
    /// All of them.
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

/// An error object. Displays as the tools print it: `syntax "S": TAG: DETAILS (IO-ERROR)`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct WireError {
    /// `error`
    pub tag: Tag,
    /// `details`
    pub details: String,
    /// `syntax`: compact JSON with sorted members; bytes, for strings in it need not be UTF-8.
    pub syntax: Option<Box<[u8]>>,
    /// `io-error`: the operating system's words, only with [`Tag::IoError`].
    pub io_error: Option<Box<str>>,
}

impl WireError {
    /// An error without a fragment.
    pub fn new(tag: Tag, details: impl Into<String>) -> WireError {
        WireError {
            tag,
            details: details.into(),
            syntax: None,
            io_error: None,
        }
    }

    /// A `syntax error` about `fragment`, the raw JSON text of the offending value (re-serialised with sorted members).
    pub fn syntax(fragment: &[u8], details: impl Into<String>) -> WireError {
        WireError::new(Tag::SyntaxError, details).with_fragment(fragment)
    }

    /// A `syntax error` about a tree.
    pub fn syntax_value(fragment: &Value, details: impl Into<String>) -> WireError {
        WireError {
            syntax: Some(fragment.to_bytes().into_boxed_slice()),
            ..WireError::new(Tag::SyntaxError, details)
        }
    }

    /// Attaches the raw JSON text of the offending value.
    #[must_use]
    pub fn with_fragment(self, fragment: &[u8]) -> WireError {
        let syntax = match Value::parse(fragment) {
            Ok(value) => value.to_bytes(),
            Err(_) => fragment.to_vec(),
        };
        WireError {
            syntax: Some(syntax.into_boxed_slice()),
            ..self
        }
    }

    /// Appends the error object as JSON (members sorted).
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
