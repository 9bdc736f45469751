//! When the leader tells its followers that entries are committed.
//!
//! An append carries the commit index, so under load the next entries announce it, without a
//! separate message and its answer. A separate message leaves if no entry follows soon, and at once
//! while a follower's client waits for the commit. Invariant: [`CommitNotice`] decides only about
//! time; the algorithm repeats the commit index with each heartbeat.
//!
//! A heartbeat announces the commit index only as far as the follower is known to have the log. A
//! follower that was out of touch needs the whole index to know when it has caught up
//! ([`super::catching_up`]). So each follower gets an append, if necessary without entries, after
//! its first answer over a connection and once per election period.

use std::collections::BTreeMap;

use corvid_log::cluster::{Index, Sid};

use crate::member::context::Context;
use crate::raft_node::ELECTION_TICKS;

/// How long a commit waits for the next entries, ms: longer than a client needs until its next
/// transaction.
const WAIT_MS: u64 = 1;

/// When to send the next message that carries only the commit index.
#[derive(Debug)]
pub(crate) struct CommitNotice {
    /// A follower's client waits until that follower knows that entries up to this one are
    /// committed.
    awaited: Index,
    /// When a separate message leaves, ms.
    due_ms: u64,
    /// The tick at which each follower was last sent a known commit index, over the present
    /// connection.
    repeated: BTreeMap<Sid, u64>,
}

impl CommitNotice {
    pub(crate) fn new() -> CommitNotice {
        CommitNotice {
            awaited: Index(0),
            due_ms: u64::MAX,
            repeated: BTreeMap::new(),
        }
    }

    pub(crate) fn deadline_ms(&self) -> u64 {
        self.due_ms
    }

    /// The outcome of a follower's transaction depends on entries up to this one.
    pub(crate) fn await_through(&mut self, index: Index) {
        self.awaited = self.awaited.max(index);
    }

    /// The connection to a follower is new, or gone for good.
    pub(crate) fn forget_peer(&mut self, sid: Sid) {
        self.repeated.remove(&sid);
    }

    /// Tells the followers about new commits, if it is time. Returns whether the algorithm has work
    /// now.
    pub(crate) fn tell(&mut self, cx: &mut Context) -> bool {
        let commit = cx.node.commit();
        let oldest = untold(cx, commit).map(|sid| cx.outbox.told_commit(sid));
        let Some(oldest) = oldest.min().filter(|_| cx.node.is_leader()) else {
            self.due_ms = u64::MAX;
            return false;
        };
        if self.awaited <= oldest && self.due_ms > cx.now_ms {
            self.due_ms = self.due_ms.min(cx.now_ms + WAIT_MS);
            return false;
        }
        self.due_ms = u64::MAX;
        let untold: Vec<Sid> = untold(cx, commit).collect();
        for sid in untold {
            // A follower that accepts no append now gets the commit index with the append after its
            // next answer.
            cx.outbox.note_commit(sid, commit);
            cx.node.append_to(sid);
        }
        true
    }

    /// A follower has answered a heartbeat at this tick: repeats the commit index, if that is due.
    pub(crate) fn repeat(&mut self, cx: &mut Context, to: Sid, tick: u64) {
        // A follower may use the index as its mark only once this leader has committed an entry of
        // its own term.
        let commit = cx.node.commit();
        let is_own = cx.node.term_of(commit) == Some(cx.node.term());
        if !cx.node.is_leader() || !is_own {
            return;
        }
        let is_due = |told: u64| tick >= told + ELECTION_TICKS as u64;
        if self.repeated.get(&to).copied().is_none_or(is_due) {
            self.repeated.insert(to, tick);
            cx.node.append_to(to);
        }
    }
}

/// The reachable peers that were not told of this commit.
fn untold(cx: &Context, commit: Index) -> impl Iterator<Item = Sid> {
    let up = cx.peers.connected();
    up.filter(move |sid| cx.outbox.told_commit(*sid) < commit)
}
