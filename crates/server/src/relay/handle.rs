//! The handle with which other threads send to the thread of a relay.
//!
//! Invariant: messages of one sender arrive in order, and the messages of one batch arrive
//! together. A batch wakes the thread at most once, and only while it sleeps. The queue has no
//! limit of its own: the database's requests are bounded by the limits of its clients.

use std::sync::Arc;

use corvid_net::waker::Waker;
use corvid_reactor::wake_queue::WakeQueue;
use corvid_service::message::SourceRequest;

use crate::config::relay::SourceSettings;
use crate::database::handle::DatabaseHandle;
use crate::metrics::relay::RelayFigures;

/// A message to a relay's thread.
#[derive(Debug)]
pub(crate) enum ToRelay {
    /// A request from the relay's database.
    Request(SourceRequest),
    /// The database is now served, with the initial contents.
    Served(Box<DatabaseHandle>),
    /// The source or a connection option has changed.
    SetSource(Box<SourceSettings>),
    /// Close the connection, order the database to end, and end.
    End,
}

/// The handle; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct RelayHandle(Arc<Inbox>);

#[derive(Debug)]
struct Inbox {
    queue: WakeQueue<ToRelay>,
    waker: Waker,
    figures: RelayFigures,
}

impl RelayHandle {
    /// A queue whose consumer is woken by `waker`.
    #[must_use]
    pub(super) fn new(waker: Waker) -> RelayHandle {
        RelayHandle(Arc::new(Inbox {
            queue: WakeQueue::new(),
            waker,
            figures: RelayFigures::default(),
        }))
    }

    /// Sends messages with at most one wake-up.
    pub(crate) fn post(&self, messages: impl IntoIterator<Item = ToRelay>) {
        if self.0.queue.extend(messages) {
            self.0.waker.wake();
        }
    }

    /// The relay's state and counts, as its thread last published them.
    pub(crate) fn figures(&self) -> &RelayFigures {
        &self.0.figures
    }

    /// Moves all messages into `spare`, which must be empty. The thread counts as awake until
    /// [`RelayHandle::sleep`].
    pub(super) fn take(&self, spare: &mut Vec<ToRelay>) {
        self.0.queue.take(spare);
    }

    /// Announces that the thread is about to sleep. Returns false if a message has already arrived.
    pub(super) fn sleep(&self) -> bool {
        self.0.queue.sleep()
    }
}
