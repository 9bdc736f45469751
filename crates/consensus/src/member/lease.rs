//! The lease of a leader: it leads while a majority, with itself, has answered within an election period.
//!
//! The library looks once a period whether a majority has answered since it looked last, so a leader without one leads for up to two. Here each
//! voter has the tick of its last answer, and the leader steps down at the first tick at which no majority is left. It follows nobody
//! then, in the same term.
//!
//! Ticks and not milliseconds are counted, because few ticks are made up for after a pause ([`super::ticker`]): a leader that was stopped first
//! hears what its peers have sent meanwhile.
//!
//! ```text
//! heartbeats  |  |  |  x  x  x  x          x: lost
//! answers      |  |  |
//! leads       ------------------.          an election period after the last answer
//! ```

use corvid_log::cluster::{Servers, Sid};
use corvid_rpc::Level;

use super::Member;
use crate::raft_node::ELECTION_TICKS;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Lease {
    /// Ticks since the start.
    pub(super) ticks: u64,
    /// The tick with which this member's leadership began; the present one while it does not lead. No voter counts as silent for longer.
    began: u64,
}

impl Member {
    /// A tick has passed. `was_leader`: this member led before it.
    pub(super) fn lease_tick(&mut self, was_leader: bool) {
        if !was_leader || !self.node.is_leader() {
            self.lease.ticks += 1;
            self.lease.began = self.lease.ticks;
            return;
        }
        self.lease.ticks += 1;
        if self.has_quorum() {
            return;
        }
        let (term, timer_ms) = (self.node.term(), self.ticker.timer_ms());
        let text = format!(
            "term {term}: no majority of the servers has answered for {timer_ms} ms, so this server leads no more"
        );
        self.log(Level::Info, text);
        self.node.step_down();
    }

    /// Whether a majority of the voters, with this member, was heard within the last period.
    fn has_quorum(&self) -> bool {
        let (mut count, mut active) = (0, 0);
        for (sid, _) in self
            .membership
            .servers()
            .into_iter()
            .flat_map(Servers::iter)
        {
            count += 1;
            active += usize::from(self.has_answered(sid));
        }
        active > count / 2
    }

    /// Whether this leader has heard a member within the last period, or has not led for so long.
    pub(super) fn has_answered(&self, sid: Sid) -> bool {
        let Lease { ticks, began } = self.lease;
        let heard = self.peers.get(&sid).map_or(0, |peer| peer.heard_tick);
        sid == self.settings.sid || ticks - heard.max(began) < ELECTION_TICKS as u64
    }
}
