//! Monitors of a database's sessions: their requests, their initial contents, their quota, and when
//! their updates leave.
//!
//! | File | Has |
//! |---|---|
//! | `monitor_requests.rs` | requests about monitors: the part done at once, and the part done when the commits before them are stored |
//! | `initial_contents.rs` | initial contents that jobs write, and the requests that wait for them |
//! | `monitor_quota.rs` | how much each session may have the database keep |
//! | `flush_pacing.rs` | updates: before each reply of their session, and by flushes |
//!
//! Invariant: a session gets the updates of all released commits before any later reply, none
//! before its monitor is answered, and none for a commit that is not released. Subscriptions read
//! tables when a monitor begins, and never otherwise; they know no transaction and no file. Replies
//! are composed in the outputs that they are given, with what they read of the environment.

mod flush_pacing;
mod initial_contents;
mod monitor_quota;
mod monitor_requests;

use std::collections::HashMap;
use std::sync::Arc as StdArc;

use corvid_data::{Arc, Delta, TrustedKeys, Uuid};
use corvid_monitor::{Monitors, SessionId};

use super::barrier::{Activity, UnderWay};
use super::replies::Outputs;
use crate::job::garbage::Garbage;
use crate::message::SessionInfo;
use flush_pacing::FlushPacing;
use initial_contents::InitialContents;
use monitor_quota::MonitorQuota;

pub(super) use initial_contents::{AwaitedReply, WrittenContents};
pub(super) use monitor_requests::Begun;

/// The subscriptions of one database.
pub(super) struct Subscriptions {
    pub(super) monitors: Monitors,
    contents: InitialContents,
    quota: MonitorQuota,
    pacing: FlushPacing,
    /// The sessions that have had a monitor.
    sessions: HashMap<SessionId, StdArc<SessionInfo>, TrustedKeys>,
    /// A transaction history is kept for `monitor_cond_since`.
    keeps_history: bool,
}

impl Subscriptions {
    pub(super) fn new(monitors: Monitors, keeps_history: bool) -> Subscriptions {
        Subscriptions {
            monitors,
            contents: InitialContents::default(),
            quota: MonitorQuota::default(),
            pacing: FlushPacing::default(),
            sessions: HashMap::default(),
            keeps_history,
        }
    }

    /// Reports whether anything is monitored, or anything of a session is left behind.
    pub(super) fn report_activity(&self, activity: &mut Activity) {
        let Subscriptions {
            monitors,
            contents,
            quota,
            // A flush that is due is for a monitor.
            pacing: _,
            sessions,
            keeps_history: _,
        } = self;
        let is_idle =
            contents.is_idle() && quota.is_empty() && sessions.is_empty() && monitors.is_empty();
        activity.report(UnderWay::Subscriptions, !is_idle);
    }

    /// Whether a transaction history is kept.
    pub(super) fn keeps_history(&self) -> bool {
        self.keeps_history
    }

    /// Begins a new history with `last_txn`, or ends it.
    pub(super) fn restart_history(&mut self, is_kept: bool, last_txn: Uuid) {
        self.keeps_history = is_kept;
        self.monitors.restart_history(last_txn);
    }

    /// A commit is released: sessions may see it. The database has `atoms` atoms.
    pub(super) fn release_commit(&mut self, delta: &Arc<Delta>, atoms: u64, outputs: &mut Outputs) {
        self.monitors.stored(delta, atoms);
        self.pacing.add(delta.changes.len());
        for (dropped, atoms) in self.monitors.take_dropped() {
            outputs.free(Garbage::commit(dropped, atoms));
        }
    }

    /// A session has ended.
    pub(super) fn remove_session(&mut self, session: SessionId) {
        self.sessions.remove(&session);
        self.quota.remove_session(session);
        self.monitors.remove_session(session);
    }

    /// The database is removed, and its monitors have been canceled.
    pub(super) fn forget_sessions(&mut self) {
        self.sessions.clear();
        self.quota = MonitorQuota::default();
    }
}
