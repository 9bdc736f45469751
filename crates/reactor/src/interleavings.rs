//! Every interleaving of a few threads at a mailbox, at a shard's queue and in a pipeline, explored
//! by `loom` up to a number of preemptions.
//!
//! Compiled only with `--cfg interleavings`, by `make check-deep`; the locks of this crate are
//! loom's then. Loom fails a model in which all threads wait forever, so each model also proves
//! that no wake-up is lost.

use loom::sync::Arc;
use loom::sync::Mutex;
use loom::sync::Notify;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

use crate::mailbox::Mailbox;
use crate::pipeline::{Jobs, Pipeline};
use crate::wake_queue::WakeQueue;

/// Explores all interleavings with at most this number of preemptions; `None`: all interleavings.
fn explore(preemptions: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(model);
}

/// The state that the holders of a mailbox use: the number of messages executed for each sender, by
/// one holder at a time.
struct Work {
    is_held: AtomicBool,
    /// A sender has handed work off, and the receiver has not taken it yet.
    is_left: AtomicBool,
    done: Mutex<Vec<usize>>,
}

impl Work {
    fn new(senders: usize) -> Work {
        Work {
            is_held: AtomicBool::new(false),
            is_left: AtomicBool::new(false),
            done: Mutex::new(vec![0; senders]),
        }
    }

    fn execute(&self, messages: &mut Vec<(usize, usize)>) {
        let was_held = self.is_held.swap(true, Ordering::Relaxed);
        assert!(!was_held, "there is one holder at a time");
        let mut done = self.done.lock().unwrap();
        for (sender, number) in messages.drain(..) {
            assert_eq!(done[sender], number, "in order, and once");
            done[sender] += 1;
        }
        drop(done);
        self.is_held.store(false, Ordering::Relaxed);
    }
}

/// Each of `senders` has `each` messages. A sender executes them itself where it can; with
/// `hands_off` it hands every second one off.
fn mailbox_with(senders: usize, each: usize, hands_off: bool) {
    let mailbox = Mailbox::new();
    let work = Arc::new(Work::new(senders));
    let threads: Vec<_> = (0..senders)
        .map(|own| {
            let (sender, work) = (mailbox.sender(), work.clone());
            thread::spawn(move || {
                for number in 0..each {
                    let mut messages = vec![(own, number)];
                    if !sender.try_acquire(&mut messages) {
                        continue;
                    }
                    let is_left = work.is_left.load(Ordering::Relaxed);
                    assert!(!is_left, "after a hand-off the receiver is next");
                    if hands_off && number % 2 == 0 {
                        work.is_left.store(true, Ordering::Relaxed);
                        sender.hand_off(&mut messages);
                        continue;
                    }
                    loop {
                        work.execute(&mut messages);
                        if !sender.release(&mut messages, None) {
                            break;
                        }
                    }
                }
            })
        })
        .collect();
    let mut batch = Vec::new();
    while mailbox.receive(&mut batch, None) {
        work.is_left.store(false, Ordering::Relaxed);
        work.execute(&mut batch);
    }
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(*work.done.lock().unwrap(), vec![each; senders]);
}

#[test]
fn one_sender_and_the_receiver_share_a_mailbox() {
    explore(None, || mailbox_with(1, 2, false));
    explore(None, || mailbox_with(1, 2, true));
}

#[test]
fn two_senders_and_the_receiver_share_a_mailbox() {
    explore(Some(3), || mailbox_with(2, 1, false));
    explore(Some(3), || mailbox_with(2, 1, true));
    explore(Some(2), || mailbox_with(2, 2, true));
}

