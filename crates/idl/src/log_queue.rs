//! The bounded queue of a client's messages for the program's log.
//!
//! Invariant: the queue holds at most [`LOG_MESSAGES_MAX`] messages, the newest, and counts the
//! older ones that it dropped. Text from a server is cut at [`TEXT_BYTES_MAX`]. So the cost of
//! messages that no driver takes is bounded, however long a client runs.

use std::collections::VecDeque;
use std::fmt::{self, Display, Formatter};

use corvid_session::{Level, LogMessage};

use crate::mistake::Mistake;

/// Limit on queued messages.
pub const LOG_MESSAGES_MAX: usize = 256;

/// Limit on the text of a server's error in a message, in bytes.
pub const TEXT_BYTES_MAX: usize = 4096;

/// A message for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdlLogMessage {
    /// A message of the session.
    Session(LogMessage),
    /// A column that the database lacks or has with another type.
    Column(String),
    /// The server refused a transaction. Carries the error as JSON.
    Refused(String),
    /// A mistake in the program.
    Mistake(Mistake),
}

impl IdlLogMessage {
    /// The message's severity.
    #[must_use]
    pub fn level(&self) -> Level {
        match self {
            IdlLogMessage::Session(message) => message.level(),
            IdlLogMessage::Column(_) | IdlLogMessage::Refused(_) | IdlLogMessage::Mistake(_) => {
                Level::Warn
            }
        }
    }
}

impl Display for IdlLogMessage {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            IdlLogMessage::Session(message) => message.fmt(f),
            IdlLogMessage::Column(text) => f.write_str(text),
            IdlLogMessage::Refused(error) => write!(f, "transaction error: {error}"),
            IdlLogMessage::Mistake(mistake) => mistake.fmt(f),
        }
    }
}

/// The queued messages.
#[derive(Debug, Default)]
pub(crate) struct LogQueue {
    queue: VecDeque<IdlLogMessage>,
    dropped: u64,
}

impl LogQueue {
    pub(crate) fn push(&mut self, message: IdlLogMessage) {
        if self.queue.len() == LOG_MESSAGES_MAX {
            self.queue.pop_front();
            self.dropped += 1;
        }
        self.queue.push_back(message);
    }

    /// Queues the error with which a transaction was refused.
    pub(crate) fn refused(&mut self, error: &str) {
        let mut text = error[..error.floor_char_boundary(TEXT_BYTES_MAX)].to_owned();
        if text.len() < error.len() {
            text.push_str("...");
        }
        self.push(IdlLogMessage::Refused(text));
    }

    pub(crate) fn pop(&mut self) -> Option<IdlLogMessage> {
        self.queue.pop_front()
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_youngest_stay_and_the_others_are_counted() {
        let mut messages = LogQueue::default();
        for number in 0..LOG_MESSAGES_MAX + 10 {
            messages.push(IdlLogMessage::Column(number.to_string()));
        }
        assert_eq!(messages.dropped(), 10);
        assert_eq!(messages.pop(), Some(IdlLogMessage::Column("10".to_owned())));
        assert_eq!(
            std::iter::from_fn(|| messages.pop()).count(),
            LOG_MESSAGES_MAX - 1
        );
        assert_eq!(messages.dropped(), 10);
    }

    #[test]
    fn long_errors_are_cut_between_characters() {
        let mut messages = LogQueue::default();
        messages.refused("short");
        messages.refused(&"ü".repeat(TEXT_BYTES_MAX));
        messages.refused(&format!("x{}", "ü".repeat(TEXT_BYTES_MAX)));
        let lengths: Vec<usize> = std::iter::from_fn(|| messages.pop())
            .map(|message| message.to_string().len() - "transaction error: ".len())
            .collect();
        assert_eq!(lengths, [5, TEXT_BYTES_MAX + 3, TEXT_BYTES_MAX - 1 + 3]);
    }
}
