//! Conditions that need an operator although the cluster goes on: a member that is not heard of, and
//! one whose log stands still while its leader's moves.
//!
//! ```text
//! leader's commit    5   6   7   8   9  10
//! this member        5   5   5   5   5   5
//!                        |--- age ------|        after LATE_MS the log and /readyz tell
//! ```
//!
//! A leader hears every peer with each heartbeat. Followers hear each other seldom, so among them an
//! open connection counts as a sign of life: it is probed.
//!
//! Invariant: each condition is told once when it begins and once when it ends. Nothing is decided
//! here; `status.rs` shows the times.

use std::collections::BTreeMap;

use corvid_log::cluster::{Index, Servers, Sid};
use corvid_rpc::Level;

use super::Member;

/// A condition that lasts so long is told, ms; with long election timers, three of them.
const LATE_MS: u64 = 30_000;
/// Time between two looks, ms.
const LOOK_MS: u64 = 1000;

/// See the module.
#[derive(Debug)]
pub(super) struct Attention {
    began_ms: u64,
    next_ms: u64,
    own: Standstill,
    is_own_told: bool,
    /// The other servers of the list.
    peers: BTreeMap<Sid, Watched>,
}

/// A peer as it was last seen.
#[derive(Clone, Copy, Debug, Default)]
struct Watched {
    log: Standstill,
    is_still_told: bool,
    is_silence_told: bool,
}

/// A position that did not move while there was something to move to.
#[derive(Clone, Copy, Debug, Default)]
struct Standstill {
    /// The position, and what came on the way to the next one.
    place: (Index, u64),
    /// When it was first seen there, lacking something; `None`: it lacks nothing.
    since_ms: Option<u64>,
}

impl Standstill {
    fn look(&mut self, now_ms: u64, place: (Index, u64), lacks: bool) {
        if place != self.place || !lacks {
            self.place = place;
            self.since_ms = None;
        }
        if lacks {
            self.since_ms = self.since_ms.or(Some(now_ms));
        }
    }

    fn age_ms(&self, now_ms: u64) -> u64 {
        self.since_ms
            .map_or(0, |since_ms| now_ms.saturating_sub(since_ms))
    }
}

impl Attention {
    pub(super) fn new(now_ms: u64) -> Attention {
        Attention {
            began_ms: now_ms,
            next_ms: now_ms,
            own: Standstill::default(),
            is_own_told: false,
            peers: BTreeMap::new(),
        }
    }
}

impl Member {
    /// Whether a condition that has lasted so long is told.
    pub(super) fn is_late(&self, ms: u64) -> bool {
        ms >= LATE_MS.max(3 * self.ticker.timer_ms())
    }

    /// How long this member's database has applied nothing although the cluster has committed more, ms.
    pub(super) fn index_age_ms(&self, now_ms: u64) -> u64 {
        self.attention.own.age_ms(now_ms)
    }

    /// As leader: how long a peer has stored nothing although it lacks entries, ms.
    pub(super) fn peer_index_age_ms(&self, now_ms: u64, sid: Sid) -> u64 {
        let watched = self.attention.peers.get(&sid);
        watched.map_or(0, |watched| watched.log.age_ms(now_ms))
    }

    /// How long a peer has not been heard of, ms.
    pub(super) fn silent_ms(&self, now_ms: u64, sid: Sid) -> u64 {
        let began_ms = self.attention.began_ms;
        let peer = self.peers.get(&sid).copied().unwrap_or_default();
        let heard_ms = peer.last_message_ms.unwrap_or(began_ms);
        let changed_ms = peer.changed_ms.unwrap_or(began_ms);
        let since_ms = match (peer.is_up, self.view.won_ms) {
            (false, _) => heard_ms.max(changed_ms),
            // It answers this leader's heartbeats, since there is one.
            (true, Some(won_ms)) if self.node.is_leader() => heard_ms.max(changed_ms).max(won_ms),
            (true, _) => now_ms,
        };
        now_ms.saturating_sub(since_ms)
    }

