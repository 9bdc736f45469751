//! Hashing in the engine: data, UUIDs and rows are hashed only here, with the seed of their
//! database.
//!
//! Invariant: no result depends on the seed. Equal inputs give equal deltas with any seed. So code
//! iterates over these maps only if the order cannot affect the outcome.

use std::hash::{BuildHasher, Hash, Hasher};

use corvid_data::{Datum, HashSeed, TrustedKeys, Uuid};

/// A hash map whose keys clients choose.
pub(crate) type Map<K, V> = hashbrown::HashMap<K, V, HashSeed>;

/// A hash set of values that clients choose.
pub(crate) type Set<K> = hashbrown::HashSet<K, HashSeed>;

/// A hash set of values that the engine numbers itself: tables and slots.
pub(crate) type TrustedSet<K> = hashbrown::HashSet<K, TrustedKeys>;

/// The hash of a UUID. UUIDs may come from clients, so they do not serve as hashes themselves.
pub(crate) fn hash_uuid(seed: HashSeed, uuid: Uuid) -> u64 {
    // Hashed as one number. A byte slice would be hashed with its length, at three times the cost.
    seed.hash_one(u128::from_le_bytes(uuid.0))
}

/// The hash of a list of data, as the indexes store it. Feeding the same data one by one gives the
/// same hash.
pub(crate) fn hash_data<'a>(seed: HashSeed, data: impl Iterator<Item = &'a Datum>) -> u64 {
    let mut hasher = seed.build_hasher();
    for datum in data {
        datum.hash(&mut hasher);
    }
    hasher.finish()
}
