//! The table of commands, and the input that each command gets.

pub(crate) mod backup;
pub(crate) mod convert;
pub(crate) mod dump;
pub(crate) mod history;
pub(crate) mod listing;
pub(crate) mod lock;
pub(crate) mod monitor;
pub(crate) mod ping;
pub(crate) mod restore;
pub(crate) mod revert;
pub(crate) mod transact;
pub(crate) mod wait;

use std::fmt;
use std::io::Write;

use corvid_data::{Schema, TableSchema};
use corvid_json::Value;
use corvid_shell::output::Output;

use crate::client::selection::Servers;
use crate::client::settings::Settings;
use crate::command;
use crate::failure::Failure;
use crate::session::Session;

/// The input of a command.
#[derive(Debug)]
pub(crate) struct Invocation<'a> {
    /// The options.
    pub settings: &'a Settings,
    /// The database's name, for [`Action::Database`].
    pub database: String,
    /// The words after server and database.
    pub args: &'a [String],
    /// The servers, to connect again.
    pub servers: &'a Servers<'a>,
}

/// A function that runs a command over a connection.
pub(crate) type Run = fn(&mut Session, &Invocation<'_>) -> Result<(), Failure>;

/// A function that reads the argument of a command. It returns the rest of the command.
pub(crate) type Prepare = fn(&str) -> Result<Prepared, Failure>;

/// A command that needs only a connection to run.
pub(crate) type Prepared = Box<dyn FnOnce(&mut Session, &Invocation<'_>) -> Result<(), Failure>>;

/// How a command runs.
#[derive(Clone, Copy)]
pub(crate) enum Action {
    /// With a connection. The command's arguments follow the server.
    Connection(Run),
    /// With a connection, and one argument after the server that is read before the connection is
    /// made: scripts get its errors without a server.
    Argument(Prepare),
    /// With a connection and the name of a database. The command's arguments follow both.
    Database(Run),
    /// Without a connection: the command opens its own. All words are its arguments.
    Alone(fn(&Settings, &[String]) -> Result<(), Failure>),
}

/// A command of `ovsdb-client`.
pub(crate) type Command = command::Command<Action>;

/// Headings of the commands, in order.
pub(crate) const TOPICS: [&str; 7] = [
    LOOKING,
    HISTORY,
    TRANSACTIONS,
    WATCHING,
    SCHEMAS,
    COPIES,
    COORDINATION,
];

const LOOKING: &str = "Looking at databases";
pub(crate) const HISTORY: &str = "History";
const TRANSACTIONS: &str = "Transactions";
const WATCHING: &str = "Watching changes";
const SCHEMAS: &str = "Schemas";
const COPIES: &str = "Copies";
const COORDINATION: &str = "Coordination";

/// All commands.
pub(crate) const COMMANDS: &[Command] = &[
    Command::new("list-dbs", 0, 0, Action::Connection(listing::list_dbs)).means(LOOKING, "list-dbs [SERVER]", "print the names of the databases"),
    Command::new("get-schema", 0, 0, Action::Database(listing::get_schema)).means(LOOKING, "get-schema [SERVER] [DATABASE]", "print the schema, as JSON"),
    Command::new("get-schema-version", 0, 0, Action::Database(listing::get_schema_version)).means(LOOKING, "get-schema-version [SERVER] [DATABASE]", "print the version of the schema"),
    Command::new("get-schema-cksum", 0, 0, Action::Database(listing::get_schema_cksum)).means(LOOKING, "get-schema-cksum [SERVER] [DATABASE]", "print the checksum of the schema"),
    Command::new("list-tables", 0, 0, Action::Database(listing::list_tables)).means(LOOKING, "list-tables [SERVER] [DATABASE]", "print the names of the tables"),
    Command::new("list-columns", 0, 1, Action::Database(listing::list_columns)).means(LOOKING, "list-columns [SERVER] [DATABASE] [TABLE]", "print the columns of TABLE, or of all tables, with their types"),
    Command::new("transact", 1, 1, Action::Argument(transact::transact)).means(TRANSACTIONS, "transact [SERVER] TRANSACTION", "execute TRANSACTION, the params of a `transact` request, and print its result"),
    Command::new("query", 1, 1, Action::Argument(transact::query)).means(TRANSACTIONS, "[--at=MOMENT] query [SERVER] TRANSACTION", "execute TRANSACTION and abort it: print its result, change nothing"),
    Command::new("monitor", 1, usize::MAX, Action::Database(monitor::monitor)).means(WATCHING, "monitor [SERVER] [DATABASE] TABLE [COLUMN,...]...", "print the contents of TABLE (ALL: of all tables), then each change; !initial, !insert, !delete and !modify among the COLUMNs suppress those rows"),
    Command::new("monitor-cond", 2, 3, Action::Database(monitor::monitor_cond)).means(WATCHING, "monitor-cond [SERVER] [DATABASE] CONDITION TABLE [COLUMN,...]", "as `monitor`, for the rows that match CONDITION"),
    Command::new("monitor-cond-since", 2, 4, Action::Database(monitor::monitor_cond_since)).means(WATCHING, "monitor-cond-since [SERVER] [DATABASE] [LASTID] CONDITION TABLE [COLUMN,...]", "as `monitor-cond`, with only the changes after transaction LASTID at first"),
    Command::new("wait", 2, 3, Action::Alone(wait::wait)).means(COORDINATION, "wait [SERVER] DATABASE STATE", "wait until DATABASE is \"added\", \"connected\" or \"removed\""),
    Command::new("dump", 0, usize::MAX, Action::Database(dump::dump)).means(LOOKING, "[--at=MOMENT] dump [SERVER] [DATABASE] [TABLE [COLUMN...]]", "print the contents of all tables, of TABLE, or of some of its columns"),
    Command::new("backup", 0, 0, Action::Database(backup::backup)).means(COPIES, "[--at=MOMENT] backup [SERVER] [DATABASE] > SNAPSHOT", "write the contents as a database file"),
    Command::new("history", 0, 0, Action::Database(history::history)).means(HISTORY, "[--json] history [SERVER] [DATABASE]", "list the files of the database's history"),
    Command::new("log", 0, 0, Action::Database(history::log)).means(HISTORY, "[--since=MOMENT] [--until=MOMENT] [--table=TABLE] [--row=UUID] [--column=COLUMN] [--client=TEXT] [-nN] [--json] log [SERVER] [DATABASE]", "print the commits of the database's history with their changes, oldest first"),
    Command::new("diff", 2, 2, Action::Database(history::diff)).means(HISTORY, "[--table=TABLE] [--row=UUID] [--column=COLUMN] [--json] diff [SERVER] [DATABASE] FROM TO", "print how rows at moment TO differ from those at FROM"),
    Command::new("revert", 1, 1, Action::Database(revert::revert)).means(HISTORY, "[--table=TABLE] [--row=UUID] [--dry-run] [--json] revert [SERVER] [DATABASE] COMMIT|TIME", "undo one commit, or everything since TIME, in one transaction, unless what it changed has been changed since"),
    Command::new("restore", 0, 0, Action::Database(restore::restore)).means(COPIES, "[--force] [--keep-uuids] restore [SERVER] [DATABASE] < SNAPSHOT", "replace the contents with those of a database file"),
    Command::new("convert", 1, 1, Action::Argument(convert::convert)).means(SCHEMAS, "convert [SERVER] SCHEMA", "convert the database of that name to the schema in the file SCHEMA"),
    Command::new("needs-conversion", 1, 1, Action::Argument(convert::needs_conversion)).means(SCHEMAS, "needs-conversion [SERVER] SCHEMA", "print \"yes\" if the database's schema differs from SCHEMA, else \"no\""),
    Command::new("ping", 0, 2, Action::Alone(ping::ping)).means(LOOKING, "ping [SERVER] [DATABASE]", "print how long SERVER takes to answer; fail if it does not answer within 5 seconds or does not serve DATABASE"),
    Command::new("lock", 1, 1, Action::Connection(lock::lock)).means(COORDINATION, "lock [SERVER] LOCK", "wait for LOCK and keep it"),
    Command::new("steal", 1, 1, Action::Connection(lock::steal)).means(COORDINATION, "steal [SERVER] LOCK", "take LOCK from its owner"),
    Command::new("unlock", 1, 1, Action::Connection(lock::unlock)).means(COORDINATION, "unlock [SERVER] LOCK", "release LOCK"),
];

/// The names of a schema's tables, for suggestions.
fn table_names(schema: &Schema) -> impl Iterator<Item = &str> {
    schema.tables().iter().map(|table| table.name.as_str())
}

/// The names of a table's columns, for suggestions.
fn column_names(table: &TableSchema) -> impl Iterator<Item = &str> {
    table.columns().iter().map(|column| column.name.as_str())
}

/// Prints JSON on standard output: one line, or indented with `--pretty`.
fn print_json(value: &Value, settings: &Settings) -> Result<(), Failure> {
    let mut bytes = Vec::new();
    if settings.style.pretty {
        value.write_pretty(&mut bytes);
    } else {
        value.write(&mut bytes);
    }
    bytes.push(b'\n');
    Ok(Output.write_all(&bytes)?)
}

/// Prints a line on standard output.
fn print_line(text: impl fmt::Display) -> Result<(), Failure> {
    Ok(writeln!(Output, "{text}")?)
}
