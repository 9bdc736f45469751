//! Log messages of a relay, in the reference's modules and levels, so that filters (`-v`) and
//! scripts find them (docs/spec/cli.md 7.7).

use corvid_net::logging::{self, Module, RateLimit};
use corvid_session::LogMessage;

use crate::remotes::connection::log_level;

/// Reasons to leave a server are rate-limited: an unreachable source would fill the log within an
/// hour.
static LEAVING: RateLimit = RateLimit::new(5, 5);

/// Logs a message of the session with the source.
pub(super) fn log(message: &LogMessage) {
    let level = log_level(message.level());
    match message {
        LogMessage::Connection { .. } => {
            logging::log(Module::Reconnect, level, format_args!("{message}"));
        }
        LogMessage::Traffic { .. } => {
            logging::log(Module::Jsonrpc, level, format_args!("{message}"));
        }
        LogMessage::Leaving { .. } => {
            logging::log_limited(&LEAVING, Module::OvsdbCs, level, format_args!("{message}"));
        }
        _ => logging::log(Module::Relay, level, format_args!("{message}")),
    }
}
