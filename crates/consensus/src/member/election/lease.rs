//! The lease of a leader: it leads while a majority, with itself, has answered within an election
//! period.
//!
//! The library looks once a period whether a majority has answered since it looked last, so a
//! leader without one leads for up to two. Here each voter has the tick of its last answer, and the
//! leader steps down at the first tick at which no majority is left. It follows nobody then, in the
//! same term.
//!
//! Ticks and not milliseconds are counted, because few ticks are made up for after a pause
//! ([`super::ticker`]): a leader that was stopped first hears what its peers have sent meanwhile.
//!
//! ```text
//! heartbeats  |  |  |  x  x  x  x          x: lost
//! answers      |  |  |
//! leads       ------------------.          an election period after the last answer
//! ```

use std::collections::BTreeMap;

use corvid_log::cluster::{Index, Sid};

use crate::member::context::Context;
use crate::raft_node::ELECTION_TICKS;

/// See the module.
#[derive(Debug)]
pub(crate) struct Lease {
    own: Sid,
    /// Ticks since the start.
    ticks: u64,
    /// The tick with which this member's leadership began; the present one while it does not lead.
    /// No voter counts as silent for longer.
    began: u64,
    /// The tick of each peer's last answer to this member as leader.
    heard: BTreeMap<Sid, u64>,
    /// The commit index at the last tick: a member that has it is not behind.
    commit_before: Index,
}

impl Lease {
    pub(crate) fn new(own: Sid) -> Lease {
        Lease {
            own,
            ticks: 0,
            began: 0,
            heard: BTreeMap::new(),
            commit_before: Index(0),
        }
    }

    /// A tick has passed. `leads`: this member led before it and leads now. Returns whether the
    /// lease of a leader is over.
    pub(crate) fn tick(&mut self, leads: bool, voters: impl Iterator<Item = Sid>) -> bool {
        self.ticks += 1;
        if !leads {
            self.began = self.ticks;
            return false;
        }
        !self.has_quorum(voters)
    }

    /// The tick is over, with this commit index.
    pub(crate) fn end_tick(&mut self, commit: Index) {
        // A commit index that falls would take back what clients were told.
        assert!(
            commit >= self.commit_before,
            "the commit index falls from {} to {commit}",
            self.commit_before
        );
        self.commit_before = commit;
    }

    pub(crate) fn ticks(&self) -> u64 {
        self.ticks
    }

    /// A peer has answered this member as the leader of the present term.
    pub(crate) fn hear(&mut self, sid: Sid) {
        self.heard.insert(sid, self.ticks);
    }

    /// This peer is gone, and not a member.
    pub(crate) fn forget_peer(&mut self, sid: Sid) {
        self.heard.remove(&sid);
    }

    /// Whether a majority of the voters, with this member, was heard within the last period.
    fn has_quorum(&self, voters: impl Iterator<Item = Sid>) -> bool {
        let (mut count, mut active) = (0, 0);
        for sid in voters {
            count += 1;
            active += usize::from(self.has_answered(sid));
        }
        active > count / 2
    }

    /// Whether this leader has heard a member within the last period, or has not led for so long.
    pub(crate) fn has_answered(&self, sid: Sid) -> bool {
        let heard = self.heard.get(&sid).copied().unwrap_or(0);
        sid == self.own || self.ticks - heard.max(self.began) < ELECTION_TICKS as u64
    }

    /// Whether a member is alive and has what was committed a moment ago. One that has lost its
    /// power is connected for some time.
    pub(crate) fn is_caught_up(&self, cx: &Context, sid: Sid) -> bool {
        sid == self.own
            || cx.peers.takes_part(sid)
                && self.has_answered(sid)
                && cx.node.progress(sid).is_some_and(|progress| {
                    !progress.is_in_snapshot && progress.matched >= self.commit_before
                })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corvid_data::Uuid;

    fn sid(number: u8) -> Sid {
        Sid(Uuid([number; 16]))
    }

    #[test]
    fn a_lease_ends_a_period_after_the_last_answer_of_a_majority() {
        let voters = || [1, 2, 3].map(sid).into_iter();
        let mut lease = Lease::new(sid(1));
        for _ in 0..7 {
            assert!(!lease.tick(false, voters()), "it does not lead");
        }
        for _ in 1..ELECTION_TICKS {
            assert!(!lease.tick(true, voters()), "its leadership is young");
        }
        lease.hear(sid(2));
        for _ in 1..ELECTION_TICKS {
            assert!(!lease.tick(true, voters()), "two of three are heard");
        }
        assert!(lease.tick(true, voters()));
        assert!(lease.has_answered(sid(1)) && !lease.has_answered(sid(2)));
    }

    #[test]
    #[should_panic(expected = "the commit index falls")]
    fn a_commit_index_does_not_fall() {
        let mut lease = Lease::new(sid(1));
        lease.end_tick(Index(8));
        lease.end_tick(Index(7));
    }
}
