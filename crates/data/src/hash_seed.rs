//! The secret seed of hash maps whose keys clients choose: UUIDs of rows, strings, ids of monitors,
//! names of locks.
//!
//! Invariant: no result depends on the seed. Maps seeded with it serve only look-ups, or their
//! contents are sorted before they leave. The program draws one seed when it starts, and a
//! simulation derives one from its run's seed. Crates without effects get it as an argument and
//! keep it in no global.
//!
//! The hash's whole state is secret. `FixedState::with_seed` would not do: it seeds each hasher but
//! multiplies by public constants, and a client can choose keys that these constants turn to zero
//! (`crates/sim/tests/sim/flooding` makes such keys).

use std::fmt;
use std::hash::BuildHasher;

use foldhash::SharedSeed;
use foldhash::fast::{FixedState, FoldHasher};

/// A hasher for maps whose keys the server numbers itself, or an administrator writes. Clients
/// cannot flood these maps, so a public hash suffices.
pub type TrustedKeys = FixedState;

/// The seed of a hash: 16 bytes, copied freely. It is the [`BuildHasher`] of maps.
#[derive(Clone, Copy)]
pub struct HashSeed {
    first: u64,
    shared: &'static SharedSeed,
}

impl HashSeed {
    /// A public seed: for tests, and for programs that read only their user's data.
    pub const FIXED: HashSeed = HashSeed {
        first: 0x082e_fa98_ec4e_6c89,
        shared: SharedSeed::global_fixed(),
    };

    /// A seed derived from a number. It allocates 48 bytes for the life of the process, so call it
    /// once per program or simulated run.
    #[must_use]
    pub fn new(seed: u64) -> HashSeed {
        HashSeed {
            first: FixedState::default().hash_one(seed),
            shared: Box::leak(Box::new(SharedSeed::from_u64(seed))),
        }
    }
}

impl BuildHasher for HashSeed {
    type Hasher = FoldHasher<'static>;

    #[inline]
    fn build_hasher(&self) -> FoldHasher<'static> {
        FoldHasher::with_seed(self.first, self.shared)
    }
}

/// Shows nothing of the seed, because it is secret.
impl fmt::Debug for HashSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HashSeed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "a seed is never freed, which miri reports as a leak")]
    fn the_fixed_seed_hashes_as_a_fixed_state() {
        for text in ["", "a", "0123456789abcdef0123456789abcdef"] {
            let fixed = HashSeed::FIXED.hash_one(text);
            assert_eq!(fixed, FixedState::default().hash_one(text));
            assert_ne!(fixed, HashSeed::new(1).hash_one(text));
        }
        let [one, other] = [2, 2].map(|seed| HashSeed::new(seed).hash_one("equal seeds"));
        assert_eq!(one, other);
    }
}
