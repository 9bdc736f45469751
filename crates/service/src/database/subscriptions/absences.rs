//! Clients that come back with a transaction that is too old for the transaction history: the
//! database's files are searched for the rows that have changed since
//! (docs/internals/monitors.md, "Long absences").
//!
//! A request waits for its search like one that waits for contents, and is then executed anew: with
//! the rows that were found, or with the contents. Requests with the same transaction share a
//! search, also for some seconds after its end. If there is no room for another search, or nothing
//! is found in time, the client gets the contents.
//!
//! ```text
//! asked --> running --> found  ---- 10 s, or too many rows change ---> forgotten
//!                  \--> failed ---- 10 s ---------------------------->
//! ```
//!
//! Invariant: a search observes every commit from the moment at which it is ordered, those that are
//! executed and not stored included, until it is forgotten. A running search is always answered.

use std::sync::Arc as StdArc;
use std::sync::atomic::{AtomicBool, Ordering};

use corvid_data::{Delta, Schema, TableId, Uuid};
use corvid_history::PastLimits;
use corvid_monitor::{PastAnswer, PastRows, SessionId};

use super::super::Now;
use super::Subscriptions;
use crate::job::{Job, JobNumber};
use crate::message::Request;
use crate::read_history::{AppliedEntry, PastOrder, PastRead};
use crate::replies::{Outputs, Reason};

/// Searches of a database that may be running at a time.
const RUNNING_MAX: usize = 2;

/// Searches that are running or remembered.
const SEARCHES_MAX: usize = 8;

/// How long the outcome of a search is remembered.
const REMEMBERED_MS: u64 = 10_000;

/// Limits of one search. The rows are compared with the present ones for each client that waits, on
/// the database's thread.
const LIMITS: PastLimits = PastLimits {
    rows_max: 8192,
    bytes_max: 16 << 20,
    record_max: 128 << 20,
};

/// Where a database's past can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum PastSource {
    /// Nowhere: there is no file.
    None,
    /// In the files of a standalone database.
    Standalone,
    /// In the files of a member whose database has applied this.
    Member(AppliedEntry),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Running,
    /// It runs, and its outcome is unusable.
    Abandoned,
    Found,
    Failed,
}

#[derive(Debug)]
struct Search {
    number: JobNumber,
    txn: Uuid,
    rows: PastRows,
    stage: Stage,
    is_wanted: StdArc<AtomicBool>,
    /// Requests that are executed anew at the end.
    waiting: Vec<Request>,
    /// When the outcome is forgotten.
    expires_at_ms: u64,
}

/// The searches of one database.
#[derive(Debug, Default)]
pub(super) struct Absences {
    searches: Vec<Search>,
    last: u64,
}

impl Search {
    fn is_running(&self) -> bool {
        matches!(self.stage, Stage::Running | Stage::Abandoned)
    }

    /// Makes the outcome useless. One that runs is told to end.
    fn abandon(&mut self) {
        self.is_wanted.store(false, Ordering::Relaxed);
        self.rows = PastRows::new(self.rows.tables().to_vec(), 0);
        self.stage = match self.stage {
            Stage::Running | Stage::Abandoned => Stage::Abandoned,
            Stage::Found | Stage::Failed => Stage::Failed,
        };
    }
}

impl Absences {
    /// Whether no search is running.
    pub(super) fn is_idle(&self) -> bool {
        !self.searches.iter().any(Search::is_running)
    }

