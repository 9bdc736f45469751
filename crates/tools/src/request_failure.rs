//! Errors of programs that send requests to a server.

use corvid_json::Value;

use crate::failure::Failure;

impl Failure {
    /// The server answered a request with a JSON-RPC error.
    #[must_use]
    pub(crate) fn returned_error(error: &Value) -> Failure {
        Failure::of_json("transaction returned error", error)
    }

    /// The server answered with an error object, shown as `syntax "S": TAG: DETAILS`. An error of
    /// another shape is shown as by [`Failure::returned_error`].
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
        Failure::new(message)
    }

    /// The connection broke during a request.
    #[must_use]
    pub(crate) fn transaction(error: &str) -> Failure {
        Failure::new(format!("transaction failed ({error})"))
    }
}
