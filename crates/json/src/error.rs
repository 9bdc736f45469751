//! What can be wrong with a JSON text, in the words that the reference logs and its tools print.

use thiserror::Error;

/// A syntax error with its place. Displays as `line L, column C, byte B: MESSAGE`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}, column {column}, byte {byte}: {message}")]
pub struct Error {
    /// Line, counting from 0 as the reference does for one-line texts.
    pub line: usize,
    /// Column in the line, counting from 0.
    pub column: usize,
    /// Byte offset of the offending byte.
    pub byte: usize,
    /// What is wrong, for example `invalid keyword 'xx'`.
    pub message: String,
}
