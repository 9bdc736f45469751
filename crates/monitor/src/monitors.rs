//! All monitors of one database and what each session has yet to be told.
//!
//! Commits are noted in groups (see `group`); here sessions are found when a group wakes a member, and told when the caller asks.
//! Cost of a commit: the groups that see it and the members that knew everything before; a session that is behind already is
//! not visited again, however many commits come before it is told.
//!
//! Invariant kept by the caller: the database handed in stands exactly at the last commit noted, so that a reply with its
//! content and the updates that follow fit together. Knows no sockets; `service` calls it.

use std::collections::HashMap;
use std::sync::Arc as StdArc;

use corvid_data::{Arc, Delta, Schema, Uuid, WireError};
use corvid_engine::Database;
use foldhash::fast::FixedState;
use slab::Slab;

use crate::change_request::ChangeRequest;
use crate::contents::{self, Contents, ContentsId, Written};
use crate::frame::{ResultHead, SharedText};
use crate::group::{Encoding, Group, GroupId, MonitorKey, Place, Progress};
use crate::groups::Groups;
use crate::history::History;
use crate::late::LateText;
use crate::request::MonitorRequest;
use crate::segments::SegmentId;
use crate::session::{Monitor, Session};
use crate::subscription::Subscription;
use crate::{Frame, MonitorResult, effect, params};

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
    groups: Groups,
    monitors: Slab<Monitor>,
    sessions: HashMap<SessionId, Session, FixedState>,
    /// Sessions with something to tell, each once ([`Session::is_listed`]).
    listed: Vec<SessionId>,
    history: History,
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

/// How a valid request to monitor goes on.
#[derive(Debug)]
pub enum Begun {
    /// The reply is there.
    Started(Started),
    /// The monitor is there; the reply is when its contents are.
    Awaited(Awaited),
    /// Equal contents are being written, but of an earlier state: no monitor is there, ask again when they are.
    Later(ContentsId),
}

/// A monitor whose first contents are being written. It is told nothing before [`Monitors::answered`].
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

/// Outcome of a successful `monitor_cond_change`: send `frames` (in order), then the reply `{}`.
#[derive(Debug)]
pub struct ConditionChanged {
    /// Everything pending for the session, this monitor's under its old id, then the condition's effect under the new id.
    pub frames: Vec<Frame>,
    /// Canonical JSON of the monitor's id from now on.
    pub new_id: StdArc<[u8]>,
}

