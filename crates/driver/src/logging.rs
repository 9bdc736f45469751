//! What a client reports goes to the log of the program, by the `log` facade. The target is [`TARGET`].

use corvid_idl::Idl;
use corvid_session::Level;

/// The target of every record, for filters: `corvid::client`.
pub const TARGET: &str = "corvid::client";

/// Takes messages from a client to the program's log.
#[derive(Debug, Default)]
pub(crate) struct LogForwarder {
    /// The dropped messages that were told of.
    dropped: u64,
}

impl LogForwarder {
    /// Logs all messages that wait.
    pub(crate) fn drain(&mut self, idl: &mut Idl) {
        let dropped = idl.log_messages_dropped();
        if dropped > self.dropped {
            let count = dropped - self.dropped;
            log::warn!(target: TARGET, "{count} messages were dropped before they could be logged");
            self.dropped = dropped;
        }
        while let Some(message) = idl.poll_log() {
            log::log!(target: TARGET, level(message.level()), "{message}");
        }
    }
}

fn level(level: Level) -> log::Level {
    match level {
        Level::Debug => log::Level::Debug,
        Level::Info => log::Level::Info,
        Level::Warn => log::Level::Warn,
        Level::Error => log::Level::Error,
    }
}
