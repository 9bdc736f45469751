//! Errors that the drivers' calls return.

use std::io;

use corvid_idl::{FetchError, Idl, Misuse, Refused, Status};
use corvid_net::errno;
use corvid_session::history::WrongQuestion;
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
    /// The operating system failed to poll or to provide random bytes. Connection failures are not
    /// reported here: the client retries them.
    #[error("{}", errno::text(.0))]
    Io(#[from] io::Error),
    /// The list of remotes is wrong, so no attempt to connect can succeed.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// The time limit has passed. Carries the last failure, if any. The client continues, so the
    /// awaited event may still occur.
    #[error("timed out{}", because(.0.as_ref()))]
    TimedOut(Option<Failure>),
    /// Every remote has been tried, and the client is not persistent. Carries the last failure, if
    /// any.
    #[error("no server left to try{}", because(.0.as_ref()))]
    Dead(Option<Failure>),
    /// The server refused the condition. Carries its error as JSON. The previous condition stays in
    /// force.
    #[error("condition refused: {0}")]
    ConditionRefused(String),
    /// The server refused the lock request. Carries its error as JSON. The client asks again on the
    /// next connection.
    #[error("lock refused: {0}")]
    LockRefused(String),
    /// The server refused the transaction.
    #[error("transaction refused: {0}")]
    Refused(Refused),
    /// The server cannot read the history of its databases: it is an older release or another
    /// program.
    #[error("the server does not read history")]
    HistoryUnsupported,
    /// The server refused to read history. Carries its error as JSON.
    #[error("history refused: {0}")]
    HistoryRefused(String),
    /// Every server would refuse the question about history. Nothing was sent.
    #[error(transparent)]
    HistoryQuestion(#[from] WrongQuestion),
    /// The operations of a query are not a JSON array. Nothing was sent.
    #[error("the operations are not a JSON array")]
    NotOperations,
    /// The connection ended while history was read. Read again from the beginning.
    #[error("the connection was lost while history was read")]
    HistoryLost,
    /// The transaction ended with this status, and retrying would not help.
    #[error("{}", .0.name())]
    Ended(Status),
}

/// The outcome of the condition change numbered `promise`. The caller has checked that
/// [`Idl::condition_seqno`] has reached that number.
pub(crate) fn condition_outcome(idl: &Idl, promise: u64) -> Result<(), Error> {
    let refusal = idl.condition_refusal(promise);
    refusal.map_or(Ok(()), |error| {
        Err(Error::ConditionRefused(error.to_owned()))
    })
}

/// The outcome of the lock request, or `None` while it is pending.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_system_are_told_in_words() {
        let error = Error::from(errno::from_code(24));
        assert_eq!(error.to_string(), "Too many open files");
    }
}
