//! Why instructions could not be counted. A failure fails the check: a guard that did not look has not seen that all is well.

use std::io;
use std::path::PathBuf;

/// See the head of this file.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// This machine or this build cannot count.
    #[error("{0}")]
    Impossible(String),
    /// The name of no path.
    #[error("{0} is no path; `corvid-guard list` names them")]
    NoPath(String),
    /// The instrument ended in failure; what it wrote to its standard error.
    #[error("{path}: valgrind failed: {log}")]
    Instrument { path: &'static str, log: String },
    /// It counted nothing.
    #[error("{0}: nothing was counted")]
    Nothing(&'static str),
    /// The checked-in figures cannot be read.
    #[error("{}: line {line} is neither a comment nor a name and a number", file.display())]
    Figures { file: PathBuf, line: usize },
    /// Files, processes.
    #[error("{0}")]
    Io(#[from] io::Error),
}
