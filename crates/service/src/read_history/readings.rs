//! Which readings of history there are, and which requests wait for one to end.
//!
//! ```text
//!            begin                page                       next
//! request ---------> working ---------------> idle ------------------------> working
//!                       |   \                  |  stop, 60 s, session closed
//!        cancel, closed |    \ last page       v
//!                       +-----\------------> ending --> the thread says that it has ended
//! ```
//!
//! Invariants:
//! - A reading counts until its thread has ended, because its memory does.
//! - A working reading has a session that waits for its answer; no other reading has.
//! - A session whose reading stands still does not wait for others to end: it could not go on with
//!   its own meanwhile, and sessions could wait for each other.
//! - No session has all readings, and no request waits for longer than [`WAITING_MS`].

use std::collections::{BTreeMap, VecDeque};

use corvid_data::{Tag, WireError};
use corvid_log::cluster::Index;
use corvid_monitor::SessionId;

use super::request::{HistoryRequest, Query};
use super::{READINGS_MAX, SESSION_READINGS_MAX, WAITING_MAX, WAITING_MS};
use crate::served_databases::DatabaseId;

/// The number of a reading. Numbers are not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReadingId(pub u64);

/// A request with its session and database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The session that waits for the answer.
    pub session: SessionId,
    /// The database.
    pub database: DatabaseId,
    /// Its name.
    pub name: String,
    /// The last entry that a member's database had applied when the request came: a reading shows
    /// none after it.
    pub applied: Option<Index>,
    /// The request.
    pub request: HistoryRequest,
    /// Its parameters as the client wrote them.
    pub params: Vec<u8>,
}

/// The task of a new thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// The session that waits for the first page.
    pub session: SessionId,
    /// The name of the database.
    pub name: String,
    /// See [`Order::applied`].
    pub applied: Option<Index>,
    /// The query.
    pub query: Query,
    /// The parameters of the request, for the source of a relay.
    pub params: Vec<u8>,
}

/// A decision for the driver to carry out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Start the thread of this reading. It tells every page and its end.
    Start(ReadingId, Start),
    /// Tell the thread to make the next page.
    Resume(ReadingId),
    /// Tell the thread to end. Nothing that it answers is delivered.
    End(ReadingId),
    /// Answer the session's request.
    Answer(SessionId, Result<Vec<u8>, WireError>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Working,
    Idle,
    Ending,
}

#[derive(Debug)]
struct Reading {
    session: SessionId,
    database: DatabaseId,
    /// It holds the contents of moments, for `select_at` or a difference.
    is_state: bool,
    stage: Stage,
}

/// The readings of a server.
#[derive(Debug, Default)]
pub struct Readings {
    last: u64,
    readings: BTreeMap<ReadingId, Reading>,
    /// In the order of arrival.
    waiting: VecDeque<Waiting>,
}

/// A request that waits for a reading to end.
#[derive(Debug)]
struct Waiting {
    database: DatabaseId,
    start: Start,
    /// When it is refused, ms on the monotonic clock.
    until_ms: u64,
}

impl Readings {
    /// Handles a request.
    #[must_use]
    pub fn request(&mut self, now_ms: u64, order: Order) -> Vec<Action> {
        let Order {
            session,
            database,
            name,
            applied,
            request,
            params,
        } = order;
        match request {
            HistoryRequest::Begin(query) => {
                if self.would_wait_for_itself(session, &query, database) {
                    let details = "another reading of history of this session stands still, so this one cannot wait \
                                   for room; end that one first, or try again later";
                    let error = WireError::new(Tag::ResourcesExhausted, details);
                    return vec![Action::Answer(session, Err(error))];
                }
                let start = Start {
                    session,
                    name,
                    applied,
                    query,
                    params,
                };
                self.waiting.push_back(Waiting {
                    database,
                    start,
                    until_ms: now_ms + WAITING_MS,
                });
                let actions = self.start_waiting();
                // Only the new request can start here, so a queue beyond the limit ends with it.
                if self.waiting.len() <= WAITING_MAX {
                    return actions;
                }
                self.waiting.pop_back();
                let details =
                    "too many requests wait for readings of history to end; try again later";
                let error = WireError::new(Tag::ResourcesExhausted, details);
                vec![Action::Answer(session, Err(error))]
            }
            HistoryRequest::Next(id) => match self.idle(id, (session, database)) {
                Ok(reading) => {
                    reading.stage = Stage::Working;
                    vec![Action::Resume(id)]
                }
                Err(error) => vec![Action::Answer(session, Err(error))],
            },
            HistoryRequest::Stop(id) => match self.idle(id, (session, database)) {
                Ok(reading) => {
                    reading.stage = Stage::Ending;
                    vec![Action::End(id), Action::Answer(session, Ok(b"{}".to_vec()))]
                }
                Err(error) => vec![Action::Answer(session, Err(error))],
            },
        }
    }

