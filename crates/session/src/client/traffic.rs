//! The session's messages in the log, for debugging a connection.
//!
//! A message that is not logged costs one comparison.

use corvid_rpc::wire_log::{Direction, LoggedMessage};

use super::Client;
use crate::log_message::LogMessage;

impl Client {
    /// Sets whether each message is logged ([`LogMessage::Traffic`]) from now on; by default none
    /// is. The caller must take the log after each call, so the texts do not pile up.
    pub fn show_messages(&mut self, shows_messages: bool) {
        self.shows_messages = shows_messages;
    }

    /// Logs a message, if messages are logged.
    pub(super) fn show_message(&mut self, direction: Direction, text: &[u8]) {
        if self.shows_messages {
            let message = LoggedMessage::new(direction, text).to_string();
            let remote = self.link.remote().to_owned();
            self.log(LogMessage::Traffic { remote, message });
        }
    }
}
