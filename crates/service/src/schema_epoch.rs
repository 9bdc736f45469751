//! Schema epochs: which sessions began before a change of the databases that are served, or of
//! their schemas (docs/spec/protocol.md 4.15). Such a change closes those sessions, unless they are
//! aware of changes.
//!
//! A database begins an epoch at the moment at which a conversion swaps its contents. The main
//! thread begins one when a database has been added, has been removed, or has got its first
//! contents, just before it has sessions closed and then changes `_Server`. A session belongs to
//! the epoch in which it began. Databases and the main thread begin epochs and shards read the
//! present one, so the counter is shared.
//!
//! Invariants: a request of a session of epoch `n` is handled after the change that began epoch
//! `n`. A session is closed only for a change that is newer than itself: a client that connects
//! after it has seen the change in `_Server` stays.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of such changes of a server so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SchemaEpoch(pub u64);

/// The present epoch of a server; cheap to clone, and every clone is the same counter.
#[derive(Clone, Debug, Default)]
pub struct SchemaEpochs(Arc<AtomicU64>);

impl SchemaEpochs {
    /// The epoch in which a session begins now.
    #[must_use]
    pub fn current(&self) -> SchemaEpoch {
        SchemaEpoch(self.0.load(Ordering::Acquire))
    }

    /// Begins an epoch. Sessions of earlier epochs may have seen what ends here.
    #[must_use]
    pub fn advance(&self) -> SchemaEpoch {
        SchemaEpoch(self.0.fetch_add(1, Ordering::AcqRel) + 1)
    }
}
