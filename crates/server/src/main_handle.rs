//! The handle with which other threads send to the main thread: events of databases, in order, and
//! results of background work.
//!
//! Invariant: the main thread handles messages in the order in which they were sent. The queue is
//! bounded by dropping log lines.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use corvid_service::member::Contents;
use corvid_service::message::{DatabaseId, Event};
use corvid_service::server_db::ServerRow;
use crossbeam_channel::Sender;

use crate::control::sessions::SessionList;
use crate::database::open::Opened;
use crate::status::MemberStatus;

/// A message to the main thread.
#[derive(Debug)]
pub(crate) enum MainMessage {
    /// An event of a database.
    Event(Event),
    /// Answer when all messages before this one have been handled.
    Barrier(Sender<()>),
    /// The outcome of the opening with this token.
    Opened(u64, Box<Result<Opened, String>>),
    /// The outcome of the backup with this token: the text of the reply, or the error.
    BackedUp(u64, Result<String, String>),
    /// The sessions of one shard, for the list with this token.
    SessionsListed(u64, SessionList),
    /// Whether the session with this token, which was to be closed, existed.
    SessionClosed(u64, bool),
    /// The cluster member's reply to the command with this token.
    MemberAnswered(u64, Result<String, String>),
    /// The cluster member's status, asked for with this token.
    MemberStatus(u64, Box<MemberStatus>),
    /// The page `/status.json` needs a new status.
    StatusWanted,
    /// This clustered database's row in `_Server` has changed;
    /// [`RowSlot`](crate::member::row::RowSlot) holds the new one.
    MemberRowChanged(DatabaseId),
    /// The initial contents of this database: its server has joined the cluster, or its relay has
    /// reached its source.
    Joined(DatabaseId, Box<Contents>),
    /// The member of this database has left its cluster.
    MemberLeft(DatabaseId),
    /// The thread of the member of this database has ended, for any reason.
    MemberEnded(DatabaseId),
    /// This relay's new row in `_Server`.
    RelayRowChanged(DatabaseId, ServerRow),
}

/// The queue length beyond which log lines (about rows and slow transactions) are dropped; the log
/// later says how many. Other messages are not dropped: the main thread's own requests and the
/// number of databases and remotes bound them.
const LINES_QUEUED_MAX: usize = 64 * 1024;

/// The handle; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct MainHandle {
    /// The main thread's queue.
    pub(crate) events: Sender<MainMessage>,
    /// Log lines dropped since the last warning.
    pub(crate) lines_dropped: Arc<AtomicU64>,
    /// Wakes the main thread.
    pub(crate) waker: Arc<mio::Waker>,
}

impl MainHandle {
    /// Sends events and wakes the main thread once.
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
            // Waking fails only after the main loop has ended.
            let _ = self.waker.wake();
        }
    }

    /// Sends the outcome of an opening.
    pub(crate) fn opened(&self, token: u64, outcome: Result<Opened, String>) {
        self.report(MainMessage::Opened(token, Box::new(outcome)));
    }

    /// Sends the outcome of a backup.
    pub(crate) fn backed_up(&self, token: u64, outcome: Result<String, String>) {
        self.report(MainMessage::BackedUp(token, outcome));
    }

    /// Sends the sessions of one shard.
    pub(crate) fn sessions_listed(&self, token: u64, sessions: SessionList) {
        self.report(MainMessage::SessionsListed(token, sessions));
    }

    /// Reports whether the session that was to be closed existed.
    pub(crate) fn session_closed(&self, token: u64, is_closed: bool) {
        self.report(MainMessage::SessionClosed(token, is_closed));
    }

    /// Sends a message and wakes the main thread.
    pub(crate) fn report(&self, report: MainMessage) {
        if self.events.send(report).is_ok() {
            // Waking fails only after the main loop has ended.
            let _ = self.waker.wake();
        }
    }

    /// Waits until the main thread has handled every message sent so far, at most
    /// [`MAIN_THREAD_WAIT_MAX`].
    pub(crate) fn await_processed(&self) {
        let (answer, answered) = crossbeam_channel::bounded(1);
        if self.events.send(MainMessage::Barrier(answer)).is_ok() && self.waker.wake().is_ok() {
            // Returns early if the main thread exits.
            let _ = answered.recv_timeout(MAIN_THREAD_WAIT_MAX);
        }
    }
}

/// The maximum time that a database waits for the main thread.
const MAIN_THREAD_WAIT_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use corvid_service::message::ControlAnswer;

    #[test]
    fn lines_beyond_the_limit_are_dropped_and_counted() {
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
        main.post([Event::Answered(1, ControlAnswer::RoleSet)]);
        assert_eq!(
            reports.len(),
            LINES_QUEUED_MAX + 1,
            "others are not dropped"
        );
        assert_eq!(main.lines_dropped.load(Ordering::Relaxed), 3);
    }
}