    /// The newest entry that this member knows some member to have committed.
    pub(super) fn known_commit(&self) -> Index {
        self.view.leader_commit().max(self.node.commit())
    }

    /// Looks whether something has begun or ended, if it is time.
    pub(super) fn attention_time(&mut self) {
        let now_ms = self.now_ms;
        if now_ms < self.attention.next_ms || self.failure.is_some() || self.has_left {
            return;
        }
        self.attention.next_ms = now_ms + LOOK_MS;
        self.look_at_own_log();
        let servers = self.membership.servers();
        let list = servers.into_iter().flat_map(Servers::iter);
        let own = self.settings.sid;
        let others: Vec<Sid> = list.map(|(sid, _)| sid).filter(|sid| *sid != own).collect();
        self.attention.peers.retain(|sid, _| others.contains(sid));
        for sid in others {
            self.look_at_peer(sid);
        }
    }

    fn look_at_own_log(&mut self) {
        let now_ms = self.now_ms;
        let (commit, applied) = (self.known_commit(), self.applied);
        // A server that has no log yet waits for others, as its status says.
        let lacks = commit > applied && self.joining.is_none() && self.repairing.is_none();
        let received = self.received().map_or(0, |(written, _)| written);
        let before_ms = self.attention.own.age_ms(now_ms);
        self.attention.own.look(now_ms, (applied, received), lacks);
        let age_ms = self.attention.own.age_ms(now_ms);
        let is_late = self.is_late(age_ms);
        if std::mem::replace(&mut self.attention.is_own_told, is_late) == is_late {
            return;
        }
        if is_late {
            let text = format!(
                "this member stands still: its database has applied entry {applied} and nothing more for {} s, while its leader has committed \
                 entry {commit}. Its clients see old contents: look at its disk and at the lines before this one, and start it again",
                age_ms / 1000
            );
            self.log(Level::Warn, text);
        } else {
            let text = format!(
                "this member moves again after {} s: its database has applied entry {applied}",
                before_ms / 1000
            );
            self.log(Level::Info, text);
        }
    }

    fn look_at_peer(&mut self, sid: Sid) {
        let now_ms = self.now_ms;
        let silent_ms = self.silent_ms(now_ms, sid);
        let is_silent = self.is_late(silent_ms);
        let commit = self.node.commit();
        let progress = self.node.progress(sid).filter(|_| self.node.is_leader());
        let matched = progress.map_or(commit, |progress| progress.matched);
        let sent = self
            .sending
            .get(&sid)
            .map_or(0, |sending| sending.confirmed);
        let mut watched = self.attention.peers.get(&sid).copied().unwrap_or_default();
        let before_ms = watched.log.age_ms(now_ms);
        watched.log.look(now_ms, (matched, sent), matched < commit);
        let age_ms = watched.log.age_ms(now_ms);
        // A silent member stores nothing either.
        let is_still = self.is_late(age_ms) && !is_silent;
        let was_silent = std::mem::replace(&mut watched.is_silence_told, is_silent);
        let was_still = std::mem::replace(&mut watched.is_still_told, is_still);
        self.attention.peers.insert(sid, watched);
        let name = self.name_of(sid);
        if is_silent != was_silent {
            let (level, text) = if is_silent {
                let seconds = silent_ms / 1000;
                let text = format!(
                    "server {name} has not been heard of for {seconds} s: it is down, cut off, or has stopped. The cluster is one failure \
                     nearer to its end until it is back or replaced"
                );
                (Level::Warn, text)
            } else {
                (Level::Info, format!("server {name} is heard of again"))
            };
            self.log(level, text);
        }
        if is_still != was_still {
            let (level, text) = if is_still {
                let seconds = age_ms / 1000;
                let text = format!(
                    "server {name} stands still: it has stored entry {matched} and nothing more for {seconds} s, while this leader has \
                     committed entry {commit}. Look at its log and its disk"
                );
                (Level::Warn, text)
            } else {
                let text = format!("server {name} moves again after {} s", before_ms / 1000);
                (Level::Info, text)
            };
            // It went silent, which is told above.
            if is_still || !is_silent {
                self.log(level, text);
            }
        }
    }
}
