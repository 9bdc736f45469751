//! Errors of the drivers' calls.

use std::io;

use corvid_idl::{FetchError, Idl, Misuse, Refused, Status};
use thiserror::Error;

use crate::failure::Failure;
use crate::remotes::RemoteError;

/// Why a call of a driver failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The call is not allowed now, or its arguments are wrong.
    #[error(transparent)]
    Misuse(#[from] Misuse),
    /// A fetch could not start.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The operating system failed to poll or to give random bytes. Failures of connections are not reported here: the client tries again.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The list of remotes is wrong, so no attempt can succeed.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// The time limit has passed; the last failure, if there was one. The client continues, so the awaited event may still occur.
    #[error("timed out{}", because(.0.as_ref()))]
    TimedOut(Option<Failure>),
    /// No remote is left to try; the last failure.
    #[error("no server left to try{}", because(.0.as_ref()))]
    Dead(Option<Failure>),
    /// The server refused the condition, with this error as JSON. The conditions before it are in
    /// force.
    #[error("condition refused: {0}")]
    ConditionRefused(String),
    /// The server refused the request for a lock, with this error as JSON. The next connection asks
    /// again.
    #[error("lock refused: {0}")]
    LockRefused(String),
    /// The server refused the transaction.
    #[error("transaction refused: {0}")]
    Refused(Refused),
    /// The transaction ended with this status, and a retry would not help.
    #[error("{}", .0.name())]
    Ended(Status),
}

/// How the change of conditions ended that has this number, once [`Idl::condition_seqno`] has
/// reached it.
pub(crate) fn condition_outcome(idl: &Idl, promise: u64) -> Result<(), Error> {
    let refusal = idl.condition_refusal(promise);
    refusal.map_or(Ok(()), |error| {
        Err(Error::ConditionRefused(error.to_owned()))
    })
}

/// How the request for a lock ended, if it has ended.
pub(crate) fn lock_outcome(idl: &Idl) -> Option<Result<(), Error>> {
    let session = idl.session_state();
    if session.has_lock() {
        return Some(Ok(()));
    }
    let refusal = session.lock_refusal()?;
    Some(Err(Error::LockRefused(refusal.to_owned())))
}

fn because(failure: Option<&Failure>) -> String {
    failure.map_or_else(String::new, |failure| format!(": {failure}"))
}
