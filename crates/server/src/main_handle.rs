//! The way back from databases to the main thread: events, in order, and waiting until they have been taken care of.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use corvid_service::message::Event;
use crossbeam_channel::Sender;

use crate::control::sessions::ListedSession;
use crate::database::open::Opened;

/// What the main thread is sent.
#[derive(Debug)]
pub(crate) enum MainMessage {
    /// From a database.
    Event(Event),
    /// Answer when all reports before this one have been taken care of.
    Barrier(Sender<()>),
    /// The file with this number is open, or why not.
    Opened(u64, Box<Result<Opened, String>>),
    /// The backup with this number is written, or why not.
    BackedUp(u64, Result<(), String>),
    /// Sessions of one shard, for the question with this number.
    SessionsListed(u64, Vec<ListedSession>),
    /// Whether there was a session to be closed, for the order with this number.
    SessionClosed(u64, bool),
}

/// Reports that may be queued while lines for the log are added to them: about rows, transactions and remotes. Beyond it they are dropped, and the log
/// tells how many. Whatever else is reported is bounded by what the main thread has asked for and by the sets of databases and remotes.
const LINES_QUEUED_MAX: usize = 64 * 1024;

/// The way back to the main thread.
#[derive(Clone, Debug)]
pub(crate) struct MainHandle {
    /// Its queue.
    pub(crate) events: Sender<MainMessage>,
    /// Lines that were dropped and not told of.
    pub(crate) lines_dropped: Arc<AtomicU64>,
    /// Wakes it.
    pub(crate) waker: Arc<mio::Waker>,
}

impl MainHandle {
    /// Sends events and wakes it once.
    pub(crate) fn post(&self, events: impl IntoIterator<Item = Event>) {
        let mut any = false;
        for event in events {
            let is_line = matches!(event, Event::Slow(_) | Event::RowLogged(_));
            if is_line && self.events.len() >= LINES_QUEUED_MAX {
                self.lines_dropped.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            any |= self.events.send(MainMessage::Event(event)).is_ok();
        }
        if any {
            // Fails only when the main loop is gone, and with it the need.
            let _ = self.waker.wake();
        }
    }

    /// Tells what became of a file that was to be opened.
    pub(crate) fn opened(&self, token: u64, outcome: Result<Opened, String>) {
        self.report(MainMessage::Opened(token, Box::new(outcome)));
    }

    /// Tells what became of a backup.
    pub(crate) fn backed_up(&self, token: u64, outcome: Result<(), String>) {
        self.report(MainMessage::BackedUp(token, outcome));
    }

    /// Tells of the sessions of one shard.
    pub(crate) fn sessions_listed(&self, token: u64, sessions: Vec<ListedSession>) {
        self.report(MainMessage::SessionsListed(token, sessions));
    }

    /// Tells whether there was a session to be closed.
    pub(crate) fn session_closed(&self, token: u64, is_closed: bool) {
        self.report(MainMessage::SessionClosed(token, is_closed));
    }

    fn report(&self, report: MainMessage) {
        if self.events.send(report).is_ok() {
            // As above.
            let _ = self.waker.wake();
        }
    }

    /// Waits until the main thread has taken care of everything sent before.
    pub(crate) fn await_processed(&self) {
        let (answer, answered) = crossbeam_channel::bounded(1);
        if self.events.send(MainMessage::Barrier(answer)).is_ok() && self.waker.wake().is_ok() {
            // Ends early when the main thread exits meanwhile.
            let _ = answered.recv_timeout(MAIN_THREAD_WAIT_MAX);
        }
    }
}

/// How long a database waits for the main thread before it goes on.
const MAIN_THREAD_WAIT_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_beyond_what_may_be_queued_are_dropped_and_counted() {
        let poll = mio::Poll::new().expect("a poll");
        let waker = mio::Waker::new(poll.registry(), mio::Token(0)).expect("a waker");
        let (events, reports) = crossbeam_channel::unbounded();
        let main = MainHandle {
            events,
            lines_dropped: Arc::default(),
            waker: Arc::new(waker),
        };
        let lines = || (0..).map(|number| Event::RowLogged(format!("{number}")));
        main.post(lines().take(LINES_QUEUED_MAX));
        main.post(lines().take(3));
        main.post([Event::RoleSet(1)]);
        assert_eq!(
            reports.len(),
            LINES_QUEUED_MAX + 1,
            "others are not dropped"
        );
        assert_eq!(main.lines_dropped.load(Ordering::Relaxed), 3);
    }
}
