//! Which sessions began before a conversion (docs/spec/protocol.md 4.15): those of them that are not aware of changes are closed.
//!
//! Every conversion begins an era, at the moment of its swap. A session belongs to the era in which it began. Databases begin eras and shards
//! ask for the present one, so the counter is shared.
//!
//! Invariant: a request of a session of era `n` is handled after the conversion that began era `n`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts conversions of all databases of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Era(pub u64);

/// The present era of a server; cheap to clone, and every clone is the same counter.
#[derive(Clone, Debug, Default)]
pub struct Eras(Arc<AtomicU64>);

impl Eras {
    /// The era in which a session begins now.
    #[must_use]
    pub fn present(&self) -> Era {
        Era(self.0.load(Ordering::Acquire))
    }

    /// Begins an era. Sessions of earlier eras may have seen the schema that ends here.
    pub(crate) fn begin(&self) -> Era {
        Era(self.0.fetch_add(1, Ordering::AcqRel) + 1)
    }
}
