//! Ids of commits whose records do not name them: a hash of a seed, which an earlier record names,
//! and of the number of records since.
//!
//! So a seed in one record of a run makes the ids of all later commits known to a restarted server.
//! Invariant: no number of a seed is used twice. Each run begins a new seed, and so does a run that
//! has undone a commit, because commits of the old seed may be missing in the file.

use corvid_data::Uuid;

use super::hashed;

/// Ids that follow a record with a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbering {
    pub(crate) seed: Uuid,
    /// Number of the next record. The record that names the seed has number 0.
    pub(crate) next: u64,
}

impl Numbering {
    /// The ids after the record that names this seed.
    pub(crate) fn begin(seed: Uuid) -> Numbering {
        Numbering { seed, next: 1 }
    }

    /// The id that the next record has, unless it names another.
    pub(crate) fn take(&mut self) -> Uuid {
        let mut text = [0; 24];
        text[..16].copy_from_slice(&self.seed.0);
        text[16..].copy_from_slice(&self.next.to_be_bytes());
        self.next += 1;
        hashed(&text)
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