    /// The reading of this session and database that stands still.
    fn idle(
        &mut self,
        id: ReadingId,
        asked: (SessionId, DatabaseId),
    ) -> Result<&mut Reading, WireError> {
        let reading = self.readings.get_mut(&id).filter(|reading| {
            (reading.session, reading.database) == asked && reading.stage == Stage::Idle
        });
        reading.ok_or_else(|| {
            let details = format!(
                "there is no reading {} of this database in this session; one that is not continued for {} s ends",
                id.0,
                super::IDLE_MS / 1000
            );
            WireError::new(Tag::InvalidParameters, details)
        })
    }

    /// Starts what may begin now, in the order of arrival.
    fn start_waiting(&mut self) -> Vec<Action> {
        let mut actions = Vec::new();
        for waiting in std::mem::take(&mut self.waiting) {
            let (database, session) = (waiting.database, waiting.start.session);
            if !self.has_room(session, &waiting.start.query, database, |_| true) {
                self.waiting.push_back(waiting);
                continue;
            }
            let start = waiting.start;
            self.last += 1;
            let id = ReadingId(self.last);
            let reading = Reading {
                session: start.session,
                database,
                is_state: is_state(&start.query),
                stage: Stage::Working,
            };
            self.readings.insert(id, reading);
            actions.push(Action::Start(id, start));
        }
        actions
    }

    /// Whether a session with a reading that stands still would wait. Threads that are ending are
    /// not waited for long.
    fn would_wait_for_itself(
        &self,
        session: SessionId,
        query: &Query,
        database: DatabaseId,
    ) -> bool {
        let mut readings = self.readings.values();
        readings.any(|reading| reading.session == session && reading.stage == Stage::Idle)
            && !self.has_room(session, query, database, |reading| {
                reading.stage != Stage::Ending
            })
    }

    /// Whether a query of this session may begin, as far as the readings count.
    fn has_room(
        &self,
        session: SessionId,
        query: &Query,
        database: DatabaseId,
        counts: impl Fn(&Reading) -> bool,
    ) -> bool {
        let readings = self.readings.values().filter(|reading| counts(reading));
        if is_state(query) {
            let mut readings = readings;
            return !readings.any(|reading| reading.is_state && reading.database == database);
        }
        let readings = readings.filter(|reading| !reading.is_state);
        let of_session = readings.clone().filter(|it| it.session == session);
        readings.count() < READINGS_MAX && of_session.count() < SESSION_READINGS_MAX
    }

    /// When [`Readings::refuse_overdue`] must be called, ms; `None`: no request waits.
    #[must_use]
    pub fn deadline_ms(&self) -> Option<u64> {
        self.waiting.front().map(|waiting| waiting.until_ms)
    }

    /// Refuses the requests that have waited for too long.
    #[must_use]
    pub fn refuse_overdue(&mut self, now_ms: u64) -> Vec<Action> {
        let mut actions = Vec::new();
        while self.deadline_ms().is_some_and(|at_ms| at_ms <= now_ms)
            && let Some(waiting) = self.waiting.pop_front()
        {
            let details = format!(
                "other readings of history have not ended within {} s; try again later",
                WAITING_MS / 1000
            );
            let error = WireError::new(Tag::ResourcesExhausted, details);
            actions.push(Action::Answer(waiting.start.session, Err(error)));
        }
        actions
    }

    /// A thread has a page that is not the last one. Returns the session that gets it; `None`: the
    /// thread must end.
    #[must_use]
    pub fn page(&mut self, id: ReadingId) -> Option<SessionId> {
        let reading = self.readings.get_mut(&id)?;
        (reading.stage == Stage::Working).then(|| {
            reading.stage = Stage::Idle;
            reading.session
        })
    }

    /// Nobody has asked for the next page for long. Returns false if somebody has in the meantime.
    #[must_use]
    pub fn expire(&mut self, id: ReadingId) -> bool {
        let reading = self.readings.get_mut(&id);
        let Some(reading) = reading.filter(|reading| reading.stage != Stage::Working) else {
            return false;
        };
        reading.stage = Stage::Ending;
        true
    }

    /// A thread ends, with an answer if its session waits for one. Returns the session that gets
    /// it, and what may begin.
    #[must_use]
    pub fn ended(&mut self, id: ReadingId) -> (Option<SessionId>, Vec<Action>) {
        let Some(reading) = self.readings.remove(&id) else {
            return (None, Vec::new());
        };
        let session = (reading.stage == Stage::Working).then_some(reading.session);
        (session, self.start_waiting())
    }

