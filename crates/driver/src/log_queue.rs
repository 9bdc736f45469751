//! A logger for bindings to other languages. A binding's language cannot be called where a message
//! is logged: the caller there may hold a client's lock, or run on a thread that the language does
//! not know.
//!
//! The queue keeps the library's messages until the binding takes them on one of the program's
//! threads. It keeps the newest [`KEPT_MAX`], and does not know where they go.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use corvid_net::logging::Shown;
use log::{Level, LevelFilter, Log, Metadata, Record};

/// Limit on queued messages. When the queue is full, the oldest message is dropped.
const KEPT_MAX: usize = 1000;

/// A log message of this library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedMessage {
    /// The message's level.
    pub level: Level,
    /// The part of the library that logged the message, for example [`crate::LOG_TARGET`].
    pub target: String,
    /// The message as one line, with control characters escaped as in JSON.
    pub text: String,
}

/// Messages that the program has not taken yet.
#[derive(Debug, Default)]
pub struct LogQueue {
    messages: Mutex<VecDeque<QueuedMessage>>,
    is_notified: AtomicBool,
}

impl LogQueue {
    /// An empty queue.
    #[must_use]
    pub const fn new() -> LogQueue {
        LogQueue {
            messages: Mutex::new(VecDeque::new()),
            is_notified: AtomicBool::new(false),
        }
    }

    /// Makes this queue the process's logger, for messages at [`Level::Info`] and above. If the
    /// process already has a logger, that one stays.
    pub fn install(&'static self) {
        if log::set_logger(self).is_ok() {
            log::set_max_level(LevelFilter::Info);
        }
    }

    /// Locks the queued messages, oldest first, for the caller to take. Threads that log meanwhile
    /// wait for the guard.
    pub fn messages(&self) -> MutexGuard<'_, VecDeque<QueuedMessage>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a message arrived since the last [`LogQueue::take_notification`].
    pub fn is_notified(&self) -> bool {
        self.is_notified.load(Ordering::Acquire)
    }

    /// Whether a message arrived since the last call. Costs one atomic load if none did.
    pub fn take_notification(&self) -> bool {
        self.is_notified() && self.is_notified.swap(false, Ordering::AcqRel)
    }

    /// Makes the next [`LogQueue::take_notification`] return true, for a caller that left messages
    /// in the queue.
    pub fn notify(&self) {
        self.is_notified.store(true, Ordering::Release);
    }
}

impl Log for LogQueue {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("corvid")
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let message = QueuedMessage {
            level: record.level(),
            target: record.target().to_owned(),
            // Escaped here, because programs print messages as they are.
            text: Shown(record.args()).to_string(),
        };
        let mut messages = self.messages();
        if messages.len() == KEPT_MAX {
            messages.pop_front();
        }
        messages.push_back(message);
        drop(messages);
        self.notify();
    }

    fn flush(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(queue: &LogQueue, target: &str, text: &str) {
        let args = format_args!("{text}");
        let record = Record::builder().target(target).args(args).build();
        queue.log(&record);
    }

    #[test]
    fn the_newest_messages_of_the_library_are_kept_as_lines() {
        let queue = LogQueue::new();
        write(&queue, "other", "not ours");
        assert!(!queue.take_notification());
        for number in 0..=KEPT_MAX {
            write(&queue, crate::LOG_TARGET, &format!("{number}\n"));
        }
        assert!(queue.take_notification() && !queue.take_notification());
        let messages = queue.messages();
        assert_eq!(messages.len(), KEPT_MAX);
        let texts = (&messages[0].text, &messages[KEPT_MAX - 1].text);
        assert_eq!((texts.0.as_str(), texts.1.as_str()), ("1\\n", "1000\\n"));
    }
}
