//! Why a client has no server: a typed reason, and the remote that it concerns.
//!
//! The session records the last failure, and the transport records the kind of the system or TLS
//! error. This file joins the two. It makes no decisions: the client keeps trying after every
//! failure.

use std::fmt::{self, Display, Formatter};
use std::io;

use corvid_rpc::log_event::End;
use corvid_session::{Cause, Client, Failure as ServerFailure, Missing};

/// The last failure that kept a client from its server.
///
/// ```no_run
/// use corvid_driver::{Error, Reason, ServerFailure};
/// # fn wait(client: &mut corvid_driver::blocking::Client) -> Result<(), Error> {
/// let limit = Some(std::time::Duration::from_secs(10));
/// match client.wait_for_contents(limit) {
///     Err(Error::TimedOut(Some(failure))) => match failure.reason {
///         Reason::Connection { kind: std::io::ErrorKind::ConnectionRefused, .. } => println!("is the server running?"),
///         Reason::Server(ServerFailure::NoSuchDatabase) => println!("it serves other databases"),
///         reason => println!("{}: {reason}", failure.remote),
///     },
///     other => other?,
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The remote, as configured.
    pub remote: String,
    /// Why the client has no server, or lacks part of the contents.
    pub reason: Reason,
}

impl Display for Failure {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.remote, self.reason)
    }
}

/// Why a client has no server, or lacks part of the contents. Part of a [`Failure`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The operating system could not establish the connection, or the connection broke: refused,
    /// no such socket, unreachable.
    Connection {
        /// The kind of the system error.
        kind: io::ErrorKind,
        /// The system's text for the error.
        text: String,
    },
    /// The host name has no address, or its address is not known yet.
    HostUnknown,
    /// TLS failed: one side rejected the other's certificate, the peer does not speak TLS, or the
    /// local key or certificates are unusable.
    Tls(String),
    /// The server did not answer in time.
    NoAnswer,
    /// The server closed the connection.
    Closed,
    /// The server answered but is unsuitable: it lacks the database, is not the cluster's leader,
    /// or is disconnected from its cluster.
    Server(ServerFailure),
    /// The contents have arrived, but the server's schema lacks these tables or columns of the
    /// class. Their rows will never arrive.
    SchemaLacks(Vec<Missing>),
}

impl Display for Reason {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Connection { text, .. } => f.write_str(text),
            Reason::HostUnknown => f.write_str("the host name has no address"),
            Reason::Tls(text) => write!(f, "TLS: {text}"),
            Reason::NoAnswer => f.write_str("the server did not answer in time"),
            Reason::Closed => f.write_str("the server closed the connection"),
            Reason::Server(failure) => failure.fmt(f),
            Reason::SchemaLacks(missing) => {
                let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
                write!(f, "the database lacks {}", missing.join(", "))
            }
        }
    }
}

/// The failure that keeps a session from some or all of its contents. `transport` is the reason why
/// the last connection ended.
pub(crate) fn of_session(session: &Client, transport: Option<&Reason>) -> Option<Failure> {
    if session.is_monitoring() {
        let missing = session.plan().map_or(&[][..], |plan| plan.missing());
        return (!missing.is_empty()).then(|| Failure {
            remote: session.remote().to_owned(),
            reason: Reason::SchemaLacks(missing.to_vec()),
        });
    }
    let error = session.last_error()?;
    let reason = match &error.cause {
        Cause::Server(failure) => Reason::Server(failure.clone()),
        Cause::Connection(End::Local) => Reason::NoAnswer,
        Cause::Connection(End::Closed) => Reason::Closed,
        Cause::Connection(End::Failed(text)) => {
            transport.cloned().unwrap_or_else(|| Reason::Connection {
                kind: io::ErrorKind::Other,
                text: text.clone(),
            })
        }
    };
    Some(Failure {
        remote: error.remote.clone(),
        reason,
    })
}
