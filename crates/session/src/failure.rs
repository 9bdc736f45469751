//! Why a client has no server, or left one: the reasons as data, worded in one place.

use std::fmt::{self, Display, Formatter};

use corvid_rpc::log_event::End;

/// Why a server was left, or the connection made anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// It does not serve the database.
    NoSuchDatabase,
    /// Its database is a member of a cluster that it has not joined yet, or a relay's that has not reached its source.
    NoSchema,
    /// It has lost the cluster, or the relay its source.
    Disconnected,
    /// It does not lead the cluster, and the client requires the leader.
    NotLeader,
    /// It is behind what this client has seen.
    Stale,
    /// It belongs to no cluster, and one was asked for by id.
    NoCluster,
    /// Its schema cannot be read.
    SchemaUnreadable(String),
    /// It refused a request that the session needs.
    Refused {
        /// The method.
        method: &'static str,
        /// The error as JSON.
        error: String,
    },
    /// It sent a malformed message.
    Malformed(String),
    /// An update does not fit the contents that it should change.
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
    /// The cause.
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
