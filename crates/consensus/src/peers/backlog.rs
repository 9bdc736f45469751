//! Counts the unsent messages of one connection; the caller holds their bytes.
//!
//! At [`BacklogLimits`] the connection is reset: its peer gets the messages again, or newer ones,
//! over the next connection. Only messages count that were already unsent at the previous check: a
//! burst that the socket had no chance to accept does not indicate a slow peer. Earlier, at
//! [`APPEND_BACKLOG_BYTES_MAX`], big messages are no longer sent. So a slow peer costs bounded
//! memory even under the large default limit of bytes.

use std::collections::VecDeque;

use super::{BACKLOG_CHECKED_FROM, BacklogLimits};

/// Unsent bytes of a connection from which entries and chunks of snapshots are no longer sent over
/// it. The consensus library notices from the replies to heartbeats, and sends them again.
pub const APPEND_BACKLOG_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The counters of one connection.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    /// Lengths of the unsent messages; the first one without the bytes that have left.
    lengths: VecDeque<usize>,
    bytes: u64,
    /// Number of messages that were already unsent at the last check.
    old_messages: usize,
    /// Bytes of those messages.
    old_bytes: u64,
    /// The number of old messages at which the next line is logged.
    next_report: usize,
    /// Bytes queued for writing after the unsent ones.
    queued_bytes: u64,
    /// Whether big messages are held off.
    is_restricted: bool,
}

/// A report about many old messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Report {
    /// The severity.
    pub(super) verdict: Verdict,
    /// Number of old messages.
    pub(super) messages: usize,
    /// Bytes of the old messages.
    pub(super) bytes: u64,
}

/// The severity of a backlog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Long enough for a line in the log.
    Long,
    /// More messages than the limit.
    TooMany,
    /// More bytes than the limit.
    TooLarge,
}

impl Backlog {
    /// Adds an unsent message of this many bytes.
    pub(super) fn push(&mut self, length: usize) {
        self.lengths.push_back(length);
        self.bytes += length as u64;
    }

    /// Compares the old messages with the limits. From now on, all present ones count as old.
    pub(super) fn check(&mut self, limits: BacklogLimits) -> Option<Report> {
        let (messages, bytes) = (self.old_messages, self.old_bytes);
        self.old_messages = self.lengths.len();
        self.old_bytes = self.bytes;
        let verdict = if messages < BACKLOG_CHECKED_FROM {
            self.next_report = BACKLOG_CHECKED_FROM;
            return None;
        } else if messages > limits.messages_max {
            Verdict::TooMany
        } else if limits.bytes_max > 0 && bytes > limits.bytes_max {
            Verdict::TooLarge
        } else if messages >= self.next_report {
            self.next_report = messages * 2;
            Verdict::Long
        } else {
            return None;
        };
        Some(Report {
            verdict,
            messages,
            bytes,
        })
    }

    /// This many bytes have left, in order.
    pub(super) fn written(&mut self, bytes: usize) {
        let mut rest = bytes;
        while let Some(first) = self.lengths.front_mut() {
            let part = rest.min(*first);
            *first -= part;
            rest -= part;
            self.bytes -= part as u64;
            self.old_bytes = self.old_bytes.saturating_sub(part as u64);
            if *first > 0 {
                break;
            }
            self.lengths.pop_front();
            self.old_messages = self.old_messages.saturating_sub(1);
        }
        // A counter that drifts would reset healthy connections, or let a slow one grow without
        // limit.
        assert!(
            self.old_messages <= self.lengths.len() && self.old_bytes <= self.bytes,
            "{} of {} unsent messages are old, {} of {} bytes",
            self.old_messages,
            self.lengths.len(),
            self.old_bytes,
            self.bytes
        );
        self.admit_again();
    }

    /// Sets how many bytes are queued for writing after the unsent ones.
    pub(super) fn set_queued(&mut self, bytes: u64) {
        self.queued_bytes = bytes;
        self.admit_again();
    }

    fn admit_again(&mut self) {
        if self.bytes + self.queued_bytes < APPEND_BACKLOG_BYTES_MAX / 2 {
            self.is_restricted = false;
        }
    }

    /// Whether big messages may be added. `Err(true)` if this is the first refusal since they were
    /// admitted.
    pub(super) fn admits_big(&mut self) -> Result<(), bool> {
        let bytes = self.bytes + self.queued_bytes;
        if bytes < APPEND_BACKLOG_BYTES_MAX && !self.is_restricted {
            return Ok(());
        }
        Err(!std::mem::replace(&mut self.is_restricted, true))
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_checked_from_fifty_old_messages_on() {
        let limits = BacklogLimits {
            messages_max: 120,
            bytes_max: 10_000,
        };
        let mut backlog = Backlog::default();
        let grow_to = |backlog: &mut Backlog, messages: usize, length: usize| {
            while backlog.lengths.len() < messages {
                backlog.push(length);
            }
            assert_eq!(
                backlog.check(limits),
                None,
                "messages of this turn do not count yet"
            );
            backlog.check(limits).map(|report| report.verdict)
        };
        assert_eq!(grow_to(&mut backlog, 49, 10), None);
        assert_eq!(grow_to(&mut backlog, 50, 10), Some(Verdict::Long));
        assert_eq!(grow_to(&mut backlog, 99, 10), None);
        assert_eq!(grow_to(&mut backlog, 100, 10), Some(Verdict::Long));
        assert_eq!(grow_to(&mut backlog, 120, 10), None);
        assert_eq!(grow_to(&mut backlog, 121, 10), Some(Verdict::TooMany));
        backlog.written(1205);
        assert_eq!((backlog.lengths.len(), backlog.bytes()), (1, 5));
        backlog.written(5);
        assert_eq!((backlog.lengths.len(), backlog.bytes()), (0, 0));
        assert_eq!(grow_to(&mut backlog, 50, 1000), Some(Verdict::TooLarge));
        backlog.written(50_000);
        for _ in 0..1000 {
            backlog.push(10);
        }
        backlog.written(9_990);
        assert_eq!(backlog.check(limits), None, "a burst that has left");
        assert_eq!((backlog.lengths.len(), backlog.bytes()), (1, 10));
    }

    #[test]
    fn big_messages_stop_at_their_limit_and_go_on_at_half_of_it() {
        let half = usize::try_from(APPEND_BACKLOG_BYTES_MAX / 2).expect("fits");
        let mut backlog = Backlog::default();
        backlog.push(half);
        assert_eq!(backlog.admits_big(), Ok(()));
        backlog.push(half);
        assert_eq!(backlog.admits_big(), Err(true));
        assert_eq!(backlog.admits_big(), Err(false));
        backlog.written(half);
        assert_eq!(backlog.admits_big(), Err(false));
        backlog.written(1);
        assert_eq!(backlog.admits_big(), Ok(()));
    }
}
