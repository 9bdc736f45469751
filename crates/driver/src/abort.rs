//! Errors with which a transaction's function may abort the transaction.
//!
//! `transact` returns a program's own error unchanged, so the program can match it. The error type
//! must also be able to hold the errors of `transact` itself. `anyhow::Error`, `Box<dyn Error>` and
//! an enum with `#[from] corvid_driver::Error` can.

use corvid_idl::Misuse;

use crate::error::Error;

/// The error of a function that makes a transaction. [`Misuse`] is returned as [`Error::Misuse`];
/// any type that implements `From<Error>` is returned unchanged.
///
/// ```no_run
/// use corvid_driver::blocking::Client;
/// use corvid_driver::{Error, Idl};
///
/// #[derive(Debug)]
/// enum Problem {
///     NoPorts,
///     Database(Error),
/// }
///
/// impl From<Error> for Problem {
///     fn from(error: Error) -> Problem {
///         Problem::Database(error)
///     }
/// }
///
/// fn add(idl: &mut Idl, ports: &[&str]) -> Result<usize, Problem> {
///     // ... inserts rows
///     if ports.is_empty() { Err(Problem::NoPorts) } else { Ok(ports.len()) }
/// }
///
/// # fn run(client: &mut Client) {
/// match client.transact(None, |idl| add(idl, &[])) {
///     Ok(added) => println!("{} ports", added.value),
///     Err(Problem::NoPorts) => println!("nothing was sent"),
///     Err(Problem::Database(error)) => println!("{error}"),
/// }
/// # }
/// ```
pub trait Abort {
    /// The error type of the `transact` call.
    type Error: From<Error>;

    /// Converts this error to the error of `transact`.
    fn into_error(self) -> Self::Error;
}

impl Abort for Misuse {
    type Error = Error;

    fn into_error(self) -> Error {
        Error::Misuse(self)
    }
}

impl<E: From<Error>> Abort for E {
    type Error = E;

    fn into_error(self) -> E {
        self
    }
}
