//! A queue from many producers to one consumer that sleeps in a poll loop, with at most one wake-up
//! per sleep.
//!
//! Invariant: a producer that finds the queue empty and its consumer asleep wakes the consumer, and
//! no other producer does. A consumer that is awake checks the queue again before it sleeps
//! ([`WakeQueue::sleep`]), so no message waits for another one to arrive.

use crate::sync::{Mutex, MutexGuard, PoisonError};

/// The queue. The caller wakes the consumer.
#[derive(Debug)]
pub struct WakeQueue<T>(Mutex<State<T>>);

#[derive(Debug)]
struct State<T> {
    messages: Vec<T>,
    /// The consumer will check the queue again before it sleeps.
    is_awake: bool,
}

impl<T> Default for WakeQueue<T> {
    fn default() -> WakeQueue<T> {
        WakeQueue::new()
    }
}

impl<T> WakeQueue<T> {
    /// An empty queue whose consumer sleeps.
    #[must_use]
    pub fn new() -> WakeQueue<T> {
        WakeQueue(Mutex::new(State {
            messages: Vec::new(),
            is_awake: false,
        }))
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends messages, which stay together. Returns whether the caller must wake the consumer.
    #[must_use]
    pub fn extend(&self, messages: impl IntoIterator<Item = T>) -> bool {
        let mut state = self.lock();
        let was_empty = state.messages.is_empty();
        state.messages.extend(messages);
        was_empty && !state.is_awake && !state.messages.is_empty()
    }

    /// Moves all messages into `spare`, which must be empty. The consumer counts as awake until
    /// [`WakeQueue::sleep`].
    pub fn take(&self, spare: &mut Vec<T>) {
        assert!(
            spare.is_empty(),
            "a message is handled before the next ones"
        );
        let mut state = self.lock();
        state.is_awake = true;
        std::mem::swap(&mut state.messages, spare);
    }

    /// Announces that the consumer is about to sleep and must be woken by the next message. Returns
    /// false if a message has already arrived.
    pub fn sleep(&self) -> bool {
        let mut state = self.lock();
        state.is_awake = !state.messages.is_empty();
        !state.is_awake
    }
}
