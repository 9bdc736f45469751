//! Limits on the memory that clients occupy in a group of shards: connections, incomplete texts,
//! unread output.
//!
//! Invariants: at most [`Limits::connections_max`] accepted connections are open at a time.
//! Incomplete texts together hold at most [`Limits::unfinished_bytes_max`], plus the bytes that
//! each shard reads in one turn. A text counts until its handler has finished with it
//! ([`Handler::held_bytes`](super::Handler::held_bytes)), so a client cannot send faster than the
//! handler reads. Texts count in multiples of [`GRAIN_BYTES`], so most connections touch the shared
//! table only when they open and close.
//!
//! At a limit: an excess connection is closed at once, so that its client tries another server
//! instead of waiting. A client that sends an oversized text, or leaves too much output unread, is
//! disconnected. If incomplete texts together are too long, the shard that notices it chooses
//! connections of any shard ([`super::unfinished`]), and their shards close them. Limits may change
//! while the shards run; open connections stay open. Peers that the handler trusts
//! ([`Io::trust`](super::Io::trust)) are not limited. Only shards use this file.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::ConnId;
use super::unfinished::{Account, Evicted, Turn, Unfinished};
use crate::events;

/// The texts of a connection count in multiples of this, bytes: about the memory of an idle
/// connection.
const GRAIN_BYTES: usize = 16 * 1024;

/// Limits of a group of shards. The default is unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of accepted connections at a time.
    pub connections_max: usize,
    /// The maximum length of one JSON text, bytes.
    pub text_bytes_max: usize,
    /// The maximum of all texts that are incomplete or not yet handled, bytes.
    pub unfinished_bytes_max: usize,
    /// The maximum of unsent output of one connection, bytes.
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

/// The current limits.
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

/// The limits, and their current usage.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    limits: Current,
    connections: AtomicUsize,
    refused: AtomicU64,
    unfinished: Mutex<Unfinished>,
    /// A copy of [`Unfinished::bytes`] that is read without the lock.
    unfinished_bytes: AtomicUsize,
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

    /// The maximum number of accepted connections at a time.
    pub(super) fn connections_max(&self) -> usize {
        self.limits.connections_max.load(Ordering::Relaxed)
    }

    /// The maximum length of a text, bytes.
    pub(super) fn text_bytes_max(&self) -> usize {
        self.limits.text_bytes_max.load(Ordering::Relaxed)
    }

    /// The maximum of a connection's unsent output, bytes.
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

    /// The maximum of all incomplete texts together, bytes.
    fn unfinished_bytes_max(&self) -> usize {
        self.limits.unfinished_bytes_max.load(Ordering::Relaxed)
    }

    /// Whether incomplete texts together exceed their limit.
    pub(super) fn is_overdrawn(&self) -> bool {
        self.unfinished_bytes.load(Ordering::Relaxed) > self.unfinished_bytes_max()
    }

    /// Chooses the connections that must be closed because incomplete texts together are too long.
    /// They no longer count.
    pub(super) fn evict(&self, now_ms: u64) -> Vec<Evicted> {
        let mut evicted = Vec::new();
        if self.is_overdrawn() {
            let bytes_max = self.unfinished_bytes_max();
            self.with_unfinished(|table| evicted = table.evict(now_ms, bytes_max));
        }
        evicted
    }

    fn with_unfinished(&self, change: impl FnOnce(&mut Unfinished)) {
        let mut table: MutexGuard<'_, _> = self
            .unfinished
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        change(&mut table);
        self.unfinished_bytes
            .store(table.bytes(), Ordering::Relaxed);
    }
}

/// The usage of the limits, for metrics.
#[derive(Debug, Clone)]
pub struct Refusals(Arc<Accounts>);

impl Refusals {
    pub(super) fn new(accounts: &Arc<Accounts>) -> Refusals {
        Refusals(Arc::clone(accounts))
    }

    /// The number of connections refused since the start.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }

    /// The number of bytes of texts that are incomplete or not handled, and its limit.
    #[must_use]
    pub fn unfinished_bytes(&self) -> (usize, usize) {
        let bytes = self.0.unfinished_bytes.load(Ordering::Relaxed);
        (bytes, self.0.unfinished_bytes_max())
    }

    /// The limit of open connections; `None`: unlimited.
    #[must_use]
    pub fn connections_max(&self) -> Option<usize> {
        Some(self.0.connections_max()).filter(|max| *max != usize::MAX)
    }
}

