//! Conditions that need an operator although the cluster continues: a member that is silent, and
//! one whose log stands still while its leader's advances.
//!
//! ```text
//! leader's commit    5   6   7   8   9  10
//! this member        5   5   5   5   5   5
//!                        |--- age ------|        after LATE_MS, the log and /readyz report it
//! ```
//!
//! A leader hears every peer with each heartbeat. Followers seldom hear each other, so among them
//! an open connection counts as a sign of life, because it is probed.
//!
//! Invariant: each condition is reported once when it begins and once when it ends. This part
//! decides nothing else; `report.rs` shows the times.

use std::collections::BTreeMap;

use corvid_log::cluster::{Index, Sid};
use corvid_rpc::Level;

use super::context::Context;
use super::election::Election;
use super::roster::Roster;
use super::snapshots::sending::Sending;

/// A condition is reported once it has lasted this long, ms; with long election timers, after three
/// of them.
const LATE_MS: u64 = 30_000;
/// Time between two checks, ms.
const LOOK_MS: u64 = 1000;

/// Watches this member's log and its peers for conditions that need an operator.
#[derive(Debug)]
pub(crate) struct Attention {
    began_ms: u64,
    next_ms: u64,
    own: Standstill,
    is_own_told: bool,
    /// The other servers of the list.
    peers: BTreeMap<Sid, Watched>,
}

/// A peer at the last check.
#[derive(Clone, Copy, Debug, Default)]
struct Watched {
    log: Standstill,
    is_still_told: bool,
    is_silence_told: bool,
}

/// A position that does not move although there is something to move to.
#[derive(Clone, Copy, Debug, Default)]
struct Standstill {
    /// The position, and how much of the next step has arrived.
    place: (Index, u64),
    /// When it was first seen there while lacking something; `None` if it lacks nothing.
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
    pub(crate) fn new(now_ms: u64) -> Attention {
        Attention {
            began_ms: now_ms,
            next_ms: now_ms,
            own: Standstill::default(),
            is_own_told: false,
            peers: BTreeMap::new(),
        }
    }

    /// Time for which this member's database has applied nothing although the cluster has committed
    /// more, ms.
    pub(crate) fn own_age_ms(&self, now_ms: u64) -> u64 {
        self.own.age_ms(now_ms)
    }

    /// As leader: time for which a peer has stored nothing although it lacks entries, ms.
    pub(crate) fn peer_age_ms(&self, now_ms: u64, sid: Sid) -> u64 {
        let watched = self.peers.get(&sid);
        watched.map_or(0, |watched| watched.log.age_ms(now_ms))
    }

    /// Time since a peer was last heard from, ms.
    pub(crate) fn silent_ms(
        &self,
        cx: &Context,
        election: &Election,
        now_ms: u64,
        sid: Sid,
    ) -> u64 {
        let began_ms = self.began_ms;
        let peer = cx.peers.get(sid);
        let heard_ms = peer.last_message_ms.unwrap_or(began_ms);
        let changed_ms = peer.changed_ms.unwrap_or(began_ms);
        let since_ms = match (peer.is_up, election.view.won_ms()) {
            (false, _) => heard_ms.max(changed_ms),
            // A connected peer answers this leader's heartbeats, but only since the election was
            // won.
            (true, Some(won_ms)) if cx.node.is_leader() => heard_ms.max(changed_ms).max(won_ms),
            (true, _) => now_ms,
        };
        now_ms.saturating_sub(since_ms)
    }

    /// Checks whether a condition has begun or ended, if a check is due.
    pub(crate) fn look(
        &mut self,
        cx: &mut Context,
        election: &Election,
        roster: &Roster,
        own: OwnLog,
        sending: &Sending,
    ) {
        if cx.now_ms < self.next_ms || cx.has_failed() {
            return;
        }
        self.next_ms = cx.now_ms + LOOK_MS;
        self.look_at_own_log(cx, election, own);
        let others: Vec<Sid> = roster.others(cx.own()).collect();
        self.peers.retain(|sid, _| others.contains(sid));
        for sid in others {
            self.look_at_peer(cx, election, roster, sending.confirmed(sid), sid);
        }
    }

