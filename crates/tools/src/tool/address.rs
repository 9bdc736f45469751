//! Addresses of members on the command line.

use corvid_data::WireError;
use corvid_log::cluster::address;
use corvid_shell::vlog::{self, Module};

use crate::failure::Failure;

/// Checks the form of an address. What is wrong in detail is logged, as the reference does.
///
/// # Errors
/// It is none.
pub(crate) fn check(text: &str) -> Result<(), Failure> {
    address::check(text).map_err(|error| {
        if let Some(reason) = error.reason() {
            vlog::err(Module::SocketUtil, format_args!("{reason}"));
        }
        Failure::from(WireError::from(error))
    })
}
