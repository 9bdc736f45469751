//! All monitors of one database, and the notifications that have not been sent to each session yet.
//!
//! Groups record commits (see `group`). This file finds the sessions of the members that a commit
//! affects, and composes their updates when the caller asks for them. Cost of a commit: the groups
//! that see it, and their up-to-date members. A session that is already behind is not visited
//! again, however many commits arrive before its next flush.
//!
//! Each commit is reported twice, in the same order: when it is executed ([`Monitors::execute`]),
//! and when its record is stored ([`Monitors::stored`]). Sessions are notified only of stored
//! commits. Requests are answered from the state after the last executed commit. Their changes to
//! monitors take effect once the commits before them are stored
//! ([`Monitors::mark_contents_stored`], [`Monitors::apply`]).
//!
//! Invariant that the caller keeps: the database passed in is at the last executed commit, so a
//! reply with its contents and the later updates fit together. This file does not know sockets;
//! `service` calls it.

mod change;
mod start;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc as StdArc;

use corvid_data::{Arc, Delta, HashSeed, Schema, TableId, TrustedKeys, Uuid, WireError};
use slab::Slab;

use crate::contents::{Contents, ContentsId, Written};
use crate::deferred_body::DeferredBody;
use crate::frame::{Guard, ResultHead};
use crate::group::{Commit, Group, GroupId, MemberState, MonitorKey, UpdateLimits};
use crate::groups::Groups;
use crate::history::History;
use crate::past::PastAnswer;
use crate::segments::SegmentId;
use crate::session::{Monitor, Session};
use crate::speculation::Speculation;
use crate::{Frame, MonitorResult};

pub use change::{ConditionChange, ConditionChanged};

/// A session, numbered by the server. Numbers are not reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

/// Admits the memory of a subscription, in bytes. Returns the value that accounts for it as long as
/// the subscription is in use.
///
/// # Errors
/// There is no room. The client gets this error.
pub type Admit<'a> = &'a dyn Fn(usize) -> Result<Guard, WireError>;

/// The caller's decisions about a request.
#[derive(Clone, Copy)]
pub struct RequestContext<'a> {
    /// Whether the session has this canonical id on another database.
    pub id_in_use: &'a dyn Fn(&[u8]) -> bool,
    /// Admits the memory of a subscription.
    pub admit: Admit<'a>,
    /// The rows of these tables, sorted, as they were after this transaction, which is too old for
    /// the history.
    pub past: &'a dyn Fn(Uuid, &[TableId]) -> PastAnswer<'a>,
}

/// The kind of notifications that a monitor gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// `monitor`, `update`
    V1,
    /// `monitor_cond`, `update2`
    V2,
    /// `monitor_cond_since`, `update3`
    V3,
}

impl Version {
    /// 0, 1 or 2, for counting.
    fn index(self) -> usize {
        self as usize
    }
}

/// The monitors of one database, with its transaction history.
#[derive(Debug)]
pub struct Monitors {
    schema: Arc<Schema>,
    seed: HashSeed,
    groups: Groups,
    monitors: Slab<Monitor>,
    sessions: HashMap<SessionId, Session, TrustedKeys>,
    /// Sessions that may have pending updates, each once ([`Session::is_listed`]).
    listed: Vec<SessionId>,
    history: History,
    speculation: Speculation,
    /// Number of monitors whose notifications carry ids of commits.
    update3_monitors: usize,
    /// The id of the next long contents.
    next_contents: ContentsId,
    limits: UpdateLimits,
    /// Kept to reuse its memory.
    woken: Vec<(MonitorKey, SegmentId)>,
    /// Notifications composed so far, by version.
    notification_counts: [u64; 3],
    /// Other servers send the same transaction ids: see [`Monitors::share_ids`].
    are_ids_shared: bool,
}

/// The outcome of a successful `monitor`, `monitor_cond` or `monitor_cond_since`.
#[derive(Debug)]
pub struct Started {
    /// The monitor's id as canonical JSON.
    pub id: StdArc<[u8]>,
    /// The result for the reply.
    pub result: MonitorResult,
}