#[test]
fn a_sent_message_wakes_the_receiver() {
    explore(Some(3), || {
        let mailbox = Mailbox::new();
        let threads: Vec<_> = (0..2)
            .map(|own| {
                let sender = mailbox.sender();
                thread::spawn(move || {
                    assert!(sender.send(own));
                    sender
                })
            })
            .collect();
        // The senders are kept until all messages have arrived, so only a message can end a wait.
        let (mut all, mut batch) = (Vec::new(), Vec::new());
        while all.len() < threads.len() {
            assert!(mailbox.receive(&mut batch, None));
            all.append(&mut batch);
        }
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

#[test]
fn a_called_receiver_comes_though_a_sender_holds_the_mailbox() {
    explore(Some(3), || {
        let mailbox = Mailbox::new();
        let work = Arc::new(Work::new(1));
        let (sender, shared) = (mailbox.sender(), work.clone());
        let holder = thread::spawn(move || {
            let mut messages = vec![(0, 0)];
            if sender.try_acquire(&mut messages) {
                loop {
                    shared.execute(&mut messages);
                    if !sender.release(&mut messages, None) {
                        break;
                    }
                }
            }
            sender
        });
        let caller = mailbox.sender();
        let calling = thread::spawn(move || {
            caller.wake_receiver();
            caller
        });
        // The senders are kept until both threads are joined, so only the wake-up and the message
        // can end this wait.
        let mut batch = Vec::new();
        assert!(mailbox.receive(&mut batch, None));
        work.execute(&mut batch);
        let senders = (holder.join().unwrap(), calling.join().unwrap());
        drop(senders);
        while mailbox.receive(&mut batch, None) {
            work.execute(&mut batch);
        }
        assert_eq!(*work.done.lock().unwrap(), [1]);
    });
}

#[test]
fn a_shard_misses_no_message_when_it_goes_to_sleep() {
    for preemptions in [2, 3] {
        explore(Some(preemptions), || {
            let queue = Arc::new(WakeQueue::new());
            // Models the event descriptor of a poll loop: a wake-up before the wait ends the wait
            // at once.
            let descriptor = Arc::new(Notify::new());
            let producers: Vec<_> = (0..2)
                .map(|own| {
                    let (queue, descriptor) = (queue.clone(), descriptor.clone());
                    thread::spawn(move || {
                        for number in 0..2 {
                            if queue.extend([(own, number)]) {
                                descriptor.notify();
                            }
                        }
                    })
                })
                .collect();
            let (mut next, mut batch) = ([0, 0], Vec::new());
            while next != [2, 2] {
                queue.take(&mut batch);
                for (own, number) in batch.drain(..) {
                    assert_eq!(next[own], number, "in order, and once");
                    next[own] += 1;
                }
                if next != [2, 2] && queue.sleep() {
                    descriptor.wait();
                }
            }
            for producer in producers {
                producer.join().unwrap();
            }
        });
    }
}

/// The numbers up to and including `end`, as jobs.
struct Numbers {
    next: usize,
    end: usize,
}

impl Jobs for Numbers {
    type Job = usize;

    fn next(&mut self) -> Option<usize> {
        let job = (self.next <= self.end).then_some(self.next);
        self.next += 1;
        job
    }
}

#[test]
fn a_pipeline_yields_every_outcome_once_and_in_order() {
    for (workers, end, limit) in [(1, 2, 2), (1, 2, 1), (2, 2, 2)] {
        explore(Some(2), move || {
            let numbers = Numbers { next: 0, end };
            let pipeline = Arc::new(Pipeline::with_limit(numbers, limit));
            let threads: Vec<_> = (0..workers)
                .map(|_| {
                    let pipeline = pipeline.clone();
                    thread::spawn(move || pipeline.work(|number| number))
                })
                .collect();
            for number in 0..=end {
                assert_eq!(pipeline.next(|number| number), number);
            }
            pipeline.close();
            for thread in threads {
                thread.join().unwrap();
            }
        });
    }
}

#[test]
fn workers_return_when_the_consumer_gives_up() {
    explore(Some(2), || {
        let numbers = Numbers { next: 0, end: 9 };
        let pipeline = Arc::new(Pipeline::with_limit(numbers, 2));
        let worker = pipeline.clone();
        let worker = thread::spawn(move || worker.work(|number| number));
        assert_eq!(pipeline.next(|number| number), 0);
        pipeline.close();
        worker.join().unwrap();
    });
}
