//! An election before the timeout, because the process of the leader is gone.
//!
//! A killed process leaves closed connections and an address that refuses new ones. A follower that
//! sees both does not wait for the election timeout. It forgets the leader, so that it grants
//! votes, and soon starts a pre-vote itself. Members start one after the other, in the order of
//! their ids among the connected ones, so votes are seldom split.
//!
//! Invariant: only the waiting is saved. Pre-votes, votes and terms follow their usual rules, and a
//! member that still hears the leader grants nothing. So a follower that alone has lost the leader
//! disturbs nobody, and returns with the next heartbeat.
//!
//! ```text
//! leader    killed
//! rank 0      | refused, +20 ms: pre-vote, vote, leads
//! rank 1      | refused            grants       (would ask at +100 ms)
//! ```

use corvid_log::cluster::{Sid, Term};
use corvid_rpc::Level;

use super::ticker::Ticker;
use crate::member::context::Context;
use crate::member::roster::Roster;
use crate::message::PeerMessage;

/// Delay between the starts of successive members, ms: enough for another member's vote to be
/// synced.
const STEP_MS: u64 = 100;
/// The random part of the wait, ms.
const SPREAD_MS: u64 = 30;
/// Maximum number of elections begun before the timeout. The first may come before the others have
/// noticed that the leader is gone.
const ATTEMPTS_MAX: u32 = 4;
/// The wait for this member's own log to be synced, ms: until then it counts no vote.
const SYNC_MS: u64 = 10;

/// A pending election after the leader's process is gone.
#[derive(Debug)]
pub(crate) struct Succession {
    /// The term whose leader is gone.
    term: Term,
    /// When the next election begins, ms.
    next_ms: u64,
    attempts: u32,
}

impl Succession {
    /// The leader's process is gone: forgets the leader, and schedules an election.
    pub(crate) fn begin(
        cx: &mut Context,
        roster: &Roster,
        ticker: &mut Ticker,
        leader: Sid,
    ) -> Succession {
        let term = cx.node.term();
        let text = format!(
            "the process of server {}, the leader for term {term}, is gone: starting an election without waiting",
            roster.name_of(leader)
        );
        cx.log(Level::Info, text);
        cx.node.leader_is_gone();
        let own = cx.own();
        let others = roster.others(own);
        let before = others.filter(|other| *other < own && cx.peers.is_up(*other));
        let rank = before.count() as u64;
        let next_ms = cx.now_ms + rank * STEP_MS + ticker.random(SPREAD_MS);
        Succession {
            term,
            next_ms,
            attempts: 0,
        }
    }

    pub(crate) fn next_ms(&self) -> u64 {
        self.next_ms
    }

    /// Whether nothing is left to do: another term has begun, a leader is known, or this member
    /// cannot stand.
    pub(crate) fn is_over(&self, cx: &Context) -> bool {
        let is_over = cx.node.term() != self.term || cx.node.leader().is_some();
        is_over || !cx.node.is_voter() || cx.has_failed()
    }

    /// An attempt is due. Returns whether an election begins now, and whether it is the last one.
    pub(crate) fn attempt(&mut self, cx: &Context, ticker: &mut Ticker) -> (bool, bool) {
        if cx.node.persisted() < cx.node.last_index() {
            self.next_ms = cx.now_ms + SYNC_MS;
            return (false, false);
        }
        self.attempts += 1;
        assert!(self.attempts <= ATTEMPTS_MAX, "the last attempt ends this");
        let is_last = self.attempts == ATTEMPTS_MAX;
        if !is_last {
            let wait_ms = STEP_MS << self.attempts;
            self.next_ms = cx.now_ms + wait_ms + ticker.random(STEP_MS);
        }
        (true, is_last)
    }

    /// Another member stands for election: waits, if that member can win.
    pub(crate) fn note_candidacy(&mut self, cx: &Context, message: &PeerMessage) {
        let PeerMessage::Vote {
            last_index,
            last_term,
            ..
        } = message
        else {
            return;
        };
        let last = cx.node.last_index();
        let own = (cx.node.term_of(last).unwrap_or_default(), last);
        if (*last_term, *last_index) >= own {
            self.next_ms = self.next_ms.max(cx.now_ms + 2 * STEP_MS);
        }
    }
}
