//! A queue into a thread that has no sockets: the engine, above all.
//!
//! Many senders, one receiver, which takes everything that has arrived at once, so that a loaded thread works in batches
//! and is woken once for each. Not limited here: senders limit what they have under way.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The receiving end. One per thread.
#[derive(Debug)]
pub struct Mailbox<M>(Arc<Shared<M>>);

/// A sending end; cheap to clone. The receiver learns when the last one is gone.
#[derive(Debug)]
pub struct MailSender<M>(Arc<Shared<M>>);

#[derive(Debug)]
struct Shared<M> {
    queue: Mutex<Queue<M>>,
    arrived: Condvar,
}

#[derive(Debug)]
struct Queue<M> {
    messages: Vec<M>,
    /// Whether the receiver sleeps: only then does a sender pay for a wake-up.
    is_waiting: bool,
    is_closed: bool,
    senders: usize,
}

impl<M> Clone for MailSender<M> {
    fn clone(&self) -> MailSender<M> {
        MailSender::new(&self.0)
    }
}

impl<M> Drop for MailSender<M> {
    fn drop(&mut self) {
        let mut queue = self.0.lock();
        queue.senders -= 1;
        if queue.senders == 0 && queue.is_waiting {
            queue.is_waiting = false;
            drop(queue);
            self.0.arrived.notify_one();
        }
    }
}

impl<M> Shared<M> {
    fn lock(&self) -> MutexGuard<'_, Queue<M>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<M> Default for Mailbox<M> {
    fn default() -> Mailbox<M> {
        let queue = Mutex::new(Queue {
            messages: Vec::new(),
            is_waiting: false,
            is_closed: false,
            senders: 0,
        });
        Mailbox(Arc::new(Shared {
            queue,
            arrived: Condvar::new(),
        }))
    }
}

impl<M> Mailbox<M> {
    /// An empty mailbox.
    #[must_use]
    pub fn new() -> Mailbox<M> {
        Mailbox::default()
    }

    /// A sender to it.
    #[must_use]
    pub fn sender(&self) -> MailSender<M> {
        MailSender::new(&self.0)
    }

    /// Waits until something has arrived or `timeout` is over (`None`: for as long as it takes), and moves everything that
    /// has arrived into `into`, which is empty. Nothing arrived in time: `into` stays empty. Returns false when nothing is
    /// left and nothing can come, because there is no sender.
    pub fn receive(&self, into: &mut Vec<M>, timeout: Option<Duration>) -> bool {
        debug_assert!(into.is_empty());
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        let mut queue = self.0.lock();
        while queue.messages.is_empty() {
            if queue.senders == 0 {
                return false;
            }
            queue.is_waiting = true;
            queue = match deadline {
                None => self
                    .0
                    .arrived
                    .wait(queue)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        break;
                    }
                    self.0
                        .arrived
                        .wait_timeout(queue, left)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
            };
        }
        queue.is_waiting = false;
        std::mem::swap(&mut queue.messages, into);
        true
    }
}

impl<M> Drop for Mailbox<M> {
    fn drop(&mut self) {
        let mut queue = self.0.lock();
        queue.is_closed = true;
        queue.messages.clear();
    }
}

impl<M> MailSender<M> {
    fn new(shared: &Arc<Shared<M>>) -> MailSender<M> {
        shared.lock().senders += 1;
        MailSender(Arc::clone(shared))
    }

    /// Sends one message. Returns false when the receiver is gone, and the message with it.
    pub fn send(&self, message: M) -> bool {
        self.send_batch([message])
    }

    /// Sends several messages with one wake-up; they stay together and in order.
    pub fn send_batch(&self, messages: impl IntoIterator<Item = M>) -> bool {
        let mut queue = self.0.lock();
        if queue.is_closed {
            return false;
        }
        queue.messages.extend(messages);
        if queue.is_waiting && !queue.messages.is_empty() {
            queue.is_waiting = false;
            drop(queue);
            self.0.arrived.notify_one();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_arrive_whole_and_in_order() {
        let mailbox = Mailbox::new();
        let sender = mailbox.sender();
        let thread = std::thread::spawn(move || {
            for start in (0..1000).step_by(10) {
                assert!(sender.send_batch(start..start + 10));
            }
        });
        let (mut all, mut batch) = (Vec::new(), Vec::new());
        while all.len() < 1000 {
            assert!(mailbox.receive(&mut batch, None));
            assert!(batch.len() % 10 == 0);
            all.append(&mut batch);
        }
        thread.join().unwrap();
        assert!(all.iter().copied().eq(0..1000));
    }

    #[test]
    fn waiting_ends_and_senders_notice_the_end() {
        let mailbox = Mailbox::<u8>::new();
        let sender = mailbox.sender();
        let mut batch = Vec::new();
        assert!(mailbox.receive(&mut batch, Some(Duration::from_millis(1))));
        assert!(batch.is_empty());
        drop(mailbox);
        assert!(!sender.send(1));
    }

    #[test]
    fn the_receiver_notices_that_the_last_sender_is_gone() {
        let mailbox = Mailbox::new();
        let (first, second) = (mailbox.sender(), mailbox.sender());
        assert!(first.send(1));
        drop(first);
        let thread = std::thread::spawn(move || drop(second));
        let mut batch = Vec::new();
        assert!(mailbox.receive(&mut batch, None));
        assert_eq!(std::mem::take(&mut batch), [1]);
        assert!(!mailbox.receive(&mut batch, None));
        thread.join().unwrap();
    }
}
