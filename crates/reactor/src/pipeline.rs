//! An ordered pipeline: several threads carry out the jobs of one source, and one thread consumes
//! the outcomes in the order of the jobs.
//!
//! Invariant: at most [`Pipeline::limit`] jobs have been taken from the source and not been
//! consumed, so memory is bounded however far the workers run ahead. While the next outcome is not
//! ready, the consumer carries out jobs itself, so no core idles when either side is slower.
//! Without workers the consumer does everything.
//!
//! ```text
//!  source --next--> job --carry out--> outcome, in any order --> line, in the order of jobs --> consumer
//!    one thread at a time    workers and consumer                  at most `limit` places
//! ```

use std::collections::VecDeque;

use crate::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Jobs in flight per thread: one being carried out, and two queued after it.
const JOBS_PER_THREAD: usize = 3;

/// A source of jobs, asked by one thread at a time.
pub trait Jobs {
    /// One piece of work, independent of the others.
    type Job;

    /// The next job; `None` if there are no more. Threads that were about to ask still ask once
    /// more, and must get `None` again.
    fn next(&mut self) -> Option<Self::Job>;
}

/// Jobs on their way through the threads. `J` makes them; `T` is the outcome of one.
#[derive(Debug)]
pub struct Pipeline<J, T> {
    jobs: Mutex<Numbered<J>>,
    line: Mutex<Line<T>>,
    /// Signals that an outcome is ready, that the pipeline is closed, or that a worker has
    /// panicked.
    ready: Condvar,
    /// Signals that there is room for another job, or that the pipeline is closed.
    room: Condvar,
    limit: usize,
}

#[derive(Debug)]
struct Numbered<J> {
    jobs: J,
    /// The number of jobs taken so far.
    taken: u64,
}

/// Jobs that were taken and not consumed yet.
#[derive(Debug)]
struct Line<T> {
    /// Outcomes in the order of their jobs, the next to be consumed first; `None` while the job is
    /// in flight.
    outcomes: VecDeque<Option<T>>,
    /// The number of the first job.
    first: u64,
    /// The number of jobs that may still be taken.
    room: usize,
    /// No more jobs are taken.
    is_closed: bool,
    /// A worker has panicked.
    is_broken: bool,
}

impl<J: Jobs, T> Pipeline<J, T> {
    /// A pipeline for `workers` threads in addition to the consumer.
    #[must_use]
    pub fn new(jobs: J, workers: usize) -> Pipeline<J, T> {
        Pipeline::with_limit(jobs, (workers + 1) * JOBS_PER_THREAD)
    }

    pub(crate) fn with_limit(jobs: J, limit: usize) -> Pipeline<J, T> {
        Pipeline {
            jobs: Mutex::new(Numbered { jobs, taken: 0 }),
            line: Mutex::new(Line {
                outcomes: VecDeque::new(),
                first: 0,
                room: limit,
                is_closed: false,
                is_broken: false,
            }),
            ready: Condvar::new(),
            room: Condvar::new(),
            limit,
        }
    }

    /// Carries out jobs until there are no more or the pipeline is closed. Runs on a worker thread.
    pub fn work(&self, mut carry_out: impl FnMut(J::Job) -> T) {
        let _guard = Guard(self);
        loop {
            let mut line = self.line();
            while line.room == 0 && !line.is_closed {
                line = self.room.wait(line).unwrap_or_else(PoisonError::into_inner);
            }
            if line.is_closed {
                return;
            }
            line.room -= 1;
            drop(line);
            self.do_one(&mut carry_out);
        }
    }

    /// The next outcome in the order of the jobs. For the consumer, which must stop calling after
    /// the outcome of the last job.
    ///
    /// # Panics
    /// A worker has panicked.
    pub fn next(&self, mut carry_out: impl FnMut(J::Job) -> T) -> T {
        loop {
            let mut line = self.line();
            assert!(!line.is_broken, "a worker of the pipeline has panicked");
            if line.outcomes.front().is_some_and(Option::is_some)
                && let Some(Some(outcome)) = line.outcomes.pop_front()
            {
                line.first += 1;
                line.room += 1;
                assert!(line.room <= self.limit, "an outcome is consumed once");
                self.room.notify_one();
                return outcome;
            }
            if line.room > 0 && !line.is_closed {
                line.room -= 1;
                drop(line);
                self.do_one(&mut carry_out);
            } else {
                drop(
                    self.ready
                        .wait(line)
                        .unwrap_or_else(PoisonError::into_inner),
                );
            }
        }
    }

    /// Takes no more jobs, so that workers return. Outcomes that were not consumed are dropped with
    /// the pipeline.
    pub fn close(&self) {
        self.line().is_closed = true;
        self.room.notify_all();
    }

    /// Gives access to the source between two jobs, to return resources of a job to it.
    pub fn with_jobs<R>(&self, use_jobs: impl FnOnce(&mut J) -> R) -> R {
        use_jobs(&mut self.jobs().jobs)
    }

    /// Takes one job, for which there must be room, and carries it out.
    fn do_one(&self, carry_out: impl FnOnce(J::Job) -> T) {
        let (number, job) = {
            let mut jobs = self.jobs();
            let Some(job) = jobs.jobs.next() else {
                return self.close();
            };
            jobs.taken += 1;
            (jobs.taken - 1, job)
        };
        let outcome = carry_out(job);
        let mut line = self.line();
        let at = usize::try_from(number - line.first).unwrap_or(self.limit);
        assert!(at < self.limit, "no more jobs than there is room for");
        while line.outcomes.len() <= at {
            line.outcomes.push_back(None);
        }
        assert!(line.outcomes[at].is_none(), "a job is carried out once");
        line.outcomes[at] = Some(outcome);
        self.ready.notify_one();
    }

    fn jobs(&self) -> MutexGuard<'_, Numbered<J>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<J, T> Pipeline<J, T> {
    fn line(&self) -> MutexGuard<'_, Line<T>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reports a panicking worker to the consumer, which would otherwise wait forever for the worker's
/// outcome.
struct Guard<'p, J, T>(&'p Pipeline<J, T>);

impl<J, T> Drop for Guard<'_, J, T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.line().is_broken = true;
            self.0.ready.notify_all();
        }
    }
}
