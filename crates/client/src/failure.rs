//! Why a command ends: printed as `ovsdb-client: MESSAGE`, exit status 1.

use std::fmt;

use corvid_data::WireError;
use corvid_json::Value;

/// A fatal condition.
#[derive(Debug)]
pub struct Failure(String);

impl Failure {
    /// With a message of its own.
    pub fn new(message: impl Into<String>) -> Failure {
        Failure(message.into())
    }

    /// The server answered a request with a JSON-RPC error.
    #[must_use]
    pub fn returned_error(error: &Value) -> Failure {
        Failure(format!("transaction returned error: {error}"))
    }

    /// The connection broke during a request.
    #[must_use]
    pub fn transaction(error: &str) -> Failure {
        Failure(format!("transaction failed ({error})"))
    }
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
        Failure(corvid_os::errno::text(&error))
    }
}
