//! The errors of counting. An error fails the check, because without counts nothing is known about
//! the paths.

use std::io;
use std::path::PathBuf;

/// The reason why instructions could not be counted.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Instructions cannot be counted on this machine or with this build.
    #[error("{0}")]
    Impossible(String),
    /// There is no path of that name.
    #[error("{0} is not a path; `corvid-guard list` names them")]
    NoPath(String),
    /// Callgrind failed. `log` is its standard error.
    #[error("{path}: valgrind failed: {log}")]
    Instrument { path: &'static str, log: String },
    /// Callgrind counted nothing.
    #[error("{0}: nothing was counted")]
    Nothing(&'static str),
    /// The checked-in figures cannot be read.
    #[error("{}: line {line} is neither a comment nor a name and a number", file.display())]
    Figures { file: PathBuf, line: usize },
    /// An error of a file or a process.
    #[error("{0}")]
    Io(#[from] io::Error),
}
