//! Forwards a client's log messages to the program's logger, through the `log` facade with the
//! target [`TARGET`].

use corvid_idl::Idl;
use corvid_net::logging::Shown;
use corvid_session::Level;

use crate::failure::Failure;

/// The target of every record but one, for filters: `corvid::client`.
pub const TARGET: &str = "corvid::client";

/// The target of the warning that a client has no server: `corvid::outage`. A program that already
/// logs every connection attempt can filter the warning out.
pub const OUTAGE_TARGET: &str = "corvid::outage";

/// Forwards the messages of one client.
#[derive(Debug, Default)]
pub(crate) struct LogForwarder {
    /// How many dropped messages have been reported.
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
            // Escaped, so that a server's text can neither forge a log line nor control a terminal.
            log::log!(target: TARGET, level(message.level()), "{}", Shown(&message));
        }
    }
}

/// Logs that a client has no server, and the reason.
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
