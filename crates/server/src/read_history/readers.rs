//! The readings of the server and their threads.
//!
//! Invariant: a lock guards the decisions and the channels to the threads together, so a thread
//! that is told to make a page exists.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use corvid_data::{HashSeed, Tag, WireError};
use corvid_monitor::SessionId;
use corvid_net::clock;
use corvid_net::errno;
use corvid_net::waker::{self, Waker};
use corvid_reactor::priority;
use corvid_reactor::shard::ShardHandle;
use corvid_service::frontend::{ToHistory, shard_of};
use corvid_service::message::ToShard;
use corvid_service::read_history::{Action, ReadingId, Readings, Start};
use crossbeam_channel::Sender;

use super::pager::Pager;
use super::queries;
use super::relayed::{self, Asking};
use crate::database::history::Histories;
use crate::jobs::{JobKind, Jobs};
use crate::session_cost;
use crate::shard::ShardMessage;

/// The readings.
pub(crate) struct HistoryReaders {
    inner: Mutex<Inner>,
    /// When a waiting request is refused, monotonic ms; `u64::MAX`: none waits.
    deadline_ms: AtomicU64,
    shards: Vec<ShardHandle<ShardMessage>>,
    histories: Arc<Histories>,
    hash_seed: HashSeed,
    jobs: Jobs,
}

#[derive(Default)]
struct Inner {
    readings: Readings,
    threads: BTreeMap<ReadingId, Thread>,
}

/// The way to a thread. Dropping it ends the thread at its next look.
struct Thread {
    next: Sender<()>,
    is_wanted: Arc<AtomicBool>,
    /// Wakes a thread that waits for the source of a relay.
    waker: Option<Waker>,
}

impl Thread {
    fn wake(&self) {
        if let Some(waker) = &self.waker {
            waker.wake();
        }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.is_wanted.store(false, Ordering::Relaxed);
        self.wake();
    }
}

impl HistoryReaders {
    /// No readings yet. Answers go to these shards.
    pub(crate) fn new(
        shards: Vec<ShardHandle<ShardMessage>>,
        histories: Arc<Histories>,
        hash_seed: HashSeed,
        jobs: Jobs,
    ) -> HistoryReaders {
        HistoryReaders {
            inner: Mutex::default(),
            deadline_ms: AtomicU64::new(u64::MAX),
            shards,
            histories,
            hash_seed,
            jobs,
        }
    }

    /// Handles an input from a shard.
    pub(crate) fn handle(self: &Arc<HistoryReaders>, input: ToHistory) {
        let mut inner = self.lock();
        let actions = match input {
            ToHistory::Request(order) => inner.readings.request(clock::mono_ms(), *order),
            ToHistory::Cancel(session) => inner.readings.cancel(session),
            ToHistory::Closed(session) => inner.readings.closed(session),
        };
        self.carry_out(&mut inner, actions);
    }

    /// When [`HistoryReaders::refuse_overdue`] must be called. Every shard asks after each of its
    /// inputs, so the one whose client begins to wait calls in time.
    pub(crate) fn deadline_ms(&self) -> Option<u64> {
        let deadline_ms = self.deadline_ms.load(Ordering::Relaxed);
        (deadline_ms < u64::MAX).then_some(deadline_ms)
    }

    /// Refuses the requests that have waited for too long.
    pub(crate) fn refuse_overdue(self: &Arc<HistoryReaders>, now_ms: u64) {
        if self.deadline_ms().is_none_or(|at_ms| at_ms > now_ms) {
            return;
        }
        let mut inner = self.lock();
        let actions = inner.readings.refuse_overdue(now_ms);
        self.carry_out(&mut inner, actions);
    }

    /// A thread has a page, and will wait until it is asked for the next one. Returns false if it
    /// must end.
    pub(super) fn page(&self, id: ReadingId, result: Vec<u8>) -> bool {
        let session = self.lock().readings.page(id);
        if let Some(session) = session {
            self.charge(session);
            self.answer(session, Ok(result));
        }
        session.is_some()
    }

