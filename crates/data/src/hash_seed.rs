//! The secret of hash maps whose keys clients choose: identities of rows, strings, ids of monitors, names of locks.
//!
//! Invariant: no result depends on it. Maps that it seeds are looked up, or their content is sorted before anybody sees it. The program
//! draws one seed when it starts, a simulation takes its run's; crates without effects are handed it and keep it in no global.
//!
//! All of the hash's state is secret. A seed for each hasher over constants that everybody knows, which is what
//! `FixedState::with_seed` takes, would not do: the constants alone decide about keys that multiply by zero (`crates/sim/tests/sim/flooding`
//! makes such keys).

use std::fmt;
use std::hash::BuildHasher;

use foldhash::SharedSeed;
use foldhash::fast::{FixedState, FoldHasher};

/// For maps whose keys the server numbers itself, or an administrator writes: nobody floods these, so a hash that everybody can
/// compute will do.
pub type TrustedKeys = FixedState;

/// Seeds a hash; 16 bytes, copied freely. As a [`BuildHasher`] it belongs into maps.
#[derive(Clone, Copy)]
pub struct HashSeed {
    first: u64,
    shared: &'static SharedSeed,
}

impl HashSeed {
    /// The seed that everybody knows: for tests and for programs that read nobody's data but their user's.
    pub const FIXED: HashSeed = HashSeed {
        first: 0x082e_fa98_ec4e_6c89,
        shared: SharedSeed::global_fixed(),
    };

    /// A seed made of a number. It keeps 48 bytes for the life of the process, so it is for one call in a program, or in a simulated run.
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

/// It is a secret: no log shows it.
impl fmt::Debug for HashSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HashSeed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_seed_is_that_of_a_fixed_state() {
        for text in ["", "a", "0123456789abcdef0123456789abcdef"] {
            let known = HashSeed::FIXED.hash_one(text);
            assert_eq!(known, FixedState::default().hash_one(text));
            assert_ne!(known, HashSeed::new(1).hash_one(text));
        }
        let [one, other] = [2, 2].map(|seed| HashSeed::new(seed).hash_one("equal seeds"));
        assert_eq!(one, other);
    }
}
