//! Errors of JSON texts, with the messages that the reference logs and its tools print.
//!
//! Errors are made only on the cold path: readers carry a byte offset, and lines are counted when
//! an error is built.

use thiserror::Error;

/// A syntax error with its position. It is one pointer wide, because results that may hold one are
/// everywhere and errors are rare. Displays as `line L, column C, byte B: MESSAGE`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {}, column {}, byte {}: {}", .0.line, .0.column, .0.byte, .0.message)]
pub struct Error(Box<Fault>);

/// The contents of an [`struct@Error`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Line, counting from 0 as the reference does for one-line texts.
    pub line: usize,
    /// Column in the line, counting from 0.
    pub column: usize,
    /// Offset of the offending byte.
    pub byte: usize,
    /// The message, for example `invalid keyword 'xx'`.
    pub message: String,
}

impl Error {
    /// An error at the offset `byte` of `text`, which may be past its end. The line breaks before
    /// it are counted here.
    #[must_use]
    #[cold]
    pub fn at(text: &[u8], byte: usize, message: impl Into<String>) -> Error {
        let before = &text[..byte.min(text.len())];
        let line = memchr::memchr_iter(b'\n', before).count();
        let line_start = memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1);
        Error::from(Fault {
            line,
            column: byte - line_start,
            byte,
            message: message.into(),
        })
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        Error(Box::new(fault))
    }
}

impl std::ops::Deref for Error {
    type Target = Fault;

    fn deref(&self) -> &Fault {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::Error;

    #[test]
    fn position_counts_lines_and_columns_from_zero() {
        assert_eq!(
            Error::at(b"[1,\n\n  x", 8, "m").to_string(),
            "line 2, column 3, byte 8: m"
        );
        assert_eq!(
            Error::at(b"[1", 3, "m").to_string(),
            "line 0, column 3, byte 3: m"
        );
        assert_eq!(
            Error::at(b"\"\\\n\"", 3, "m").to_string(),
            "line 1, column 0, byte 3: m"
        );
    }
}