/// The outcome of a valid monitor request. Except for `Retry` and `AwaitsPast`, the monitor exists
/// from now on, and nothing is sent to it before [`Monitors::mark_replied`].
#[derive(Debug)]
pub enum StartOutcome {
    /// The reply is complete.
    Started(Started),
    /// The reply is complete once its contents are written.
    ContentsPending(PendingStart),
    /// Equal contents of an earlier state are being written. No monitor was created: repeat the
    /// request once they are written.
    Retry(ContentsId),
    /// The rows as they were after a transaction are being looked for ([`PastAnswer::Wait`]). No
    /// monitor was created: repeat the request once they are found, or are not.
    AwaitsPast(Uuid, Vec<TableId>),
}

/// A monitor whose initial contents are being written.
#[derive(Debug)]
pub struct PendingStart {
    /// The monitor's id as canonical JSON.
    pub id: StdArc<[u8]>,
    /// The contents of its reply.
    pub contents: ContentsId,
    /// The reply without the contents.
    pub head: ResultHead,
    /// The order to carry out; `None` if an earlier request ordered the contents.
    pub order: Option<Contents>,
}

impl Monitors {
    /// No monitors. The history begins with the state after `last_txn`; all zeros mean that this
    /// database keeps no history, as long as its commits have no ids either. Hashes use `seed`; no
    /// update depends on it.
    #[must_use]
    pub fn new(schema: Arc<Schema>, last_txn: Uuid, seed: HashSeed) -> Monitors {
        Monitors {
            groups: Groups::new(&schema, seed),
            speculation: Speculation::new(&schema),
            schema,
            seed,
            monitors: Slab::new(),
            sessions: HashMap::default(),
            listed: Vec::new(),
            history: History::new(last_txn),
            update3_monitors: 0,
            next_contents: ContentsId(0),
            limits: UpdateLimits::USUAL,
            woken: Vec::new(),
            notification_counts: [0; 3],
            are_ids_shared: false,
        }
    }

    /// Keeps every commit in the history from now on, whether or not a client of this server got
    /// its id: other servers send the same transaction ids.
    pub fn share_ids(&mut self) {
        self.are_ids_shared = true;
    }

    /// The commits that are executed and not stored, oldest first.
    pub fn unstored(&self) -> impl Iterator<Item = &Arc<Delta>> {
        self.speculation.deltas()
    }

    /// The id of the newest stored commit; all zeros without a history.
    #[must_use]
    pub fn last_stored(&self) -> Uuid {
        self.history.last_txn()
    }

    /// Whether ids of commits are sent to clients, or the last one that was is in the history.
    #[must_use]
    pub fn sends_ids(&self) -> bool {
        self.update3_monitors > 0 || self.history.is_sent()
    }

    /// Caches written contents for later requests from the same state.
    pub fn written(&mut self, written: &Written) {
        if let Some(group) = self.groups.find_mut(written.group) {
            let as_of = self.speculation.as_of(group.subscription());
            group.written(written, as_of);
        }
    }

    /// Drops all cached contents.
    pub fn drop_contents(&mut self) {
        self.groups.iter_mut().for_each(Group::drop_contents);
    }

    /// Called once all commits that the contents of a monitor include are stored: from now on the
    /// monitor is notified only of later ones. Returns false if the monitor does not exist.
    pub fn mark_contents_stored(&mut self, session: SessionId, id: &[u8]) -> bool {
        let Some(key) = self.find(session, id) else {
            return false;
        };
        let monitor = &mut self.monitors[key.0];
        assert!(monitor.awaits_reply, "its reply comes before its updates");
        // The monitor joined when its request was executed. Since then, commits that its contents
        // already include were stored and recorded for it. They are dropped, or the client would
        // get them twice.
        if let MemberState::Behind(segment) = monitor.state {
            monitor.state = self
                .groups
                .get_mut(monitor.group)
                .skip_pending(key, segment);
        }
        true
    }

    /// Called when the reply to a monitor's request is sent: from now on the monitor gets updates,
    /// first those that it has missed.
    pub fn mark_replied(&mut self, session: SessionId, id: &[u8]) {
        let Some(state) = self.sessions.get_mut(&session) else {
            return;
        };
        let Some(key) = state.monitors.get(id) else {
            return;
        };
        let monitor = &mut self.monitors[key.0];
        assert!(monitor.awaits_reply, "a request is answered once");
        monitor.awaits_reply = false;
        if matches!(monitor.state, MemberState::Behind(_)) {
            state.dirty.push(*key);
            if state.list() {
                self.listed.push(session);
            }
        }
    }

    /// Whether a session has a monitor with this canonical id.
    #[must_use]
    pub fn contains(&self, session: SessionId, id: &[u8]) -> bool {
        self.find(session, id).is_some()
    }

