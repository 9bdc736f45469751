//! When the leader tells its followers that entries are committed.
//!
//! An append carries the commit index, so under load the next entries tell it, without a message of their own and without an answer to that.
//! A message of its own leaves when no entry follows soon, and at once while a follower's client waits for the commit. Invariant: what
//! [`CommitNotice`] holds decides about time only; the algorithm repeats the commit index with each heartbeat.
//!
//! A heartbeat tells the commit index only as far as the follower is known to have it. A follower
//! that was out of touch needs the whole index to know when it has caught up
//! ([`super::catching_up`]). So each follower is sent an append, if need be without entries, after
//! its first answer over a connection and once in an election period.

use std::collections::BTreeMap;

use corvid_log::cluster::{Index, Sid};

use super::Member;
use crate::message::PeerMessage;
use crate::raft_node::ELECTION_TICKS;

/// How long a commit waits for the next entries, ms: longer than a client needs for its next transaction.
const WAIT_MS: u64 = 1;

/// See the module.
#[derive(Debug)]
pub(super) struct CommitNotice {
    /// The newest commit index that was sent to each peer. An answer to one follower may carry a
    /// commit that no message to the others does, so one index for all of them would not do.
    told: BTreeMap<Sid, Index>,
    /// A follower's client waits until that member knows that entries through this one are committed.
    awaited: Index,
    /// When a message of its own leaves, ms.
    pub(super) due_ms: u64,
}

impl CommitNotice {
    pub(super) fn new() -> CommitNotice {
        CommitNotice {
            told: BTreeMap::new(),
            awaited: Index(0),
            due_ms: u64::MAX,
        }
    }

    /// A message leaves.
    pub(super) fn sent(&mut self, to: Sid, message: &PeerMessage) {
        if let PeerMessage::Append { commit, .. } = message {
            self.tell(to, *commit);
        }
    }

    fn tell(&mut self, to: Sid, commit: Index) {
        let told = self.told.entry(to).or_insert(commit);
        *told = commit.max(*told);
    }

    fn told(&self, to: Sid) -> Index {
        self.told.get(&to).copied().unwrap_or_default()
    }

    /// The outcome of a follower's transaction depends on entries through this one.
    pub(super) fn await_through(&mut self, index: Index) {
        self.awaited = self.awaited.max(index);
    }
}

impl Member {
    /// Tells the followers of new commits, if it is time.
    pub(super) fn tell_commit(&mut self) {
        let commit = self.node.commit();
        let oldest = self.untold(commit).map(|sid| self.notice.told(sid)).min();
        let Some(oldest) = oldest.filter(|_| self.node.is_leader()) else {
            self.notice.due_ms = u64::MAX;
            return;
        };
        let notice = &mut self.notice;
        if notice.awaited <= oldest && notice.due_ms > self.now_ms {
            notice.due_ms = notice.due_ms.min(self.now_ms + WAIT_MS);
            return;
        }
        notice.due_ms = u64::MAX;
        let untold: Vec<Sid> = self.untold(commit).collect();
        for sid in untold {
            // A follower that takes no append now gets the next one with its answer.
            self.notice.tell(sid, commit);
            self.node.append_to(sid);
        }
        self.work();
    }

    /// The peers that can be reached and were not told of this commit.
    fn untold(&self, commit: Index) -> impl Iterator<Item = Sid> {
        let up = self.peers.iter().filter(|(_, peer)| peer.is_up);
        up.map(|(sid, _)| *sid)
            .filter(move |sid| self.notice.told(*sid) < commit)
    }

    /// A follower has answered a heartbeat: tells it the commit index, if that has not been done
    /// for a while.
    pub(super) fn repeat_commit(&mut self, to: Sid) {
        // The index says nothing to a follower before this leader has committed an entry of its own
        // term.
        let commit = self.node.commit();
        let is_own = self.node.term_of(commit) == Some(self.node.term());
        if !self.node.is_leader() || !is_own {
            return;
        }
        let ticks = self.lease.ticks;
        let peer = self.peers.entry(to).or_default();
        let is_due = |told: u64| ticks >= told + ELECTION_TICKS as u64;
        if peer.told_tick.is_none_or(is_due) {
            peer.told_tick = Some(ticks);
            self.node.append_to(to);
        }
    }
}
