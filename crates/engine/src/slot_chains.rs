//! Chains of slots by hash, for keys that many rows may share: adding and removing a slot takes the same time however long its chain.
//!
//! ```text
//! heads   hash of "ingress" -> slot 9          links   slot 9 <-> slot 4 <-> slot 2
//! ```
//!
//! Invariant: the caller's. A slot is in at most one chain, and is removed with the hash that it was added with. Chains are by half of
//! the hash, so one may hold slots of several keys; the keys lie in the rows, which [`crate::column_index`] knows. Memory: 8 bytes for
//! each slot up to the last one used, and some 10 for each distinct key.

use hashbrown::HashTable;

use crate::page::Slot;

/// Slots by hash.
#[derive(Clone, Debug, Default)]
pub(crate) struct SlotChains {
    heads: HashTable<Head>,
    /// By number of the slot.
    links: Vec<Link>,
}

#[derive(Clone, Copy, Debug)]
struct Head {
    hash: u32,
    first: u32,
}

/// The neighbours of a slot in its chain.
#[derive(Clone, Copy, Debug)]
struct Link {
    before: u32,
    after: u32,
}

/// No slot: tables have fewer.
const NONE: u32 = u32::MAX;

const ALONE: Link = Link {
    before: NONE,
    after: NONE,
};

#[allow(clippy::cast_possible_truncation)]
fn fold(hash: u64) -> u32 {
    (hash ^ (hash >> 32)) as u32
}

/// The 64 bits that the table of heads wants.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[allow(clippy::cast_possible_truncation)]
fn number(slot: Slot) -> u32 {
    // A slot's number is 32 bits wide.
    slot.number() as u32
}

impl SlotChains {
    /// Adds a slot that is in no chain.
    pub(crate) fn insert(&mut self, hash: u64, slot: Slot) {
        let (hash, slot) = (fold(hash), number(slot));
        let place = slot as usize;
        if place >= self.links.len() {
            self.links.resize(place + 1, ALONE);
        }
        match self.heads.find_mut(spread(hash), |head| head.hash == hash) {
            Some(head) => {
                let after = std::mem::replace(&mut head.first, slot);
                self.links[after as usize].before = slot;
                self.links[place] = Link {
                    before: NONE,
                    after,
                };
            }
            None => {
                self.links[place] = ALONE;
                let head = Head { hash, first: slot };
                self.heads
                    .insert_unique(spread(hash), head, |head| spread(head.hash));
            }
        }
    }

    /// Removes a slot that was added with this hash.
    pub(crate) fn remove(&mut self, hash: u64, slot: Slot) {
        let hash = fold(hash);
        let Link { before, after } = std::mem::replace(&mut self.links[slot.number()], ALONE);
        if after != NONE {
            self.links[after as usize].before = before;
        }
        if before != NONE {
            self.links[before as usize].after = after;
            return;
        }
        match self
            .heads
            .find_entry(spread(hash), |head| head.hash == hash)
        {
            Ok(mut head) if after != NONE => head.get_mut().first = after,
            Ok(head) => {
                head.remove();
            }
            Err(_) => unreachable!("what is removed was added"),
        }
    }

    /// The slots that were added with this hash and, now and then, with others; the latest first.
    pub(crate) fn candidates(&self, hash: u64) -> impl Iterator<Item = Slot> + '_ {
        let hash = fold(hash);
        let head = self.heads.find(spread(hash), |head| head.hash == hash);
        let first = head.map_or(NONE, |head| head.first);
        let some = |slot: u32| (slot != NONE).then_some(slot);
        std::iter::successors(some(first), move |slot| {
            some(self.links[*slot as usize].after)
        })
        .map(|slot| Slot::new(slot as usize))
    }

    /// How many there are. For tests: it walks.
    pub(crate) fn len(&self) -> usize {
        let firsts = self.heads.iter().map(|head| head.first);
        let after = |slot: &u32| self.links[*slot as usize].after;
        let chain = |first| {
            std::iter::successors(Some(first), move |slot| {
                Some(after(slot)).filter(|slot| *slot != NONE)
            })
        };
        firsts.map(|first| chain(first).count()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(chains: &SlotChains, hash: u64) -> Vec<usize> {
        chains.candidates(hash).map(Slot::number).collect()
    }

    #[test]
    fn slots_leave_from_every_place_of_a_chain() {
        let mut chains = SlotChains::default();
        for slot in 0..5 {
            chains.insert(7, Slot::new(slot));
        }
        chains.insert(8, Slot::new(100));
        for (leaving, left) in [
            (2, vec![4, 3, 1, 0]),
            (4, vec![3, 1, 0]),
            (0, vec![3, 1]),
            (3, vec![1]),
            (1, vec![]),
        ] {
            chains.remove(7, Slot::new(leaving));
            assert_eq!(chain(&chains, 7), left);
        }
        assert_eq!(chain(&chains, 8), [100]);
        chains.insert(7, Slot::new(2));
        assert_eq!(chain(&chains, 7), [2]);
        assert_eq!(chains.heads.len(), 2);
    }
}
