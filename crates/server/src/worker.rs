//! Carries out the long jobs of one database away from its thread, in order, giving way to everybody else, and on another
//! thread those that a client waits for: first contents of monitors, and long texts. What is to be freed goes to the reaper.
//!
//! The threads end with their database, after the job that they are at. What a job is, is told in [`corvid_service::job`].

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use corvid_os::priority;
use corvid_service::job::Job;
use crossbeam_channel::{Receiver, Sender};

use crate::open::RandomUuids;
use crate::reaper::Reaper;
use crate::storage::InboxHandle;

/// Where a database leaves its jobs.
#[derive(Debug)]
pub struct Worker {
    jobs: Sender<Job>,
    inbox: InboxHandle,
    /// Of the thread that writes contents, from the first ones on.
    contents: Option<Sender<Job>>,
    reaper: Reaper,
}

impl Worker {
    /// Starts the thread. Answers go to `inbox`; `freeing` counts the bytes that wait to be freed.
    ///
    /// # Errors
    /// The thread cannot be made, or there is no random source.
    pub fn new(inbox: InboxHandle, freeing: Arc<AtomicUsize>) -> std::io::Result<Worker> {
        let jobs = start("jobs", priority::yield_to_others, inbox.clone())?;
        Ok(Worker {
            jobs,
            inbox,
            contents: None,
            reaper: Reaper::new(freeing),
        })
    }

    /// Leaves a job to a thread.
    pub fn order(&mut self, job: Job) {
        let thread = match job {
            Job::Free(garbage) => return self.reaper.free(garbage),
            Job::Contents(..) | Job::Text(..) | Job::Foretold(_) => self.contents(),
            _ => &self.jobs,
        };
        // The threads live as long as their queues, which are ours.
        let _ = thread.send(job);
    }

    /// The thread for contents; where it cannot be made, the other one must do.
    fn contents(&mut self) -> &Sender<Job> {
        if self.contents.is_none() {
            self.contents = start("contents", || {}, self.inbox.clone()).ok();
        }
        self.contents.as_ref().unwrap_or(&self.jobs)
    }
}

/// A thread that calls `prepare` and then carries out what it is sent.
fn start(
    name: &str,
    prepare: impl FnOnce() + Send + 'static,
    inbox: InboxHandle,
) -> std::io::Result<Sender<Job>> {
    let (sender, jobs) = crossbeam_channel::unbounded();
    let uuids = RandomUuids::new()?;
    let run = move || {
        prepare();
        run(&jobs, &inbox, uuids);
    };
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(run)?;
    Ok(sender)
}

fn run(jobs: &Receiver<Job>, inbox: &InboxHandle, mut uuids: RandomUuids) {
    for job in jobs {
        if let Some(answer) = job.carry_out(&mut uuids) {
            inbox.send(answer);
        }
    }
}
