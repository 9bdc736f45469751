//! Why a client has no server, or has left one: reasons as data, worded in one place.

use std::fmt::{self, Display, Formatter};

use corvid_rpc::log_event::End;

/// Why the session left a server, or reconnected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The server does not serve the database.
    NoSuchDatabase,
    /// The server has not joined the database's cluster yet; or it is a relay that has not reached
    /// its source yet.
    NoSchema,
    /// The server has lost its cluster, or as a relay its source.
    Disconnected,
    /// The server does not lead the cluster, and the client requires the leader.
    NotLeader,
    /// The server's contents are older than this client has seen.
    Stale,
    /// The server belongs to no cluster, and the client requires one by id.
    NoCluster,
    /// The server's schema cannot be read.
    SchemaUnreadable(String),
    /// The server refused a request that the session needs.
    Refused {
        /// The method.
        method: &'static str,
        /// The error as JSON.
        error: String,
    },
    /// The server sent a malformed message.
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

/// The last reason why a client has no server, and the remote concerned.
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
    /// The connection could not be established, or has ended. [`End::Local`]: the server did not
    /// answer in time.
    Connection(End),
    /// The server answered, and the client left it.
    Server(Failure),
}