    /// Returns the knowledge about the rows of these tables after a transaction.
    pub(super) fn answer(
        &self,
        source: PastSource,
        txn: Uuid,
        tables: &[TableId],
    ) -> PastAnswer<'_> {
        let found = self.find(txn, tables).map(|at| &self.searches[at]);
        match found {
            Some(search) => match search.stage {
                Stage::Running | Stage::Abandoned => PastAnswer::Wait,
                Stage::Found => PastAnswer::Rows(&search.rows),
                Stage::Failed => PastAnswer::None,
            },
            None if source != PastSource::None && self.has_room() => PastAnswer::Wait,
            None => PastAnswer::None,
        }
    }

    fn find(&self, txn: Uuid, tables: &[TableId]) -> Option<usize> {
        let mut searches = self.searches.iter();
        searches.position(|search| search.txn == txn && search.rows.covers(tables))
    }

    fn has_room(&self) -> bool {
        let running = self.searches.iter().filter(|search| search.is_running());
        running.count() < RUNNING_MAX
    }

    /// Begins a search, of which the commits so far that are not stored are part.
    fn begin<'d>(
        &mut self,
        (txn, tables): (Uuid, Vec<TableId>),
        unstored: impl Iterator<Item = &'d Delta>,
    ) -> &mut Search {
        // The oldest outcome gives way.
        if self.searches.len() >= SEARCHES_MAX
            && let Some(at) = self.searches.iter().position(|search| !search.is_running())
        {
            self.searches.remove(at);
        }
        self.last += 1;
        let mut search = Search {
            number: JobNumber(self.last),
            txn,
            rows: PastRows::new(tables, LIMITS.rows_max),
            stage: Stage::Running,
            is_wanted: StdArc::new(AtomicBool::new(true)),
            waiting: Vec::new(),
            expires_at_ms: u64::MAX,
        };
        for delta in unstored {
            if !search.rows.observe(delta) {
                search.abandon();
                break;
            }
        }
        self.searches.push(search);
        let last = self.searches.len() - 1;
        &mut self.searches[last]
    }

    /// A commit is executed.
    pub(super) fn observe(&mut self, delta: &Delta) {
        for search in &mut self.searches {
            let is_used = matches!(search.stage, Stage::Running | Stage::Found);
            if is_used && !search.rows.observe(delta) {
                search.abandon();
            }
        }
    }

    /// A search has ended. Returns the requests that wait for it.
    fn end(
        &mut self,
        now: Now,
        number: JobNumber,
        read: Option<PastRead>,
        schema: &Schema,
    ) -> Vec<Request> {
        let mut searches = self.searches.iter_mut();
        let Some(search) = searches.find(|search| search.number == number) else {
            return Vec::new();
        };
        assert!(search.is_running(), "a search ends once");
        search.expires_at_ms = now.mono_ms.saturating_add(REMEMBERED_MS);
        let rows = read.and_then(|read| read.into_rows(schema));
        let rows = rows.filter(|_| search.stage == Stage::Running);
        let is_found = rows.is_some_and(|rows| search.rows.complete(rows));
        search.stage = Stage::Found;
        if !is_found {
            search.abandon();
        }
        std::mem::take(&mut search.waiting)
    }

    /// When the next outcome is forgotten, monotonic ms.
    pub(super) fn expire_at_ms(&self) -> Option<u64> {
        let ended = self.searches.iter().filter(|search| !search.is_running());
        ended.map(|search| search.expires_at_ms).min()
    }

    /// Forgets outcomes.
    pub(super) fn expire(&mut self, now: Now) {
        self.searches
            .retain(|search| search.is_running() || search.expires_at_ms > now.mono_ms);
    }

    /// The contents are replaced, or ids begin anew: every outcome is unusable.
    pub(super) fn abandon(&mut self) {
        self.searches.iter_mut().for_each(Search::abandon);
    }

    /// A session has ended. Its search goes on: clients that lose their connection come back.
    pub(super) fn remove_session(&mut self, session: SessionId) {
        for search in &mut self.searches {
            search.waiting.retain(|request| request.session != session);
        }
    }

    /// Takes all requests that wait, in the order of searches.
    pub(super) fn take_waiting(&mut self) -> Vec<Request> {
        let searches = self.searches.iter_mut();
        searches
            .flat_map(|search| std::mem::take(&mut search.waiting))
            .collect()
    }
}

impl Subscriptions {
    /// Has a request executed anew when a search has ended, and begins the search unless another
    /// request has.
    pub(super) fn await_past(
        &mut self,
        request: Request,
        (txn, tables): (Uuid, Vec<TableId>),
        source: PastSource,
        schema: &Schema,
        outputs: &mut Outputs,
    ) {
        outputs
            .outboxes
            .block(request.session, Reason::InitialContents);
        if let Some(at) = self.absences.find(txn, &tables) {
            self.absences.searches[at].waiting.push(request);
            return;
        }
        let names = tables.iter().map(|id| schema.table(*id).name.to_string());
        let tables_named = names.collect();
        let unstored = self.monitors.unstored().map(|delta| &**delta);
        let search = self.absences.begin((txn, tables), unstored);
        search.waiting.push(request);
        let order = PastOrder {
            txn,
            tables: tables_named,
            limits: LIMITS,
            applied: match source {
                PastSource::Member(applied) => Some(applied),
                PastSource::None | PastSource::Standalone => None,
            },
            is_wanted: search.is_wanted.clone(),
        };
        outputs
            .jobs
            .push(Job::ReadPast(search.number, Box::new(order)));
    }

    /// A search has ended. Returns the requests that are executed anew.
    pub(in super::super) fn end_past(
        &mut self,
        now: Now,
        number: JobNumber,
        read: Option<PastRead>,
        schema: &Schema,
    ) -> Vec<Request> {
        self.absences.end(now, number, read, schema)
    }
}

#[cfg(test)]
mod tests {
    use corvid_data::{Arc, Row, RowChange};
    use corvid_json::Value;

    use super::*;
    use crate::message::{DatabaseMethod, SessionInfo};

    const T: TableId = TableId(0);
    const U: TableId = TableId(1);

    fn id(number: u8) -> Uuid {
        Uuid([number; 16])
    }

    fn schema() -> Schema {
        let text = r#"{"name":"D","version":"1.0.0","tables":{"T":{"columns":{"n":{"type":"integer"}}},"U":{"columns":{"n":{"type":"integer"}}}}}"#;
        Schema::from_json(&Value::parse(text.as_bytes()).expect("JSON")).expect("a schema")
    }

    fn request(session: u64) -> Request {
        Request {
            session: SessionId(session),
            info: StdArc::new(SessionInfo::new(false, String::new(), None)),
            arrived_ms: 0,
            stamp: 0,
            id: (*b"0").into(),
            method: DatabaseMethod::Monitor(corvid_monitor::Version::V3),
            frame: b"[]".to_vec(),
            params: 0..2,
            seqno: None,
            blocked: false,
            foreign_monitors: Vec::new(),
            once: None,
            client: None,
        }
    }