    fn find(&self, session: SessionId, id: &[u8]) -> Option<MonitorKey> {
        self.sessions.get(&session)?.monitors.get(id).copied()
    }

    fn leave(&mut self, key: MonitorKey, group: GroupId, state: MemberState) {
        // Otherwise another member would be removed in its place, and would get no further updates.
        assert!(
            self.groups.get(group).has(key, state),
            "a group knows the states of its members"
        );
        // The group filled the gap in its list with another clean member, which has a new index.
        if let Some((moved, state)) = self.groups.leave(&self.schema, group, state) {
            self.monitors[moved.0].state = state;
        }
    }

    /// Removes a monitor by its canonical id, and drops its pending changes. Returns false if it is
    /// unknown.
    pub fn cancel(&mut self, session: SessionId, id: &[u8]) -> bool {
        let Some(session) = self.sessions.get_mut(&session) else {
            return false;
        };
        let Some(key) = session.monitors.remove(id) else {
            return false;
        };
        session.dirty.retain(|dirty| *dirty != key);
        self.remove(key);
        true
    }

    /// Removes a session and its monitors.
    pub fn remove_session(&mut self, session: SessionId) {
        if let Some(session) = self.sessions.remove(&session) {
            for key in session.monitors.into_values() {
                self.remove(key);
            }
        }
    }

    fn remove(&mut self, key: MonitorKey) {
        let monitor = self.monitors.remove(key.0);
        self.update3_monitors -= usize::from(monitor.version == Version::V3);
        self.leave(key, monitor.group, monitor.state);
    }

    /// Removes every monitor, because the database was removed or converted, and returns them as
    /// (session, canonical id). No update is pending afterwards; whether sessions are ready is
    /// kept. Monitors that have no reply yet are not returned.
    pub fn remove_all(&mut self) -> Vec<(SessionId, StdArc<[u8]>)> {
        self.groups = Groups::new(&self.schema, self.seed);
        self.update3_monitors = 0;
        self.listed.clear();
        // An unknown session counts as ready, so only those that are not ready must be kept.
        self.sessions.retain(|_, session| {
            session.monitors.clear();
            session.dirty.clear();
            session.is_listed = false;
            !session.is_ready
        });
        let monitors = std::mem::take(&mut self.monitors);
        monitors
            .into_iter()
            .filter(|(_, monitor)| !monitor.awaits_reply)
            .map(|(_, monitor)| (monitor.session, monitor.id))
            .collect()
    }

    /// Switches to another schema (docs/spec/protocol.md 4.15). Removes every monitor, as
    /// [`Monitors::remove_all`] does, and restarts the history with the conversion, `last_txn`.
    pub fn convert(
        &mut self,
        schema: Arc<Schema>,
        last_txn: Uuid,
    ) -> Vec<(SessionId, StdArc<[u8]>)> {
        assert!(self.speculation.is_empty(), "every commit is stored");
        self.speculation = Speculation::new(&schema);
        self.schema = schema;
        self.history = History::new(last_txn);
        self.remove_all()
    }

    /// Restarts the history with the state after `last_txn`; all zeros mean that there is no
    /// history.
    pub fn restart_history(&mut self, last_txn: Uuid) {
        self.history = History::new(last_txn);
    }

    /// Records a commit that is executed and stored at once.
    pub fn commit(&mut self, delta: &Arc<Delta>, txn: Uuid, atoms: u64) {
        self.execute(delta, txn);
        self.stored(delta, atoms);
    }

    /// Records that a commit is executed. `txn` is its id, all zeros if no history is kept. An
    /// empty delta is not a commit.
    pub fn execute(&mut self, delta: &Arc<Delta>, txn: Uuid) {
        if !delta.is_empty() {
            self.speculation.execute(delta, txn);
        }
    }

