//! Carries out the long jobs of one database on a thread of its own, in order, giving way to everybody else.
//!
//! The thread ends with its database, after the job that it is at. What a job is, is told in [`corvid_service::job`].

use corvid_os::priority;
use corvid_service::job::Job;
use crossbeam_channel::{Receiver, Sender};

use crate::open::RandomUuids;
use crate::storage::InboxHandle;

/// Where a database leaves its jobs.
#[derive(Debug)]
pub struct Worker {
    jobs: Sender<Job>,
}

impl Worker {
    /// Starts the thread. Answers go to `inbox`.
    ///
    /// # Errors
    /// The thread cannot be made, or there is no random source.
    pub fn new(inbox: InboxHandle) -> std::io::Result<Worker> {
        let (sender, jobs) = crossbeam_channel::unbounded();
        let uuids = RandomUuids::new()?;
        std::thread::Builder::new()
            .name("jobs".to_owned())
            .spawn(move || run(&jobs, &inbox, uuids))?;
        Ok(Worker { jobs: sender })
    }

    /// Leaves a job to the thread.
    pub fn order(&self, job: Job) {
        // The thread lives as long as its queue, which is ours.
        let _ = self.jobs.send(job);
    }
}

fn run(jobs: &Receiver<Job>, inbox: &InboxHandle, mut uuids: RandomUuids) {
    priority::yield_to_others();
    for job in jobs {
        if let Some(answer) = job.carry_out(&mut uuids) {
            inbox.send(answer);
        }
    }
}
