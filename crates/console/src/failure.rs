//! Why a question to the server has no answer, and the status of a page that says so.
//!
//! A server that is not reached says nothing about what exists, so its page is never "not found".

use hyper::StatusCode;

/// Why a question to the server has no answer; the texts are for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The server is not reached, or does not answer in time: the same question may be answered
    /// later.
    Unreached(String),
    /// The server refuses, or there is nothing of that kind.
    Refused(String),
}

impl Failure {
    /// The server is not reached, in the words that pages and files have for it.
    pub(crate) fn not_current(trouble: &str) -> Failure {
        Failure::Unreached(format!("not current: {trouble}"))
    }

    /// The status of a page with this failure; `refused` is that of a refusal.
    pub(crate) fn status(&self, refused: StatusCode) -> StatusCode {
        match self {
            Failure::Unreached(_) => StatusCode::SERVICE_UNAVAILABLE,
            Failure::Refused(_) => refused,
        }
    }

    /// The text.
    pub(crate) fn text(&self) -> &str {
        match self {
            Failure::Unreached(text) | Failure::Refused(text) => text,
        }
    }

    /// The same failure, with what was asked for before its text.
    pub(crate) fn of(self, asked: &str) -> Failure {
        match self {
            Failure::Unreached(text) => Failure::Unreached(format!("{asked}: {text}")),
            Failure::Refused(text) => Failure::Refused(format!("{asked}: {text}")),
        }
    }
}

/// A refusal by the console itself.
impl From<String> for Failure {
    fn from(text: String) -> Failure {
        Failure::Refused(text)
    }
}
