//! The commands and what each needs before it runs.

pub(crate) mod backup;
pub(crate) mod convert;
pub(crate) mod dump;
pub(crate) mod listing;
pub(crate) mod lock;
pub(crate) mod monitor;
pub(crate) mod ping;
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
    /// The heading that it stands under.
    pub topic: &'static str,
    /// How it is written.
    pub usage: &'static str,
    /// What it does, in one line.
    pub meaning: &'static str,
}

/// Headings of the commands, in order.
pub(crate) const TOPICS: [&str; 6] = [
    LOOKING,
    TRANSACTIONS,
    WATCHING,
    SCHEMAS,
    COPIES,
    COORDINATION,
];

const LOOKING: &str = "Looking at databases";
const TRANSACTIONS: &str = "Transactions";
const WATCHING: &str = "Watching changes";
const SCHEMAS: &str = "Schemas";
const COPIES: &str = "Copies";
const COORDINATION: &str = "Coordination";

impl Command {
    /// Says what it is for.
    const fn means(
        mut self,
        topic: &'static str,
        usage: &'static str,
        meaning: &'static str,
    ) -> Command {
        self.topic = topic;
        self.usage = usage;
        self.meaning = meaning;
        self
    }
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
        topic: "",
        usage: "",
        meaning: "",
    }
}

/// All of them.
pub(crate) const COMMANDS: &[Command] = &[
    with("list-dbs", Need::Connection, 0, 0, listing::list_dbs).means(LOOKING, "list-dbs [SERVER]", "print the names of the databases"),
    with("get-schema", Need::Database, 0, 0, listing::get_schema).means(LOOKING, "get-schema [SERVER] [DATABASE]", "print the schema, as JSON"),
    with(
        "get-schema-version",
        Need::Database,
        0,
        0,
        listing::get_schema_version,
    ).means(LOOKING, "get-schema-version [SERVER] [DATABASE]", "print the version of the schema"),
    with(
        "get-schema-cksum",
        Need::Database,
        0,
        0,
        listing::get_schema_cksum,
    ).means(LOOKING, "get-schema-cksum [SERVER] [DATABASE]", "print the checksum of the schema"),
    with("list-tables", Need::Database, 0, 0, listing::list_tables).means(LOOKING, "list-tables [SERVER] [DATABASE]", "print the names of the tables"),
    with("list-columns", Need::Database, 0, 1, listing::list_columns).means(LOOKING, "list-columns [SERVER] [DATABASE] [TABLE]", "print the columns of TABLE, or of all tables, with their types"),
    with("transact", Need::Connection, 1, 1, transact::transact).means(TRANSACTIONS, "transact [SERVER] TRANSACTION", "run TRANSACTION, the params of a `transact` request, and print its result"),
    with("query", Need::Connection, 1, 1, transact::query).means(TRANSACTIONS, "query [SERVER] TRANSACTION", "the same without keeping any change"),
    with("monitor", Need::Database, 1, usize::MAX, monitor::monitor).means(WATCHING, "monitor [SERVER] [DATABASE] TABLE [COLUMN,...]...", "print the contents of TABLE (of all tables, for ALL), then their changes; among the COLUMNs, !initial, !insert, !delete and !modify switch those rows off"),
    with("monitor-cond", Need::Database, 2, 3, monitor::monitor_cond).means(WATCHING, "monitor-cond [SERVER] [DATABASE] CONDITION TABLE [COLUMN,...]", "the same for the rows that match CONDITION"),
    with(
        "monitor-cond-since",
        Need::Database,
        2,
        4,
        monitor::monitor_cond_since,
    ).means(WATCHING, "monitor-cond-since [SERVER] [DATABASE] [LASTID] CONDITION TABLE [COLUMN,...]", "the same, from what changed after transaction LASTID on"),
    Command {
        name: "wait",
        need: Need::None,
        args_min: 2,
        args_max: 3,
        action: Action::Alone(wait::wait),
        topic: COORDINATION,
        usage: "wait [SERVER] DATABASE STATE",
        meaning: "wait until DATABASE is \"added\", \"connected\" or \"removed\"",
    },
    with("dump", Need::Database, 0, usize::MAX, dump::dump).means(LOOKING, "dump [SERVER] [DATABASE] [TABLE [COLUMN...]]", "print contents: everything, one table, or some of its columns"),
    with("backup", Need::Database, 0, 0, backup::backup).means(COPIES, "backup [SERVER] [DATABASE] > SNAPSHOT", "write contents as a database file"),
    with("restore", Need::Database, 0, 0, restore::restore).means(COPIES, "[--force] restore [SERVER] [DATABASE] < SNAPSHOT", "replace contents by those of a database file"),
    with("convert", Need::Connection, 1, 1, convert::convert).means(SCHEMAS, "convert [SERVER] SCHEMA", "convert the database that the file SCHEMA names to that schema"),
    with(
        "needs-conversion",
        Need::Connection,
        1,
        1,
        convert::needs_conversion,
    ).means(SCHEMAS, "needs-conversion [SERVER] SCHEMA", "print \"yes\" if its schema is another one, else \"no\""),
    Command {
        name: "ping",
        need: Need::None,
        args_min: 0,
        args_max: 2,
        action: Action::Alone(ping::ping),
        topic: LOOKING,
        usage: "ping [SERVER] [DATABASE]",
        meaning: "print how long SERVER takes to answer; fail if it does not answer within 5 seconds or does not serve DATABASE",
    },
    with("lock", Need::Connection, 1, 1, lock::lock).means(COORDINATION, "lock [SERVER] LOCK", "wait for LOCK and hold it"),
    with("steal", Need::Connection, 1, 1, lock::steal).means(COORDINATION, "steal [SERVER] LOCK", "take LOCK from whoever holds it"),
    with("unlock", Need::Connection, 1, 1, lock::unlock).means(COORDINATION, "unlock [SERVER] LOCK", "give LOCK back"),
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
