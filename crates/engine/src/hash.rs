//! Hashing inside the engine: one fixed state, so that equal runs visit rows in equal order.
//!
//! Determinism is the invariant: no random seed may enter, because a seed must replay a whole server. Everything in this crate that
//! hashes a datum, a uuid or a row goes through here.

use std::hash::BuildHasher;

use corvid_data::{Datum, Uuid};
use foldhash::fast::FixedState;

/// A hash map without randomness.
pub(crate) type Map<K, V> = hashbrown::HashMap<K, V, FixedState>;

/// A hash set without randomness.
pub(crate) type Set<K> = hashbrown::HashSet<K, FixedState>;

/// The hash of an identity. Identities may come from clients, so they are no hashes themselves.
pub(crate) fn hash_uuid(uuid: Uuid) -> u64 {
    // As one number: its bytes would be hashed with their count, at three times the cost.
    FixedState::default().hash_one(u128::from_le_bytes(uuid.0))
}

/// The hash of a list of data, as the indexes store it. Feeding the same data one by one gives the same hash.
pub(crate) fn hash_data<'a>(data: impl Iterator<Item = &'a Datum>) -> u64 {
    use std::hash::{Hash, Hasher};
    let mut hasher = FixedState::default().build_hasher();
    for datum in data {
        datum.hash(&mut hasher);
    }
    hasher.finish()
}
