//! Unsent messages of one connection, counted; their bytes are with the caller.
//!
//! At [`BacklogLimits`] the connection is to be reset: its peer gets the messages again, or newer ones, over the next connection. Before
//! that, at [`APPEND_BACKLOG_BYTES_MAX`], the big messages are not sent any more, so that a slow peer costs bounded memory even under the
//! large default limit of bytes.

use std::collections::VecDeque;

use super::{BACKLOG_CHECKED_FROM, BacklogLimits};

/// Unsent bytes of a connection from which on entries and chunks of snapshots are not sent over it. The consensus library finds out by the
/// replies to heartbeats, and sends them again.
pub const APPEND_BACKLOG_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The counts of one connection.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    /// Lengths of the unsent messages, the first one less what has left.
    lengths: VecDeque<usize>,
    bytes: u64,
    /// The number of messages at which the next line is logged.
    next_report: usize,
    /// Big messages are not sent.
    is_restricted: bool,
}

/// The state of a backlog after a message was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing to say.
    Fine,
    /// Long, which is worth a line in the log.
    Long,
    /// Too many messages.
    TooMany,
    /// Too many bytes.
    TooLarge,
}

impl Backlog {
    /// Adds a message.
    pub(super) fn push(&mut self, length: usize, limits: BacklogLimits) -> Verdict {
        self.lengths.push_back(length);
        self.bytes += length as u64;
        let messages = self.lengths.len();
        if messages < BACKLOG_CHECKED_FROM {
            self.next_report = BACKLOG_CHECKED_FROM;
            Verdict::Fine
        } else if messages > limits.messages_max {
            Verdict::TooMany
        } else if limits.bytes_max > 0 && self.bytes > limits.bytes_max {
            Verdict::TooLarge
        } else if messages >= self.next_report {
            self.next_report = messages * 2;
            Verdict::Long
        } else {
            Verdict::Fine
        }
    }

    /// Bytes have left, in order.
    pub(super) fn written(&mut self, bytes: usize) {
        let mut rest = bytes;
        while let Some(first) = self.lengths.front_mut() {
            let part = rest.min(*first);
            *first -= part;
            rest -= part;
            self.bytes -= part as u64;
            if *first > 0 {
                break;
            }
            self.lengths.pop_front();
        }
        if self.bytes < APPEND_BACKLOG_BYTES_MAX / 2 {
            self.is_restricted = false;
        }
    }

    /// Whether big messages may be added; `Err(true)` when this was so until now.
    pub(super) fn admits_big(&mut self) -> Result<(), bool> {
        if self.bytes < APPEND_BACKLOG_BYTES_MAX && !self.is_restricted {
            return Ok(());
        }
        Err(!std::mem::replace(&mut self.is_restricted, true))
    }

    pub(super) fn messages(&self) -> usize {
        self.lengths.len()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_checked_from_fifty_messages_on() {
        let limits = BacklogLimits {
            messages_max: 120,
            bytes_max: 10_000,
        };
        let mut backlog = Backlog::default();
        for _ in 0..BACKLOG_CHECKED_FROM - 1 {
            assert_eq!(backlog.push(10, limits), Verdict::Fine);
        }
        assert_eq!(backlog.push(10, limits), Verdict::Long);
        for _ in BACKLOG_CHECKED_FROM..99 {
            assert_eq!(backlog.push(10, limits), Verdict::Fine);
        }
        assert_eq!(backlog.push(10, limits), Verdict::Long);
        for _ in 100..120 {
            assert_eq!(backlog.push(10, limits), Verdict::Fine);
        }
        assert_eq!(backlog.push(10, limits), Verdict::TooMany);
        backlog.written(1205);
        assert_eq!((backlog.messages(), backlog.bytes()), (1, 5));
        backlog.written(5);
        assert_eq!((backlog.messages(), backlog.bytes()), (0, 0));
        for _ in 0..BACKLOG_CHECKED_FROM - 1 {
            assert_eq!(backlog.push(1000, limits), Verdict::Fine);
        }
        assert_eq!(backlog.push(1000, limits), Verdict::TooLarge);
    }

    #[test]
    fn big_messages_stop_at_their_limit_and_go_on_at_half_of_it() {
        let limits = BacklogLimits::default();
        let half = usize::try_from(APPEND_BACKLOG_BYTES_MAX / 2).expect("fits");
        let mut backlog = Backlog::default();
        backlog.push(half, limits);
        assert_eq!(backlog.admits_big(), Ok(()));
        backlog.push(half, limits);
        assert_eq!(backlog.admits_big(), Err(true));
        assert_eq!(backlog.admits_big(), Err(false));
        backlog.written(half);
        assert_eq!(backlog.admits_big(), Err(false));
        backlog.written(1);
        assert_eq!(backlog.admits_big(), Ok(()));
    }
}