/// A permit for one accepted connection.
#[derive(Debug)]
pub(super) struct Permit(Arc<Accounts>);

impl Drop for Permit {
    fn drop(&mut self) {
        let before = self.0.connections.fetch_sub(1, Ordering::Relaxed);
        assert!(before > 0, "a permit is given back once");
    }
}

/// The bytes that the texts of one connection add to the shared table.
#[derive(Debug)]
pub(super) struct Charge {
    accounts: Arc<Accounts>,
    owner: Owner,
    /// The bytes that count.
    bytes: usize,
    turn: Turn,
    /// Bytes that have arrived and are not in the table yet.
    arrived: usize,
    /// The connection's key in the table, while it has bytes that count.
    key: Option<usize>,
}

/// The connection that a charge is for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Owner {
    pub(super) conn: ConnId,
    pub(super) shard: usize,
    pub(super) account: Account,
}

impl Charge {
    pub(super) fn new(accounts: &Arc<Accounts>, owner: Owner) -> Charge {
        Charge {
            accounts: Arc::clone(accounts),
            owner,
            bytes: 0,
            turn: Turn::Client,
            arrived: 0,
            key: None,
        }
    }

    /// The connection that the charge is for.
    pub(super) fn owner(&self) -> Owner {
        self.owner
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Records that bytes have arrived. They count as progress of the text that is set next.
    pub(super) fn arrive(&mut self, bytes: usize) {
        self.arrived += bytes;
    }

    /// Sets the length of the texts.
    pub(super) fn set(&mut self, now_ms: u64, text_bytes: usize, turn: Turn) {
        let bytes = text_bytes / GRAIN_BYTES * GRAIN_BYTES;
        let is_same = bytes == self.bytes && turn == self.turn && self.arrived < GRAIN_BYTES;
        let arrived = self.arrived;
        if bytes == 0 {
            self.arrived = 0;
        }
        if is_same || (bytes == 0 && self.key.is_none()) {
            return;
        }
        let (owner, key) = (self.owner, &mut self.key);
        self.accounts.with_unfinished(|table| {
            if bytes == 0 {
                key.take().into_iter().for_each(|key| table.remove(key));
                return;
            }
            let key = *key.get_or_insert_with(|| {
                let Owner {
                    conn,
                    shard,
                    account,
                } = owner;
                table.insert(now_ms, conn, shard, account)
            });
            table.set(now_ms, key, bytes, turn, arrived);
        });
        (self.bytes, self.turn, self.arrived) = (bytes, turn, 0);
    }

    /// Whether a single text of this length is too long.
    pub(super) fn forbids(&self, text_bytes: usize) -> bool {
        text_bytes > self.accounts.text_bytes_max()
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.set(0, 0, Turn::Server);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn charge(accounts: &Arc<Accounts>, number: u64) -> Charge {
        let owner = Owner {
            conn: ConnId(number),
            shard: 0,
            account: Account::new(None, None),
        };
        Charge::new(accounts, owner)
    }

    #[test]
    fn a_dropped_permit_makes_room() {
        let accounts = Arc::new(Accounts::new(Limits {
            connections_max: 1,
            ..Limits::default()
        }));
        let first = accounts.admit();
        assert!(first.is_some() && accounts.admit().is_none());
        drop(first);
        assert!(accounts.admit().is_some());
    }

    #[test]
    fn a_dropped_charge_makes_room() {
        let accounts = Arc::new(Accounts::new(Limits {
            unfinished_bytes_max: 4 * GRAIN_BYTES,
            ..Limits::default()
        }));
        let (mut one, mut other) = (charge(&accounts, 1), charge(&accounts, 2));
        one.set(0, GRAIN_BYTES - 1, Turn::Client);
        other.set(0, 4 * GRAIN_BYTES, Turn::Client);
        assert!(!accounts.is_overdrawn() && one.bytes() == 0);
        one.set(0, GRAIN_BYTES, Turn::Client);
        assert!(accounts.is_overdrawn());
        other.set(0, 100, Turn::Client);
        assert!(!accounts.is_overdrawn() && one.bytes() == GRAIN_BYTES);
        other.set(0, 4 * GRAIN_BYTES, Turn::Client);
        drop(one);
        assert!(!accounts.is_overdrawn());
        other.set(0, 5 * GRAIN_BYTES, Turn::Client);
        assert_eq!(accounts.evict(0).len(), 1);
        assert!(!accounts.is_overdrawn(), "it is about to be closed");
        drop(other);
        assert!(!accounts.is_overdrawn());
    }
}