    /// Records that the oldest commit that was only executed is stored. Visits only groups that the
    /// commit can affect. `atoms` is the number of atoms in the database now; it limits the history
    /// (docs/spec/protocol.md 4.9).
    ///
    /// # Panics
    /// If the oldest commit is not `delta`.
    pub fn stored(&mut self, delta: &Arc<Delta>, atoms: u64) {
        if delta.is_empty() {
            return;
        }
        let stored = self.speculation.pop_stored();
        let Some((number, txn, delta)) = stored.filter(|(_, _, oldest)| Arc::ptr_eq(oldest, delta))
        else {
            unreachable!("commits are stored in the order of their execution");
        };
        // The history comes before any flush, which takes the newest transaction id from it.
        let is_sent = self.are_ids_shared || self.update3_monitors > 0;
        self.history.record(txn, &delta, atoms, is_sent);
        let mut woken = std::mem::take(&mut self.woken);
        let commit = Commit {
            number,
            txn,
            delta: &delta,
        };
        // From here on the commit is pending for every member that sees it. Only members that were
        // clean are woken: the others are in line already, and their next flush includes the
        // commit.
        self.groups.commit(&self.schema, commit, &mut woken);
        for (key, segment) in woken.drain(..) {
            let monitor = &mut self.monitors[key.0];
            assert!(
                matches!(monitor.state, MemberState::Clean(_)),
                "a member that is behind keeps its segment"
            );
            monitor.state = MemberState::Behind(segment);
            // Nothing may precede the reply. `mark_replied` puts the monitor in line.
            if monitor.awaits_reply {
                continue;
            }
            let session = self.sessions.get_mut(&monitor.session);
            assert!(session.is_some(), "a monitor is one of a session");
            if let Some(session) = session {
                session.dirty.push(key);
                if session.list() {
                    self.listed.push(monitor.session);
                }
            }
        }
        self.woken = woken;
    }

    /// Records that the commits that were only executed are undone. The caller cancels monitors
    /// that joined since the first of them.
    pub fn undo(&mut self) {
        // Members need no undo: they are notified only of stored commits. Only texts that were made
        // ahead of time may include an undone commit.
        self.groups.drop_precomputed();
        let last = self.speculation.undo();
        self.groups.iter_mut().for_each(|group| group.undo(last));
    }

    /// Orders updates of a long commit to be composed while its record is written. Another thread
    /// carries out or drops the orders. Returns nothing if there are so many different groups that
    /// each update would serve few members.
    pub fn precompute_updates(&mut self, delta: &Arc<Delta>) -> Vec<StdArc<dyn DeferredBody>> {
        self.groups.precompute(&self.schema, delta)
    }

    /// Large commits that the history has dropped since the last call, with their atoms. Freeing
    /// them takes long.
    pub fn take_dropped(&mut self) -> Vec<(Arc<Delta>, u64)> {
        self.history.take_dropped()
    }

    /// Appends the sessions that are ready and have pending updates, each once. The caller flushes
    /// each of them. A session that it does not flush is listed again after
    /// [`Monitors::set_ready`], not with the next commit.
    pub fn take_pending(&mut self, sessions: &mut Vec<SessionId>) {
        for id in self.listed.drain(..) {
            if let Some(session) = self.sessions.get_mut(&id) {
                session.is_listed = false;
                if session.is_ready && !session.dirty.is_empty() {
                    sessions.push(id);
                }
            }
        }
    }

    /// Upper bound on the number of sessions that [`Monitors::take_pending`] visits.
    #[must_use]
    pub fn pending_len(&self) -> usize {
        self.listed.len()
    }

    /// Whether changes are merging for a session that is not ready. Its next update may be long.
    #[must_use]
    pub fn is_behind(&self, session: SessionId) -> bool {
        let found = self.sessions.get(&session);
        found.is_some_and(|session| !session.is_ready && !session.dirty.is_empty())
    }

    /// The last value passed to [`Monitors::set_ready`]; true for an unknown session.
    #[must_use]
    pub fn is_ready(&self, session: SessionId) -> bool {
        let found = self.sessions.get(&session);
        found.is_none_or(|session| session.is_ready)
    }

    /// Sets whether a session's output is drained, so that updates may be composed for it. Until
    /// then its changes merge.
    pub fn set_ready(&mut self, session: SessionId, ready: bool) {
        // Unknown sessions are ready by default, so only the opposite is worth an entry.
        if ready && !self.sessions.contains_key(&session) {
            return;
        }
        let state = self.sessions.entry(session).or_insert_with(Session::new);
        state.is_ready = ready;
        if state.list() {
            self.listed.push(session);
        }
    }

    /// Sets the number of rows up to which an update is written at once.
    pub fn set_update_rows_max(&mut self, rows: usize) {
        self.limits.rows_max = rows;
    }

    /// Sets the length of text, in bytes, that ends an update of [`Monitors::flush_step`].
    pub fn set_step_bytes(&mut self, bytes: u64) {
        self.limits.step_bytes = bytes;
    }

