//! UUIDs that are equal in every run, and spread over the whole range like random ones.

use corvid_data::{Uuid, UuidSource};

/// A source of UUIDs. The number counts the UUIDs that it has made so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Uuids(u64);

impl UuidSource for Uuids {
    fn fresh(&mut self) -> Uuid {
        self.0 += 1;
        let high = self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let low = self.0.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        Uuid::from_random((u128::from(high) << 64 | u128::from(low)).to_be_bytes())
    }
}
