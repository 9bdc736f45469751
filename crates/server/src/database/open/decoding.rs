//! The jobs of a load: several threads decode the pieces of a log, and the thread that applies them gets the outcomes in the order of the log.
//!
//! [`corvid_reactor::pipeline`] distributes the jobs and bounds how many are under way. This file says what a job means. It knows nothing of
//! files; the jobs come from a [`corvid_log::Feed`].

use std::sync::atomic::{AtomicBool, Ordering};

use corvid_data::{Arc, Row, Schema, TableId, UuidSource};
use corvid_engine::{Database, Prepared, RowBuilder};
use corvid_log::feed::{Decoded, Job};
use corvid_log::{Feed, ReadError, Source};
use corvid_reactor::pipeline::{Jobs, Pipeline};

/// The outcome of one job.
#[derive(Debug)]
pub(super) enum Outcome {
    Transactions(Decoded<Prepared>),
    Fill,
    Rows(TableId, Vec<Arc<Row>>),
    Filled(u64),
    Irregular,
    End(Option<ReadError>),
}

/// A log that is being decoded.
pub(super) struct Decoding<S> {
    pipeline: Pipeline<FeedJobs<S>, Outcome>,
    schema: Arc<Schema>,
    rows: RowBuilder,
    /// Whether guessing which rows are new saves time.
    guesses: AtomicBool,
}

/// The pieces of a log as jobs.
struct FeedJobs<S>(Feed<S>);

impl<S: Source> Jobs for FeedJobs<S> {
    type Job = Job;

    fn next(&mut self) -> Option<Job> {
        self.0.job()
    }
}

impl<S: Source> Decoding<S> {
    /// Decodes `feed` with `workers` threads beside the one that applies.
    pub(super) fn new(feed: Feed<S>, database: &Database, workers: usize) -> Decoding<S> {
        Decoding {
            pipeline: Pipeline::new(FeedJobs(feed), workers),
            schema: Arc::clone(database.schema()),
            rows: RowBuilder::new(database),
            guesses: AtomicBool::new(true),
        }
    }

    /// Decodes until the log ends or [`Decoding::close`] is called. Runs on a worker's thread.
    pub(super) fn work(&self, uuids: &mut dyn UuidSource) {
        self.pipeline.work(|job| self.decode(job, uuids));
    }

    /// The next outcome in the order of the log. Not to be called after the end of the log or an irregular record.
    pub(super) fn next(&self, uuids: &mut dyn UuidSource) -> Outcome {
        self.pipeline.next(|job| self.decode(job, uuids))
    }

    /// Reports how many of the rows of so many transactions were wrongly guessed to be new. When most were, later rows are not guessed.
    pub(super) fn learn(&self, mistakes: usize, transactions: usize) {
        if 2 * mistakes > transactions {
            self.guesses.store(false, Ordering::Relaxed);
        }
    }

    /// Starts no more jobs; workers return.
    pub(super) fn close(&self) {
        self.pipeline.close();
    }

    fn decode(&self, job: Job, uuids: &mut dyn UuidSource) -> Outcome {
        match job {
            Job::Records(records) => {
                let guesses = self.guesses.load(Ordering::Relaxed);
                let decoded = records.decode(&self.schema, |recorded| {
                    self.rows.prepare(recorded, guesses, uuids)
                });
                self.pipeline.with_jobs(|jobs| jobs.0.reuse(records));
                Outcome::Transactions(decoded)
            }
            Job::Fill => Outcome::Fill,
            Job::Rows(text) => {
                let rows = text.decode(&self.schema).and_then(|rows| {
                    rows.into_iter()
                        .map(|row| self.rows.row(row, uuids))
                        .collect()
                });
                rows.map_or(Outcome::Irregular, |rows| Outcome::Rows(text.table, rows))
            }
            Job::Filled(end) => Outcome::Filled(end),
            Job::Irregular => Outcome::Irregular,
            Job::End(error) => Outcome::End(error),
        }
    }
}
