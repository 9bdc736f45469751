//! The way back from databases to the main thread: events, in order, and waiting until they have been taken care of.

use std::sync::Arc;
use std::time::Duration;

use corvid_service::message::Event;
use crossbeam_channel::Sender;

/// What the main thread is sent.
#[derive(Debug)]
pub enum Report {
    /// From a database.
    Event(Event),
    /// Answer when all reports before this one have been taken care of.
    Barrier(Sender<()>),
    /// The backup with this number is written, or why not.
    BackedUp(u64, Result<(), String>),
}

/// The way back to the main thread.
#[derive(Clone, Debug)]
pub struct MainThread {
    /// Its queue.
    pub events: Sender<Report>,
    /// Wakes it.
    pub waker: Arc<mio::Waker>,
}

impl MainThread {
    /// Sends events and wakes it once.
    pub fn post(&self, events: impl IntoIterator<Item = Event>) {
        let mut any = false;
        for event in events {
            any |= self.events.send(Report::Event(event)).is_ok();
        }
        if any {
            // Fails only when the main loop is gone, and with it the need.
            let _ = self.waker.wake();
        }
    }

    /// Tells what became of a backup.
    pub fn backed_up(&self, token: u64, outcome: Result<(), String>) {
        if self.events.send(Report::BackedUp(token, outcome)).is_ok() {
            let _ = self.waker.wake();
        }
    }

    /// Waits until the main thread has taken care of everything sent before.
    pub fn settle(&self) {
        let (answer, answered) = crossbeam_channel::bounded(1);
        if self.events.send(Report::Barrier(answer)).is_ok() && self.waker.wake().is_ok() {
            // Ends early when the main thread exits meanwhile.
            let _ = answered.recv_timeout(MAIN_THREAD_PATIENCE);
        }
    }
}

/// How long a database waits for the main thread before it goes on.
const MAIN_THREAD_PATIENCE: Duration = Duration::from_secs(1);
