//! Schema epochs: which sessions began before a conversion (docs/spec/protocol.md 4.15). A conversion closes such sessions unless they are
//! aware of changes.
//!
//! Every conversion begins an epoch, at the moment of its swap. A session belongs to the epoch in which it began. Databases begin epochs
//! and shards read the present one, so the counter is shared.
//!
//! Invariant: a request of a session of epoch `n` is handled after the conversion that began epoch `n`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of conversions of all databases of a server so far.
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

    /// Begins an epoch. Sessions of earlier epochs may have seen the schema that ends here.
    pub(crate) fn advance(&self) -> SchemaEpoch {
        SchemaEpoch(self.0.fetch_add(1, Ordering::AcqRel) + 1)
    }
}
