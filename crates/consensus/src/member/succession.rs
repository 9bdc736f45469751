//! An election before the timeout: the process of the leader is gone.
//!
//! A process that is killed leaves closed connections and an address that refuses new ones. A follower that sees both does not wait for the
//! election timeout: it forgets the leader, so that it grants votes, and soon asks for a pre-vote itself. Members ask one after the other, by
//! the order of their ids among those that are connected, so that votes are seldom split.
//!
//! Invariant: only the waiting is saved. Pre-votes, votes and terms have their rules, and a member that still hears the leader grants
//! nothing. So a follower that alone has lost the leader disturbs nobody; it returns with the next heartbeat.
//!
//! ```text
//! leader    killed
//! rank 0      | refused, +20 ms: pre-vote, vote, leads
//! rank 1      | refused            grants       (would ask at +100 ms)
//! ```

use corvid_log::cluster::{Sid, Term};
use corvid_rpc::Level;

use super::{Member, Rehearsal};
use crate::message::PeerMessage;

/// Members begin so long after one another, ms: enough for another one's vote to be synced.
const STEP_MS: u64 = 100;
/// The part of the wait that is left to chance, ms.
const SPREAD_MS: u64 = 30;
/// Elections that are begun before the timeout. The first may come before the others have seen that the leader is gone.
const ATTEMPTS_MAX: u32 = 4;
/// The wait for this member's own log to be synced, ms: it counts no vote before.
const SYNC_MS: u64 = 10;

/// See the module.
#[derive(Debug)]
pub(super) struct Succession {
    /// The term whose leader is gone.
    term: Term,
    /// When the next election begins.
    pub(super) next_ms: u64,
    attempts: u32,
}

impl Member {
    /// This peer's process is gone.
    pub(super) fn peer_refused(&mut self, sid: Sid) {
        let is_unfit = self.failure.is_some() || self.repairing.is_some() || self.is_installing();
        let is_delayed = self.rehearsal == Rehearsal::DelayElections;
        if self.node.leader() != Some(sid) || self.is_up(sid) || is_unfit || is_delayed {
            return;
        }
        let term = self.node.term();
        let text = format!(
            "the process of server {}, the leader for term {term}, is gone: an election need not wait",
            self.name_of(sid)
        );
        self.log(Level::Info, text);
        self.node.leader_is_gone();
        let own = self.settings.sid;
        let before = self.membership.sids().into_iter();
        let before = before.filter(|other| *other < own && self.is_up(*other));
        let rank = before.count() as u64;
        let next_ms = self.now_ms + rank * STEP_MS + self.ticker.random(SPREAD_MS);
        self.succession = Some(Succession {
            term,
            next_ms,
            attempts: 0,
        });
    }

    /// Begins an election, if it is time.
    pub(super) fn succession_time(&mut self) {
        let now_ms = self.now_ms;
        let Some(succession) = self.succession.as_mut().filter(|it| it.next_ms <= now_ms) else {
            return;
        };
        let term = self.node.term();
        let is_over = term != succession.term || self.node.leader().is_some();
        if is_over || !self.node.is_voter() || self.failure.is_some() {
            self.succession = None;
            return;
        }
        if self.node.persisted() < self.node.last_index() {
            succession.next_ms = now_ms + SYNC_MS;
            return;
        }
        succession.attempts += 1;
        if succession.attempts == ATTEMPTS_MAX {
            self.succession = None;
        } else {
            let wait_ms = STEP_MS << succession.attempts;
            succession.next_ms = now_ms + wait_ms + self.ticker.random(STEP_MS);
        }
        self.view.election_began(now_ms, false);
        self.log_begun_election("pre-vote");
        self.node.campaign();
    }

    /// Another member stands for election: this one waits, if that one can win.
    pub(super) fn candidacy_noted(&mut self, message: &PeerMessage) {
        let PeerMessage::Vote {
            last_index,
            last_term,
            ..
        } = message
        else {
            return;
        };
        let last = self.node.last_index();
        let own = (self.node.term_of(last).unwrap_or_default(), last);
        if let Some(succession) = &mut self.succession
            && (*last_term, *last_index) >= own
        {
            succession.next_ms = succession.next_ms.max(self.now_ms + 2 * STEP_MS);
        }
    }
}
