//! What the clients of a group of shards may have it hold: connections, texts that are not complete, output that is not read.
//!
//! Invariants: no more than [`Limits::connections_max`] accepted connections stand at a time; texts in the making hold at most
//! [`Limits::unfinished_bytes_max`] together, and what one shard reads in one turn. A text counts until its handler is done with it
//! ([`Handler::held_bytes`](super::Handler::held_bytes)), so that senders do not outrun those who read. Short texts ([`FREE_BYTES`]) are not counted, so
//! most connections never touch the shared counters but when they come and go. What happens at a limit: a connection too many is
//! closed at once, so that its client looks elsewhere instead of waiting; who sends too long a text, or reads too little, is
//! disconnected; when texts in the making are too much together, the longest of the shard at hand goes. Limits may change while the shards run; what
//! stands already stays. Peers that the handler trusts
//! ([`Io::trust`](super::Io::trust)) count for nothing. Known to shards only.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::events;

/// The beginning of a text that counts for nothing, bytes.
const FREE_BYTES: usize = 64 * 1024;

/// Limits of a group of shards. The default is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Accepted connections at a time.
    pub connections_max: usize,
    /// Length of one JSON text, bytes.
    pub text_bytes_max: usize,
    /// Texts whose end has not arrived or which are not handled, all together, bytes.
    pub unfinished_bytes_max: usize,
    /// Output of one connection that waits for its peer, bytes.
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

/// The limits as they are now.
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

/// The limits, and how far they are used.
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

    /// Other limits hold from now on.
    pub(super) fn change(&self, limits: &Limits) {
        self.limits.set(limits);
    }

    /// Connections that may stand at a time.
    pub(super) fn connections_max(&self) -> usize {
        self.limits.connections_max.load(Ordering::Relaxed)
    }

    /// How long a text may be, bytes.
    pub(super) fn text_bytes_max(&self) -> usize {
        self.limits.text_bytes_max.load(Ordering::Relaxed)
    }

    /// How much output may wait for a peer, bytes.
    pub(super) fn backlog_bytes_max(&self) -> usize {
        self.limits.backlog_bytes_max.load(Ordering::Relaxed)
    }

    /// Room for one more connection, for as long as the value lives; `None` when there is none.
    pub(super) fn admit(self: &Arc<Accounts>) -> Option<Admitted> {
        let before = self.connections.fetch_add(1, Ordering::Relaxed);
        let admitted = Admitted(Arc::clone(self));
        if before >= self.connections_max() {
            self.refused.fetch_add(1, Ordering::Relaxed);
            events::STREAM_REFUSE.bump();
            return None;
        }
        events::STREAM_ACCEPT.bump();
        Some(admitted)
    }

    /// Whether texts in the making are longer together than they may be.
    pub(super) fn is_overdrawn(&self) -> bool {
        let unfinished_bytes_max = self.limits.unfinished_bytes_max.load(Ordering::Relaxed);
        self.unfinished.load(Ordering::Relaxed) > unfinished_bytes_max
    }
}

/// How often there was no room for a connection; for whoever watches.
#[derive(Debug, Clone)]
pub struct Refusals(Arc<Accounts>);

impl Refusals {
    pub(super) fn new(accounts: &Arc<Accounts>) -> Refusals {
        Refusals(Arc::clone(accounts))
    }

    /// Connections that were sent away since the start.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }

    /// How many may stand at a time; `None`: any number.
    #[must_use]
    pub fn connections_max(&self) -> Option<usize> {
        Some(self.0.connections_max()).filter(|max| *max != usize::MAX)
    }
}

/// One of the connections that may stand.
#[derive(Debug)]
pub(super) struct Admitted(Arc<Accounts>);

impl Drop for Admitted {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What one connection's text in the making is charged with.
#[derive(Debug)]
pub(super) struct Charge {
    accounts: Arc<Accounts>,
    /// What counts of it.
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

    /// The text is so long now.
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

    /// The same if it has become longer.
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
    fn what_goes_makes_room() {
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
