//! Why a command ends early, and what a command that answers by its exit status says.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use corvid_data::{Tag, WireError};
use corvid_log::{Damage, FormatError, ReadError};
use corvid_os::errno;

/// A message for standard error; the command exits with 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure(String);

/// How a command that did not fail ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Exit status 0.
    Yes,
    /// Exit status 2.
    No,
}

impl Failure {
    /// A message of the tool's own.
    pub(crate) fn new(message: impl Into<String>) -> Failure {
        Failure(message.into())
    }

    /// An `I/O error` about `file`: `I/O error: FILE: WHAT (REASON)`.
    pub(crate) fn io(file: &str, what: &str, error: &io::Error) -> Failure {
        io_error(file, what, error).into()
    }

    /// A record whose bytes are damaged.
    pub(crate) fn read(file: &str, error: &ReadError) -> Failure {
        error.to_wire(file).into()
    }

    /// A first line that opens no database.
    pub(crate) fn format(file: &str, error: FormatError) -> Failure {
        error.to_wire(file).into()
    }

    /// Standard output takes no more.
    #[allow(clippy::needless_pass_by_value)] // the shape that `map_err` wants
    pub(crate) fn output(error: io::Error) -> Failure {
        Failure(format!("cannot write output ({})", errno::text(&error)))
    }

    /// A record that ends the replay.
    pub(crate) fn damage(file: &str, damage: &Damage) -> Failure {
        match damage.cause {
            corvid_log::load::Cause::Commit(_) => Failure(damage.report(file)),
            _ => damage.to_wire(file).into(),
        }
    }
}

/// The error object of a failed file operation: `I/O error`, details `FILE: WHAT`.
pub(crate) fn io_error(file: &str, what: &str, error: &io::Error) -> WireError {
    let mut wire = WireError::new(Tag::IoError, format!("{file}: {what}"));
    wire.io_error = Some(errno::text(error).into());
    wire
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

impl From<bool> for Answer {
    fn from(yes: bool) -> Answer {
        if yes { Answer::Yes } else { Answer::No }
    }
}

impl From<Answer> for ExitCode {
    fn from(answer: Answer) -> ExitCode {
        match answer {
            Answer::Yes => ExitCode::SUCCESS,
            Answer::No => ExitCode::from(2),
        }
    }
}
