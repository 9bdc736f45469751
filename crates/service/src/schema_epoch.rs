//! Schema epochs: which sessions began before a change of the served databases, or of their schemas
//! (docs/spec/protocol.md 4.15). Such a change closes those sessions, unless they are change-aware.
//!
//! A database begins an epoch when a conversion swaps its contents. The main thread begins one when
//! a database has been added or removed, or has got its initial contents, just before it makes
//! shards close sessions and then changes `_Server`. A session belongs to the epoch in which it
//! began. The counter is shared: databases and the main thread advance it, shards read it.
//!
//! Invariants: a request of a session of epoch `n` is handled after the change that began epoch
//! `n`. A session is closed only for a change that is newer than the session: a client that
//! connects after seeing the change in `_Server` stays.
//!
//! Example: a session begins in epoch 4. A conversion begins epoch 5 and closes all unaware
//! sessions of epochs before 5. A client that reads the new schema in `_Server` and connects is of
//! epoch 5, and stays.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of such changes of a server so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SchemaEpoch(pub u64);

/// The current epoch of a server. Cheap to clone; all clones share the counter.
#[derive(Clone, Debug, Default)]
pub struct SchemaEpochs(Arc<AtomicU64>);

impl SchemaEpochs {
    /// The epoch of a session that begins now.
    #[must_use]
    pub fn current(&self) -> SchemaEpoch {
        SchemaEpoch(self.0.load(Ordering::Acquire))
    }

    /// Begins an epoch and returns it. Sessions of earlier epochs may have seen what the change
    /// removes.
    #[must_use]
    pub fn advance(&self) -> SchemaEpoch {
        SchemaEpoch(self.0.fetch_add(1, Ordering::AcqRel) + 1)
    }
}