impl Monitors {
    /// No monitors; the history begins with the state after `last_txn` (all zeros: this database keeps no history, as long as
    /// commits have no ids either).
    #[must_use]
    pub fn new(schema: Arc<Schema>, last_txn: Uuid) -> Monitors {
        Monitors {
            groups: Groups::new(&schema),
            schema,
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

    /// Handles `monitor`, `monitor_cond`, `monitor_cond_since`, whatever the length of the contents. `params` is the raw text
    /// of the params array (valid JSON, first element already checked to be this database's name). `id_in_use(canonical id)`
    /// tells of this session's monitors on other databases. Flush the session before replying.
    ///
    /// # Errors
    /// docs/spec/protocol.md 4.5.2, 4.5.3, 4.9; no monitor is left behind.
    pub fn monitor(
        &mut self,
        database: &Database,
        session: SessionId,
        version: Version,
        params: &[u8],
        id_in_use: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Started, WireError> {
        let request = self.parse(session, version, params, id_in_use)?;
        Ok(self.start(database, session, version, request))
    }

    /// Does the same, but orders contents to be written elsewhere when more than `rows_max` rows must be looked at for them.
    ///
    /// # Errors
    /// Those of [`Monitors::monitor`].
    pub fn begin(
        &mut self,
        database: &mut Database,
        session: SessionId,
        version: Version,
        params: &[u8],
        id_in_use: &dyn Fn(&[u8]) -> bool,
        rows_max: usize,
    ) -> Result<Begun, WireError> {
        let request = self.parse(session, version, params, id_in_use)?;
        let is_known = version == Version::V3 && self.history.knows(request.last_txn);
        let rows = contents::rows_visited(&request.subscription, database, rows_max + 1);
        if is_known || rows <= rows_max {
            let started = self.start(database, session, version, request);
            return Ok(Begun::Started(started));
        }
        let MonitorRequest {
            id, subscription, ..
        } = request;
        let encoding = Encoding::from(version);
        let number = self
            .groups
            .find_or_add(&self.schema, encoding, subscription);
        let head = self.head(version, false);
        let next = self.next_contents;
        let group = self.groups.get_mut(number);
        let (contents, order) = match group.long_contents(next) {
            Progress::Stale(contents) => return Ok(Begun::Later(contents)),
            Progress::Kept(text) => {
                self.join(session, version, number, &id, false);
                let result = head.with(text);
                return Ok(Begun::Started(Started { id, result }));
            }
            Progress::Underway(contents) => (contents, None),
            Progress::Wanted => {
                self.next_contents = ContentsId(next.0 + 1);
                let order = Contents {
                    id: next,
                    group: number,
                    encoding,
                    subscription: group.subscription().clone(),
                    snapshot: database.snapshot(),
                };
                (next, Some(order))
            }
        };
        self.join(session, version, number, &id, true);
        Ok(Begun::Awaited(Awaited {
            id,
            contents,
            head,
            order,
        }))
    }

    fn parse(
        &self,
        session: SessionId,
        version: Version,
        params: &[u8],
        id_in_use: &dyn Fn(&[u8]) -> bool,
    ) -> Result<MonitorRequest, WireError> {
        let own = self.sessions.get(&session);
        let is_own = |id: &[u8]| own.is_some_and(|session| session.monitors.contains_key(id));
        MonitorRequest::parse(&self.schema, version, params, &|id| {
            is_own(id) || id_in_use(id)
        })
    }

    fn start(
        &mut self,
        database: &Database,
        session: SessionId,
        version: Version,
        request: MonitorRequest,
    ) -> Started {
        let MonitorRequest {
            id,
            subscription,
            last_txn,
        } = request;
        let encoding = Encoding::from(version);
        let group = self
            .groups
            .find_or_add(&self.schema, encoding, subscription);
        let result = self.content(database, group, version, last_txn);
        self.join(session, version, group, &id, false);
        Started { id, result }
    }

    fn join(
        &mut self,
        session: SessionId,
        version: Version,
        group: GroupId,
        id: &StdArc<[u8]>,
        is_awaited: bool,
    ) {
        if version == Version::V3 {
            self.followers += 1;
            self.history.follow();
        }
        let entry = self.monitors.vacant_entry();
        let key = MonitorKey(entry.key());
        entry.insert(Monitor {
            session,
            id: id.clone(),
            version,
            group,
            place: self.groups.get_mut(group).join(key),
            is_awaited,
        });
        let session = self.sessions.entry(session).or_insert_with(Session::new);
        session.monitors.insert(id.clone(), key);
    }

    /// Takes note of contents that have been written: they are kept for those who ask for the same state later.
    pub fn written(&mut self, written: &Written) {
        if let Some(group) = self.groups.find_mut(written.group) {
            group.written(written);
        }
    }

    /// Keeps no contents for later any more.
    pub fn forget_contents(&mut self) {
        self.groups.iter_mut().for_each(Group::forget_contents);
    }

    /// An awaited monitor's request has been answered: from here on it is told what it has missed, and what comes.
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

    /// What a new member of `group` is told at first.
    fn content(
        &mut self,
        database: &Database,
        group: GroupId,
        version: Version,
        last_txn: Uuid,
    ) -> MonitorResult {
        let known = match version {
            Version::V3 => self.history.since(last_txn),
            Version::V1 | Version::V2 => None,
        };
        let is_known = known.is_some();
        let group = self.groups.get_mut(group);
        let body = match known {
            Some(commits) => group.since(&self.schema, last_txn, commits),
            None => group.initial(&self.schema, database),
        };
        self.head(version, is_known).with(SharedText::Whole(body))
    }

    fn head(&self, version: Version, is_known: bool) -> ResultHead {
        match version {
            Version::V3 => ResultHead::since(is_known, self.history.last_txn()),
            Version::V1 | Version::V2 => ResultHead::plain(),
        }
    }

    /// Handles `monitor_cond_change`, atomically. Flush the session before replying with an error.
    ///
    /// # Errors
    /// docs/spec/protocol.md 4.8.
    pub fn change_condition(
        &mut self,
        database: &mut Database,
        session: SessionId,
        params: &[u8],
        id_in_use: &dyn Fn(&[u8]) -> bool,
    ) -> Result<ConditionChanged, WireError> {
        let request = ChangeRequest::parse(params)?;
        let (old_id, new_id) = (&request.old_id, request.new_id.clone());
        let own = self.sessions.get(&session);
        let find = |id: &[u8]| own.and_then(|session| session.monitors.get(id).copied());
        let Some(key) = find(old_id) else {
            return Err(WireError::syntax(old_id, "unknown monitor session"));
        };
        if new_id != *old_id && (find(&new_id).is_some() || id_in_use(&new_id)) {
            return Err(params::duplicate_id(&new_id));
        }
        let Monitor { version, group, .. } = self.monitors[key.0];
        let old = self.groups.get_mut(group).subscription().clone();
        let conditions = request.conditions(&self.schema, version, &old)?;

        let mut frames = Vec::new();
        self.flush(session, &mut frames);
        self.rename(key, &new_id);
        let new = old.with_conditions(&conditions);
        if new != *old {
            let body = effect::encode(&self.schema, database, &old, &new);
            self.move_to(key, new);
            if body != b"{}" {
                let last_txn = self.history.last_txn();
                self.told[version.index()] += 1;
                frames.push(Frame::update(
                    version,
                    &new_id,
                    last_txn,
                    SharedText::Whole(body.into()),
                ));
            }
        }
        Ok(ConditionChanged { frames, new_id })
    }

    fn rename(&mut self, key: MonitorKey, id: &StdArc<[u8]>) {
        let monitor = &mut self.monitors[key.0];
        if let Some(session) = self.sessions.get_mut(&monitor.session) {
            session.monitors.remove(&monitor.id);
            session.monitors.insert(id.clone(), key);
        }
        monitor.id = id.clone();
    }

    /// Makes a monitor that has been told everything a member of another group.
    fn move_to(&mut self, key: MonitorKey, subscription: Subscription) {
        let Monitor {
            version,
            group,
            place,
            ..
        } = self.monitors[key.0];
        self.leave(group, place);
        let encoding = Encoding::from(version);
        let group = self
            .groups
            .find_or_add(&self.schema, encoding, subscription);
        let place = self.groups.get_mut(group).join(key);
        let monitor = &mut self.monitors[key.0];
        monitor.group = group;
        monitor.place = place;
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
        self.groups = Groups::new(&self.schema);
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
        self.schema = schema;
        self.history = History::new(last_txn);
        self.remove_all()
    }

    /// Forgets the history. It begins with the state after `last_txn`; all zeros: there is none.
    pub fn restart_history(&mut self, last_txn: Uuid) {
        self.history = History::new(last_txn);
    }

    /// Takes note of a stored commit. Visits only groups that it can concern.
    /// `txn` is its id, all zeros where no history is kept; `atoms` is the number of atoms in the database now (bounds the
    /// history, docs/spec/protocol.md 4.9). An empty delta is no commit.
    pub fn commit(&mut self, delta: &Arc<Delta>, txn: Uuid, atoms: u64) {
        if delta.is_empty() {
            return;
        }
        let is_followed = self.followers > 0;
        self.history.record(txn, delta, atoms, is_followed);
        let mut woken = std::mem::take(&mut self.woken);
        self.groups.commit(&self.schema, delta, &mut woken);
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

    /// Orders updates of a long commit to be written ahead, while its record is: to be carried out elsewhere, or not at all. None where
    /// monitors differ so much that hardly one would be of use to many.
    pub fn foretell(&mut self, delta: &Arc<Delta>) -> Vec<StdArc<dyn LateText>> {
        self.groups.foretell(&self.schema, delta)
    }

    /// What was foretold will not be noted: its commit is undone.
    pub fn forget_foretold(&mut self) {
        self.groups.forget_foretold();
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

    /// Id of the newest transaction; all zeros without a history.
    #[must_use]
    pub fn last_txn(&self) -> Uuid {
        self.history.last_txn()
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
