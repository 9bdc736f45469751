//! What can go wrong while a server is measured. A failure ends the workload: figures of a run that failed are
//! worthless.

use std::io;
use std::panic;
use std::path::PathBuf;
use std::thread::ScopedJoinHandle;

/// Why a measurement was given up.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The program could not be run.
    #[error("{}: could not start: {source}", program.display())]
    Start { program: PathBuf, source: io::Error },
    /// It ended or did not listen in time; `log` is what it wrote to its standard error.
    #[error("{}: does not listen: {log}", program.display())]
    Deaf { program: PathBuf, log: String },
    /// The server closed a connection.
    #[error("the server closed a connection")]
    Closed,
    /// A reply that reports an error.
    #[error("the server refused a request: {0}")]
    Refused(String),
    /// Bytes that are not JSON texts.
    #[error("the server sent bad JSON: {0}")]
    Framing(#[from] corvid_json::Error),
    /// Nothing arrived for longer than any request should take.
    #[error("the server was silent for {0} seconds")]
    Silent(u64),
    /// What only a program that we start can be asked for: to open a file of ours, to be controlled, to have tools beside it.
    #[error("this workload starts servers of its own; name the server's program, not an address")]
    NeedsProgram,
    /// A database file or schema that cannot be read.
    #[error("{}: {reason}", path.display())]
    File { path: PathBuf, reason: String },
    /// A client that is measured ended, or did not do what it was told.
    #[error("a client: {0}")]
    Client(String),
    /// Ours was asked for what it cannot do.
    #[error("our client: {0}")]
    Misuse(#[from] corvid_idl::Misuse),
    /// Some workloads could not be measured; the report said why.
    #[error("without figures: {0}")]
    Failed(String),
    /// A plot that could not be drawn or written.
    #[error("plot: {0}")]
    Plot(String),
    /// The library that slows the disk could not be made.
    #[error("a slow disk needs a C compiler: cc: {0}")]
    Compiler(String),
    /// Sockets, files, `/proc`.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// What a thread of ours came to. One that panicked has found a bug of ours.
pub(crate) fn joined<T>(thread: ScopedJoinHandle<'_, Result<T, Error>>) -> Result<T, Error> {
    thread
        .join()
        .unwrap_or_else(|payload| panic::resume_unwind(payload))
}
