//! What a client session reports for logs, and why it left a server: events as data, worded in one place.
//!
//! Texts about missing tables and columns are those that tests of applications look for; notices of the connection are those of
//! [`corvid_rpc::log_event`].

use std::fmt::{self, Display, Formatter};

use corvid_rpc::log_event::End;
use corvid_rpc::{Level, LogEvent};

/// Why a server was left, or the connection made anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// It does not serve the database.
    NoSuchDatabase,
    /// Its database is a member of a cluster that it has not joined yet, or a relay's that has not reached its source.
    NoSchema,
    /// It has lost the cluster, or the relay its source.
    Disconnected,
    /// It does not lead the cluster, and only the leader will do.
    NotLeader,
    /// It is behind what this client has seen.
    Stale,
    /// It belongs to no cluster, and one was asked for by id.
    NoCluster,
    /// Its schema cannot be read.
    SchemaUnreadable(String),
    /// It refused a request without which nothing goes on.
    Refused {
        /// The method.
        method: &'static str,
        /// The error as JSON.
        error: String,
    },
    /// It sent what cannot be understood.
    Malformed(String),
    /// What it sent does not fit what is held here.
    Inconsistent(String),
}

impl Display for Failure {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Failure::NoSuchDatabase => f.write_str("the server does not have the database"),
            Failure::NoSchema => f.write_str("the server's database has no schema yet"),
            Failure::Disconnected => f.write_str("the server is disconnected from its cluster"),
            Failure::NotLeader => f.write_str("the server is not cluster leader"),
            Failure::Stale => f.write_str("the server has stale data"),
            Failure::NoCluster => f.write_str("the server does not tell its cluster"),
            Failure::SchemaUnreadable(reason) => write!(f, "schema cannot be read: {reason}"),
            Failure::Refused { method, error } => write!(f, "{method} was refused: {error}"),
            Failure::Malformed(reason) => write!(f, "malformed message: {reason}"),
            Failure::Inconsistent(reason) => write!(f, "inconsistent data: {reason}"),
        }
    }
}

/// The last reason why a client has no server, and the remote that it concerns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastError {
    /// The remote, as configured.
    pub remote: String,
    /// What happened.
    pub cause: Cause,
}

/// Why a client has no server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// The connection could not be made, or it ended. [`End::Local`] is a server that did not answer in time.
    Connection(End),
    /// The server answered, and the client left it.
    Server(Failure),
}

/// One event for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// Of the connection.
    Link {
        /// The remote, as configured.
        remote: String,
        /// What happened.
        notice: LogEvent,
    },
    /// The server is left for this.
    Leaving {
        /// The remote, as configured.
        remote: String,
        /// Why.
        failure: Failure,
    },
    /// The server lacks a table that is wanted.
    TableMissing {
        /// Name of the database.
        database: String,
        /// Name of the table.
        table: String,
    },
    /// The server lacks a column that is wanted.
    ColumnMissing {
        /// Name of the database.
        database: String,
        /// Name of the table.
        table: String,
        /// Name of the column.
        column: String,
    },
    /// An update names a column that was not asked for; it is passed over.
    ColumnUnknown {
        /// Name of the table.
        table: String,
        /// Name of the column.
        column: String,
    },
    /// A value in an update does not have the type of its column; the old value stays.
    ValueUnreadable {
        /// Name of the table.
        table: String,
        /// Name of the column.
        column: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl Note {
    /// How important it is.
    #[must_use]
    pub fn level(&self) -> Level {
        match self {
            Note::Link { notice, .. } => notice.level(),
            Note::Leaving { failure, .. } => match failure {
                Failure::Malformed(_) | Failure::Refused { .. } => Level::Warn,
                _ => Level::Info,
            },
            _ => Level::Warn,
        }
    }
}

impl Display for Note {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Note::Link { remote, notice } => write!(f, "{remote}: {notice}"),
            Note::Leaving { remote, failure } => {
                write!(f, "{remote}: {failure}; trying another server")
            }
            Note::TableMissing { database, table } => {
                write!(
                    f,
                    "{database} database lacks {table} table (database needs upgrade?)"
                )
            }
            Note::ColumnMissing {
                database,
                table,
                column,
            } => write!(
                f,
                "{table} table in {database} database lacks {column} column (database needs upgrade?)"
            ),
            Note::ColumnUnknown { table, column } => {
                write!(f, "unknown column {column} in an update of table {table}")
            }
            Note::ValueUnreadable {
                table,
                column,
                reason,
            } => write!(
                f,
                "error parsing column {column} in an update of table {table}: {reason}"
            ),
        }
    }
}
