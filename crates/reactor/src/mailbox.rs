//! A queue into a thread that has no sockets, whose work the senders may do themselves when that thread has none.
//!
//! Many senders, one receiver, which takes everything that has arrived at once, so that a loaded thread works in batches
//! and is woken once for each. Not limited here: senders limit what they have under way.
//!
//! What arrives is worked on by one *holder* at a time, in order of arrival: the receiver, or a sender that found nobody at work
//! ([`MailSender::try_acquire`]). A sender that finds the mailbox held leaves its messages there: the holder looks again when it releases
//! the mailbox. A holder that cannot finish hands the rest off to the receiver, and from then on nobody else takes anything until the
//! receiver has been there.
//!
//! What a holder works with is its own between these calls. It gives that back first, a mutex for instance: the next holder may be there before
//! the call returns.
//!
//! ```text
//! free --try_acquire--> held by a sender --release, nothing new--> free
//!   |                        |      \--release, something new--> held, with that
//!   |                     hand_off
//!   +--receive--> held by the receiver --receive, nothing new--> free
//! ```

use corvid_net::clock::Now;

use crate::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

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
    /// Somebody works on what has arrived.
    is_held: bool,
    /// A holder has left something to the receiver.
    is_left: bool,
    /// The receiver found its mailbox held, and sleeps until it is free.
    is_wanted: bool,
    /// Whether the receiver sleeps: only then does a sender pay for a wake-up.
    is_waiting: bool,
    /// When the receiver wants to be there in any case, monotonic ms.
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
        if std::mem::take(&mut queue.is_waiting) {
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
            is_left: false,
            is_wanted: false,
            is_waiting: false,
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

    /// A sender to it.
    #[must_use]
    pub fn sender(&self) -> MailSender<M> {
        MailSender::new(&self.0)
    }

    /// Releases the mailbox, waits until there is something to do or it is `deadline_ms` (monotonic; `None`: for as long as it takes), and holds
    /// it again. Moves everything that has arrived into `into`, which is empty, and stays so when nothing arrived in time or the
    /// last holder left only work behind. Returns false when nothing is left and nothing can come, because there is no sender.
    pub fn receive(&self, into: &mut Vec<M>, deadline_ms: Option<u64>) -> bool {
        debug_assert!(into.is_empty());
        let mut queue = self.0.lock();
        queue.is_held = false;
        queue.deadline_ms = deadline_ms;
        loop {
            // While a sender holds it, that sender sees to it that the receiver is woken.
            let mut patience = None;
            if !queue.is_held {
                let now = Now::read();
                let is_time = queue.deadline_ms.is_some_and(|at_ms| at_ms <= now.mono_ms);
                if queue.is_left || !queue.messages.is_empty() || is_time {
                    break;
                }
                if queue.senders == 0 {
                    return false;
                }
                patience = queue.deadline_ms.map(|at_ms| now.until(at_ms));
            }
            queue.is_waiting = true;
            queue.is_wanted = queue.is_held;
            queue = match patience {
                None => self
                    .0
                    .arrived
                    .wait(queue)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(patience) => {
                    self.0
                        .arrived
                        .wait_timeout(queue, patience)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
            };
            queue.is_waiting = false;
        }
        queue.is_held = true;
        queue.is_left = false;
        queue.is_wanted = false;
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
        if !queue.is_held && !queue.messages.is_empty() {
            self.0.wake(queue);
        }
        true
    }

    /// Has the receiver come and look, though nothing may have arrived: what [`Mailbox::receive`] then yields may be empty. As soon as it
    /// can, that is when the holder releases the mailbox.
    pub fn call(&self) {
        let mut queue = self.0.lock();
        queue.is_left = true;
        if queue.is_held {
            queue.is_wanted = true;
        } else {
            self.0.wake(queue);
        }
    }

    /// Messages that nobody has taken yet.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.0.lock().messages.len()
    }

    /// Sends `messages`, and holds the mailbox if nobody does: then `messages` are all that is to be worked on, and
    /// [`MailSender::release`] or [`MailSender::hand_off`] must follow. Otherwise they are empty afterwards.
    pub fn try_acquire(&self, messages: &mut Vec<M>) -> bool {
        let mut queue = self.0.lock();
        if queue.is_closed {
            messages.clear();
            return false;
        }
        if queue.is_held || queue.is_left {
            queue.messages.append(messages);
            return false;
        }
        queue.is_held = true;
        if !queue.messages.is_empty() {
            // The receiver is on its way to them; it finds them done.
            queue.messages.append(messages);
            std::mem::swap(&mut queue.messages, messages);
        }
        true
    }

    /// Releases the mailbox, unless something has arrived: that is moved into `messages`, which is empty, and true returned. `deadline_ms` is when the
    /// receiver must be there now, after what was done.
    pub fn release(&self, messages: &mut Vec<M>, deadline_ms: Option<u64>) -> bool {
        debug_assert!(messages.is_empty());
        let mut queue = self.0.lock();
        if !queue.messages.is_empty() {
            std::mem::swap(&mut queue.messages, messages);
            return true;
        }
        queue.is_held = false;
        let is_earlier =
            deadline_ms.is_some_and(|at_ms| queue.deadline_ms.is_none_or(|slept| at_ms < slept));
        queue.deadline_ms = deadline_ms;
        // It may have come meanwhile and gone to sleep until it is told.
        if is_earlier || queue.is_wanted {
            self.0.wake(queue);
        }
        false
    }

    /// Releases the mailbox and leaves `messages`, what arrived behind them, and whatever else there is to do to the receiver.
    pub fn hand_off(&self, messages: &mut Vec<M>) {
        let mut queue = self.0.lock();
        messages.append(&mut queue.messages);
        std::mem::swap(&mut queue.messages, messages);
        queue.is_held = false;
        queue.is_left = true;
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
    fn waiting_ends_and_senders_notice_the_end() {
        let mailbox = Mailbox::<u8>::new();
        let sender = mailbox.sender();
        let mut batch = Vec::new();
        assert!(mailbox.receive(&mut batch, Some(Now::read().mono_ms + 1)));
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

    #[test]
    fn a_sender_works_when_nobody_does() {
        let mailbox = Mailbox::new();
        let sender = mailbox.sender();
        let mut batch = vec![1];
        assert!(
            !sender.try_acquire(&mut batch),
            "the receiver has not begun"
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
        assert!(sender.release(&mut mine, None), "something has come");
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
            "it is left to the receiver"
        );
        assert!(mailbox.receive(&mut batch, None));
        assert_eq!(batch, [5, 6, 7]);
    }

    #[test]
    fn a_receiver_that_is_called_comes() {
        let mailbox = Mailbox::<u8>::new();
        let sender = mailbox.sender();
        let mut batch = Vec::new();
        // At work, it comes back at once.
        sender.call();
        assert!(mailbox.receive(&mut batch, None) && batch.is_empty());
        // Kept out by a holder, it comes when that one releases it, and before everybody else.
        mailbox.0.lock().is_held = false;
        let mut mine = vec![1];
        assert!(sender.try_acquire(&mut mine));
        sender.call();
        mine.clear();
        assert!(!sender.release(&mut mine, None));
        let mut others = vec![2];
        assert!(!sender.try_acquire(&mut others));
        assert!(mailbox.receive(&mut batch, None));
        assert_eq!(std::mem::take(&mut batch), [2]);
        // Asleep, it is woken.
        let thread = std::thread::spawn(move || mailbox.receive(&mut batch, None));
        sender.call();
        assert!(thread.join().unwrap());
    }

    #[test]
    fn everything_is_worked_on_once_and_in_order_whoever_does_it() {
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
