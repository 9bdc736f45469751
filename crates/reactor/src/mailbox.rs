//! A queue to a thread without sockets. While that thread has no work, a sender may execute its
//! messages itself.
//!
//! There are many senders and one receiver. The receiver moves all messages out at once, so a
//! loaded thread works in batches and is woken once per batch. The queue has no limit: senders
//! limit their own messages.
//!
//! One *holder* at a time handles the messages, in order of arrival: the receiver, or a sender that
//! found the mailbox free ([`MailSender::try_acquire`]). A sender that finds the mailbox held
//! queues its messages, and the holder checks the queue before it releases the mailbox. A holder
//! that cannot finish hands the rest off to the receiver; from then on no sender can acquire the
//! mailbox until the receiver has held it.
//!
//! Between these calls, only the holder uses the data that the mailbox protects. It releases that
//! data (a mutex, for example) before it releases the mailbox, because the next holder may begin
//! before the call returns.
//!
//! ```text
//! free --try_acquire--> held by a sender --release, nothing new--> free
//!   |                        |      \--release, something new--> held, with that
//!   |                     hand_off
//!   +--receive--> held by the receiver --receive, nothing new--> free
//! ```

use corvid_net::clock::Now;

use crate::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The receiving end; one per thread.
#[derive(Debug)]
pub struct Mailbox<M>(Arc<Shared<M>>);

/// A sending end; cheap to clone. The receiver is woken when the last one is dropped.
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
    /// A holder is handling messages.
    is_held: bool,
    /// A holder has handed work off to the receiver.
    is_handed_off: bool,
    /// The receiver found its mailbox held, and sleeps until it is released.
    receiver_waits: bool,
    /// Whether the receiver sleeps: only then does a sender pay for a wake-up.
    receiver_sleeps: bool,
    /// When the receiver must wake up at the latest, monotonic ms.
    deadline_ms: Option<u64>,
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
        if queue.senders == 0 {
            self.0.wake(queue);
        }
    }
}

impl<M> Shared<M> {
    fn lock(&self) -> MutexGuard<'_, Queue<M>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the receiver if it sleeps.
    fn wake(&self, mut queue: MutexGuard<'_, Queue<M>>) {
        if std::mem::take(&mut queue.receiver_sleeps) {
            drop(queue);
            self.arrived.notify_one();
        }
    }
}

