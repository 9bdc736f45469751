//! How other threads reach a shard: a queue behind one lock, and one wake-up per batch.
//!
//! The queue has no limit of its own: each producer limits what it has under way (a connection's requests stop while its
//! output waits, an engine merges updates for connections that are behind).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::accept::{Accepted, Intake, ListenerId};

/// One entry of the queue.
pub(super) enum Envelope<M> {
    Message(M),
    /// A connection that was accepted.
    Adopt(Accepted),
    Listen(Box<Intake>),
    /// Sent to the accepting shard, which passes [`Envelope::CloseAll`] on once nothing can be accepted any more.
    Unlisten(ListenerId),
    /// Close the connections of a listener.
    CloseAll(ListenerId),
    Shutdown,
}

/// A sender to one shard; cheap to clone.
#[derive(Debug)]
pub struct ShardHandle<M>(Arc<Inbox<M>>);

#[derive(Debug)]
pub(super) struct Inbox<M> {
    queue: Mutex<Queue<M>>,
    waker: mio::Waker,
}

#[derive(Debug)]
struct Queue<M> {
    envelopes: Vec<Envelope<M>>,
    /// The shard will look here again before it sleeps, so nobody need wake it.
    is_awake: bool,
}

impl<M> Inbox<M> {
    fn lock(&self) -> MutexGuard<'_, Queue<M>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
            queue: Mutex::new(Queue {
                envelopes: Vec::new(),
                is_awake: false,
            }),
            waker,
        }))
    }

    /// Sends one message; the shard's handler receives it on its own thread.
    pub fn post(&self, message: M) {
        self.extend([Envelope::Message(message)]);
    }

    /// Sends several messages with at most one wake-up. They are received in order, with none of others between them.
    pub fn post_batch(&self, messages: impl IntoIterator<Item = M>) {
        self.extend(messages.into_iter().map(Envelope::Message));
    }

    pub(super) fn extend(&self, envelopes: impl IntoIterator<Item = Envelope<M>>) {
        let mut queue = self.0.lock();
        let was_empty = queue.envelopes.is_empty();
        queue.envelopes.extend(envelopes);
        let must_wake = was_empty && !queue.is_awake && !queue.envelopes.is_empty();
        drop(queue);
        if must_wake {
            // Fails only when the eventfd is gone, and with it the shard.
            let _ = self.0.waker.wake();
        }
    }

    /// Takes everything, leaving `spare` (which must be empty) in its place. Until [`ShardHandle::sleep`] the shard is awake.
    pub(super) fn take(&self, spare: &mut Vec<Envelope<M>>) {
        debug_assert!(spare.is_empty());
        let mut queue = self.0.lock();
        queue.is_awake = true;
        std::mem::swap(&mut queue.envelopes, spare);
    }

    /// The shard wants to sleep, and be woken by what comes. False when something has come already.
    pub(super) fn sleep(&self) -> bool {
        let mut queue = self.0.lock();
        queue.is_awake = !queue.envelopes.is_empty();
        !queue.is_awake
    }
}
