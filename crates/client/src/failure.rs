//! Why a command ends: printed as `ovsdb-client: MESSAGE`, exit status 1.

use std::fmt;

use corvid_data::WireError;
use corvid_json::Value;

/// A fatal condition.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    /// With a message of its own.
    pub(crate) fn new(message: impl Into<String>) -> Failure {
        Failure(message.into())
    }

    /// The server answered a request with a JSON-RPC error.
    #[must_use]
    pub(crate) fn returned_error(error: &Value) -> Failure {
        Failure(format!("transaction returned error: {error}"))
    }

    /// The server answered with an error object, shown as `syntax "S": TAG: DETAILS`; any other error as
    /// [`Failure::returned_error`].
    #[must_use]
    pub(crate) fn wire(error: &Value) -> Failure {
        let text = |member: &str| error.get(member).and_then(Value::as_str);
        let Some(tag) = text("error") else {
            return Failure::returned_error(error);
        };
        let mut message = text("syntax")
            .map(|syntax| format!("syntax \"{syntax}\": "))
            .unwrap_or_default();
        message.push_str(tag);
        if let Some(details) = text("details") {
            message.push_str(": ");
            message.push_str(details);
        }
        Failure(message)
    }

    /// The connection broke during a request.
    #[must_use]
    pub(crate) fn transaction(error: &str) -> Failure {
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
