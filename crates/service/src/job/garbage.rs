//! Memory that takes long to free, on its way to the reaper, with an estimate of its size.
//!
//! Invariant: estimating takes constant time, whatever the size: the estimate uses a known length,
//! or one number per element of a short queue. It errs upwards: shared memory counts in full. Made
//! by a database; freed by the thread or step that drops it. The content must not be used any more.

use std::any::Any;
use std::fmt::{self, Debug, Formatter};

use corvid_data::{Arc, Delta, Recorded};
use corvid_engine::Database;

/// Average size of an atom, including its share of the row, bytes.
const ATOM_BYTES: usize = 32;

/// Size of a row of an unfinished body: the references that are released, and sometimes the row
/// itself, bytes.
const ROW_BYTES: usize = 256;

/// Memory to be freed.
pub struct Garbage {
    bytes: usize,
    _held: Box<dyn Any + Send>,
}

impl Garbage {
    /// Garbage of about this many bytes.
    pub fn new(bytes: usize, held: impl Any + Send) -> Garbage {
        Garbage {
            bytes,
            _held: Box::new(held),
        }
    }

    /// A commit whose rows, old and new, have this many atoms.
    #[must_use]
    pub fn commit(delta: Arc<Delta>, atoms: u64) -> Garbage {
        Garbage::new(bytes_of(atoms, ATOM_BYTES), delta)
    }

    /// A whole database.
    #[must_use]
    pub fn database(database: Database) -> Garbage {
        Garbage::new(bytes_of(database.atom_count(), ATOM_BYTES), database)
    }

    /// The difference from a source.
    #[must_use]
    pub fn recorded(recorded: Recorded) -> Garbage {
        Garbage::new(rows(recorded.rows.len()), recorded)
    }

    /// Estimated size, bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Estimated size of this many rows of a body, bytes.
pub(crate) fn rows(rows: usize) -> usize {
    rows.saturating_mul(ROW_BYTES)
}

fn bytes_of(atoms: u64, each: usize) -> usize {
    usize::try_from(atoms)
        .unwrap_or(usize::MAX)
        .saturating_mul(each)
}

impl Debug for Garbage {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Garbage")
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}
