//! Loading with several threads: whoever is free takes the next job of the log, one thread applies what comes of them in order.
//!
//! Invariant: what has been taken and not yet applied is at most [`Pipeline::limit`] jobs, so memory is bounded however far decoding runs
//! ahead. The applying thread takes jobs itself while what it waits for is not ready, so no core idles whichever side is slower, and
//! with no worker at all it does everything. Knows nothing of files; what a job means is [`corvid_log::Feed`]'s.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use corvid_data::{Arc, Row, Schema, TableId, UuidSource};
use corvid_engine::{Database, Prepared, RowBuilder};
use corvid_log::feed::{Decoded, Job};
use corvid_log::{Feed, ReadError, Source};

/// Jobs under way for each thread: one in its hands, one behind it.
const JOBS_PER_THREAD: usize = 3;

/// A job carried out.
#[derive(Debug)]
pub(super) enum Done {
    Transactions(Decoded<Prepared>),
    Fill,
    Rows(TableId, Vec<Arc<Row>>),
    Filled(u64),
    Irregular,
    End(Option<ReadError>),
}

/// Jobs on their way through the threads.
pub(super) struct Pipeline<S> {
    feed: Mutex<Numbered<S>>,
    line: Mutex<Line>,
    /// Something is done, or all is over.
    done: Condvar,
    /// There is room for another job, or all is over.
    room: Condvar,
    limit: usize,
    schema: Arc<Schema>,
    rows: RowBuilder,
    /// Whether it is worth to guess which rows are new.
    guesses: AtomicBool,
}

struct Numbered<S> {
    feed: Feed<S>,
    /// Jobs taken so far.
    taken: u64,
}

/// What was taken and not yet applied.
struct Line {
    /// In order of the log, the front one next to be applied; `None` while it is under way.
    jobs: VecDeque<Option<Done>>,
    /// Number of the front one.
    first: u64,
    /// Jobs that may still be put in line.
    room: usize,
    /// No job is taken any more.
    is_over: bool,
    /// A thread died.
    is_broken: bool,
}

impl<S: Source> Pipeline<S> {
    /// For so many workers beside the thread that applies.
    pub(super) fn new(feed: Feed<S>, database: &Database, workers: usize) -> Pipeline<S> {
        let limit = (workers + 1) * JOBS_PER_THREAD;
        Pipeline {
            feed: Mutex::new(Numbered { feed, taken: 0 }),
            line: Mutex::new(Line {
                jobs: VecDeque::new(),
                first: 0,
                room: limit,
                is_over: false,
                is_broken: false,
            }),
            done: Condvar::new(),
            room: Condvar::new(),
            limit,
            guesses: AtomicBool::new(true),
            rows: RowBuilder::new(database),
            schema: Arc::clone(database.schema()),
        }
    }

    /// Takes jobs until the log ends or the pipeline is closed. For a thread of its own.
    pub(super) fn work(&self, uuids: &mut dyn UuidSource) {
        let _guard = Guard(self);
        loop {
            let mut line = self.line();
            while line.room == 0 && !line.is_over {
                line = self.room.wait(line).unwrap_or_else(PoisonError::into_inner);
            }
            if line.is_over {
                return;
            }
            line.room -= 1;
            drop(line);
            self.take(uuids);
        }
    }

    /// What is to be applied next. Not to be called after the end of the log or an irregular record.
    pub(super) fn next(&self, uuids: &mut dyn UuidSource) -> Done {
        loop {
            let mut line = self.line();
            assert!(!line.is_broken, "a thread that loads has died");
            if line.jobs.front().is_some_and(Option::is_some)
                && let Some(Some(done)) = line.jobs.pop_front()
            {
                line.first += 1;
                line.room += 1;
                self.room.notify_one();
                return done;
            }
            if line.room > 0 && !line.is_over {
                line.room -= 1;
                drop(line);
                self.take(uuids);
            } else {
                drop(self.done.wait(line).unwrap_or_else(PoisonError::into_inner));
            }
        }
    }

    /// Tells how many of the rows of so many transactions were wrongly guessed to be new: when most were, the next are not guessed.
    pub(super) fn learn(&self, mistakes: usize, transactions: usize) {
        if 2 * mistakes > transactions {
            self.guesses.store(false, Ordering::Relaxed);
        }
    }

    /// No more jobs are taken.
    pub(super) fn close(&self) {
        self.line().is_over = true;
        self.room.notify_all();
    }

    /// Takes one job, for which there is room, and carries it out.
    fn take(&self, uuids: &mut dyn UuidSource) {
        let (number, job) = {
            let mut feed = self.feed();
            let Some(job) = feed.feed.job() else {
                return self.close();
            };
            feed.taken += 1;
            (feed.taken - 1, job)
        };
        let done = match job {
            Job::Records(records) => {
                let guesses = self.guesses.load(Ordering::Relaxed);
                let decoded = records.decode(&self.schema, |recorded| {
                    self.rows.prepare(recorded, guesses, uuids)
                });
                self.feed().feed.reuse(records);
                Done::Transactions(decoded)
            }
            Job::Fill => Done::Fill,
            Job::Rows(text) => {
                let rows = text.decode(&self.schema).and_then(|rows| {
                    rows.into_iter()
                        .map(|row| self.rows.row(row, uuids))
                        .collect()
                });
                rows.map_or(Done::Irregular, |rows| Done::Rows(text.table, rows))
            }
            Job::Filled(end) => Done::Filled(end),
            Job::Irregular => Done::Irregular,
            Job::End(error) => Done::End(error),
        };
        let mut line = self.line();
        let at = usize::try_from(number - line.first).unwrap_or(self.limit);
        assert!(at < self.limit, "no more jobs than there is room for");
        while line.jobs.len() <= at {
            line.jobs.push_back(None);
        }
        line.jobs[at] = Some(done);
        self.done.notify_one();
    }

    fn feed(&self) -> MutexGuard<'_, Numbered<S>> {
        self.feed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells the thread that applies when a worker panics, so that it does not wait for ever.
struct Guard<'p, S: Source>(&'p Pipeline<S>);

impl<S: Source> Drop for Guard<'_, S> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.line().is_broken = true;
            self.0.done.notify_all();
        }
    }
}
