//! What may be known of a database's file without its lock, which a disk thread may hold for as long as a sync takes.
//!
//! Written by the [`Committer`](super::Committer) under the lock, when what it was asked for is done; read by whoever routes orders and
//! by the thread that writes a new file.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// See the module.
#[derive(Debug, Default)]
pub struct Published {
    end: AtomicU64,
    is_quick: AtomicBool,
}

impl Published {
    /// Where the file ends, bytes from its start. What lies before is answered or will be, and is not taken back any more.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    /// Whether writing takes so little that nobody waits for it, and the file needs no cutting before.
    #[must_use]
    pub fn is_quick(&self) -> bool {
        self.is_quick.load(Ordering::Acquire)
    }

    pub(super) fn set(&self, end: u64, is_quick: bool) {
        self.end.store(end, Ordering::Release);
        self.is_quick.store(is_quick, Ordering::Release);
    }
}