impl<M> Default for Mailbox<M> {
    fn default() -> Mailbox<M> {
        let queue = Mutex::new(Queue {
            messages: Vec::new(),
            is_held: true,
            is_handed_off: false,
            receiver_waits: false,
            receiver_sleeps: false,
            deadline_ms: None,
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
    /// An empty mailbox, held by its receiver.
    #[must_use]
    pub fn new() -> Mailbox<M> {
        Mailbox::default()
    }

    /// A sender to this mailbox.
    #[must_use]
    pub fn sender(&self) -> MailSender<M> {
        MailSender::new(&self.0)
    }

    /// Releases the mailbox; waits for messages, for a hand-off or until `deadline_ms` (monotonic;
    /// `None`: forever); and acquires the mailbox again. Moves all messages into `into`, which must
    /// be empty and stays empty if no message came. Returns false if the queue is empty and no
    /// sender is left.
    pub fn receive(&self, into: &mut Vec<M>, deadline_ms: Option<u64>) -> bool {
        assert!(into.is_empty(), "a message is handled before the next ones");
        let mut queue = self.0.lock();
        queue.is_held = false;
        queue.deadline_ms = deadline_ms;
        loop {
            // A sender that holds the mailbox wakes the receiver when it releases it, so there is
            // no timeout.
            let mut timeout = None;
            if !queue.is_held {
                let now = Now::read();
                let is_time = queue.deadline_ms.is_some_and(|at_ms| at_ms <= now.mono_ms);
                if queue.is_handed_off || !queue.messages.is_empty() || is_time {
                    break;
                }
                if queue.senders == 0 {
                    return false;
                }
                timeout = queue.deadline_ms.map(|at_ms| now.until(at_ms));
            }
            queue.receiver_sleeps = true;
            queue.receiver_waits = queue.is_held;
            queue = match timeout {
                None => self
                    .0
                    .arrived
                    .wait(queue)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(timeout) => {
                    self.0
                        .arrived
                        .wait_timeout(queue, timeout)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
            };
            queue.receiver_sleeps = false;
        }
        queue.is_held = true;
        queue.is_handed_off = false;
        queue.receiver_waits = false;
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

    /// Sends one message. If the receiver was dropped, drops the message and returns false.
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
        if !queue.is_held && !queue.messages.is_empty() {
            self.0.wake(queue);
        }
        true
    }

    /// Ends the receiver's wait even if the queue is empty: as soon as the mailbox is free,
    /// [`Mailbox::receive`] returns, perhaps without messages.
    pub fn wake_receiver(&self) {
        let mut queue = self.0.lock();
        queue.is_handed_off = true;
        if queue.is_held {
            queue.receiver_waits = true;
        } else {
            self.0.wake(queue);
        }
    }

    /// The number of messages in the queue.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.0.lock().messages.len()
    }

    /// Acquires the mailbox if it is free. On success, `messages` are all messages to handle,
    /// earlier ones first, and [`MailSender::release`] or [`MailSender::hand_off`] must follow.
    /// Otherwise queues `messages` and leaves the vector empty.
    pub fn try_acquire(&self, messages: &mut Vec<M>) -> bool {
        let mut queue = self.0.lock();
        if queue.is_closed {
            messages.clear();
            return false;
        }
        if queue.is_held || queue.is_handed_off {
            queue.messages.append(messages);
            return false;
        }
        queue.is_held = true;
        if !queue.messages.is_empty() {
            // The receiver was woken for the queued messages; it will find the queue empty.
            queue.messages.append(messages);
            std::mem::swap(&mut queue.messages, messages);
        }
        true
    }

    /// Releases the mailbox, unless messages have arrived. In that case moves them into `messages`,
    /// which must be empty, and returns true; the caller still holds the mailbox. `deadline_ms` is
    /// the receiver's new deadline.
    pub fn release(&self, messages: &mut Vec<M>, deadline_ms: Option<u64>) -> bool {
        assert!(
            messages.is_empty(),
            "a message is handled before the next ones"
        );
        let mut queue = self.0.lock();
        assert!(queue.is_held, "only its holder releases a mailbox");
        if !queue.messages.is_empty() {
            std::mem::swap(&mut queue.messages, messages);
            return true;
        }
        queue.is_held = false;
        let is_earlier =
            deadline_ms.is_some_and(|at_ms| queue.deadline_ms.is_none_or(|slept| at_ms < slept));
        queue.deadline_ms = deadline_ms;
        // A receiver that found the mailbox held sleeps until it is woken. A receiver that sleeps
        // until a later deadline must learn the earlier one.
        if is_earlier || queue.receiver_waits {
            self.0.wake(queue);
        }
        false
    }

    /// Releases the mailbox, and hands off to the receiver `messages`, the messages queued after
    /// them and all other work.
    pub fn hand_off(&self, messages: &mut Vec<M>) {
        let mut queue = self.0.lock();
        assert!(queue.is_held, "only its holder hands a mailbox off");
        messages.append(&mut queue.messages);
        std::mem::swap(&mut queue.messages, messages);
        queue.is_held = false;
        queue.is_handed_off = true;
        self.0.wake(queue);
    }
}

#[cfg(all(test, not(interleavings)))]
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
    fn a_wait_ends_at_its_deadline_and_a_dropped_mailbox_refuses_messages() {
        let mailbox = Mailbox::<u8>::new();
        let sender = mailbox.sender();
        let mut batch = Vec::new();
        assert!(mailbox.receive(&mut batch, Some(Now::read().mono_ms + 1)));
        assert!(batch.is_empty());
        drop(mailbox);
        assert!(!sender.send(1));
    }

    #[test]
    fn receive_returns_false_after_the_last_sender_is_dropped() {
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

    #[test]
    fn a_sender_acquires_a_free_mailbox() {
        let mailbox = Mailbox::new();
        let sender = mailbox.sender();
        let mut batch = vec![1];
        assert!(
            !sender.try_acquire(&mut batch),
            "the receiver holds the mailbox"
        );
        assert!(mailbox.receive(&mut batch, None));
        assert_eq!(std::mem::take(&mut batch), [1]);
        let past_ms = Some(Now::read().mono_ms);
        assert!(mailbox.receive(&mut batch, past_ms));
        mailbox.0.lock().is_held = false;

        let mut mine = vec![2];
        assert!(sender.try_acquire(&mut mine));
        assert_eq!(std::mem::take(&mut mine), [2]);
        let mut others = vec![3];
        assert!(!sender.try_acquire(&mut others) && others.is_empty());
        assert!(sender.release(&mut mine, None), "a message has arrived");
        assert_eq!(std::mem::take(&mut mine), [3]);
        assert!(!sender.release(&mut mine, None));

        let mut mine = vec![4, 5];
        assert!(sender.try_acquire(&mut mine));
        assert!(sender.send(6));
        mine.remove(0);
        sender.hand_off(&mut mine);
        let mut others = vec![7];
        assert!(
            !sender.try_acquire(&mut others),
            "the receiver has priority"
        );
        assert!(mailbox.receive(&mut batch, None));
        assert_eq!(batch, [5, 6, 7]);
    }

    #[test]
    fn wake_receiver_ends_its_wait() {
        let mailbox = Mailbox::<u8>::new();
        let sender = mailbox.sender();
        let mut batch = Vec::new();
        // A receiver that holds the mailbox returns at once.
        sender.wake_receiver();
        assert!(mailbox.receive(&mut batch, None) && batch.is_empty());
        // A receiver that waits for a holder acquires the mailbox next, before any sender.
        mailbox.0.lock().is_held = false;
        let mut mine = vec![1];
        assert!(sender.try_acquire(&mut mine));
        sender.wake_receiver();
        mine.clear();
        assert!(!sender.release(&mut mine, None));
        let mut others = vec![2];
        assert!(!sender.try_acquire(&mut others));
        assert!(mailbox.receive(&mut batch, None));
        assert_eq!(std::mem::take(&mut batch), [2]);
        // A sleeping receiver is woken.
        let thread = std::thread::spawn(move || mailbox.receive(&mut batch, None));
        sender.wake_receiver();
        assert!(thread.join().unwrap());
    }

    #[test]
    fn every_message_is_handled_once_and_in_order() {
        const SENDERS: usize = 4;
        const EACH: usize = 20_000;
        let mailbox = Mailbox::new();
        let done = Arc::new(Mutex::new(vec![0; SENDERS]));
        let work = |done: &Mutex<Vec<usize>>, messages: &mut Vec<(usize, usize)>| {
            let mut done = done.try_lock().expect("one holder at a time");
            for (sender, number) in messages.drain(..) {
                assert_eq!(done[sender], number);
                done[sender] += 1;
            }
        };
        let threads: Vec<_> = (0..SENDERS)
            .map(|number| {
                let (sender, done) = (mailbox.sender(), Arc::clone(&done));
                std::thread::spawn(move || {
                    for count in 0..EACH {
                        let mut messages = vec![(number, count)];
                        if !sender.try_acquire(&mut messages) {
                            continue;
                        }
                        if count % 7 == 0 {
                            sender.hand_off(&mut messages);
                            continue;
                        }
                        loop {
                            work(&done, &mut messages);
                            let deadline_ms = (count % 5 == 0).then(|| Now::read().mono_ms + 1);
                            if !sender.release(&mut messages, deadline_ms) {
                                break;
                            }
                        }
                    }
                })
            })
            .collect();
        let mut batch = Vec::new();
        while mailbox.receive(&mut batch, None) {
            work(&done, &mut batch);
        }
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(*done.lock().unwrap(), [EACH; SENDERS]);
    }
}
