//! Errors of a database file, except errors in the meaning of its records. The caller renders them
//! with the file's name into the exact texts of docs/spec/storage.md 1.3 and 1.4.

use corvid_data::{Tag, WireError};
use thiserror::Error;

/// A record that cannot be read. Offsets are bytes from the start of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// The source failed.
    Source {
        /// Bytes requested.
        length: u64,
        /// Where they begin.
        offset: u64,
        /// The operating system's error text.
        reason: String,
    },
    /// The line where a header must stand is not a header.
    Header {
        /// Where the line begins.
        offset: u64,
        /// The prefix of the line that messages show.
        shown: Vec<u8>,
    },
    /// The file ends inside a body.
    Short {
        /// Body length that the header promised, bytes.
        length: u64,
        /// Where the body begins.
        offset: u64,
    },
    /// The body's hash differs from its header.
    Hash {
        /// Bytes of the body.
        length: u64,
        /// Where the body begins.
        offset: u64,
        /// The hash of the bytes.
        actual: [u8; 20],
        /// The hash in the header.
        expected: [u8; 20],
    },
    /// The body is not valid JSON.
    NotJson {
        /// Bytes of the body.
        length: u64,
        /// Where the body begins.
        offset: u64,
        /// The JSON error and its location.
        error: corvid_json::Error,
    },
    /// The body is JSON but not an object.
    NotObject {
        /// Bytes of the body.
        length: u64,
        /// Where the body begins.
        offset: u64,
    },
}

impl ReadError {
    /// Renders the error in the reference's words; `file` is the name as the user spelled it.
    #[must_use]
    pub fn to_wire(&self, file: &str) -> WireError {
        match self {
            ReadError::Source {
                length,
                offset,
                reason,
            } => reading(file, *length, *offset, reason),
            ReadError::Short { length, offset } => reading(file, *length, *offset, "End of file"),
            ReadError::Header { offset, shown } => {
                let shown = String::from_utf8_lossy(shown);
                syntax(format!(
                    "{file}: parse error at offset {offset} in header line \"{shown}\""
                ))
            }
            ReadError::Hash {
                length,
                offset,
                actual,
                expected,
            } => syntax(format!(
                "{file}: {length} bytes starting at offset {offset} have SHA-1 hash {} but should have hash {}",
                hex(actual),
                hex(expected)
            )),
            ReadError::NotJson {
                length,
                offset,
                error,
            } => syntax(format!(
                "{file}: {length} bytes starting at offset {offset} are not valid JSON ({error})"
            )),
            ReadError::NotObject { length, offset } => syntax(format!(
                "{file}: {length} bytes starting at offset {offset} are not a JSON object"
            )),
        }
    }
}

/// A file whose first line does not identify a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FormatError {
    /// The file is empty, or its header has an unacceptable magic.
    #[error("cannot identify file type")]
    Unidentified,
    /// The first line is not a header.
    #[error("unexpected file format")]
    Unexpected,
}

impl FormatError {
    /// Renders the error in the reference's words about `file`.
    #[must_use]
    pub fn to_wire(self, file: &str) -> WireError {
        WireError::new(Tag::OvsdbError, format!("{file}: {self}"))
    }
}

fn syntax(details: String) -> WireError {
    WireError::new(Tag::SyntaxError, details)
}

fn reading(file: &str, length: u64, offset: u64, reason: &str) -> WireError {
    let mut error = WireError::new(
        Tag::IoError,
        format!("{file}: error reading {length} bytes starting at offset {offset}"),
    );
    error.io_error = Some(reason.into());
    error
}

fn hex(sha1: &[u8; 20]) -> String {
    sha1.iter().map(|byte| format!("{byte:02x}")).collect()
}
