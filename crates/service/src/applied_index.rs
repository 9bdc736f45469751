//! The index of a clustered database on its way to `_Server`: the last entry that the database has
//! applied.
//!
//! Clients that move between members compare this index (docs/spec/distribution.md 1.8), so nothing
//! that follows from an entry may leave before the entry's index is readable. The holder of the
//! database sets the index here before it posts the outputs of its batch, and sends
//! [`Control::ShowIndex`](crate::message::Control::ShowIndex) to `_Server`. A client that has seen
//! the entry and then sends a request to `_Server` has it queued after that message. A session that
//! gets a reply is sent the update of `_Server` first (`frontend/held_deliveries.rs`).
//!
//! Invariant: at most one message of each database is in the queue of `_Server`, which reads the
//! newest index when it handles the message. So indexes merge only while the previous message is
//! unhandled.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use corvid_log::cluster::Index;

/// The index of one database. Cheap to clone; all clones share the index.
#[derive(Clone, Debug)]
pub struct AppliedIndex(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    database: String,
    index: AtomicU64,
    is_queued: AtomicBool,
}

impl AppliedIndex {
    /// The index of the database with this name, whose contents include the entries through
    /// `index`.
    #[must_use]
    pub fn new(database: &str, index: Index) -> AppliedIndex {
        AppliedIndex(Arc::new(Shared {
            database: database.to_owned(),
            index: AtomicU64::new(index.0),
            is_queued: AtomicBool::new(false),
        }))
    }

    /// The database's name.
    #[must_use]
    pub fn database(&self) -> &str {
        &self.0.database
    }

    /// Records that the entries through this one are applied. Returns true if `_Server` must be
    /// sent a message, because none is in its queue.
    #[must_use]
    pub fn set(&self, index: Index) -> bool {
        let before = self.0.index.swap(index.0, Ordering::SeqCst);
        assert!(before <= index.0, "entries are applied in their order");
        !self.0.is_queued.swap(true, Ordering::SeqCst)
    }

    /// The newest index.
    #[must_use]
    pub fn current(&self) -> Index {
        Index(self.0.index.load(Ordering::SeqCst))
    }

    /// The newest index, which `_Server` is about to show.
    pub(crate) fn take(&self) -> Index {
        // Clear the flag first: an index that is set between the two steps then sends its own
        // message. In the reverse order it could be neither returned here nor sent.
        self.0.is_queued.store(false, Ordering::SeqCst);
        self.current()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_merge_until_the_message_is_handled() {
        let applied = AppliedIndex::new("D", Index(3));
        assert!(applied.set(Index(4)), "a message");
        assert!(!applied.set(Index(5)), "which is in the queue");
        assert_eq!(applied.take(), Index(5));
        assert!(applied.set(Index(6)));
    }
}
