//! The client side of the control channel: finds a daemon's socket, and runs one command at a time.

use std::io;
use std::path::{Path, PathBuf};

use corvid_json::Value;

use super::message::{self, log_message};
use crate::blocking::Connection;
use crate::pidfile;
use crate::vlog::{self, Module};
use corvid_net::target::Active;
use corvid_net::{dirs, errno, os_name};
use corvid_rpc::wire_log::Direction;

/// The socket of a target: an absolute path unchanged, otherwise the socket of the daemon whose
/// pidfile is `RUNDIR/TARGET.pid`.
///
/// # Errors
/// The pidfile cannot be read, or no live process holds its lock.
pub fn socket_of(target: &str) -> Result<PathBuf, TargetError> {
    if target.starts_with('/') {
        return Ok(os_name::path(target));
    }
    let path = dirs::run().join(os_name::path(&format!("{target}.pid")));
    match pidfile::read(&path) {
        Ok(pid) => Ok(dirs::run().join(os_name::path(&format!("{target}.{pid}.ctl")))),
        Err(error) => Err(TargetError { path, error }),
    }
}

/// The pidfile cannot be read; rendered as `cannot read pidfile "F" (ERR)`.
#[derive(Debug, thiserror::Error)]
#[error("cannot read pidfile \"{}\" ({})", path.display(), errno::text(error))]
pub struct TargetError {
    path: PathBuf,
    error: io::Error,
}

/// Why a command has no reply.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The socket accepts no connection.
    #[error("cannot connect to \"{}\" ({})", .0.display(), errno::text(.1))]
    Connect(PathBuf, io::Error),
    /// The connection broke; to be shown as `TARGET: transaction error (ERR)`.
    #[error("transaction error ({})", errno::text(.0))]
    Transaction(io::Error),
}

/// A connection to a daemon's control socket. Blocking.
#[derive(Debug)]
pub struct Client {
    connection: Connection,
    path: PathBuf,
    next_id: i64,
}

impl Client {
    /// Connects to a socket.
    ///
    /// # Errors
    /// The socket accepts no connection: [`ClientError::Connect`]; also logged.
    pub fn connect(path: &Path) -> Result<Client, ClientError> {
        match Connection::connect(&Active::Unix(path.to_owned()), None) {
            Ok(connection) => Ok(Client {
                connection,
                path: path.to_owned(),
                next_id: 0,
            }),
            Err(error) => {
                vlog::warn(
                    Module::Unixctl,
                    format_args!("failed to connect to {}", path.display()),
                );
                Err(ClientError::Connect(path.to_owned(), error))
            }
        }
    }

    /// Runs one command. Returns the server's result, or the error that the server returned.
    ///
    /// # Errors
    /// The connection broke: [`ClientError::Transaction`]; also logged.
    pub fn transact(
        &mut self,
        command: &str,
        args: &[String],
    ) -> Result<Result<Value, Value>, ClientError> {
        let id = self.next_id;
        self.next_id += 1;
        self.exchange(id, &message::encode_request(id, command, args))
            .map_err(|error| {
                let (path, text) = (self.path.display(), errno::text(&error));
                vlog::warn(
                    Module::Unixctl,
                    format_args!("error communicating with unix:{path}: {text}"),
                );
                ClientError::Transaction(error)
            })
    }

    fn exchange(&mut self, id: i64, request: &[u8]) -> io::Result<Result<Value, Value>> {
        let name = format!("unix:{}", self.path.display());
        log_message(&name, Direction::Sent, request);
        self.connection.send(request, None)?;
        let frame = self
            .connection
            .receive(None)?
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        log_message(&name, Direction::Received, &frame);
        message::reply(&frame, id).map_err(|_| errno::from_code(libc::EPROTO))
    }
}
