//! Ids of commits whose records do not name them: a hash of a seed, which an earlier record names,
//! and of the number of records since.
//!
//! So a record of 16 bytes more, once in a run, makes the ids of all later commits known to a
//! restarted server. Invariant: no number of a seed is used twice. A run that begins, or that has
//! undone a commit, begins a new seed, because commits of the old one may be missing in the file.

use corvid_data::Uuid;
use sha1::{Digest, Sha1};

/// Ids that follow a record with a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbering {
    pub(crate) seed: Uuid,
    /// Number of the next record; that with the seed has 0.
    pub(crate) next: u64,
}

impl Numbering {
    /// The ids after the record that names this seed.
    pub(crate) fn begin(seed: Uuid) -> Numbering {
        Numbering { seed, next: 1 }
    }

    /// The id that the next record has, unless it names another.
    pub(crate) fn take(&mut self) -> Uuid {
        let mut hash = Sha1::new();
        hash.update(self.seed.0);
        hash.update(self.next.to_be_bytes());
        let hash: [u8; 20] = hash.finalize().into();
        self.next += 1;
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash[..16]);
        Uuid::from_random(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_depend_on_the_seed_and_the_number_alone() {
        let mut first = Numbering::begin(Uuid([7; 16]));
        let ids = [first.take(), first.take()];
        assert_ne!(ids[0], ids[1]);
        assert_ne!(ids[0], Numbering::begin(Uuid([8; 16])).take());
        let mut again = Numbering {
            seed: Uuid([7; 16]),
            next: 2,
        };
        assert_eq!(again.take(), ids[1], "after a compaction in between");
        assert_eq!((ids[0].0[6] >> 4, ids[0].0[8] >> 6), (4, 2), "version 4");
    }
}
