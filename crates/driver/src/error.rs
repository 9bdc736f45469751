//! Why waiting for something ended without it.

use std::io;

use corvid_idl::{FetchError, Misuse, Status};
use thiserror::Error;

/// Why a call of a driver failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// It was called at the wrong moment or with what does not fit.
    #[error(transparent)]
    Misuse(#[from] Misuse),
    /// A fetch could not be begun.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The operating system refused to poll or to give randomness. Failures of connections are none of these: they are tried again.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The time is over. Everything goes on as before; what was waited for may still come.
    #[error("timed out")]
    TimedOut,
    /// There is no remote, or none that is to be tried again.
    #[error("no server left to try")]
    Dead,
    /// The server refused the transaction, with its error as JSON.
    #[error("transaction error: {0}")]
    Refused(String),
    /// The transaction ended like this, and making it again would not help.
    #[error("{}", .0.name())]
    Ended(Status),
}
