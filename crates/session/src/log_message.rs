//! Messages of a client's session for the program's log: events as data, worded in one place.
//!
//! Tests of applications search for some texts, which are therefore the reference's: those about
//! missing tables and columns, and about servers that the session leaves. Events of the connection
//! are those of [`corvid_rpc`].

use std::fmt::{self, Display, Formatter};

use corvid_rpc::{Level, LogEvent};

use crate::failure::Failure;

/// A message for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogMessage {
    /// An event of the connection.
    Connection {
        /// The remote, as configured.
        remote: String,
        /// The event.
        event: LogEvent,
    },
    /// A message sent or received, as the log shows it; only after
    /// [`crate::Client::show_messages`].
    Traffic {
        /// The remote, as configured.
        remote: String,
        /// `send …` or `received …`; truncated if it is long.
        message: String,
    },
    /// The session leaves the server.
    Leaving {
        /// The remote, as configured.
        remote: String,
        /// Name of the database.
        database: String,
        /// Whether the server is a relay of the database.
        is_relay: bool,
        /// The reason.
        failure: Failure,
    },
    /// The server lacks a table that the client wants.
    TableMissing {
        /// Name of the database.
        database: String,
        /// Name of the table.
        table: String,
    },
    /// The server lacks a column that the client wants.
    ColumnMissing {
        /// Name of the database.
        database: String,
        /// Name of the table.
        table: String,
        /// Name of the column.
        column: String,
    },
    /// An update names a column that was not requested; the column is ignored.
    ColumnUnknown {
        /// Name of the table.
        table: String,
        /// Name of the column.
        column: String,
    },
    /// A value in an update does not have its column's type; the old value stays.
    ValueUnreadable {
        /// Name of the table.
        table: String,
        /// Name of the column.
        column: String,
        /// The error.
        reason: String,
    },
    /// The server refused a change of conditions; the previous ones stay in force.
    ConditionsRefused {
        /// Name of the database.
        database: String,
        /// The error as JSON.
        error: String,
    },
    /// The session sends transactions again whose connection was lost before their replies.
    SendingAgain {
        /// Name of the database.
        database: String,
        /// How many.
        count: usize,
    },
    /// The server refused the client's lock request.
    LockRefused {
        /// Name of the lock.
        name: String,
        /// The error as JSON.
        error: String,
    },
}

impl LogMessage {
    /// The message's level.
    #[must_use]
    pub fn level(&self) -> Level {
        match self {
            LogMessage::Connection { event, .. } => event.level(),
            LogMessage::Traffic { .. } => Level::Debug,
            LogMessage::SendingAgain { .. } => Level::Info,
            LogMessage::Leaving { failure, .. } => match failure {
                Failure::Malformed(_) | Failure::Inconsistent(_) | Failure::Refused { .. } => {
                    Level::Warn
                }
                _ => Level::Info,
            },
            _ => Level::Warn,
        }
    }
}

impl Display for LogMessage {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            LogMessage::Connection { remote, event } => write!(f, "{remote}: {event}"),
            LogMessage::Traffic { remote, message } => write!(f, "{remote}: {message}"),
            LogMessage::Leaving {
                remote,
                database,
                is_relay,
                failure,
            } => {
                let server = match is_relay {
                    true => "relay database server",
                    false => "clustered database server",
                };
                let state = match (failure, is_relay) {
                    (Failure::NoSuchDatabase, _) => {
                        return write!(f, "{remote}: server does not have {database} database");
                    }
                    (Failure::NoSchema, false) => "has not yet joined cluster",
                    (Failure::NoSchema, true) => "has not yet connected to the relay source",
                    (Failure::Disconnected, false) => "is disconnected from cluster",
                    (Failure::Disconnected, true) => "is disconnected from the relay source",
                    (Failure::NotLeader, false) => "is not cluster leader",
                    (Failure::NotLeader, true) => "cannot be a leader",
                    (Failure::Stale, _) => "has stale data",
                    _ => return write!(f, "{remote}: {failure}; trying another server"),
                };
                write!(f, "{remote}: {server} {state}; trying another server")
            }
            LogMessage::TableMissing { database, table } => {
                write!(
                    f,
                    "{database} database lacks {table} table (database needs upgrade?)"
                )
            }
            LogMessage::ColumnMissing {
                database,
                table,
                column,
            } => write!(
                f,
                "{table} table in {database} database lacks {column} column (database needs upgrade?)"
            ),
            LogMessage::ColumnUnknown { table, column } => {
                write!(f, "unknown column {column} in an update of table {table}")
            }
            LogMessage::ValueUnreadable {
                table,
                column,
                reason,
            } => write!(
                f,
                "error parsing column {column} in an update of table {table}: {reason}"
            ),
            LogMessage::ConditionsRefused { database, error } => write!(
                f,
                "server refused new conditions for {database} database, so the previous ones stay in force: {error}"
            ),
            LogMessage::SendingAgain { database, count } => {
                let noun = if *count == 1 {
                    "transaction"
                } else {
                    "transactions"
                };
                write!(
                    f,
                    "{database} database: the connection was lost before the reply; sending {count} {noun} again, to be executed once"
                )
            }
            LogMessage::LockRefused { name, error } => {
                write!(f, "server refused lock {name}: {error}")
            }
        }
    }
}
