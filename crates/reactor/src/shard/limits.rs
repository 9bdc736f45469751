//! Limits of the memory that clients occupy in a group of shards: connections, incomplete texts, unread output.
//!
//! Invariants: no more than [`Limits::connections_max`] accepted connections are open at a time; incomplete texts hold at most
//! [`Limits::unfinished_bytes_max`] together, plus the bytes that one shard reads in one turn. A text counts until its handler has finished with
//! it ([`Handler::held_bytes`](super::Handler::held_bytes)), so a client cannot send faster than the handler reads. The first [`FREE_BYTES`] of a
//! text are not counted, so most connections touch the shared counters only when they open and close.
//!
//! At a limit: a connection too many is closed at once, so that its client tries another server instead of waiting; a client that sends too
//! long a text, or leaves too much output unread, is disconnected; when incomplete texts are too long together, the shard that notices it
//! closes its connection with the longest one. Limits may change while the shards run; open connections stay open. Peers that the handler
//! trusts ([`Io::trust`](super::Io::trust)) are not limited. Only shards use this file.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::events;

/// The beginning of a text that is not counted, bytes.
const FREE_BYTES: usize = 64 * 1024;

/// Limits of a group of shards. The default is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Accepted connections at a time.
    pub connections_max: usize,
    /// Length of one JSON text, bytes.
    pub text_bytes_max: usize,
    /// Texts that are incomplete or not yet handled, all together, bytes.
    pub unfinished_bytes_max: usize,
    /// Unsent output of one connection, bytes.
    pub backlog_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections_max: usize::MAX,
            text_bytes_max: usize::MAX,
            unfinished_bytes_max: usize::MAX,
            backlog_bytes_max: usize::MAX,
        }
    }
}

/// The present limits.
#[derive(Debug)]
struct Current {
    connections_max: AtomicUsize,
    text_bytes_max: AtomicUsize,
    unfinished_bytes_max: AtomicUsize,
    backlog_bytes_max: AtomicUsize,
}

impl Current {
    fn new(limits: &Limits) -> Current {
        Current {
            connections_max: AtomicUsize::new(limits.connections_max),
            text_bytes_max: AtomicUsize::new(limits.text_bytes_max),
            unfinished_bytes_max: AtomicUsize::new(limits.unfinished_bytes_max),
            backlog_bytes_max: AtomicUsize::new(limits.backlog_bytes_max),
        }
    }

    fn set(&self, limits: &Limits) {
        for (current, new) in [
            (&self.connections_max, limits.connections_max),
            (&self.text_bytes_max, limits.text_bytes_max),
            (&self.unfinished_bytes_max, limits.unfinished_bytes_max),
            (&self.backlog_bytes_max, limits.backlog_bytes_max),
        ] {
            current.store(new, Ordering::Relaxed);
        }
    }
}

impl Default for Current {
    fn default() -> Current {
        Current::new(&Limits::default())
    }
}

/// The limits, and how much of them is used.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    limits: Current,
    connections: AtomicUsize,
    refused: AtomicU64,
    unfinished: AtomicUsize,
}

impl Accounts {
    pub(super) fn new(limits: Limits) -> Accounts {
        Accounts {
            limits: Current::new(&limits),
            ..Accounts::default()
        }
    }

    /// Replaces the limits.
    pub(super) fn change(&self, limits: &Limits) {
        self.limits.set(limits);
    }

    /// Accepted connections that may be open at a time.
    pub(super) fn connections_max(&self) -> usize {
        self.limits.connections_max.load(Ordering::Relaxed)
    }

    /// How long a text may be, bytes.
    pub(super) fn text_bytes_max(&self) -> usize {
        self.limits.text_bytes_max.load(Ordering::Relaxed)
    }

    /// How much unsent output a connection may have, bytes.
    pub(super) fn backlog_bytes_max(&self) -> usize {
        self.limits.backlog_bytes_max.load(Ordering::Relaxed)
    }

    /// A permit for one more connection, valid until it is dropped; `None` at the limit.
    pub(super) fn admit(self: &Arc<Accounts>) -> Option<Permit> {
        let before = self.connections.fetch_add(1, Ordering::Relaxed);
        let permit = Permit(Arc::clone(self));
        if before >= self.connections_max() {
            self.refused.fetch_add(1, Ordering::Relaxed);
            events::STREAM_REFUSE.bump();
            return None;
        }
        events::STREAM_ACCEPT.bump();
        Some(permit)
    }

    /// Whether incomplete texts are longer together than they may be.
    pub(super) fn is_overdrawn(&self) -> bool {
        let unfinished_bytes_max = self.limits.unfinished_bytes_max.load(Ordering::Relaxed);
        self.unfinished.load(Ordering::Relaxed) > unfinished_bytes_max
    }
}

/// How often a connection was refused at the limit, for metrics.
#[derive(Debug, Clone)]
pub struct Refusals(Arc<Accounts>);

impl Refusals {
    pub(super) fn new(accounts: &Arc<Accounts>) -> Refusals {
        Refusals(Arc::clone(accounts))
    }

    /// Connections that were refused since the start.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }

    /// How many may be open at a time; `None`: any number.
    #[must_use]
    pub fn connections_max(&self) -> Option<usize> {
        Some(self.0.connections_max()).filter(|max| *max != usize::MAX)
    }
}

/// Permits one accepted connection.
#[derive(Debug)]
pub(super) struct Permit(Arc<Accounts>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The bytes that one connection's incomplete text adds to the shared account.
#[derive(Debug)]
pub(super) struct Charge {
    accounts: Arc<Accounts>,
    /// The bytes that count.
    bytes: usize,
}

impl Charge {
    pub(super) fn new(accounts: &Arc<Accounts>) -> Charge {
        Charge {
            accounts: Arc::clone(accounts),
            bytes: 0,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Sets the length of the text.
    pub(super) fn set(&mut self, text_bytes: usize) {
        let bytes = text_bytes.saturating_sub(FREE_BYTES);
        let unfinished = &self.accounts.unfinished;
        if bytes > self.bytes {
            unfinished.fetch_add(bytes - self.bytes, Ordering::Relaxed);
        } else if bytes < self.bytes {
            unfinished.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        }
        self.bytes = bytes;
    }

    /// Sets the length of the text if it has grown.
    pub(super) fn raise(&mut self, text_bytes: usize) {
        if text_bytes.saturating_sub(FREE_BYTES) > self.bytes {
            self.set(text_bytes);
        }
    }

    /// Whether a text of this length is too long by itself.
    pub(super) fn forbids(&self, text_bytes: usize) -> bool {
        text_bytes > self.accounts.text_bytes_max()
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_permit_makes_room() {
        let accounts = Arc::new(Accounts::new(Limits {
            connections_max: 1,
            unfinished_bytes_max: 1000,
            ..Limits::default()
        }));
        let first = accounts.admit();
        assert!(first.is_some() && accounts.admit().is_none());
        drop(first);
        assert!(accounts.admit().is_some());

        let (mut one, mut other) = (Charge::new(&accounts), Charge::new(&accounts));
        one.set(FREE_BYTES);
        other.set(FREE_BYTES + 1000);
        assert!(!accounts.is_overdrawn());
        one.set(FREE_BYTES + 1);
        assert!(accounts.is_overdrawn());
        other.set(100);
        assert!(!accounts.is_overdrawn() && one.bytes() == 1);
        other.set(FREE_BYTES + 1000);
        drop(one);
        assert!(!accounts.is_overdrawn());
    }
}
