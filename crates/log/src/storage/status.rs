//! The state of a database's file that other threads read without its lock. A disk thread may hold
//! the lock for as long as a sync takes.
//!
//! Invariant: published by the [`Committer`](super::Committer), under the lock, at the end of each
//! call; read by [`Routing`](super::Routing) and by the thread that writes a new file.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The published state of a database's file.
#[derive(Debug, Default)]
pub struct FileStatus {
    end: AtomicU64,
    is_quick: AtomicBool,
    is_poisoned: AtomicBool,
}

impl FileStatus {
    /// Where the file ends, bytes from its start. The records before it are stored or about to be
    /// answered, and are never cut off.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    /// Whether writes are fast enough to be done inline and the file need not be cut first.
    #[must_use]
    pub fn is_quick(&self) -> bool {
        self.is_quick.load(Ordering::Acquire)
    }

    /// Whether a sync has failed, so that nothing can be appended until a new file is in place. Set
    /// before the reply with the error leaves.
    #[must_use]
    pub fn is_poisoned(&self) -> bool {
        self.is_poisoned.load(Ordering::Acquire)
    }

    pub(super) fn set_poisoned(&self, is_poisoned: bool) {
        self.is_poisoned.store(is_poisoned, Ordering::Release);
    }

    pub(super) fn set(&self, end: u64, is_quick: bool) {
        self.end.store(end, Ordering::Release);
        self.is_quick.store(is_quick, Ordering::Release);
    }
}
