//! All monitors of one database and what each session has yet to be told.
//!
//! Commits are noted in groups (see `group`); here sessions are found when a group wakes a member, and told when the caller asks.
//! Cost of a commit: the groups that see it and the members that knew everything before; a session that is behind already is
//! not visited again, however many commits come before it is told.
//!
//! A commit comes twice: when it is executed ([`Monitors::execute`]), and when its record is stored ([`Monitors::stored`]), in the same
//! order. Sessions are told of stored commits only. Requests are answered from the state after the last executed one; what they change
//! here takes effect when the commits before them are stored ([`Monitors::catch_up`], [`Monitors::apply`]).
//!
//! Invariant kept by the caller: the database handed in stands exactly at the last commit executed, so that a reply with its
//! content and the updates that follow fit together. Knows no sockets; `service` calls it.

mod change;
mod start;

use std::collections::HashMap;
use std::sync::Arc as StdArc;

use corvid_data::{Arc, Delta, HashSeed, Schema, TrustedKeys, Uuid};
use slab::Slab;

use crate::contents::{Contents, ContentsId, Written};
use crate::frame::ResultHead;
use crate::group::{Group, GroupId, MonitorKey, Place};
use crate::groups::Groups;
use crate::history::History;
use crate::late::LateText;
use crate::segments::SegmentId;
use crate::session::{Monitor, Session};
use crate::speculation::Speculation;
use crate::{Frame, MonitorResult};

pub use change::{ConditionChange, ConditionChanged};

/// A session, numbered by the server; numbers are not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

/// Changed rows of an update that the database writes itself; some 300 us.
const UPDATE_ROWS_MAX: usize = 1000;

/// Which notifications a monitor gets.
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
    /// Sessions with something to tell, each once ([`Session::is_listed`]).
    listed: Vec<SessionId>,
    history: History,
    speculation: Speculation,
    /// Monitors that are told ids of commits.
    followers: usize,
    /// Of the next long contents.
    next_contents: ContentsId,
    /// Updates of more rows are written later.
    update_rows_max: usize,
    /// Kept for its memory.
    woken: Vec<(MonitorKey, SegmentId)>,
    /// Notifications composed so far, by version.
    told: [u64; 3],
}

/// Outcome of a successful `monitor`, `monitor_cond` or `monitor_cond_since`.
#[derive(Debug)]
pub struct Started {
    /// Canonical JSON of the monitor's id.
    pub id: StdArc<[u8]>,
    /// What to reply.
    pub result: MonitorResult,
}

/// How a valid request to monitor goes on. The monitor is there but in the last case, and is told nothing before
/// [`Monitors::answered`].
#[derive(Debug)]
pub enum Begun {
    /// The reply is there.
    Started(Started),
    /// The reply is there when its contents are.
    Awaited(Awaited),
    /// Equal contents are being written, but of an earlier state: no monitor is there, ask again when they are.
    Later(ContentsId),
}

/// A monitor whose first contents are being written.
#[derive(Debug)]
pub struct Awaited {
    /// Canonical JSON of the monitor's id.
    pub id: StdArc<[u8]>,
    /// What it waits for.
    pub contents: ContentsId,
    /// The reply but for the contents.
    pub head: ResultHead,
    /// To be carried out; `None`: it was ordered before.
    pub order: Option<Contents>,
}

