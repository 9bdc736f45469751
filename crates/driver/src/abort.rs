//! Errors by which the function that makes a transaction may abort it.
//!
//! A program's own error comes out of `transact` as it went in, so the program can match it; for that it must also be able to hold the errors of
//! `transact` itself, as `anyhow::Error`, `Box<dyn Error>` and an enumeration with `#[from] corvid_driver::Error` can.

use corvid_idl::Misuse;

use crate::error::Error;

/// An error of a function that makes a transaction: [`Misuse`], which comes out as [`Error::Misuse`], or any type that an [`Error`] can become,
/// which comes out as it is.
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
    /// The error of `transact`.
    type Error: From<Error>;

    /// This error as the error of `transact`.
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
