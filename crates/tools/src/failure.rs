//! Why a program ends early: printed as `PROGRAM: MESSAGE` on standard error, with exit status 1.
//!
//! Messages that only one program has are made in `client/failure.rs` and `tool/failure.rs`.

use std::fmt;
use std::path::Path;

use corvid_data::WireError;

/// A fatal error: its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure(String);

impl Failure {
    /// A failure with this message.
    pub(crate) fn new(message: impl Into<String>) -> Failure {
        Failure(message.into())
    }
}

/// A path as messages show it.
pub(crate) fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<WireError> for Failure {
    fn from(error: WireError) -> Failure {
        Failure(error.to_string())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure(corvid_net::errno::text(&error))
    }
}
