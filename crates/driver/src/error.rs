//! Why waiting for something ended without it.

use std::io;

use corvid_idl::{FetchError, Misuse, Refused, Status};
use thiserror::Error;

use crate::failure::Failure;
use crate::remotes::RemoteError;

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
    /// The remotes cannot be connected to, whatever servers do.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// The time is over, and this failed last, if anything did. Everything goes on as before; what was waited for may still come.
    #[error("timed out{}", because(.0.as_ref()))]
    TimedOut(Option<Failure>),
    /// There is no remote, or none that is to be tried again, and this failed last.
    #[error("no server left to try{}", because(.0.as_ref()))]
    Dead(Option<Failure>),
    /// The server refused the transaction.
    #[error("transaction refused: {0}")]
    Refused(Refused),
    /// The transaction ended like this, and making it again would not help.
    #[error("{}", .0.name())]
    Ended(Status),
}

fn because(failure: Option<&Failure>) -> String {
    failure.map_or_else(String::new, |failure| format!(": {failure}"))
}
