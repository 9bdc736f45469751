//! Why a program ends early: printed as `PROGRAM: MESSAGE` on standard error, with exit status 1. A
//! hint follows on a separate line.
//!
//! Messages about requests are in `request_failure.rs`, those of `ovsdb-tool` in `tool/failure.rs`.

use std::borrow::Cow;
use std::fmt;
use std::path::Path;

use corvid_data::WireError;
use corvid_json::{Value, shown};
use corvid_shell::{output, program};

use crate::suggestion;

/// A fatal error: its message, and a hint at what the user may have meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    message: String,
    /// The message with indented JSON, if it ends in JSON.
    indented: Option<String>,
    hint: Option<String>,
    status: i32,
}

/// The exit status of a program that fails.
const FAILED: i32 = 1;

/// The exit status after a rejected transaction, with `--fail`.
const REFUSED: i32 = 2;

impl Failure {
    /// A failure with this message, which is kept on one line: servers and files determine parts of
    /// it.
    pub fn new(message: impl Into<String>) -> Failure {
        let message = message.into();
        Failure::of_lines(match shown::line(&message) {
            Cow::Borrowed(_) => message,
            Cow::Owned(escaped) => escaped,
        })
    }

    /// A failure with a message of several lines. The caller escapes newlines in foreign texts.
    pub fn of_lines(message: impl Into<String>) -> Failure {
        Failure {
            message: message.into(),
            indented: None,
            hint: None,
            status: FAILED,
        }
    }

    /// A failure with this message and a JSON value after it.
    pub fn of_json(message: &str, value: &Value) -> Failure {
        let mut bytes = Vec::new();
        value.write_pretty(&mut bytes);
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<Cow<'_, str>> = text.split('\n').map(shown::line).collect();
        let indented = format!("{}: {}", shown::line(message), lines.join("\n"));
        Failure {
            indented: Some(indented),
            ..Failure::new(format!("{message}: {value}"))
        }
    }

    /// With `--pretty`, JSON in the message is indented.
    #[must_use]
    pub fn indented_if(mut self, is_pretty: bool) -> Failure {
        if is_pretty && let Some(indented) = self.indented.take() {
            self.message = indented;
        }
        self
    }

    /// The first error among the results of a transaction, if any: the transaction was rejected.
    /// The exit status is 2.
    pub fn refused(results: &Value) -> Option<Failure> {
        let mut results = results.as_array().unwrap_or_default().iter();
        let (tag, result) = results.find_map(|it| Some((it.get("error")?.as_str()?, it)))?;
        let mut message = format!("the transaction was refused: {tag}");
        if let Some(details) = result.get("details").and_then(Value::as_str) {
            message.push_str(&format!(": {details}"));
        }
        Some(Failure {
            status: REFUSED,
            ..Failure::new(message)
        })
    }

    /// Adds a suggestion: the known name nearest to `name`, if one is near enough.
    pub fn suggesting<'a>(self, name: &str, known: impl IntoIterator<Item = &'a str>) -> Failure {
        let hint = suggestion::nearest(name, known).map(suggestion::question);
        Failure { hint, ..self }
    }

    /// Adds a line for the user. The message itself may be compared by scripts.
    pub fn hinting(self, hint: &str) -> Failure {
        let hint = Some(shown::line(hint).into_owned());
        Failure { hint, ..self }
    }

    /// Prints the message and the hint, and ends the process.
    pub fn end(&self) -> ! {
        let program = program::prefix();
        output::error_line(format_args!("{program}: {self}"));
        if let Some(hint) = &self.hint {
            output::error_line(format_args!("{program}: {hint}"));
        }
        program::exit(self.status)
    }
}

/// A path as messages show it.
pub fn shown(path: &Path) -> String {
    corvid_net::os_name::text(path.as_os_str())
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<WireError> for Failure {
    fn from(error: WireError) -> Failure {
        Failure::new(error.to_string())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure::new(corvid_net::errno::text(&error))
    }
}