    /// Composes all pending updates of a session, whether or not it is ready: they must precede a
    /// reply. Updates of many rows get a body that is written later ([`DeferredBody`]) and may turn
    /// out to be [`NOTHING`].
    pub fn flush(&mut self, session: SessionId, frames: &mut Vec<Frame>) {
        while self.flush_step(session, frames) {}
    }

    /// Composes the next update of each monitor of a session: all that is pending, or a step if
    /// much is pending and members stand at different positions. Returns whether anything is left.
    pub fn flush_step(&mut self, session: SessionId, frames: &mut Vec<Frame>) -> bool {
        let Some(session) = self.sessions.get_mut(&session) else {
            return false;
        };
        session.dirty.retain(|key| {
            let monitor = &mut self.monitors[key.0];
            assert!(
                !monitor.awaits_reply,
                "a monitor is sent nothing before its reply"
            );
            let MemberState::Behind(segment) = monitor.state else {
                unreachable!("only monitors that are behind have pending updates");
            };
            let group = self.groups.get_mut(monitor.group);
            let update = group.update_for(&self.schema, *key, segment, self.limits);
            // The member moves on even if its changes cancel out and nothing is sent.
            monitor.state = update.state;
            if let Some(body) = update.body {
                // Without a step the update covers every stored commit, so its id is the newest.
                let txn = update.txn.unwrap_or_else(|| self.history.last_txn());
                self.notification_counts[monitor.version.index()] += 1;
                frames.push(Frame::update(monitor.version, &monitor.id, txn, body));
            }
            matches!(update.state, MemberState::Behind(_))
        });
        !session.dirty.is_empty()
    }

    /// Id of the newest executed transaction; all zeros without a history.
    #[must_use]
    pub fn last_txn(&self) -> Uuid {
        let executed = self.speculation.last_txn();
        executed.unwrap_or_else(|| self.history.last_txn())
    }

    /// Number of commits in the transaction history, and their atoms.
    #[must_use]
    pub fn history_size(&self) -> (usize, u64) {
        self.history.size()
    }

    /// Numbers of `update`, `update2` and `update3` notifications composed so far.
    #[must_use]
    pub fn notification_counts(&self) -> [u64; 3] {
        self.notification_counts
    }

    /// Checks between two calls that monitors, their groups and their sessions agree. O(monitors
    /// and their changes): for simulations.
    ///
    /// # Panics
    /// If they disagree.
    pub fn check(&self) {
        let mut members: BTreeMap<usize, Vec<(MonitorKey, MemberState)>> = BTreeMap::new();
        for (key, monitor) in &self.monitors {
            let key = MonitorKey(key);
            let of_group = members.entry(monitor.group.0).or_default();
            of_group.push((key, monitor.state));
            assert_eq!(
                self.find(monitor.session, &monitor.id),
                Some(key),
                "a session finds its monitor"
            );
            let session = &self.sessions[&monitor.session];
            let times = session.dirty.iter().filter(|dirty| **dirty == key).count();
            let is_due = !monitor.awaits_reply && matches!(monitor.state, MemberState::Behind(_));
            assert_eq!(
                times,
                usize::from(is_due),
                "a monitor is in line once while it is behind and answered"
            );
        }
        self.groups.check(&members);
        self.speculation.check();
        self.history.check();
        let versions = self.monitors.iter().map(|(_, monitor)| monitor.version);
        let update3 = versions.filter(|version| *version == Version::V3).count();
        assert_eq!(self.update3_monitors, update3, "those with ids are counted");
        let of_sessions = self.sessions.values();
        let monitors: usize = of_sessions.map(|session| session.monitors.len()).sum();
        assert_eq!(monitors, self.monitors.len(), "each is one of a session");
        for (id, session) in &self.sessions {
            let times = self.listed.iter().filter(|listed| *listed == id).count();
            assert_eq!(
                times,
                usize::from(session.is_listed),
                "{id:?}: it is listed once"
            );
            assert!(
                session.is_listed || !session.is_ready || session.dirty.is_empty(),
                "{id:?}: a flush is due while it is ready and has pending updates"
            );
        }
    }

    /// Number of monitors, for `memory/show`.
    #[must_use]
    pub fn len(&self) -> usize {
        self.monitors.len()
    }

    /// Whether there are no monitors.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
