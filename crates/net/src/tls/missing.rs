//! A part that credentials lack, for the error of a connection.

use std::fmt;

/// A missing part of the credentials that a connection needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingPart {
    /// "Private key", "Certificate" or "CA certificate".
    pub name: &'static str,
    /// The file and its error; `None` if no file is given.
    pub reason: Option<String>,
}

impl fmt::Display for MissingPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Some(reason) => write!(f, "{} ({reason})", self.name),
            None => f.write_str(self.name),
        }
    }
}
