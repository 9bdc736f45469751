//! Monitors of a database's sessions: their requests, their initial contents, their quota, and when
//! their updates leave.
//!
//! | File | Has |
//! |---|---|
//! | `answers.rs` | replies to clients, each after the updates of its session |
//! | `monitor_requests.rs` | requests about monitors: the part done at once, and the part done when the commits before them are stored |
//! | `initial_contents.rs` | initial contents that jobs write, and the requests that wait for them |
//! | `absences.rs` | searches of the files for clients that come back after a long time |
//! | `monitor_quota.rs` | how much each session may have the database keep |
//! | `flush_pacing.rs` | updates: before each reply of their session, and by flushes |
//!
//! Invariant: a session gets the updates of all released commits before any later reply, none
//! before its monitor is answered, and none for a commit that is not released. Subscriptions read
//! tables when a monitor begins, and never otherwise; they know no transaction and no file. Replies
//! are composed in the outputs that they are given, with what they read of the environment.

mod absences;
mod answers;
mod flush_pacing;
mod initial_contents;
mod monitor_quota;
mod monitor_requests;

use std::collections::HashMap;
use std::sync::Arc as StdArc;

use corvid_data::{Arc, Delta, TrustedKeys, Uuid};
use corvid_monitor::{Monitors, SessionId};

use crate::barrier::{Activity, UnderWay};
use crate::environment::Environment;
use crate::job::Job;
use crate::job::garbage::Garbage;
use crate::message::SessionInfo;
use crate::replies::{Answer, Origin, Outputs, Pending, WrittenBodies};
use absences::Absences;
use flush_pacing::FlushPacing;
use initial_contents::InitialContents;
use monitor_quota::MonitorQuota;

pub(super) use absences::PastSource;
pub(super) use answers::ReplyParts;
pub(super) use initial_contents::WrittenContents;
pub(super) use monitor_requests::Begun;

/// The subscriptions of one database.
pub(super) struct Subscriptions {
    monitors: Monitors,
    contents: InitialContents,
    absences: Absences,
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
            absences: Absences::default(),
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
            absences,
            quota,
            // A flush that is due is for a monitor.
            pacing: _,
            sessions,
            keeps_history: _,
        } = self;
        let is_idle = contents.is_idle()
            && absences.is_idle()
            && quota.is_empty()
            && sessions.is_empty()
            && monitors.is_empty();
        activity.report(UnderWay::Subscriptions, !is_idle);
    }

    /// Whether a transaction history is kept.
    pub(super) fn keeps_history(&self) -> bool {
        self.keeps_history
    }

    /// Whether a client may have an id of a commit since which the history could be complete.
    pub(super) fn sends_ids(&self) -> bool {
        self.monitors.sends_ids()
    }

    /// The id of the newest stored commit.
    pub(super) fn last_stored(&self) -> Uuid {
        self.monitors.last_stored()
    }

    /// Begins a new history with `last_txn`, or ends it.
    pub(super) fn restart_history(&mut self, is_kept: bool, last_txn: Uuid) {
        self.keeps_history = is_kept;
        self.monitors.restart_history(last_txn);
        self.absences.abandon();
    }

    /// A commit is released: sessions may see it. The database has `atoms` atoms.
    pub(super) fn release_commit(&mut self, delta: &Arc<Delta>, atoms: u64, outputs: &mut Outputs) {
        self.monitors.stored(delta, atoms);
        self.pacing.add(delta.changes.len());
        for (dropped, atoms) in self.monitors.take_dropped() {
            outputs.free(Garbage::commit(dropped, atoms));
        }
    }

    /// A commit is executed: requests from now on see it. `txn` is its id.
    pub(super) fn execute(&mut self, delta: &Arc<Delta>, txn: Uuid) {
        self.absences.observe(delta);
        self.monitors.execute(delta, txn);
    }

    /// The jobs that compose the updates of a long commit, before it is executed here.
    pub(super) fn precompute_updates(
        &mut self,
        delta: &Arc<Delta>,
    ) -> impl Iterator<Item = Job> + use<> {
        let updates = self.monitors.precompute_updates(delta);
        updates.into_iter().map(Job::PrecomputedUpdate)
    }

    /// All commits that are not released are undone, and so are the requests about monitors among
    /// these entries, which have not taken effect: they are executed again.
    pub(super) fn undo(&mut self, undone: &[Pending], outputs: &mut Outputs) {
        self.monitors.undo();
        let changes = undone
            .iter()
            .filter(|entry| entry.answer.changes_monitors());
        for entry in changes {
            if let Origin::Client(request) = &entry.origin {
                if let Answer::Joined(joining) = &entry.answer {
                    self.undo_joined(request.session, joining, outputs);
                }
                outputs.outboxes.end_monitor_change(request.session);
            }
        }
    }

    /// Whether a session has yet to read updates, so that its next ones may be long.
    pub(super) fn is_behind(&self, session: SessionId) -> bool {
        self.monitors.is_behind(session)
    }

    /// How many monitors there are.
    pub(super) fn len(&self) -> usize {
        self.monitors.len()
    }

    /// Commits in the history, and their atoms.
    pub(super) fn history_size(&self) -> (usize, u64) {
        self.monitors.history_size()
    }

    /// `update`, `update2` and `update3` notifications composed so far.
    pub(super) fn notification_counts(&self) -> [u64; 3] {
        self.monitors.notification_counts()
    }

    /// A session has read everything. The caller resumes it if it was blocked for that.
    pub(super) fn mark_drained(&mut self, session: SessionId, outputs: &mut Outputs) {
        outputs.mark_drained(session, &mut self.monitors);
    }

    /// A body is written, perhaps for another session: delivers everything that need not wait any
    /// longer.
    pub(super) fn deliver_written(
        &mut self,
        session: SessionId,
        outputs: &mut Outputs,
        environment: &Environment,
    ) -> WrittenBodies {
        outputs.deliver_written(session, &mut self.monitors, environment)
    }

    /// Writes and delivers every deferred body at once.
    pub(super) fn write_all_bodies(&mut self, outputs: &mut Outputs) -> WrittenBodies {
        outputs.write_all_bodies(&mut self.monitors)
    }

    /// A session has ended.
    pub(super) fn remove_session(&mut self, session: SessionId) {
        self.sessions.remove(&session);
        self.quota.remove_session(session);
        self.absences.remove_session(session);
        self.monitors.remove_session(session);
    }

    /// Checks monitors, groups and quota, between two inputs. O(monitors and their changes): for
    /// simulations.
    ///
    /// # Panics
    /// They contradict themselves or one another.
    pub(super) fn check(&self) {
        self.monitors.check();
        self.quota.check();
        assert_eq!(
            self.monitors.len(),
            self.quota.len(),
            "each monitor counts once for its session"
        );
    }

    /// The database is removed, and its monitors have been canceled.
    pub(super) fn forget_sessions(&mut self) {
        assert!(self.monitors.is_empty(), "its monitors have been canceled");
        self.sessions.clear();
        self.quota = MonitorQuota::default();
    }
}
