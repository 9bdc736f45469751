//! Texts that have begun to arrive: which connection gives way when those of all connections
//! together are too long.
//!
//! The choice is a pure function of the connections and the time ([`choose`]):
//!
//! 1. A message that its peer does not finish has *stalled* when it has not grown by
//!    [`PROGRESS_BYTES`] for [`STALLED_MS`]. The one that has not grown for longest goes first. So
//!    a peer that sends at full speed is safe from all that hold bytes and wait, however long its
//!    own message is.
//! 2. Where none has stalled, the largest owner pays: of the group with most bytes the owner with
//!    most bytes, and of its connections the one that has not grown for longest. So many
//!    connections of one owner cannot push out the others, nor many owners of one group those of
//!    another.
//!
//! Groups and owners are the caller's: the remotes of a server and the addresses of its clients, or
//! the servers of a cluster. Equal candidates are told apart by their order, so that the same input
//! gives the same choice. The cost is linear in the number of candidates.

use std::collections::BTreeMap;

/// A message that has not made progress for this long has stalled, ms: as long as the shortest
/// election timer of the field.
pub const STALLED_MS: u64 = 1000;

/// A message makes progress when it has grown by this much, bytes: a byte now and then does not
/// keep its place.
pub const PROGRESS_BYTES: usize = 16 * 1024;

/// How the unfinished message of one connection grows.
#[derive(Debug, Default)]
pub struct Growth {
    /// When it last made progress, ms.
    progressed_ms: u64,
    /// Bytes that have arrived since then.
    arrived: usize,
}

impl Growth {
    /// Of a connection that has just been established.
    #[must_use]
    pub fn new(now_ms: u64) -> Growth {
        Growth {
            progressed_ms: now_ms,
            arrived: 0,
        }
    }

    /// Bytes have arrived.
    pub fn arrive(&mut self, now_ms: u64, bytes: usize) {
        self.arrived += bytes;
        if self.arrived >= PROGRESS_BYTES {
            self.restart(now_ms);
        }
    }

    /// The peer begins to have its turn now: it had no part in the time before.
    pub fn restart(&mut self, now_ms: u64) {
        *self = Growth::new(now_ms);
    }

    /// Time since it last made progress, ms.
    #[must_use]
    pub fn idle_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.progressed_ms)
    }
}

/// A connection that may give way.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<Key, Group, Owner> {
    /// The name by which the caller knows it.
    pub key: Key,
    /// Bytes that it holds.
    pub bytes: usize,
    /// Time since it last made progress, ms ([`Growth::idle_ms`]).
    pub idle_ms: u64,
    /// The peer has to act before the connection holds less, so its message may stall.
    pub is_peers_turn: bool,
    /// Its owner belongs to this.
    pub group: Group,
    /// It pays for the bytes.
    pub owner: Owner,
}

/// The connection that gives way next; `None`: there is none. Those without bytes never do.
pub fn choose<Key, Group, Owner>(candidates: &[Candidate<Key, Group, Owner>]) -> Option<Key>
where
    Key: Copy,
    Group: Ord + Copy,
    Owner: Ord + Copy,
{
    let eligible = || candidates.iter().filter(|candidate| candidate.bytes > 0);
    let stalled =
        eligible().filter(|candidate| candidate.is_peers_turn && candidate.idle_ms >= STALLED_MS);
    if let Some(key) = longest_idle(stalled) {
        return Some(key);
    }
    let group = largest(eligible(), |candidate| candidate.group)?;
    let of_group = || eligible().filter(|candidate| candidate.group == group);
    let owner = largest(of_group(), |candidate| candidate.owner)?;
    longest_idle(of_group().filter(|candidate| candidate.owner == owner))
}

/// The one that has made no progress for longest; of several the one with most bytes.
fn longest_idle<'c, Key, Group, Owner>(
    candidates: impl Iterator<Item = &'c Candidate<Key, Group, Owner>>,
) -> Option<Key>
where
    Key: Copy + 'c,
    Group: 'c,
    Owner: 'c,
{
    let longest = candidates.max_by_key(|candidate| (candidate.idle_ms, candidate.bytes));
    longest.map(|candidate| candidate.key)
}

/// Of whom the candidates hold most bytes together.
fn largest<'c, Key, Group, Owner, Payer>(
    candidates: impl Iterator<Item = &'c Candidate<Key, Group, Owner>>,
    payer: impl Fn(&Candidate<Key, Group, Owner>) -> Payer,
) -> Option<Payer>
where
    Key: 'c,
    Group: 'c,
    Owner: 'c,
    Payer: Ord,
{
    let mut totals: BTreeMap<Payer, usize> = BTreeMap::new();
    for candidate in candidates {
        *totals.entry(payer(candidate)).or_default() += candidate.bytes;
    }
    let largest = totals.into_iter().max_by_key(|(_, bytes)| *bytes);
    largest.map(|(payer, _)| payer)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn candidate(
        (key, group, owner): (u32, u32, u32),
        bytes: usize,
        idle_ms: u64,
    ) -> Candidate<u32, u32, u32> {
        Candidate {
            key,
            bytes,
            idle_ms,
            is_peers_turn: true,
            group,
            owner,
        }
    }

    #[test]
    fn a_byte_now_and_then_is_not_progress() {
        let mut growth = Growth::new(5);
        growth.arrive(1000, 1);
        assert_eq!(growth.idle_ms(1005), 1000);
        growth.arrive(1000, PROGRESS_BYTES);
        assert_eq!(growth.idle_ms(1005), 5);
    }

    #[test]
    fn the_longest_stalled_goes_before_the_largest() {
        let all = [
            candidate((1, 1, 1), 9 * MIB, STALLED_MS - 1),
            candidate((2, 1, 1), MIB, STALLED_MS),
            candidate((3, 1, 1), 1, STALLED_MS + 1),
            candidate((4, 1, 1), 0, STALLED_MS + 2),
        ];
        assert_eq!(choose(&all), Some(3));
        assert_eq!(choose(&all[..2]), Some(2));
        let waits = all.map(|candidate| Candidate {
            is_peers_turn: false,
            ..candidate
        });
        assert_eq!(
            choose(&waits),
            Some(3),
            "the owner's longest idle, stalled or not"
        );
        assert_eq!(choose(&all[3..]), None);
    }

    #[test]
    fn the_largest_owner_of_the_largest_group_pays() {
        let all = [
            // The largest owner, of the smaller group.
            candidate((1, 1, 1), 5 * MIB, 3),
            candidate((2, 2, 2), 3 * MIB, 2),
            candidate((3, 2, 3), 2 * MIB, 1),
            candidate((4, 2, 3), 2 * MIB, 0),
        ];
        assert_eq!(choose(&all), Some(3));
    }

    #[test]
    fn equal_owners_are_told_apart_by_their_order() {
        let all = [7, 3, 9, 1].map(|owner| candidate((owner, owner, owner), MIB, 0));
        assert_eq!(choose(&all), Some(9));
    }
}
