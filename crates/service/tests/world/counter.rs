//! UUIDs in order, so that plays are the same each time.

use corvid_data::{Uuid, UuidSource};

/// Counts instead of drawing random UUIDs, so transcripts are reproducible.
pub(crate) struct Counter(pub(crate) u64);

impl UuidSource for Counter {
    fn fresh(&mut self) -> Uuid {
        self.0 += 1;
        Uuid((0x4000_u128 << 64 | u128::from(self.0)).to_be_bytes())
    }
}
