//! The contents of a member's file, taken apart: the state with which a member starts.
//!
//! Invariant: lists of servers and the election timer come from committed entries, and the voters
//! are the servers of the last such list. A server that no list contains is still joining; one that
//! a committed list has dropped is leaving. Only [`super::Member::new`] calls this module.

use corvid_log::cluster::{Cid, Eid, Index, Servers, Term, Unfit};
use corvid_log::storage::LogPosition;

use super::disk::StoredSnapshot;
use super::disk::log_file::Mark;
use super::{Recovered, Settings};
use crate::entry::EntryBody;
use crate::raft_node::{LogEntry, Opening};

/// The state with which a member starts.
pub(crate) struct Opened {
    pub(crate) cid: Option<Cid>,
    pub(crate) snapshot: StoredSnapshot,
    pub(crate) opening: Opening,
    pub(crate) mark: Mark,
    pub(crate) servers: Option<(Index, Servers)>,
    /// Lists of members in committed entries.
    pub(crate) lists: Vec<(Index, Servers)>,
    pub(crate) timer_ms: u64,
    pub(crate) last_eid: Eid,
    pub(crate) position: LogPosition,
    /// The servers to ask for admission; `None` if the server is a member, or was one.
    pub(crate) remotes: Option<Vec<String>>,
    /// If the file is damaged: the last entry that this member may have acknowledged.
    pub(crate) repair: Option<(Term, Index)>,
    /// Whether a committed list has dropped this server.
    pub(crate) was_removed: bool,
    pub(crate) failure: Option<String>,
    /// Set if the file forbids the member to take part.
    pub(crate) unfit: Option<(Unfit, String)>,
}

impl Opened {
    pub(crate) fn new(settings: &Settings, recovered: Recovered) -> Opened {
        let own = settings.sid;
        let none = Eid(corvid_data::Uuid::ZERO);
        let mut timer_ms = corvid_log::cluster::ELECTION_TIMER_DEFAULT_MS;
        let mut last_eid = none;
        let mut snapshot = StoredSnapshot {
            index: Index(0),
            term: Term(0),
            eid: none,
        };
        let mut servers = None;
        if let Some(meta) = recovered.snapshot {
            timer_ms = meta.election_timer_ms;
            last_eid = meta.eid;
            snapshot = StoredSnapshot {
                index: meta.index,
                term: meta.term,
                eid: meta.eid,
            };
            servers = Some((meta.index, meta.servers));
        }
        let repair = recovered.repair.map(|repair| {
            timer_ms = repair.election_timer_ms;
            servers = Some((Index(0), repair.servers));
            repair.last
        });
        // Only a committed list counts, because a later leader may replace any other. But an
        // uncommitted list with this server may yet be committed, so a server that is only in such
        // a list is still joining, and not removed.
        let mut lists = Vec::new();
        let mut is_listed_later = false;
        for entry in &recovered.entries {
            let is_committed = entry.index <= recovered.commit;
            if let Some(list) = &entry.servers {
                is_listed_later |= !is_committed && list.contains(own);
                if is_committed {
                    lists.push((entry.index, list.clone()));
                }
            }
            if is_committed {
                timer_ms = entry.election_timer_ms.unwrap_or(timer_ms);
                if let Some(payload) = &entry.payload {
                    last_eid = payload.eid;
                }
            }
        }
        let last_list = lists.last().or(servers.as_ref()).map(|(_, list)| list);
        let is_member = last_list.is_some_and(|list| list.contains(own));
        let all_lists = servers.iter().chain(&lists);
        let was_member = all_lists.clone().any(|(_, list)| list.contains(own));
        // A member with a damaged file takes no part in elections.
        let voters = last_list.filter(|_| repair.is_none());
        let voters = voters.map_or_else(Vec::new, |list| list.iter().map(|(sid, _)| sid).collect());
        let remotes = if is_member || was_member && !is_listed_later {
            None
        } else if recovered.remote_addresses.is_empty() {
            // Its file has a snapshot, but no committed list contains this server yet.
            let addresses = last_list.into_iter().flat_map(Servers::iter);
            Some(addresses.map(|(_, address)| address.to_owned()).collect())
        } else {
            Some(recovered.remote_addresses)
        };
        let entries: Vec<LogEntry> = recovered
            .entries
            .iter()
            .map(|entry| LogEntry {
                term: entry.term,
                index: entry.index,
                body: EntryBody::of(entry),
            })
            .collect();
        // A file that commits more entries than it has is broken. The indexes are made consistent,
        // so that the member can start and report the failure.
        let last = entries.last().map_or(snapshot.index, |entry| entry.index);
        let commit = recovered.commit.max(snapshot.index);
        let failure = (commit > last)
            .then(|| format!("the file commits entry {commit}, but its log ends at {last}"));
        let commit = commit.min(last);
        Opened {
            cid: recovered.cid,
            snapshot,
            mark: Mark {
                hard: (recovered.term, recovered.vote),
                last,
                commit,
            },
            opening: Opening {
                sid: own,
                snapshot: (snapshot.index, snapshot.term),
                entries,
                term: recovered.term,
                vote: recovered.vote,
                commit,
                voters,
            },
            servers,
            lists,
            timer_ms,
            last_eid,
            position: recovered.position,
            was_removed: was_member && !is_member && !is_listed_later,
            remotes,
            repair,
            failure,
            unfit: recovered.unfit,
        }
    }
}
