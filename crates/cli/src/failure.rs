//! Why a command fails: its message, the name that the user may have meant, and the exit status.

use std::fmt;

use corvid_json::shown;
use corvid_shell::{output, program};
use corvid_tools::suggestion;

/// The kind of a failure, which determines the exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing matched where that was asked; also everything that is none of the others.
    NoMatch,
    /// The command line is wrong.
    Usage,
    /// The server refused the transaction.
    Refused,
    /// There is no connection, or it broke.
    Connection,
    /// The contents changed while they were read. The caller runs the commands again.
    Conflict,
}

/// A failed command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The kind.
    pub kind: Kind,
    /// A transaction was sent whose result is unknown.
    pub is_in_doubt: bool,
    message: String,
    meant: Option<String>,
}

impl Failure {
    /// A failure of this kind, with a message, which is kept on one line.
    pub(crate) fn new(kind: Kind, message: impl AsRef<str>) -> Failure {
        Failure {
            kind,
            message: shown::line(message.as_ref()).into_owned(),
            is_in_doubt: false,
            meant: None,
        }
    }

    /// A fault of the command line.
    pub(crate) fn usage(message: impl AsRef<str>) -> Failure {
        Failure::new(Kind::Usage, message)
    }

    /// A record that does not exist.
    pub(crate) fn no_match(message: impl AsRef<str>) -> Failure {
        Failure::new(Kind::NoMatch, message)
    }

    /// A connection that failed.
    pub(crate) fn connection(message: impl AsRef<str>) -> Failure {
        Failure::new(Kind::Connection, message)
    }

    /// No record, where the exit status alone tells so.
    pub(crate) fn silent() -> Failure {
        Failure::no_match("")
    }

    /// Adds a suggestion: the known name nearest to `name`, if one is near enough.
    #[must_use]
    pub(crate) fn suggesting<'a>(
        self,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Failure {
        let meant = suggestion::nearest(name, known).map(str::to_owned);
        Failure { meant, ..self }
    }

    /// Adds a suggestion of other words.
    #[must_use]
    pub(crate) fn meaning(self, meant: String) -> Failure {
        let meant = Some(meant);
        Failure { meant, ..self }
    }

    /// Adds a remark to the message.
    #[must_use]
    pub(crate) fn and(self, remark: &str) -> Failure {
        let message = format!("{}; {remark}", self.message);
        Failure { message, ..self }
    }

    /// The failure of a transaction that may be committed.
    #[must_use]
    pub(crate) fn in_doubt(self) -> Failure {
        Failure {
            is_in_doubt: true,
            ..self.and("the transaction may be committed: look before you repeat it")
        }
    }

    /// The exit status: 1 nothing matched, 2 usage, 3 refused, 4 no connection.
    #[must_use]
    pub(crate) fn status(&self) -> i32 {
        match self.kind {
            Kind::NoMatch | Kind::Conflict => 1,
            Kind::Usage => 2,
            Kind::Refused => 3,
            Kind::Connection => 4,
        }
    }

    /// Prints the message and the suggestion, and ends the process.
    pub(crate) fn end(&self) -> ! {
        if !self.message.is_empty() {
            self.print(&format!("{}: ", program::prefix()));
        }
        program::exit(self.status())
    }

    /// Prints the message and the suggestion on standard error. Each line begins with `prefix`.
    pub(crate) fn print(&self, prefix: &str) {
        output::error_line(format_args!("{prefix}{self}"));
        if let Some(meant) = &self.meant {
            let question = suggestion::question(meant);
            output::error_line(format_args!("{prefix}{question}"));
        }
    }

    /// Whether a suggestion is known.
    #[must_use]
    pub(crate) fn has_suggestion(&self) -> bool {
        self.meant.is_some()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Output that cannot be written.
impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure::no_match(corvid_net::errno::text(&error))
    }
}
