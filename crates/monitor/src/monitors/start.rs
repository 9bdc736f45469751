//! Monitor requests: `monitor`, `monitor_cond`, `monitor_cond_since`.
//!
//! A monitor joins its group when its request is executed, so its id is taken and its contents can
//! be shared. Invariant: it gets nothing before its reply, and no update for a commit that its
//! contents include, stored or not.

use std::sync::Arc as StdArc;

use corvid_data::{TableId, Uuid, WireError};
use corvid_engine::Database;

use super::{Monitors, PendingStart, RequestContext, SessionId, StartOutcome, Started, Version};
use crate::change_set::ChangeSet;
use crate::contents::{self, Contents, ContentsId};
use crate::frame::{Guard, ResultHead, SharedBody};
use crate::group::{ContentsState, Encoding, GroupId, MonitorKey};
use crate::past::{self, PastAnswer};
use crate::request::MonitorRequest;
use crate::session::{Monitor, Session};
use crate::{MonitorResult, view};

/// A difference since a transaction that is too old for the history.
enum Difference {
    /// There is none. The guard of the subscription is returned.
    None(Guard),
    /// It is being looked for, in these tables.
    Awaited(Vec<TableId>),
    /// The monitor has started with it.
    Started(Started),
}

impl Monitors {
    /// Handles a monitor request while every commit is stored, for contents of any length. `params`
    /// is the raw text of the params array: valid JSON, whose first element has been checked to be
    /// this database's name. `id_in_use(canonical id)` tells whether this session has the id on
    /// another database. Flush the session before replying.
    ///
    /// # Errors
    /// Those of docs/spec/protocol.md 4.5.2, 4.5.3 and 4.9. No monitor remains.
    pub fn monitor(
        &mut self,
        database: &Database,
        session: SessionId,
        version: Version,
        params: &[u8],
        id_in_use: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Started, WireError> {
        let request = self.parse(session, version, params, id_in_use)?;
        let started = self.start(database, session, version, request, StdArc::new(()));
        self.mark_contents_stored(session, &started.id);
        self.mark_replied(session, &started.id);
        Ok(started)
    }

    /// Handles a monitor request. If its contents need more than `rows_max` rows to be visited,
    /// they become an order for another thread. [`RequestContext::admit`] decides about the memory
    /// of its subscription.
    ///
    /// The reply may be sent once all commits executed so far are stored. Then call
    /// [`Monitors::mark_contents_stored`], and when sending the reply [`Monitors::mark_replied`].
    ///
    /// # Errors
    /// Those of [`Monitors::monitor`] and of [`RequestContext::admit`].
    pub fn begin(
        &mut self,
        database: &mut Database,
        session: SessionId,
        version: Version,
        params: &[u8],
        context: RequestContext<'_>,
        rows_max: usize,
    ) -> Result<StartOutcome, WireError> {
        let request = self.parse(session, version, params, context.id_in_use)?;
        let guard = (context.admit)(request.subscription.bytes())?;
        let is_known = version == Version::V3 && self.has_commits_after(request.last_txn);
        let guard = match self.difference(database, (session, version), &request, guard, context) {
            Difference::Started(started) => return Ok(StartOutcome::Started(started)),
            Difference::Awaited(tables) => {
                return Ok(StartOutcome::AwaitsPast(request.last_txn, tables));
            }
            Difference::None(guard) => guard,
        };
        let rows = contents::rows_visited(&request.subscription, database, rows_max + 1);
        // A client whose transaction is known gets only the changes since, however large the tables
        // are.
        if is_known || rows <= rows_max {
            let started = self.start(database, session, version, request, guard);
            return Ok(StartOutcome::Started(started));
        }
        let MonitorRequest {
            id, subscription, ..
        } = request;
        let encoding = Encoding::from(version);
        let as_of = self.speculation.as_of(&subscription);
        let number = self
            .groups
            .find_or_add(&self.schema, encoding, subscription, guard);
        let head = self.head(version, false);
        let next = self.next_contents;
        let group = self.groups.get_mut(number);
        let (contents, order) = match group.long_contents(next, as_of) {
            // Contents of an earlier state are being written, and a group has one order at a time.
            // The request is repeated once they are written, and joins only then.
            ContentsState::Stale(contents) => return Ok(StartOutcome::Retry(contents)),
            ContentsState::Cached(text) => {
                self.join(session, version, number, &id);
                let result = head.with(text);
                return Ok(StartOutcome::Started(Started { id, result }));
            }
            ContentsState::Underway(contents) => (contents, None),
            ContentsState::Missing => {
                self.next_contents = ContentsId(next.0 + 1);
                let subscription = group.subscription().clone();
                let snapshot = database.snapshot();
                let order = Contents::new(next, number, encoding, subscription, snapshot);
                (next, Some(order))
            }
        };
        self.join(session, version, number, &id);
        Ok(StartOutcome::ContentsPending(PendingStart {
            id,
            contents,
            head,
            order,
        }))
    }

    /// Starts a monitor with the difference since a transaction that is too old for the history, if
    /// that is known and has no more rows than the contents.
    fn difference(
        &mut self,
        database: &mut Database,
        (session, version): (SessionId, Version),
        request: &MonitorRequest,
        guard: Guard,
        context: RequestContext<'_>,
    ) -> Difference {
        let (txn, subscription) = (request.last_txn, &request.subscription);
        let is_named = version == Version::V3 && txn != Uuid::ZERO && self.last_txn() != Uuid::ZERO;
        if !is_named
            || self.has_commits_after(txn)
            || !past::is_in_files(&self.schema, subscription)
        {
            return Difference::None(guard);
        }
        // Nothing is smaller than empty contents.
        if contents::rows_visited(subscription, database, 1) == 0 {
            return Difference::None(guard);
        }
        let tables = subscription.tables().iter().map(|asked| asked.table);
        let tables: Vec<_> = tables.collect();
        let rows = match (context.past)(txn, &tables) {
            PastAnswer::None => return Difference::None(guard),
            PastAnswer::Wait => return Difference::Awaited(tables),
            PastAnswer::Rows(rows) => rows,
        };
        let encoding = Encoding::from(version);
        // Thousands of clients may come at once. Only the first of equal requests has its rows
        // compared; whether the contents are smaller is then known, too.
        let known = self.groups.find(encoding, subscription).and_then(|group| {
            let as_of = self.speculation.as_of(group.subscription());
            group.known_since(txn, as_of)
        });
        let difference = match known {
            Some(body) => Ok(body),
            None => Err(rows.changes(&self.schema, subscription, database, self.seed)),
        };
        let count = difference.as_ref().map_or_else(ChangeSet::len, |_| 0);
        if count > contents::rows_visited(subscription, database, count) {
            return Difference::None(guard);
        }
        let subscription = subscription.clone();
        let group = self
            .groups
            .find_or_add(&self.schema, encoding, subscription, guard);
        let head = self.head(version, true);
        let owned = self.groups.get_mut(group);
        let as_of = self.speculation.as_of(owned.subscription());
        let body = difference
            .unwrap_or_else(|changes| owned.since(&self.schema, txn, as_of, |_, _| changes));
        self.join(session, version, group, &request.id);
        Difference::Started(Started {
            id: request.id.clone(),
            result: head.with(SharedBody::Whole(body)),
        })
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
        MonitorRequest::parse(&self.schema, self.seed, version, params, &|id| {
            is_own(id) || id_in_use(id)
        })
    }

    fn start(
        &mut self,
        database: &Database,
        session: SessionId,
        version: Version,
        request: MonitorRequest,
        guard: Guard,
    ) -> Started {
        let MonitorRequest {
            id,
            subscription,
            last_txn,
        } = request;
        let encoding = Encoding::from(version);
        let group = self
            .groups
            .find_or_add(&self.schema, encoding, subscription, guard);
        let result = self.content(database, group, version, last_txn);
        self.join(session, version, group, &id);
        Started { id, result }
    }

    fn join(&mut self, session: SessionId, version: Version, group: GroupId, id: &StdArc<[u8]>) {
        if version == Version::V3 {
            // The reply carries the newest id, so the history must keep the commits that follow it.
            self.update3_monitors += 1;
            self.history.mark_sent();
        }
        let entry = self.monitors.vacant_entry();
        let key = MonitorKey(entry.key());
        entry.insert(Monitor {
            session,
            id: id.clone(),
            version,
            group,
            state: self.groups.get_mut(group).join(key),
            awaits_reply: true,
        });
        let session = self.sessions.entry(session).or_insert_with(Session::new);
        let before = session.monitors.insert(id.clone(), key);
        // Otherwise the other monitor would stay in its group forever.
        assert!(before.is_none(), "an id names one monitor");
    }

    /// Whether the commits after `txn` are available, stored or not.
    fn has_commits_after(&self, txn: Uuid) -> bool {
        self.history.contains(txn) || self.speculation.since(txn).is_some()
    }

    /// The initial contents for a new member of `group`.
    fn content(
        &mut self,
        database: &Database,
        group: GroupId,
        version: Version,
        last_txn: Uuid,
    ) -> MonitorResult {
        let head = |is_known| self.head(version, is_known);
        let (known_head, unknown_head) = (head(true), head(false));
        let schema = &self.schema;
        let group = self.groups.get_mut(group);
        let as_of = self.speculation.as_of(group.subscription());
        let is_since = version == Version::V3;
        let (head, body) =
            // Requests see executed commits, so the changes since `last_txn` include those that are
            // not stored yet. The reply is held back until they are.
            if let Some(executed) = is_since.then(|| self.speculation.since(last_txn)).flatten() {
                let since = |subscription: &_, seed| {
                    view::of_commits(schema, subscription, executed, seed)
                };
                (known_head, group.since(schema, last_txn, as_of, since))
            } else if let Some(stored) = is_since.then(|| self.history.since(last_txn)).flatten() {
                let commits = stored.chain(self.speculation.deltas());
                let since = |subscription: &_, seed| {
                    view::of_commits(schema, subscription, commits, seed)
                };
                (known_head, group.since(schema, last_txn, as_of, since))
            } else {
                (unknown_head, group.initial(schema, database, as_of))
            };
        head.with(SharedBody::Whole(body))
    }

    fn head(&self, version: Version, is_known: bool) -> ResultHead {
        match version {
            Version::V3 => ResultHead::since(is_known, self.last_txn()),
            Version::V1 | Version::V2 => ResultHead::plain(),
        }
    }
}
