//! Addresses of members on the command line.

use corvid_data::WireError;
use corvid_log::cluster::address;
use corvid_shell::vlog::{self, Module};

use crate::failure::Failure;

/// Checks the form of an address. The details of an error are logged, as in the reference.
///
/// # Errors
/// The text is not an address.
pub(crate) fn check(text: &str) -> Result<(), Failure> {
    address::check(text).map_err(|error| {
        if let Some(reason) = error.reason() {
            vlog::err(Module::SocketUtil, format_args!("{reason}"));
        }
        Failure::from(WireError::from(error))
    })
}
