//! The errors of a measurement. An error ends the workload, because the figures of a failed run
//! have no meaning.

use std::io;
use std::panic;
use std::path::PathBuf;
use std::thread::ScopedJoinHandle;

/// The reason why a measurement failed.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The program could not be run.
    #[error("{}: could not start: {source}", program.display())]
    Start { program: PathBuf, source: io::Error },
    /// The program ended, or did not listen in time. `log` is its standard error.
    #[error("{}: does not listen: {log}", program.display())]
    Deaf { program: PathBuf, log: String },
    /// The server closed a connection.
    #[error("the server closed a connection")]
    Closed,
    /// A reply reports an error.
    #[error("the server refused a request: {0}")]
    Refused(String),
    /// The server sent bytes that are not JSON.
    #[error("the server sent bad JSON: {0}")]
    Syntax(#[from] corvid_json::Error),
    /// The bytes of the server cannot be divided into messages.
    #[error("the server sent bad JSON: {0}")]
    Framing(#[from] corvid_json::StreamError),
    /// No message arrived within the time limit.
    #[error("the server was silent for {0} seconds")]
    Silent(u64),
    /// The workload needs a server that the benchmark starts itself: to give it a file, to control
    /// it, or to find the tools that belong to it.
    #[error("this workload starts servers of its own; name the server's program, not an address")]
    NeedsProgram,
    /// A database file or schema cannot be read.
    #[error("{}: {reason}", path.display())]
    File { path: PathBuf, reason: String },
    /// A measured client ended or failed.
    #[error("a client: {0}")]
    Client(String),
    /// Our client library returned an error.
    #[error("our client: {0}")]
    Misuse(#[from] corvid_idl::Misuse),
    /// Some workloads failed; the report has the reasons.
    #[error("without figures: {0}")]
    Failed(String),
    /// A plot could not be drawn or written.
    #[error("plot: {0}")]
    Plot(String),
    /// The library that slows the disk down could not be compiled.
    #[error("a slow disk needs a C compiler: cc: {0}")]
    Compiler(String),
    /// An error of a socket, a file or `/proc`.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Waits for a thread and returns its result. A panic of the thread is a bug, and is passed on.
pub(crate) fn joined<T>(thread: ScopedJoinHandle<'_, Result<T, Error>>) -> Result<T, Error> {
    thread
        .join()
        .unwrap_or_else(|payload| panic::resume_unwind(payload))
}
