//! Carries out the long jobs of one database away from its thread, in order, giving way to everybody else, and on another
//! thread those that a client waits for: first contents of monitors, and long texts. What is to be freed goes to the reaper.
//!
//! The threads end with their database, after the job or the slice that they are at. Which text has the next slice is decided by
//! [`BodyScheduler`]. What a job is, is told in [`corvid_service::job`].

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use corvid_reactor::priority;
use corvid_service::job::Job;
use corvid_service::job::body_scheduler::BodyScheduler;
use crossbeam_channel::{Receiver, Sender, TryRecvError};

use crate::database::reaper::Reaper;
use crate::database::storage::ReplySender;

/// Where a database leaves its jobs.
#[derive(Debug)]
pub(crate) struct JobThreads {
    jobs: Sender<Job>,
    inbox: ReplySender,
    /// Of the thread that writes contents, from the first ones on.
    contents: Option<Sender<Job>>,
    reaper: Reaper,
}

impl JobThreads {
    /// Starts the thread. Answers go to `inbox`; `freeing` counts the bytes that wait to be freed.
    ///
    /// # Errors
    /// The thread cannot be made.
    pub(crate) fn new(
        inbox: ReplySender,
        freeing: Arc<AtomicUsize>,
    ) -> std::io::Result<JobThreads> {
        let answers = inbox.clone();
        let run = move |jobs: Receiver<Job>| carry_out(&jobs, &answers);
        let jobs = start("jobs", run)?;
        Ok(JobThreads {
            jobs,
            inbox,
            contents: None,
            reaper: Reaper::new(freeing),
        })
    }

    /// Leaves a job to a thread.
    pub(crate) fn order(&mut self, job: Job) {
        let thread = match job {
            Job::Free(garbage) => return self.reaper.free(garbage),
            Job::InitialContents(..) | Job::DeferredBody(..) | Job::PrecomputedUpdate(_) => {
                self.contents()
            }
            Job::Convert { .. } | Job::CarryOver { .. } | Job::Compare { .. } => &self.jobs,
        };
        // The threads live as long as their queues, which are ours.
        let _ = thread.send(job);
    }

    /// The thread for texts; where it cannot be made, the other one must do, which writes them as a whole.
    fn contents(&mut self) -> &Sender<Job> {
        if self.contents.is_none() {
            let inbox = self.inbox.clone();
            let run = move |jobs: Receiver<Job>| write(&jobs, &inbox);
            self.contents = start("contents", run).ok();
        }
        self.contents.as_ref().unwrap_or(&self.jobs)
    }
}

/// A thread that runs `run` with the end of a queue.
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

/// Carries out jobs as wholes.
fn carry_out(jobs: &Receiver<Job>, inbox: &ReplySender) {
    priority::yield_to_others();
    for job in jobs {
        if let Some(answer) = job.carry_out() {
            inbox.send(answer);
        }
    }
}

/// Writes texts in turns. What arrives has its turn after the present slice.
fn write(jobs: &Receiver<Job>, inbox: &ReplySender) {
    let mut turns = BodyScheduler::default();
    let mut answers = Vec::new();
    while let Ok(job) = jobs.recv() {
        // Nothing else is sent here.
        let _ = turns.push(job);
        while !turns.is_empty() {
            turns.run_slice(&mut answers);
            for answer in answers.drain(..) {
                inbox.send(answer);
            }
            loop {
                match jobs.try_recv() {
                    Ok(job) => {
                        let _ = turns.push(job);
                    }
                    Err(TryRecvError::Empty) => break,
                    // The database has ended: nobody waits.
                    Err(TryRecvError::Disconnected) => return,
                }
            }
        }
    }
}
