//! What connections log (look-ups of names, TLS) goes to the `log` facade too, instead of to standard error.
//!
//! Programs of this repository have a log of their own, which then takes it: see [`corvid_os::vlog::forward`].

use corvid_os::vlog::{self, Level};

use crate::notes::TARGET;

/// Sends what connections log to the facade.
pub(crate) fn init() {
    vlog::forward(|module, level, message| {
        let level = match level {
            Level::Off => return,
            Level::Emer | Level::Err => log::Level::Error,
            Level::Warn => log::Level::Warn,
            Level::Info => log::Level::Info,
            Level::Dbg => log::Level::Debug,
        };
        log::log!(target: TARGET, level, "{}: {message}", module.name());
    });
}
