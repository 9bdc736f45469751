//! The lease of a leader: it leads while a majority, counting itself, has answered within an
//! election period.
//!
//! The library checks once per period whether a majority has answered since its last check, so a
//! leader without a majority leads for up to two periods. Here each voter has the tick of its last
//! answer. The leader steps down at the first tick without a majority, and becomes a follower
//! without a leader in the same term.
//!
//! Ticks are counted instead of milliseconds, because only a few ticks are made up for after a
//! pause ([`super::ticker`]): a leader that was stopped first hears what its peers sent in the
//! meantime.
//!
//! ```text
//! heartbeats  |  |  |  x  x  x  x          x: lost
//! answers      |  |  |
//! leads       ------------------.          an election period after the last answer
//! ```
//!
//! A follower reads and hashes a long entry all at once, when its last part has arrived, and cannot
//! answer during that time. If the leader stepped down for that, it would execute the transaction
//! again and send the entry again, forever. So a peer that is about to digest an entry may be
//! silent for longer, by a time that follows from the length. Changes of the list of members use
//! the strict measure.

use std::collections::BTreeMap;

use corvid_log::cluster::{Index, Sid};

use crate::limits::DIGESTED_BYTES_PER_MS;
use crate::member::context::Context;
use crate::raft_node::ELECTION_TICKS;

/// A long entry that a peer has not acknowledged.
#[derive(Debug)]
struct Digest {
    through: Index,
    /// Extra ticks that the peer may be silent.
    ticks: u64,
}

/// How long this leader may lead without hearing from a majority.
#[derive(Debug)]
pub(crate) struct Lease {
    own: Sid,
    /// Ticks since the start.
    ticks: u64,
    /// The tick at which this member's leadership began; the present tick while it does not lead.
    /// No voter counts as silent for longer than that.
    began: u64,
    /// The tick of each peer's last answer to this member as leader.
    heard: BTreeMap<Sid, u64>,
    /// The largest allowance of a long entry in flight to each peer.
    digests: BTreeMap<Sid, Digest>,
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
            digests: BTreeMap::new(),
            commit_before: Index(0),
        }
    }

    /// Advances by one tick. `leads`: this member led before the tick and leads now. Returns
    /// whether a leader's lease is over.
    pub(crate) fn tick(&mut self, leads: bool, voters: impl Iterator<Item = Sid>) -> bool {
        self.ticks += 1;
        if !leads {
            self.began = self.ticks;
            self.digests.clear();
            return false;
        }
        !self.has_quorum(voters)
    }

    /// Ends the tick, with this commit index.
    pub(crate) fn end_tick(&mut self, commit: Index) {
        // A falling commit index would take back what clients were told.
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

    /// Entries up to this index are being sent to a peer: this many bytes, under this election
    /// timer.
    pub(crate) fn send_long(&mut self, sid: Sid, through: Index, bytes: u64, timer_ms: u64) {
        let period_ms = (timer_ms / ELECTION_TICKS as u64).max(1);
        let ticks = (bytes / DIGESTED_BYTES_PER_MS).div_ceil(period_ms);
        let digest = self.digests.entry(sid).or_insert(Digest { through, ticks });
        digest.through = digest.through.max(through);
        digest.ticks = digest.ticks.max(ticks);
    }

    /// A peer has stored the entries up to this index.
    pub(crate) fn note_stored(&mut self, sid: Sid, index: Index) {
        if self
            .digests
            .get(&sid)
            .is_some_and(|digest| digest.through <= index)
        {
            self.digests.remove(&sid);
        }
    }

    /// The connection to a peer is down, and messages in flight on it are lost.
    pub(crate) fn disconnect_peer(&mut self, sid: Sid) {
        self.digests.remove(&sid);
    }

    /// Forgets a peer that is gone and not a member.
    pub(crate) fn forget_peer(&mut self, sid: Sid) {
        self.heard.remove(&sid);
    }

    /// Whether a majority of the voters, including this member, was heard within the last period or
    /// is digesting what this leader sent.
    fn has_quorum(&self, voters: impl Iterator<Item = Sid>) -> bool {
        let (mut count, mut active) = (0, 0);
        for sid in voters {
            count += 1;
            active += usize::from(self.is_heard_within(sid, self.digest_ticks(sid)));
        }
        active > count / 2
    }

    fn digest_ticks(&self, sid: Sid) -> u64 {
        self.digests.get(&sid).map_or(0, |digest| digest.ticks)
    }

    /// Whether this leader has heard from a member within the last period, or has led for less than
    /// that.
    pub(crate) fn has_answered(&self, sid: Sid) -> bool {
        self.is_heard_within(sid, 0)
    }

    /// Like [`Lease::has_answered`], within a period plus `more` ticks.
    fn is_heard_within(&self, sid: Sid, more: u64) -> bool {
        let heard = self.heard.get(&sid).copied().unwrap_or(0);
        sid == self.own || self.ticks - heard.max(self.began) < ELECTION_TICKS as u64 + more
    }

    /// Whether a member is alive and has what was committed a moment ago. A connection alone proves
    /// nothing: it stays open for some time after the peer loses power.
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
    fn a_peer_that_digests_a_long_entry_may_be_silent_for_longer() {
        let voters = || [1, 2, 3].map(sid).into_iter();
        // Half a second more, with an election timer of one second.
        let (long, more) = (500 * DIGESTED_BYTES_PER_MS, ELECTION_TICKS / 2);
        let silence = |events: &dyn Fn(&mut Lease)| {
            let mut lease = Lease::new(sid(1));
            assert!(!lease.tick(false, voters()));
            lease.hear(sid(2));
            lease.send_long(sid(2), Index(7), long, 1000);
            lease.send_long(sid(2), Index(8), 10, 1000);
            events(&mut lease);
            (1..).find(|_| lease.tick(true, voters())).expect("an end")
        };
        assert_eq!(silence(&|_| {}), ELECTION_TICKS + more);
        assert_eq!(
            silence(&|it| it.note_stored(sid(2), Index(7))),
            ELECTION_TICKS + more
        );
        assert_eq!(
            silence(&|it| it.note_stored(sid(2), Index(8))),
            ELECTION_TICKS
        );
        assert_eq!(silence(&|it| it.disconnect_peer(sid(2))), ELECTION_TICKS);
        // By the strict measure the peer is silent.
        let mut lease = Lease::new(sid(1));
        lease.send_long(sid(2), Index(7), long, 1000);
        for _ in 0..ELECTION_TICKS {
            assert!(!lease.tick(true, voters()));
        }
        assert!(!lease.has_answered(sid(2)));
    }

    #[test]
    #[should_panic(expected = "the commit index falls")]
    fn a_commit_index_does_not_fall() {
        let mut lease = Lease::new(sid(1));
        lease.end_tick(Index(8));
        lease.end_tick(Index(7));
    }
}
