//! The lists of members: the committed ones, each with its entry, and the servers that are being
//! added or removed.
//!
//! Invariant: the voters of the algorithm are the servers of the last committed list. Each
//! committed list differs from the one before by exactly the changes applied to the algorithm.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use corvid_log::cluster::{Index, Servers, Sid};

/// The committed lists of members, and changes in progress.
#[derive(Debug)]
pub(crate) struct Membership {
    /// Committed lists, each with the entry or snapshot that contains it. Never empty after
    /// joining.
    history: Vec<(Index, Servers)>,
    /// Servers that a committed list has dropped while this process was running.
    pub(super) removed: BTreeSet<Sid>,
    /// As leader: servers that receive the log without a vote.
    pub(super) joiners: BTreeMap<Sid, Joiner>,
    /// As leader: removals in the order of their requests.
    pub(super) removals: VecDeque<Removal>,
}

/// A server that is being added.
#[derive(Clone, Debug)]
pub(crate) struct Joiner {
    pub(crate) address: String,
    /// The joiner has caught up once it has this entry, within one election timer of `since_ms`.
    pub(crate) target: Index,
    pub(crate) since_ms: u64,
    pub(crate) is_caught_up: bool,
    /// Whether the list with it has been proposed.
    pub(crate) is_proposed: bool,
}

/// A server that is being removed.
#[derive(Clone, Debug)]
pub(crate) struct Removal {
    pub(crate) target: Sid,
    /// The member that asked for it; `None` if an operator asked this leader.
    pub(crate) requester: Option<Sid>,
    pub(crate) is_proposed: bool,
}

impl Membership {
    pub(crate) fn new(first: Option<(Index, Servers)>) -> Membership {
        Membership {
            history: first.into_iter().collect(),
            removed: BTreeSet::new(),
            joiners: BTreeMap::new(),
            removals: VecDeque::new(),
        }
    }

    /// The list as of an entry.
    pub(crate) fn servers_at(&self, index: Index) -> Option<&Servers> {
        let found = self.history.iter().rev();
        let mut found = found.skip_while(|(from, _)| *from > index);
        found.next().map(|(_, servers)| servers)
    }

    /// The last committed list.
    pub(crate) fn servers(&self) -> Option<&Servers> {
        self.history.last().map(|(_, servers)| servers)
    }

    /// The entry or snapshot that contains the last committed list.
    pub(crate) fn last_index(&self) -> Option<Index> {
        self.history.last().map(|(index, _)| *index)
    }

    pub(crate) fn contains(&self, sid: Sid) -> bool {
        self.servers().is_some_and(|servers| servers.contains(sid))
    }

    pub(crate) fn count(&self) -> usize {
        self.servers().map_or(0, |servers| servers.iter().count())
    }

    /// Adds a committed list. Returns the servers that were added and those that were dropped.
    pub(crate) fn commit(&mut self, index: Index, servers: Servers) -> (Vec<Sid>, Vec<Sid>) {
        let old: BTreeSet<Sid> = self.sids();
        let new: BTreeSet<Sid> = servers.iter().map(|(sid, _)| sid).collect();
        // Lists are looked up by index, so each must be newer than the one before.
        assert!(
            self.last_index().is_none_or(|last| last < index),
            "the list of entry {index} is committed after that of {:?}",
            self.last_index()
        );
        self.history.push((index, servers));
        let added: Vec<Sid> = new.difference(&old).copied().collect();
        let gone: Vec<Sid> = old.difference(&new).copied().collect();
        self.removed.extend(gone.iter().copied());
        (added, gone)
    }

    /// A snapshot has replaced the log.
    pub(crate) fn restart(&mut self, index: Index, servers: Servers) {
        self.history = vec![(index, servers)];
    }

    /// The log now begins after this entry.
    pub(crate) fn compact(&mut self, index: Index) {
        let kept = self.history.partition_point(|(from, _)| *from <= index);
        self.history.drain(..kept.saturating_sub(1));
    }

    /// Ids of the last committed list.
    pub(crate) fn sids(&self) -> BTreeSet<Sid> {
        let servers = self.servers().into_iter();
        servers
            .flat_map(|servers| servers.iter().map(|(sid, _)| sid))
            .collect()
    }

    pub(crate) fn address(&self, sid: Sid) -> Option<&str> {
        let servers = self.servers()?;
        let found = servers.iter().find(|(server, _)| *server == sid);
        found.map(|(_, address)| address)
    }

    /// Whether a server is being removed.
    pub(crate) fn is_going(&self, sid: Sid) -> bool {
        self.removals.iter().any(|it| it.target == sid)
    }

    /// Finds a server by an exact address, or by a unique beginning of its id. `None` without a
    /// unique match.
    pub(crate) fn find(&self, text: &str) -> Option<Sid> {
        let servers = self.servers()?;
        if let Some((sid, _)) = servers.iter().find(|(_, address)| *address == text) {
            return Some(sid);
        }
        let text = text.to_ascii_lowercase();
        let mut matching = servers
            .iter()
            .filter(|(sid, _)| !text.is_empty() && sid.0.to_string().starts_with(&text));
        let (sid, _) = matching.next()?;
        matching.next().is_none().then_some(sid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::context::fixture::{list, sid};

    #[test]
    fn lists_are_those_of_their_entries_and_the_compacted_ones_are_forgotten() {
        let mut membership = Membership::new(Some((Index(1), list(&[1, 2]))));
        let (added, gone) = membership.commit(Index(5), list(&[1, 2, 3]));
        assert_eq!((added, gone), (vec![sid(3)], vec![]));
        let (added, gone) = membership.commit(Index(9), list(&[2, 3]));
        assert_eq!((added, gone), (vec![], vec![sid(1)]));
        assert_eq!(membership.servers_at(Index(4)), Some(&list(&[1, 2])));
        assert_eq!(membership.servers_at(Index(8)), Some(&list(&[1, 2, 3])));
        assert!(membership.removed.contains(&sid(1)));
        membership.compact(Index(6));
        assert_eq!(membership.servers_at(Index(4)), None);
        assert_eq!(membership.servers_at(Index(8)), Some(&list(&[1, 2, 3])));
        assert_eq!(membership.last_index(), Some(Index(9)));
    }

    #[test]
    fn a_server_is_found_by_its_whole_address_or_a_unique_beginning_of_its_id() {
        let membership = Membership::new(Some((Index(1), list(&[0x11, 0x12]))));
        assert_eq!(membership.find("tcp:10.0.0.17:6644"), Some(sid(0x11)));
        assert_eq!(membership.find("tcp:10.0.0.17"), None);
        assert_eq!(membership.find("12"), Some(sid(0x12)));
        assert_eq!(membership.find("1"), None, "two begin like this");
        assert_eq!(membership.find(""), None);
    }
}