    fn now(mono_ms: u64) -> Now {
        Now {
            mono_ms,
            wall_ms: 0,
        }
    }

    /// A commit that inserts so many rows of a table.
    fn inserts(table: TableId, count: u32) -> Delta {
        let row = |number: u32| {
            let mut uuid = [table.0 as u8; 16];
            uuid[..4].copy_from_slice(&number.to_be_bytes());
            let uuid = Uuid(uuid);
            RowChange {
                table,
                uuid,
                old: None,
                new: Some(Arc::new(Row {
                    uuid,
                    version: Uuid::ZERO,
                    columns: Box::new([]),
                })),
                diffs: Box::default(),
            }
        };
        Delta {
            changes: (0..count).map(row).collect(),
            ..Delta::default()
        }
    }

    fn begin(absences: &mut Absences, txn: Uuid, session: u64) -> JobNumber {
        let search = absences.begin((txn, vec![T]), std::iter::empty());
        search.waiting.push(request(session));
        search.number
    }

    fn read() -> Option<PastRead> {
        let rows = vec![(T, id(9), None)];
        Some(PastRead::Rows(Arc::new(schema()), rows))
    }

    #[test]
    fn equal_requests_share_a_search_and_others_are_few() {
        let mut absences = Absences::default();
        let answer = |absences: &Absences, txn, table| match absences.answer(
            PastSource::Standalone,
            txn,
            &[table],
        ) {
            PastAnswer::None => "contents",
            PastAnswer::Wait => "wait",
            PastAnswer::Rows(_) => "rows",
        };
        assert_eq!(answer(&absences, id(1), T), "wait");
        let first = begin(&mut absences, id(1), 7);
        assert!(!absences.is_idle());
        assert_eq!(absences.find(id(1), &[T]), Some(0));
        assert_eq!(absences.find(id(1), &[T, U]), None, "other tables");
        begin(&mut absences, id(2), 8);
        assert_eq!(answer(&absences, id(3), T), "contents", "two are running");
        assert_eq!(answer(&absences, id(1), T), "wait");
        let ended = absences.end(now(5), first, read(), &schema());
        assert_eq!(ended.len(), 1);
        assert_eq!(answer(&absences, id(1), T), "rows");
        assert_eq!(answer(&absences, id(3), T), "wait");
        let nowhere = absences.answer(PastSource::None, id(3), &[T]);
        assert!(matches!(nowhere, PastAnswer::None));
        absences.expire(now(5 + REMEMBERED_MS));
        assert_eq!(absences.find(id(1), &[T]), None);
        assert_eq!(absences.expire_at_ms(), None, "the other one is running");
    }

    #[test]
    fn an_unusable_outcome_is_not_given() {
        let mut absences = Absences::default();
        let is_none = |absences: &Absences, txn| {
            matches!(
                absences.answer(PastSource::Standalone, txn, &[T]),
                PastAnswer::None
            )
        };
        // Nothing was found.
        let number = begin(&mut absences, id(1), 7);
        absences.end(now(0), number, None, &schema());
        assert!(is_none(&absences, id(1)));
        // Too many rows change meanwhile; the reader is told to end.
        let number = begin(&mut absences, id(2), 7);
        let is_wanted = absences.searches[1].is_wanted.clone();
        absences.observe(&inserts(U, 10_000));
        assert!(is_wanted.load(Ordering::Relaxed), "another table");
        absences.observe(&inserts(T, 10_000));
        assert!(!is_wanted.load(Ordering::Relaxed));
        assert_eq!(absences.end(now(0), number, read(), &schema()).len(), 1);
        assert!(is_none(&absences, id(2)));
        // Too many change afterwards.
        let number = begin(&mut absences, id(3), 7);
        absences.end(now(0), number, read(), &schema());
        assert!(!is_none(&absences, id(3)));
        absences.observe(&inserts(T, 10_000));
        assert!(is_none(&absences, id(3)));
        // The contents are replaced meanwhile.
        let number = begin(&mut absences, id(4), 7);
        absences.abandon();
        absences.end(now(0), number, read(), &schema());
        assert!(is_none(&absences, id(4)));
        // Outcomes are few.
        for txn in 10..30 {
            let number = begin(&mut absences, id(txn), 7);
            absences.end(now(0), number, read(), &schema());
        }
        assert_eq!(absences.searches.len(), SEARCHES_MAX);
    }

    #[test]
    fn a_closed_session_waits_for_nothing_and_its_search_goes_on() {
        let mut absences = Absences::default();
        let number = begin(&mut absences, id(1), 7);
        absences.searches[0].waiting.push(request(8));
        absences.remove_session(SessionId(7));
        let ended = absences.end(now(0), number, read(), &schema());
        assert_eq!(ended.len(), 1);
        assert_eq!(ended[0].session, SessionId(8));
        assert!(
            absences
                .end(now(0), JobNumber(99), None, &schema())
                .is_empty()
        );
    }
}
