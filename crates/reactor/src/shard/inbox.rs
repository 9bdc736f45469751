//! The queue from other threads to a shard: one lock, and at most one wake-up per batch.
//!
//! The queue has no limit of its own; each producer limits its own messages. A connection's
//! requests are not read while its output is unsent, and a database merges updates for connections
//! that fall behind.

use std::sync::Arc;

use super::accept::{Accepted, Acceptor, ListenerId};
use super::unfinished::Evicted;
use crate::wake_queue::WakeQueue;

/// One entry of the queue.
pub(super) enum Envelope<M> {
    Message(M),
    /// A connection that was accepted.
    Adopt(Accepted),
    Listen(Box<Acceptor>),
    /// Sent to the accepting shard, which passes on [`Envelope::CloseAll`] once nothing more can be
    /// accepted.
    Unlisten(ListenerId),
    /// Close the connections of a listener.
    CloseAll(ListenerId),
    /// Close this connection, because the unfinished messages of all shards together hold too much.
    Evict(Evicted),
    Shutdown,
}

/// A sender to one shard; cheap to clone.
#[derive(Debug)]
pub struct ShardHandle<M>(Arc<Inbox<M>>);

#[derive(Debug)]
pub(super) struct Inbox<M> {
    queue: WakeQueue<Envelope<M>>,
    waker: mio::Waker,
}

impl<M> Clone for ShardHandle<M> {
    fn clone(&self) -> ShardHandle<M> {
        ShardHandle(Arc::clone(&self.0))
    }
}

impl<M> std::fmt::Debug for Envelope<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Envelope")
    }
}

impl<M> ShardHandle<M> {
    pub(super) fn new(waker: mio::Waker) -> ShardHandle<M> {
        ShardHandle(Arc::new(Inbox {
            queue: WakeQueue::new(),
            waker,
        }))
    }

    /// Sends one message; the shard's handler receives it on its own thread.
    pub fn post(&self, message: M) {
        self.extend([Envelope::Message(message)]);
    }

    /// Sends several messages with at most one wake-up. They are received in order and together.
    pub fn post_batch(&self, messages: impl IntoIterator<Item = M>) {
        self.extend(messages.into_iter().map(Envelope::Message));
    }

    pub(super) fn extend(&self, envelopes: impl IntoIterator<Item = Envelope<M>>) {
        if self.0.queue.extend(envelopes) {
            // Waking fails only if the shard has ended and closed the eventfd.
            let _ = self.0.waker.wake();
        }
    }

    /// Moves everything into `spare`, which must be empty. The shard counts as awake until
    /// [`ShardHandle::sleep`].
    pub(super) fn take(&self, spare: &mut Vec<Envelope<M>>) {
        self.0.queue.take(spare);
    }

    /// Announces that the shard is about to sleep and must be woken by the next message. Returns
    /// false if a message has already arrived.
    pub(super) fn sleep(&self) -> bool {
        self.0.queue.sleep()
    }
}
