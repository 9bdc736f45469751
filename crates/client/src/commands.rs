//! The commands and what each needs before it runs.

pub(crate) mod backup;
pub(crate) mod convert;
pub(crate) mod dump;
pub(crate) mod listing;
pub(crate) mod lock;
pub(crate) mod monitor;
pub(crate) mod restore;
pub(crate) mod transact;
pub(crate) mod wait;

use std::fmt;
use std::io::Write;

use crate::failure::Failure;
use crate::session::Session;
use crate::settings::Settings;

/// What is set up before a command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Nothing: it connects by itself.
    None,
    /// A connection.
    Connection,
    /// A connection and a database name.
    Database,
}

/// Everything a command works with.
#[derive(Debug)]
pub(crate) struct Invocation<'a> {
    /// Options.
    pub settings: &'a Settings,
    /// Database name, for [`Need::Database`].
    pub database: String,
    /// What follows server and database.
    pub args: &'a [String],
}

type Run = fn(&mut Session, &Invocation<'_>) -> Result<(), Failure>;

/// How a command runs.
#[derive(Clone, Copy)]
pub(crate) enum Action {
    /// With a connection.
    Connected(Run),
    /// On its own.
    Alone(fn(&Settings, &[String]) -> Result<(), Failure>),
}

/// A command of the command line.
pub(crate) struct Command {
    /// Its name.
    pub name: &'static str,
    /// What it needs.
    pub need: Need,
    /// Fewest arguments after server and database.
    pub args_min: usize,
    /// Most arguments after server and database.
    pub args_max: usize,
    /// What it does.
    pub action: Action,
}

const fn with(
    name: &'static str,
    need: Need,
    args_min: usize,
    args_max: usize,
    run: Run,
) -> Command {
    Command {
        name,
        need,
        args_min,
        args_max,
        action: Action::Connected(run),
    }
}

/// All of them.
pub(crate) const COMMANDS: &[Command] = &[
    with("list-dbs", Need::Connection, 0, 0, listing::list_dbs),
    with("get-schema", Need::Database, 0, 0, listing::get_schema),
    with(
        "get-schema-version",
        Need::Database,
        0,
        0,
        listing::get_schema_version,
    ),
    with(
        "get-schema-cksum",
        Need::Database,
        0,
        0,
        listing::get_schema_cksum,
    ),
    with("list-tables", Need::Database, 0, 0, listing::list_tables),
    with("list-columns", Need::Database, 0, 1, listing::list_columns),
    with("transact", Need::Connection, 1, 1, transact::transact),
    with("query", Need::Connection, 1, 1, transact::query),
    with("monitor", Need::Database, 1, usize::MAX, monitor::monitor),
    with("monitor-cond", Need::Database, 2, 3, monitor::monitor_cond),
    with(
        "monitor-cond-since",
        Need::Database,
        2,
        4,
        monitor::monitor_cond_since,
    ),
    Command {
        name: "wait",
        need: Need::None,
        args_min: 2,
        args_max: 3,
        action: Action::Alone(wait::wait),
    },
    with("dump", Need::Database, 0, usize::MAX, dump::dump),
    with("backup", Need::Database, 0, 0, backup::backup),
    with("restore", Need::Database, 0, 0, restore::restore),
    with("convert", Need::Connection, 1, 1, convert::convert),
    with(
        "needs-conversion",
        Need::Connection,
        1,
        1,
        convert::needs_conversion,
    ),
    with("lock", Need::Connection, 1, 1, lock::lock),
    with("steal", Need::Connection, 1, 1, lock::steal),
    with("unlock", Need::Connection, 1, 1, lock::unlock),
];

/// The command named `name`.
#[must_use]
pub(crate) fn find(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.name == name)
}

/// Prints a line on standard output.
fn print_line(text: impl fmt::Display) -> Result<(), Failure> {
    Ok(writeln!(std::io::stdout(), "{text}")?)
}
