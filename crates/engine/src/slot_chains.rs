//! Chains of slots by hash, for keys that many rows may share. A [`SlotTable`] holds the first slot
//! of each chain, and links lead to the others. Adding and removing a slot takes constant time,
//! however long its chain is. In the table alone, a thousand equal hashes would be a thousand
//! entries to search.
//!
//! ```text
//! heads   hash of "ingress" -> slot 9          links   slot 9 <-> slot 4 <-> slot 2
//! ```
//!
//! Invariant: a slot is in at most one chain, and the caller removes it with the hash that it was
//! added with. Half of the hash decides the chain, so one chain may hold slots of several keys. The
//! only caller, [`crate::column_index`], reads the keys from the rows. Memory: 8 bytes per slot up
//! to the last one used, and about 10 per distinct key.

use crate::page::Slot;
use crate::slot_table::SlotTable;

/// Slots by hash.
#[derive(Clone, Debug, Default)]
pub(crate) struct SlotChains {
    /// The first slot of each chain. No two entries have the same hash.
    heads: SlotTable,
    /// Indexed by the number of the slot.
    links: Vec<Link>,
}

/// The neighbours of a slot in its chain.
#[derive(Clone, Copy, Debug)]
struct Link {
    before: u32,
    after: u32,
}

/// No slot: a table has fewer slots than this.
const NONE: u32 = u32::MAX;

const ALONE: Link = Link {
    before: NONE,
    after: NONE,
};

#[allow(clippy::cast_possible_truncation)]
fn number(slot: Slot) -> u32 {
    // A slot's number is 32 bits wide.
    slot.number() as u32
}

impl SlotChains {
    /// Adds a slot that is in no chain, as the first one of its chain.
    pub(crate) fn insert(&mut self, hash: u64, slot: Slot) {
        let index = slot.number();
        if index >= self.links.len() {
            self.links.resize(index + 1, ALONE);
        }
        let Link { before, after } = self.links[index];
        assert!(
            before == NONE && after == NONE,
            "a slot is in at most one chain"
        );
        self.links[index] = match self.heads.candidate_mut(hash) {
            Some(head) => {
                let after = std::mem::replace(head, slot);
                self.links[after.number()].before = number(slot);
                Link {
                    before: NONE,
                    after: number(after),
                }
            }
            None => {
                self.heads.insert(hash, slot);
                ALONE
            }
        };
    }

    /// Removes a slot that was added with this hash.
    pub(crate) fn remove(&mut self, hash: u64, slot: Slot) {
        let Link { before, after } = std::mem::replace(&mut self.links[slot.number()], ALONE);
        if after != NONE {
            let next = &mut self.links[after as usize];
            assert_eq!(next.before, number(slot), "neighbours know each other");
            next.before = before;
        }
        if before != NONE {
            let previous = &mut self.links[before as usize];
            assert_eq!(previous.after, number(slot), "neighbours know each other");
            previous.after = after;
        } else if after == NONE {
            self.heads.remove(hash, slot);
        } else {
            let head = self.heads.candidate_mut(hash);
            *head.expect("every chain has a head") = Slot::new(after as usize);
        }
    }

    /// The slots that were added with this hash, or with another hash that has the same stored
    /// half; the latest first.
    pub(crate) fn candidates(&self, hash: u64) -> impl Iterator<Item = Slot> + '_ {
        self.chain(self.heads.candidates(hash).next())
    }

    fn chain(&self, first: Option<Slot>) -> impl Iterator<Item = Slot> + '_ {
        std::iter::successors(first, |slot| {
            let after = self.links[slot.number()].after;
            (after != NONE).then(|| Slot::new(after as usize))
        })
    }

    /// The number of slots. For tests: it visits all chains.
    pub(crate) fn len(&self) -> usize {
        let heads = self.heads.iter();
        heads.map(|head| self.chain(Some(head)).count()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(chains: &SlotChains, hash: u64) -> Vec<usize> {
        chains.candidates(hash).map(Slot::number).collect()
    }

    #[test]
    fn slots_are_removed_from_every_position_of_a_chain() {
        let mut chains = SlotChains::default();
        for slot in 0..5 {
            chains.insert(7, Slot::new(slot));
        }
        chains.insert(8, Slot::new(100));
        for (removed, rest) in [
            (2, vec![4, 3, 1, 0]),
            (4, vec![3, 1, 0]),
            (0, vec![3, 1]),
            (3, vec![1]),
            (1, vec![]),
        ] {
            chains.remove(7, Slot::new(removed));
            assert_eq!(chain(&chains, 7), rest);
        }
        assert_eq!(chain(&chains, 8), [100]);
        chains.insert(7, Slot::new(2));
        assert_eq!(chain(&chains, 7), [2]);
        assert_eq!(chains.heads.len(), 2);
    }
}