    /// A thread was not asked for the next page for long. Returns false if it is asked now.
    pub(super) fn expire(&self, id: ReadingId) -> bool {
        self.lock().readings.expire(id)
    }

    /// A thread ends, with this answer. Its work since the last page is charged to its session,
    /// although nobody may wait for the answer.
    fn ended(
        self: &Arc<HistoryReaders>,
        id: ReadingId,
        asker: SessionId,
        answer: Result<Vec<u8>, WireError>,
    ) {
        self.charge(asker);
        let mut inner = self.lock();
        inner.threads.remove(&id);
        let (session, actions) = inner.readings.ended(id);
        self.carry_out(&mut inner, actions);
        drop(inner);
        if let Some(session) = session {
            self.answer(session, answer);
        }
    }

    fn carry_out(self: &Arc<HistoryReaders>, inner: &mut Inner, actions: Vec<Action>) {
        let mut actions = actions;
        while !actions.is_empty() {
            let mut further = Vec::new();
            for action in actions {
                match action {
                    Action::Start(id, start) => {
                        if let Err(error) = self.start(inner, id, start) {
                            let details = format!("a thread cannot be started ({error})");
                            let error = WireError::new(Tag::ResourcesExhausted, details);
                            let (session, next) = inner.readings.ended(id);
                            further.extend(next);
                            let answer = |session| Action::Answer(session, Err(error));
                            further.extend(session.map(answer));
                        }
                    }
                    Action::Resume(id) => {
                        if let Some(thread) = inner.threads.get(&id) {
                            // A thread that ends at this moment answers by itself.
                            let _ = thread.next.try_send(());
                            thread.wake();
                        }
                    }
                    Action::End(id) => drop(inner.threads.remove(&id)),
                    Action::Answer(session, answer) => self.answer(session, answer),
                }
            }
            actions = further;
        }
        let deadline_ms = inner.readings.deadline_ms().unwrap_or(u64::MAX);
        self.deadline_ms.store(deadline_ms, Ordering::Relaxed);
    }

    fn start(
        self: &Arc<HistoryReaders>,
        inner: &mut Inner,
        id: ReadingId,
        start: Start,
    ) -> Result<(), String> {
        // At most one page is asked for at a time.
        let (next, asked) = crossbeam_channel::bounded(1);
        let is_wanted = Arc::new(AtomicBool::new(true));
        let mut thread = Thread {
            next,
            is_wanted: is_wanted.clone(),
            waker: None,
        };
        let (readers, asker) = (self.clone(), start.session);
        let job = (self.jobs).begin_bytes(&start.name, JobKind::HistoryReading);
        let spawned = match self.histories.relays().of(&start.name) {
            Some(source) => {
                let (waker, sleeper) = waker::pair().map_err(|error| errno::text(&error))?;
                thread.waker = Some(waker);
                spawn(move || {
                    let asking = Asking {
                        readers: readers.clone(),
                        id,
                        asked,
                        is_wanted,
                        sleeper,
                    };
                    let answer = relayed::run(start, source, asking);
                    drop(job);
                    readers.ended(id, asker, answer);
                })
            }
            None => spawn(move || {
                priority::yield_to_others();
                let pager = Pager::new(readers.clone(), id, asked, is_wanted, job);
                let source = readers.histories.source(&start.name);
                let answer = queries::run(&start, source, readers.hash_seed, pager);
                readers.ended(id, asker, answer);
            }),
        };
        spawned.map_err(|error| errno::text(&error))?;
        inner.threads.insert(id, thread);
        Ok(())
    }

    fn answer(&self, session: SessionId, answer: Result<Vec<u8>, WireError>) {
        if let Some(shard) = self.shards.get(usize::from(shard_of(session))) {
            shard.post(ShardMessage::Service(ToShard::History(session, answer)));
        }
    }

    /// Charges a session with what this thread has used since the last call.
    fn charge(&self, session: SessionId) {
        if let Some(shard) = self.shards.get(usize::from(shard_of(session))) {
            shard.post(ShardMessage::Charge(session, session_cost::uncharged_ns()));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn spawn(run: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    let thread = std::thread::Builder::new().name("history-read".to_owned());
    thread.spawn(run).map(drop)
}