    /// The session cancels its request.
    #[must_use]
    pub fn cancel(&mut self, session: SessionId) -> Vec<Action> {
        let mut actions = Vec::new();
        let before = self.waiting.len();
        self.waiting.retain(|it| it.start.session != session);
        let mut is_found = self.waiting.len() < before;
        for (id, reading) in &mut self.readings {
            if reading.session == session && reading.stage == Stage::Working {
                reading.stage = Stage::Ending;
                actions.push(Action::End(*id));
                is_found = true;
            }
        }
        if is_found {
            let error = WireError::new(Tag::Canceled, "the client has canceled the request");
            actions.push(Action::Answer(session, Err(error)));
        }
        actions
    }

    /// The session has ended.
    #[must_use]
    pub fn closed(&mut self, session: SessionId) -> Vec<Action> {
        self.waiting.retain(|it| it.start.session != session);
        let mut actions = Vec::new();
        for (id, reading) in &mut self.readings {
            if reading.session == session && reading.stage != Stage::Ending {
                reading.stage = Stage::Ending;
                actions.push(Action::End(*id));
            }
        }
        actions
    }
}

/// Whether the contents of moments are held for the session alone.
fn is_state(query: &Query) -> bool {
    matches!(query, Query::Select { .. } | Query::Diff { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(session: u64, database: u32, request: HistoryRequest) -> Order {
        Order {
            session: SessionId(session),
            database: DatabaseId(database),
            name: "D".to_owned(),
            applied: None,
            request,
            params: Vec::new(),
        }
    }

    fn begin(session: u64) -> Order {
        order(session, 1, HistoryRequest::Begin(Query::Files))
    }

    fn select(session: u64, database: u32) -> Order {
        let query = Query::Select {
            at: "HEAD".to_owned(),
            params: Vec::new(),
        };
        order(session, database, HistoryRequest::Begin(query))
    }

    /// The readings that begin.
    fn started(actions: &[Action]) -> Vec<u64> {
        let number = |action: &Action| match action {
            Action::Start(id, _) => Some(id.0),
            _ => None,
        };
        actions.iter().filter_map(number).collect()
    }

    fn is_refusal(actions: &[Action], tag: Tag) -> bool {
        matches!(actions, [Action::Answer(_, Err(error))] if error.tag == tag)
    }

    #[test]
    fn a_reading_goes_on_when_its_session_asks() {
        let mut readings = Readings::default();
        assert_eq!(started(&readings.request(0, begin(7))), [1]);
        let id = ReadingId(1);
        let next = |session, database| order(session, database, HistoryRequest::Next(id));
        // It works, so nobody can have been given its number.
        assert!(is_refusal(
            &readings.request(0, next(7, 1)),
            Tag::InvalidParameters
        ));
        assert_eq!(readings.page(id), Some(SessionId(7)));
        assert!(is_refusal(
            &readings.request(0, next(8, 1)),
            Tag::InvalidParameters
        ));
        assert!(is_refusal(
            &readings.request(0, next(7, 2)),
            Tag::InvalidParameters
        ));
        assert_eq!(readings.request(0, next(7, 1)), [Action::Resume(id)]);
        assert!(!readings.expire(id), "it works again");
        assert_eq!(readings.ended(id).0, Some(SessionId(7)));
        assert!(is_refusal(
            &readings.request(0, next(7, 1)),
            Tag::InvalidParameters
        ));
    }

    #[test]
    fn a_reading_counts_until_its_thread_has_ended() {
        let mut readings = Readings::default();
        for session in 1..=4 {
            assert_eq!(started(&readings.request(0, begin(session))).len(), 1);
        }
        assert!(readings.request(0, begin(5)).is_empty(), "it waits");
        assert_eq!(readings.page(ReadingId(2)), Some(SessionId(2)));
        assert_eq!(readings.closed(SessionId(2)), [Action::End(ReadingId(2))]);
        assert_eq!(readings.page(ReadingId(2)), None);
        let (session, actions) = readings.ended(ReadingId(2));
        assert_eq!((session, started(&actions)), (None, vec![5]));
        assert!(readings.closed(SessionId(2)).is_empty());
    }

    #[test]
    fn one_state_of_each_database_is_held_at_a_time() {
        let mut readings = Readings::default();
        assert_eq!(started(&readings.request(0, select(1, 1))), [1]);
        assert!(readings.request(0, select(2, 1)).is_empty(), "it waits");
        assert_eq!(started(&readings.request(0, select(3, 2))), [2]);
        // Readings are not affected.
        assert_eq!(started(&readings.request(0, begin(4))), [3]);
        assert_eq!(started(&readings.ended(ReadingId(1)).1), [4]);
    }

    #[test]
    fn requests_beyond_the_limit_are_refused() {
        let mut readings = Readings::default();
        for session in 0..(READINGS_MAX + WAITING_MAX) as u64 {
            let actions = readings.request(0, begin(session));
            assert!(!is_refusal(&actions, Tag::ResourcesExhausted), "{session}");
        }
        assert!(is_refusal(
            &readings.request(0, begin(99)),
            Tag::ResourcesExhausted
        ));
    }

    #[test]
    fn a_session_does_not_wait_for_itself() {
        let mut readings = Readings::default();
        for number in 1..=SESSION_READINGS_MAX as u64 {
            assert_eq!(started(&readings.request(0, begin(7))), [number]);
            assert!(readings.page(ReadingId(number)).is_some());
        }
        let refused = readings.request(0, begin(7));
        assert!(is_refusal(&refused, Tag::ResourcesExhausted));
        // The other kind has room.
        assert_eq!(started(&readings.request(0, select(7, 1))), [3]);
        // It has begun with a page, as a difference does.
        assert!(readings.page(ReadingId(3)).is_some());
        let refused = readings.request(0, select(7, 1));
        assert!(is_refusal(&refused, Tag::ResourcesExhausted));
        // A thread that is ending makes room without anybody's doing.
        let stop = order(7, 1, HistoryRequest::Stop(ReadingId(3)));
        assert_eq!(readings.request(0, stop).len(), 2);
        assert!(readings.request(0, select(7, 1)).is_empty(), "it waits");
        assert_eq!(started(&readings.ended(ReadingId(3)).1), [4]);
    }

    #[test]
    fn no_session_has_all_readings() {
        let mut readings = Readings::default();
        for number in 1..=SESSION_READINGS_MAX as u64 {
            assert_eq!(started(&readings.request(0, begin(7))), [number]);
            assert!(readings.page(ReadingId(number)).is_some());
        }
        assert!(is_refusal(
            &readings.request(0, begin(7)),
            Tag::ResourcesExhausted
        ));
        for session in 8..10 {
            assert_eq!(started(&readings.request(0, begin(session))).len(), 1);
        }
        assert!(readings.request(0, begin(10)).is_empty(), "it waits");
    }

    #[test]
    fn a_request_waits_for_others_for_a_limited_time() {
        let mut readings = Readings::default();
        assert_eq!(readings.deadline_ms(), None);
        for session in 1..=4 {
            assert_eq!(started(&readings.request(0, begin(session))).len(), 1);
        }
        assert!(readings.request(100, begin(5)).is_empty());
        assert!(readings.request(200, begin(6)).is_empty());
        assert_eq!(readings.deadline_ms(), Some(100 + WAITING_MS));
        assert!(readings.refuse_overdue(99 + WAITING_MS).is_empty());
        let refused = readings.refuse_overdue(100 + WAITING_MS);
        assert!(is_refusal(&refused, Tag::ResourcesExhausted), "{refused:?}");
        assert_eq!(readings.deadline_ms(), Some(200 + WAITING_MS));
        // The other one begins in time.
        assert_eq!(started(&readings.ended(ReadingId(1)).1), [5]);
        assert_eq!(readings.deadline_ms(), None);
        assert!(readings.refuse_overdue(u64::MAX).is_empty());
    }

    #[test]
    fn cancel_answers_once() {
        let mut readings = Readings::default();
        assert!(readings.cancel(SessionId(7)).is_empty());
        let _ = readings.request(0, begin(7));
        let actions = readings.cancel(SessionId(7));
        assert!(matches!(
            actions.as_slice(),
            [
                Action::End(ReadingId(1)),
                Action::Answer(SessionId(7), Err(_))
            ]
        ));
        assert!(readings.cancel(SessionId(7)).is_empty());
        assert_eq!(readings.ended(ReadingId(1)).0, None, "it is answered");
        // A request that waits.
        let _ = readings.request(0, select(1, 1));
        let _ = readings.request(0, select(2, 1));
        assert!(is_refusal(&readings.cancel(SessionId(2)), Tag::Canceled));
    }

    #[test]
    fn a_reading_that_is_stopped_or_expires_ends() {
        let mut readings = Readings::default();
        let _ = readings.request(0, begin(7));
        assert!(readings.page(ReadingId(1)).is_some());
        let stop = order(7, 1, HistoryRequest::Stop(ReadingId(1)));
        let actions = readings.request(0, stop.clone());
        assert!(matches!(
            actions.as_slice(),
            [Action::End(ReadingId(1)), Action::Answer(_, Ok(_))]
        ));
        assert!(is_refusal(
            &readings.request(0, stop),
            Tag::InvalidParameters
        ));
        let _ = readings.request(0, begin(7));
        assert!(readings.page(ReadingId(2)).is_some());
        assert!(readings.expire(ReadingId(2)));
        assert_eq!(readings.ended(ReadingId(2)).0, None);
    }
}
