//! Texts that have begun to arrive: decides which connection gives way if together they are too
//! long.
//!
//! The choice is a pure function of the connections and the time ([`choose`]):
//!
//! 1. A message that its peer does not finish has *stalled* if it has not grown by
//!    [`PROGRESS_BYTES`] for [`STALLED_MS`]. The message that has not grown for longest goes first.
//!    So a peer that sends at full speed is safe from peers that hold bytes and wait, however long
//!    its own message is.
//! 2. If none has stalled, the largest owner pays: in the group with the most bytes the owner with
//!    the most bytes, and of its connections the one that has not grown for longest. So many
//!    connections of one owner cannot push out the others, nor many owners of one group those of
//!    another.
//!
//! The caller defines groups and owners: the remotes of a server and the addresses of its clients,
//! or the servers of a cluster. Equal candidates are distinguished by their order, so that the same
//! input gives the same choice. The cost is linear in the number of candidates.

use std::collections::BTreeMap;

/// A message that has not made progress for this many milliseconds has stalled. As long as the
/// shortest election timer of the field.
pub const STALLED_MS: u64 = 1000;

/// A message makes progress by growing by this many bytes. A byte now and then does not count.
pub const PROGRESS_BYTES: usize = 16 * 1024;

/// How the unfinished message of one connection grows.
#[derive(Debug, Default)]
pub struct Growth {
    /// When the message last made progress, in milliseconds.
    progressed_ms: u64,
    /// Bytes that have arrived since then.
    arrived: usize,
}

impl Growth {
    /// The growth on a connection that has just been established.
    #[must_use]
    pub fn new(now_ms: u64) -> Growth {
        Growth {
            progressed_ms: now_ms,
            arrived: 0,
        }
    }

    /// Records that bytes have arrived.
    pub fn arrive(&mut self, now_ms: u64, bytes: usize) {
        self.arrived += bytes;
        if self.arrived >= PROGRESS_BYTES {
            self.restart(now_ms);
        }
    }

    /// Restarts the measurement, because it is the peer's turn only from now on.
    pub fn restart(&mut self, now_ms: u64) {
        *self = Growth::new(now_ms);
    }

    /// Milliseconds since the message last made progress.
    #[must_use]
    pub fn idle_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.progressed_ms)
    }
}

/// A connection that may give way.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<Key, Group, Owner> {
    /// The caller's name for the connection.
    pub key: Key,
    /// Bytes that the connection holds.
    pub bytes: usize,
    /// Milliseconds since it last made progress ([`Growth::idle_ms`]).
    pub idle_ms: u64,
    /// The connection holds fewer bytes only after the peer acts, so its message may stall.
    pub is_peers_turn: bool,
    /// The group of its owner.
    pub group: Group,
    /// The owner, who is charged for the bytes.
    pub owner: Owner,
}

/// The connection that gives way next; `None` if there is none. Connections without bytes never
/// give way.
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

/// The candidate that has made no progress for longest; among equals, the one with the most bytes.
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

/// The payer whose candidates together hold the most bytes.
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
