//! The threads for the long jobs ([`corvid_service::job`]) of one database.
//!
//! The `jobs` thread carries out jobs in order, at low priority. The `contents` thread writes
//! bodies that clients wait for (initial contents of monitors, long results, long updates) in
//! slices, in the order of [`BodyScheduler`]. Garbage goes to the reaper, and the files of the
//! database are read by threads of their own. The threads end with
//! their database, after the current job or slice.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use corvid_net::clock;
use corvid_reactor::priority;
use corvid_reactor::shard::ShardHandle;
use corvid_service::frontend::shard_of;
use corvid_service::job::Job;
use corvid_service::job::body_scheduler::BodyScheduler;
use crossbeam_channel::{Receiver, Sender, TryRecvError};

use crate::database::reaper::Reaper;
use crate::database::storage::ReplySender;
use crate::jobs::{JobKind, Jobs};
use crate::read_history::PastReader;
use crate::session_cost;
use crate::shard::ShardMessage;

/// The job threads of one database.
#[derive(Debug)]
pub(crate) struct JobThreads {
    jobs: Sender<Job>,
    replies: ReplySender,
    /// The queue of the `contents` thread. The first body starts the thread.
    contents: Option<Sender<Job>>,
    /// The shards of the sessions that wait for bodies.
    shards: Vec<ShardHandle<ShardMessage>>,
    reaper: Reaper,
    /// Reads the files of the database, if it has any.
    past: Option<PastReader>,
}

impl JobThreads {
    /// Starts the `jobs` thread. Results go to `replies`; `freeing` is kept equal to the size of
    /// the reaper's queue, bytes. Sessions of `shards` are charged with the bodies written for
    /// them. Conversions are listed as those of `database`.
    ///
    /// # Errors
    /// The thread cannot be created.
    pub(crate) fn new(
        replies: ReplySender,
        freeing: Arc<AtomicUsize>,
        past: Option<PastReader>,
        shards: Vec<ShardHandle<ShardMessage>>,
        listed: Jobs,
        database: String,
    ) -> std::io::Result<JobThreads> {
        let answers = replies.clone();
        let run = move |jobs: Receiver<Job>| carry_out(&jobs, &answers, &listed, &database);
        let jobs = start("jobs", run)?;
        Ok(JobThreads {
            jobs,
            replies,
            contents: None,
            shards,
            reaper: Reaper::new(freeing),
            past,
        })
    }

    /// Sends a job to its thread.
    pub(crate) fn order(&mut self, job: Job) {
        let thread = match job {
            Job::Free(garbage) => return self.reaper.free(garbage),
            Job::ReadPast(number, order) => {
                return match &self.past {
                    Some(past) => past.start(number, order, &self.replies),
                    None => self.send(Job::ReadPast(number, order)),
                };
            }
            Job::InitialContents(..) | Job::DeferredBody(..) | Job::PrecomputedUpdate(_) => {
                self.contents()
            }
            Job::Convert { .. }
            | Job::CarryOver { .. }
            | Job::Compare { .. }
            | Job::CompareSnapshots { .. } => &self.jobs,
        };
        // Sending cannot fail: the threads live as long as these senders.
        let _ = thread.send(job);
    }

    /// Sends a job to the `jobs` thread, which lives as long as this sender.
    fn send(&self, job: Job) {
        let _ = self.jobs.send(job);
    }

    /// The queue of the `contents` thread. If that thread cannot be created, the queue of the
    /// `jobs` thread, which writes each body in one go.
    fn contents(&mut self) -> &Sender<Job> {
        if self.contents.is_none() {
            let (replies, shards) = (self.replies.clone(), self.shards.clone());
            let run = move |jobs: Receiver<Job>| write(&jobs, &replies, &shards);
            self.contents = start("contents", run).ok();
        }
        self.contents.as_ref().unwrap_or(&self.jobs)
    }
}

/// Starts a thread that runs `run` with the receiver of its queue.
fn start(
    name: &str,
    run: impl FnOnce(Receiver<Job>) + Send + 'static,
) -> std::io::Result<Sender<Job>> {
    let (sender, jobs) = crossbeam_channel::unbounded();
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || run(jobs))?;
    Ok(sender)
}

/// The `jobs` thread: carries out one job after another.
fn carry_out(jobs: &Receiver<Job>, replies: &ReplySender, listed: &Jobs, database: &str) {
    priority::yield_to_others();
    for job in jobs {
        let _running = match &job {
            Job::Convert { snapshot, .. } => {
                let rows = snapshot.rows_count();
                Some(listed.begin_at_once(database, JobKind::Conversion, rows))
            }
            _ => None,
        };
        if let Some(answer) = job.carry_out() {
            replies.send(answer.into());
        }
    }
}

/// The `contents` thread: writes bodies in turns. A new body gets its turn after the current slice.
/// Charges each slice to the session of its body before it reports the body.
fn write(jobs: &Receiver<Job>, replies: &ReplySender, shards: &[ShardHandle<ShardMessage>]) {
    let mut turns = BodyScheduler::default();
    let mut answers = Vec::new();
    while let Ok(job) = jobs.recv() {
        // Only bodies are sent here.
        let _ = turns.push(job);
        while !turns.is_empty() {
            let began_ns = clock::mono_ns();
            let session = turns.run_slice(&mut answers);
            let cpu_ns = session_cost::cpu_ns(clock::mono_ns() - began_ns);
            if let Some(session) = session
                && let Some(shard) = shards.get(usize::from(shard_of(session)))
            {
                shard.post(ShardMessage::Charge(session, cpu_ns));
            }
            for answer in answers.drain(..) {
                replies.send(answer.into());
            }
            loop {
                match jobs.try_recv() {
                    Ok(job) => {
                        let _ = turns.push(job);
                    }
                    Err(TryRecvError::Empty) => break,
                    // The database has ended.
                    Err(TryRecvError::Disconnected) => return,
                }
            }
        }
    }
}
