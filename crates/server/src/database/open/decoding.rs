//! Parallel decoding of a log: several threads decode its pieces, and the thread that applies them
//! gets the outcomes in the order of the log.
//!
//! [`corvid_reactor::pipeline`] distributes the jobs and bounds how many are in flight;
//! [`corvid_service::storage::loading`] defines what a job means. This file knows nothing of files;
//! its jobs come from a [`corvid_log::Feed`].

use corvid_data::UuidSource;
use corvid_engine::Database;
use corvid_log::{Feed, Job, Source};
use corvid_reactor::pipeline::{Jobs, Pipeline};
use corvid_service::storage::loading::{Decoder, Outcome};

/// A log that is being decoded.
pub(super) struct Decoding<S> {
    pipeline: Pipeline<FeedJobs<S>, Outcome>,
    decoder: Decoder,
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
    /// Decodes `feed` with `workers` threads in addition to the one that applies.
    pub(super) fn new(feed: Feed<S>, database: &Database, workers: usize) -> Decoding<S> {
        Decoding {
            pipeline: Pipeline::new(FeedJobs(feed), workers),
            decoder: Decoder::new(database),
        }
    }

    /// The rules of decoding.
    pub(super) fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// Decodes until the log ends or [`Decoding::close`] is called. Runs on a worker thread.
    pub(super) fn work(&self, uuids: &mut dyn UuidSource) {
        self.pipeline.work(|job| self.decode(job, uuids));
    }

    /// The next outcome in the order of the log. Must not be called after the end of the log or
    /// after an irregular record.
    pub(super) fn next(&self, uuids: &mut dyn UuidSource) -> Outcome {
        self.pipeline.next(|job| self.decode(job, uuids))
    }

    /// Starts no more jobs, so that the workers return.
    pub(super) fn close(&self) {
        self.pipeline.close();
    }

    fn decode(&self, job: Job, uuids: &mut dyn UuidSource) -> Outcome {
        self.decoder.decode(job, uuids, |records| {
            self.pipeline.with_jobs(|jobs| jobs.0.reuse(records));
        })
    }
}
