//! Why a server refused a transaction.
//!
//! The variants say which part of the transaction was refused. All of them but [`Refused::Other`]
//! carry the tag and the details of the server's error (RFC 7047 3.1).

use std::fmt::{self, Display, Formatter};

use corvid_data::Tag;
use corvid_json::Value;

/// The error with which a server refused a transaction.
///
/// ```
/// use corvid_data::Tag;
/// use corvid_idl::Refused;
///
/// fn explain(refused: &Refused) -> String {
///     match refused {
///         Refused::Commit { tag: Tag::ConstraintViolation, details } => format!("a rule of the schema is broken: {details}"),
///         Refused::Operation { index, tag, details } => format!("operation {index}: {}: {details}", tag.text()),
///         other => other.to_string(),
///     }
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// An operation failed, so the operations after it were not tried.
    Operation {
        /// The position of the operation among those sent, from 0.
        index: usize,
        /// The kind of error.
        tag: Tag,
        /// The server's explanation; may be empty.
        details: String,
    },
    /// All operations succeeded, but the commit failed: together they break a constraint of the
    /// schema, or could not be stored.
    Commit {
        /// The kind of error.
        tag: Tag,
        /// The server's explanation; may be empty.
        details: String,
    },
    /// The server refused the request before it looked at the operations. Or the client did not
    /// send the request, because of a change that no request can carry ([`crate::Idl::refuse`]).
    Request {
        /// The kind of error.
        tag: Tag,
        /// The server's explanation; may be empty.
        details: String,
    },
    /// The reply has an unknown form, or its error has an unknown tag.
    Other {
        /// The reply, or the part of it that was not understood.
        json: String,
    },
}

impl Refused {
    /// The kind of error, if known.
    #[must_use]
    pub fn tag(&self) -> Option<Tag> {
        match self {
            Refused::Operation { tag, .. }
            | Refused::Commit { tag, .. }
            | Refused::Request { tag, .. } => Some(*tag),
            Refused::Other { .. } => None,
        }
    }

    /// The server's explanation, or the reply itself if it was not understood.
    #[must_use]
    pub fn details(&self) -> &str {
        match self {
            Refused::Operation { details, .. }
            | Refused::Commit { details, .. }
            | Refused::Request { details, .. } => details,
            Refused::Other { json } => json,
        }
    }

    /// The position of the failed operation, if an operation failed.
    #[must_use]
    pub fn operation(&self) -> Option<usize> {
        match self {
            Refused::Operation { index, .. } => Some(*index),
            _ => None,
        }
    }

    /// Reads the error result at `index` of a transaction of `count` operations. A result after the
    /// last operation belongs to the commit.
    pub(crate) fn by_result(result: &Value, index: usize, count: usize) -> Refused {
        match tag_and_details(result) {
            Some((tag, details)) if index < count => Refused::Operation {
                index,
                tag,
                details,
            },
            Some((tag, details)) => Refused::Commit { tag, details },
            None => Refused::other(result),
        }
    }

    /// Reads an error that replaces all results.
    pub(crate) fn by_error(error: &Value) -> Refused {
        match tag_and_details(error) {
            Some((tag, details)) => Refused::Request { tag, details },
            None => Refused::other(error),
        }
    }

    /// Keeps a reply of an unknown form.
    pub(crate) fn other(json: &Value) -> Refused {
        Refused::Other {
            json: json.to_string(),
        }
    }
}

fn tag_and_details(error: &Value) -> Option<(Tag, String)> {
    // Some errors are a bare tag.
    let tag = error.as_str().or_else(|| error.get("error")?.as_str());
    let details = error.get("details").and_then(Value::as_str);
    Some((Tag::parse(tag?)?, details.unwrap_or_default().to_owned()))
}

impl Display for Refused {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(index) = self.operation() {
            write!(f, "operation {index}: ")?;
        }
        match (self.tag(), self.details()) {
            (Some(tag), "") => f.write_str(tag.text()),
            (Some(tag), details) => write!(f, "{}: {details}", tag.text()),
            (None, json) => f.write_str(json),
        }
    }
}

impl std::error::Error for Refused {}