    fn look_at_own_log(&mut self, cx: &mut Context, election: &Election, own: OwnLog) {
        let now_ms = cx.now_ms;
        let (commit, applied) = (known_commit(cx, election), own.applied);
        let lacks = commit > applied && own.is_there;
        let before_ms = self.own.age_ms(now_ms);
        self.own.look(now_ms, (applied, own.received), lacks);
        let age_ms = self.own.age_ms(now_ms);
        let is_late = is_late(age_ms, election.timer_ms());
        if std::mem::replace(&mut self.is_own_told, is_late) == is_late {
            return;
        }
        if is_late {
            let text = format!(
                "this member is stalled: its database has applied nothing after entry {applied} for {} s, \
                 while its leader has committed entry {commit}. Its clients see stale contents. Check its disk \
                 and the log lines before this one, then restart the server",
                age_ms / 1000
            );
            cx.log(Level::Warn, text);
        } else {
            let text = format!(
                "this member makes progress again after {} s: its database has applied entry {applied}",
                before_ms / 1000
            );
            cx.log(Level::Info, text);
        }
    }

    /// `sent`: bytes of a snapshot that the peer has confirmed.
    fn look_at_peer(
        &mut self,
        cx: &mut Context,
        election: &Election,
        roster: &Roster,
        sent: u64,
        sid: Sid,
    ) {
        let (now_ms, timer_ms) = (cx.now_ms, election.timer_ms());
        let silent_ms = self.silent_ms(cx, election, now_ms, sid);
        let is_silent = is_late(silent_ms, timer_ms);
        let commit = cx.node.commit();
        let progress = cx.node.progress(sid).filter(|_| cx.node.is_leader());
        let matched = progress.map_or(commit, |progress| progress.matched);
        let mut watched = self.peers.get(&sid).copied().unwrap_or_default();
        let before_ms = watched.log.age_ms(now_ms);
        watched.log.look(now_ms, (matched, sent), matched < commit);
        let age_ms = watched.log.age_ms(now_ms);
        // A silent member stores nothing either; one report is enough.
        let is_still = is_late(age_ms, timer_ms) && !is_silent;
        let was_silent = std::mem::replace(&mut watched.is_silence_told, is_silent);
        let was_still = std::mem::replace(&mut watched.is_still_told, is_still);
        self.peers.insert(sid, watched);
        let name = roster.name_of(sid);
        if is_silent != was_silent {
            let (level, text) = if is_silent {
                let seconds = silent_ms / 1000;
                let text = format!(
                    "server {name} has been silent for {seconds} s: it is down, unreachable or stopped. The \
                     cluster tolerates one failure less until the server is back or replaced"
                );
                (Level::Warn, text)
            } else {
                (Level::Info, format!("server {name} is back"))
            };
            cx.log(level, text);
        }
        if is_still != was_still {
            let (level, text) = if is_still {
                let seconds = age_ms / 1000;
                let text = format!(
                    "server {name} is stalled: it has stored nothing after entry {matched} for {seconds} s, \
                     while this leader has committed entry {commit}. Check its log and its disk"
                );
                (Level::Warn, text)
            } else {
                let text = format!(
                    "server {name} makes progress again after {} s",
                    before_ms / 1000
                );
                (Level::Info, text)
            };
            // A peer that fell silent has been reported above.
            if is_still || !is_silent {
                cx.log(level, text);
            }
        }
    }
}

/// The state of the member's own log that the checks need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnLog {
    /// The last entry that the database has applied.
    pub(crate) applied: Index,
    /// Stored bytes of a snapshot that is being received.
    pub(crate) received: u64,
    /// Whether the server has a log. A server that is joining, or whose file is damaged, waits for
    /// others, as its status says.
    pub(crate) is_there: bool,
}

/// Whether a condition that has lasted this long is reported.
pub(crate) fn is_late(ms: u64, timer_ms: u64) -> bool {
    ms >= LATE_MS.max(3 * timer_ms)
}

/// The newest entry that this member knows any member to have committed.
pub(crate) fn known_commit(cx: &Context, election: &Election) -> Index {
    election.view.leader_commit().max(cx.node.commit())
}