impl Monitors {
    /// No monitors; the history begins with the state after `last_txn` (all zeros: this database keeps no history, as long as
    /// commits have no ids either). What is found by hash is found with `seed`; no update depends on that.
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
            followers: 0,
            next_contents: ContentsId(0),
            update_rows_max: UPDATE_ROWS_MAX,
            woken: Vec::new(),
            told: [0; 3],
        }
    }

    /// Takes note of contents that have been written: they are kept for those who ask for the same state later.
    pub fn written(&mut self, written: &Written) {
        if let Some(group) = self.groups.find_mut(written.group) {
            let as_of = self.speculation.as_of(group.subscription());
            group.written(written, as_of);
        }
    }

    /// Keeps no contents for later any more.
    pub fn forget_contents(&mut self) {
        self.groups.iter_mut().for_each(Group::forget_contents);
    }

    /// All commits that the contents of a monitor show are stored: it is told of later ones only. False when it is gone.
    pub fn catch_up(&mut self, session: SessionId, id: &[u8]) -> bool {
        let Some(key) = self.find(session, id) else {
            return false;
        };
        let monitor = &mut self.monitors[key.0];
        debug_assert!(monitor.is_awaited, "it has been told something");
        if let Place::Behind(segment) = monitor.place {
            monitor.place = self.groups.get_mut(monitor.group).catch_up(key, segment);
        }
        true
    }

    /// The request of a monitor has been answered: from here on it is told what it has missed, and what comes.
    pub fn answered(&mut self, session: SessionId, id: &[u8]) {
        let Some(state) = self.sessions.get_mut(&session) else {
            return;
        };
        let Some(key) = state.monitors.get(id) else {
            return;
        };
        let monitor = &mut self.monitors[key.0];
        monitor.is_awaited = false;
        if matches!(monitor.place, Place::Behind(_)) {
            state.dirty.push(*key);
            if state.list() {
                self.listed.push(session);
            }
        }
    }

    /// Whether a session has a monitor of this canonical id.
    #[must_use]
    pub fn contains(&self, session: SessionId, id: &[u8]) -> bool {
        self.find(session, id).is_some()
    }

    fn find(&self, session: SessionId, id: &[u8]) -> Option<MonitorKey> {
        self.sessions.get(&session)?.monitors.get(id).copied()
    }

    fn leave(&mut self, group: GroupId, place: Place) {
        if let Some((moved, place)) = self.groups.leave(&self.schema, group, place) {
            self.monitors[moved.0].place = place;
        }
    }

    /// Removes a monitor by canonical id; false when unknown. Its pending changes are forgotten.
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

    /// Forgets a session.
    pub fn remove_session(&mut self, session: SessionId) {
        if let Some(session) = self.sessions.remove(&session) {
            for key in session.monitors.into_values() {
                self.remove(key);
            }
        }
    }

    fn remove(&mut self, key: MonitorKey) {
        let monitor = self.monitors.remove(key.0);
        self.followers -= usize::from(monitor.version == Version::V3);
        self.leave(monitor.group, monitor.place);
    }

    /// Removes every monitor (database removed or converted) and returns them as (session, canonical id). Nothing is pending
    /// afterwards; which sessions are ready stays known. Monitors whose request was not answered yet vanish silently.
    pub fn remove_all(&mut self) -> Vec<(SessionId, StdArc<[u8]>)> {
        self.groups = Groups::new(&self.schema, self.seed);
        self.followers = 0;
        self.listed.clear();
        self.sessions.retain(|_, session| {
            session.monitors.clear();
            session.dirty.clear();
            session.is_listed = false;
            !session.is_ready
        });
        let monitors = std::mem::take(&mut self.monitors);
        monitors
            .into_iter()
            .filter(|(_, monitor)| !monitor.is_awaited)
            .map(|(_, monitor)| (monitor.session, monitor.id))
            .collect()
    }

    /// Goes on with another schema (docs/spec/protocol.md 4.15): removes every monitor as [`Monitors::remove_all`] does, and begins the
    /// history anew with the conversion, `last_txn`.
    pub fn convert(
        &mut self,
        schema: Arc<Schema>,
        last_txn: Uuid,
    ) -> Vec<(SessionId, StdArc<[u8]>)> {
        debug_assert!(self.speculation.is_empty(), "every commit is stored");
        self.speculation = Speculation::new(&schema);
        self.schema = schema;
        self.history = History::new(last_txn);
        self.remove_all()
    }

    /// Forgets the history. It begins with the state after `last_txn`; all zeros: there is none.
    pub fn restart_history(&mut self, last_txn: Uuid) {
        self.history = History::new(last_txn);
    }

    /// A commit is executed and stored at once.
    pub fn commit(&mut self, delta: &Arc<Delta>, txn: Uuid, atoms: u64) {
        self.execute(delta, txn);
        self.stored(delta, atoms);
    }

    /// A commit is executed. `txn` is its id, all zeros where no history is kept. An empty delta is no commit.
    pub fn execute(&mut self, delta: &Arc<Delta>, txn: Uuid) {
        if !delta.is_empty() {
            self.speculation.execute(delta, txn);
        }
    }

    /// The oldest commit that was only executed is stored. Visits only groups that it can concern. `atoms` is the number of atoms in the
    /// database now (bounds the history, docs/spec/protocol.md 4.9).
    ///
    /// # Panics
    /// It is not `delta`.
    pub fn stored(&mut self, delta: &Arc<Delta>, atoms: u64) {
        if delta.is_empty() {
            return;
        }
        let stored = self.speculation.note();
        let Some((number, txn, delta)) = stored.filter(|(_, _, oldest)| Arc::ptr_eq(oldest, delta))
        else {
            unreachable!("commits are stored in the order of their execution");
        };
        let is_followed = self.followers > 0;
        self.history.record(txn, &delta, atoms, is_followed);
        let mut woken = std::mem::take(&mut self.woken);
        self.groups
            .commit(&self.schema, (number, &delta), &mut woken);
        for (key, segment) in woken.drain(..) {
            let monitor = &mut self.monitors[key.0];
            monitor.place = Place::Behind(segment);
            if monitor.is_awaited {
                continue;
            }
            if let Some(session) = self.sessions.get_mut(&monitor.session) {
                session.dirty.push(key);
                if session.list() {
                    self.listed.push(monitor.session);
                }
            }
        }
        self.woken = woken;
    }

    /// The commits that were only executed are undone. Monitors that joined since the first of them are the caller's to cancel.
    pub fn undo(&mut self) {
        self.groups.forget_foretold();
        let last = self.speculation.undo();
        self.groups.iter_mut().for_each(|group| group.undo(last));
    }

    /// Orders updates of a long commit to be written ahead, while its record is: to be carried out elsewhere, or not at all. None where
    /// monitors differ so much that hardly one would be of use to many.
    pub fn foretell(&mut self, delta: &Arc<Delta>) -> Vec<StdArc<dyn LateText>> {
        self.groups.foretell(&self.schema, delta)
    }

    /// Large commits that the history has dropped since the last call, each with its atoms. Freeing them takes long.
    pub fn take_dropped(&mut self) -> Vec<(Arc<Delta>, u64)> {
        self.history.take_dropped()
    }

    /// Appends the sessions that have something pending and are ready for it, each once. A session that was handed out is the
    /// caller's to flush; if it is not flushed it comes again after [`Monitors::set_ready`], not with the next commit.
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

    /// How many sessions may have something pending and be ready for it: what [`Monitors::take_pending`] would go through.
    #[must_use]
    pub fn pending_len(&self) -> usize {
        self.listed.len()
    }

    /// Whether changes merge for a session that is not ready. What is composed for it next may be long.
    #[must_use]
    pub fn is_behind(&self, session: SessionId) -> bool {
        let found = self.sessions.get(&session);
        found.is_some_and(|session| !session.is_ready && !session.dirty.is_empty())
    }

    /// What [`Monitors::set_ready`] was last called with; true for a session that is not known.
    #[must_use]
    pub fn is_ready(&self, session: SessionId) -> bool {
        let found = self.sessions.get(&session);
        found.is_none_or(|session| session.is_ready)
    }

    /// Whether a session's output is drained, so that updates may be composed for it; while it is not, changes merge.
    pub fn set_ready(&mut self, session: SessionId, ready: bool) {
        if ready && !self.sessions.contains_key(&session) {
            return;
        }
        let state = self.sessions.entry(session).or_insert_with(Session::new);
        state.is_ready = ready;
        if state.list() {
            self.listed.push(session);
        }
    }

    /// Sets how many rows an update may tell of and still be written at once.
    pub fn set_update_rows_max(&mut self, rows: usize) {
        self.update_rows_max = rows;
    }

    /// Composes everything pending for a session, ready or not (a reply must be preceded by it). Bodies of updates that tell of many rows
    /// are left to be written ([`LateText`]); such a one may turn out to be [`NOTHING`].
    pub fn flush(&mut self, session: SessionId, frames: &mut Vec<Frame>) {
        let Some(session) = self.sessions.get_mut(&session) else {
            return;
        };
        for key in session.dirty.drain(..) {
            let monitor = &mut self.monitors[key.0];
            let Place::Behind(segment) = monitor.place else {
                continue;
            };
            let group = self.groups.get_mut(monitor.group);
            let (body, place) = group.tell(&self.schema, key, segment, self.update_rows_max);
            monitor.place = place;
            if let Some(body) = body {
                let last_txn = self.history.last_txn();
                self.told[monitor.version.index()] += 1;
                frames.push(Frame::update(monitor.version, &monitor.id, last_txn, body));
            }
        }
    }

    /// Id of the newest executed transaction; all zeros without a history.
    #[must_use]
    pub fn last_txn(&self) -> Uuid {
        let executed = self.speculation.last_txn();
        executed.unwrap_or_else(|| self.history.last_txn())
    }

    /// Commits in the transaction history, and the atoms in them.
    #[must_use]
    pub fn history_size(&self) -> (usize, u64) {
        self.history.size()
    }

    /// `update`, `update2` and `update3` notifications composed so far.
    #[must_use]
    pub fn told(&self) -> [u64; 3] {
        self.told
    }

    /// Number of monitors, for `memory/show`.
    #[must_use]
    pub fn len(&self) -> usize {
        self.monitors.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
