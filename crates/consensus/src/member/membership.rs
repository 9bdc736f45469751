//! The lists of members: the committed ones with the entries that brought them, and servers that are being added or removed.
//!
//! Invariant: the voters of the algorithm are the servers of the last committed list; each committed list differs from the one before by
//! the changes that were applied to the algorithm in its place.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use corvid_log::cluster::{Index, Servers, Sid};

use super::CommandToken;

/// See the module.
#[derive(Debug)]
pub(super) struct Membership {
    /// Committed lists by the entry, or the snapshot, that they are part of; never empty after joining.
    history: Vec<(Index, Servers)>,
    /// Servers that a committed list has dropped while this process ran.
    pub(super) removed: BTreeSet<Sid>,
    /// As leader: servers that get the log and do not vote.
    pub(super) joiners: BTreeMap<Sid, Joiner>,
    /// As leader: removals in the order of the requests.
    pub(super) removals: VecDeque<Removal>,
    /// As leader: the list that is proposed and not committed.
    pub(super) proposed: Option<Servers>,
}

/// A server that is being added.
#[derive(Clone, Debug)]
pub(super) struct Joiner {
    pub(super) address: String,
    /// It has caught up when it has this entry, within an election timer since `since_ms`.
    pub(super) target: Index,
    pub(super) since_ms: u64,
    pub(super) is_caught_up: bool,
    /// The list with it is proposed.
    pub(super) is_proposed: bool,
}

/// A server that is being removed.
#[derive(Clone, Debug)]
pub(super) struct Removal {
    pub(super) target: Sid,
    /// The member that asked for it, if it was not this one.
    pub(super) requester: Option<Sid>,
    pub(super) is_proposed: bool,
}

/// This server asks for admission.
#[derive(Debug)]
pub(super) struct Joining {
    pub(super) remotes: Vec<String>,
    pub(super) next_ms: u64,
}

/// This member asks to be removed.
#[derive(Debug)]
pub(super) struct Leaving {
    pub(super) next_ms: u64,
}

/// This leader has committed its own removal, and goes when a majority of the others knows that: without its vote they might never find out.
#[derive(Debug)]
pub(super) struct Departing {
    /// The entry with the list.
    pub(super) index: Index,
    /// Members that have committed it.
    pub(super) told: BTreeSet<Sid>,
}

/// A command that waits for a change of leadership.
#[derive(Debug)]
pub(super) struct Transfer {
    pub(super) token: Option<CommandToken>,
    pub(super) until_ms: u64,
    pub(super) is_shutdown: bool,
}

impl Membership {
    pub(super) fn new(first: Option<(Index, Servers)>) -> Membership {
        Membership {
            history: first.into_iter().collect(),
            removed: BTreeSet::new(),
            joiners: BTreeMap::new(),
            removals: VecDeque::new(),
            proposed: None,
        }
    }

    /// The list as of an entry.
    pub(super) fn servers_at(&self, index: Index) -> Option<&Servers> {
        let found = self.history.iter().rev();
        let mut found = found.skip_while(|(from, _)| *from > index);
        found.next().map(|(_, servers)| servers)
    }

    /// The last committed list.
    pub(super) fn servers(&self) -> Option<&Servers> {
        self.history.last().map(|(_, servers)| servers)
    }

    /// The entry, or the snapshot, that the last committed list is part of.
    pub(super) fn last_index(&self) -> Option<Index> {
        self.history.last().map(|(index, _)| *index)
    }

    pub(super) fn contains(&self, sid: Sid) -> bool {
        self.servers().is_some_and(|servers| servers.contains(sid))
    }

    pub(super) fn count(&self) -> usize {
        self.servers().map_or(0, |servers| servers.iter().count())
    }

    /// A list is committed. Returns who has come and who has gone.
    pub(super) fn committed(&mut self, index: Index, servers: Servers) -> (Vec<Sid>, Vec<Sid>) {
        let old: BTreeSet<Sid> = self.sids();
        let new: BTreeSet<Sid> = servers.iter().map(|(sid, _)| sid).collect();
        self.history.push((index, servers));
        let added: Vec<Sid> = new.difference(&old).copied().collect();
        let gone: Vec<Sid> = old.difference(&new).copied().collect();
        self.removed.extend(gone.iter().copied());
        self.proposed = None;
        (added, gone)
    }

    /// A snapshot has taken the place of the log.
    pub(super) fn restart(&mut self, index: Index, servers: Servers) {
        self.history = vec![(index, servers)];
    }

    /// The log begins behind this entry now.
    pub(super) fn compact(&mut self, index: Index) {
        let kept = self.history.partition_point(|(from, _)| *from <= index);
        self.history.drain(..kept.saturating_sub(1));
    }

    /// Ids of the last committed list.
    pub(super) fn sids(&self) -> BTreeSet<Sid> {
        let servers = self.servers().into_iter();
        servers
            .flat_map(|servers| servers.iter().map(|(sid, _)| sid))
            .collect()
    }

    pub(super) fn address(&self, sid: Sid) -> Option<&str> {
        let servers = self.servers()?;
        let found = servers.iter().find(|(server, _)| *server == sid);
        found.map(|(_, address)| address)
    }

    /// The server that a text names: an exact address, or the longest match of the beginning of an id. `None` without a real, unique match.
    pub(super) fn find(&self, text: &str) -> Option<Sid> {
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
