//! Passes a client's log messages to the program's logger, through the `log` facade with the target [`TARGET`].

use corvid_idl::Idl;
use corvid_net::logging::Shown;
use corvid_session::Level;

use crate::failure::Failure;

/// The target of every record, for filters: `corvid::client`.
pub const TARGET: &str = "corvid::client";

/// The target of the record that a client has no server, which is a warning: `corvid::outage`.
/// Programs that log every attempt to connect need it less than others.
pub const OUTAGE_TARGET: &str = "corvid::outage";

/// Passes a client's messages on.
#[derive(Debug, Default)]
pub(crate) struct LogForwarder {
    /// The dropped messages that have been reported.
    dropped: u64,
}

impl LogForwarder {
    /// Logs all queued messages.
    pub(crate) fn drain(&mut self, idl: &mut Idl) {
        let dropped = idl.log_messages_dropped();
        if dropped > self.dropped {
            let count = dropped - self.dropped;
            log::warn!(target: TARGET, "{count} messages were dropped before they could be logged");
            self.dropped = dropped;
        }
        while let Some(message) = idl.poll_log() {
            // A server's text neither forges a line nor drives a terminal.
            log::log!(target: TARGET, level(message.level()), "{}", Shown(&message));
        }
    }
}

/// Logs that a client has no server, and why.
pub(crate) fn outage(failure: &Failure) {
    log::warn!(target: OUTAGE_TARGET, "no server with the contents so far: {}", Shown(failure));
}

fn level(level: Level) -> log::Level {
    match level {
        Level::Debug => log::Level::Debug,
        Level::Info => log::Level::Info,
        Level::Warn => log::Level::Warn,
        Level::Error => log::Level::Error,
    }
}
