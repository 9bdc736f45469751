//! Runs a [`DatabaseService`] on a thread of its own: takes inputs in batches, writes the log, hands outputs to shards.
//!
//! One batch: all inputs that have arrived are executed, their records written together, then replies released and updates
//! composed once. So a loaded database wakes, writes and notifies less often than it commits.

use std::sync::Arc;
use std::time::Duration;

use corvid_os::clock;
use corvid_os::mailbox::Mailbox;
use corvid_os::shard::ShardHandle;
use corvid_service::frontend::shard_of;
use corvid_service::message::{Event, ToDatabase, ToShard};
use corvid_service::{DatabaseService, Now};
use crossbeam_channel::Sender;

use crate::shard::ShardMessage;
use crate::storage::Storage;
use crate::worker::Worker;

/// Inputs executed before outputs are handed over, so that no client waits for a long queue of others.
const BATCH_MAX: usize = 256;

/// What the main thread is sent.
#[derive(Debug)]
pub enum Report {
    /// From a database.
    Event(Event),
    /// Answer when all reports before this one have been taken care of.
    Barrier(Sender<()>),
    /// The backup with this number is written, or why not.
    BackedUp(u64, Result<(), String>),
}

/// The way back to the main thread.
#[derive(Clone, Debug)]
pub struct MainThread {
    /// Its queue.
    pub events: Sender<Report>,
    /// Wakes it.
    pub waker: Arc<mio::Waker>,
}

impl MainThread {
    /// Sends events and wakes it once.
    pub fn post(&self, events: impl IntoIterator<Item = Event>) {
        let mut any = false;
        for event in events {
            any |= self.events.send(Report::Event(event)).is_ok();
        }
        if any {
            // Fails only when the main loop is gone, and with it the need.
            let _ = self.waker.wake();
        }
    }

    /// Tells what became of a backup.
    pub fn backed_up(&self, token: u64, outcome: Result<(), String>) {
        if self.events.send(Report::BackedUp(token, outcome)).is_ok() {
            let _ = self.waker.wake();
        }
    }

    /// Waits until the main thread has taken care of everything sent before.
    fn settle(&self) {
        let (answer, answered) = crossbeam_channel::bounded(1);
        if self.events.send(Report::Barrier(answer)).is_ok() && self.waker.wake().is_ok() {
            // Ends early when the main thread exits meanwhile.
            let _ = answered.recv_timeout(MAIN_THREAD_PATIENCE);
        }
    }
}

/// How long a database waits for the main thread before it goes on.
const MAIN_THREAD_PATIENCE: Duration = Duration::from_secs(1);

/// Everything a database thread works with.
pub struct DatabaseThread {
    /// The database.
    pub service: DatabaseService,
    /// Its inputs.
    pub inbox: Mailbox<ToDatabase>,
    /// Its file, if it has one.
    pub storage: Option<Storage>,
    /// Takes its long jobs.
    pub worker: Worker,
    /// Where outputs go.
    pub shards: Vec<ShardHandle<ShardMessage>>,
    /// Where events go.
    pub main: MainThread,
}

impl DatabaseThread {
    /// Runs until every sender of the inbox is gone.
    pub fn run(mut self) {
        let mut arrived = Vec::new();
        while self.inbox.receive(&mut arrived, self.patience()) {
            let mut inputs = arrived.drain(..);
            loop {
                let now = read_clock();
                for input in inputs.by_ref().take(BATCH_MAX) {
                    self.take(now, input);
                }
                self.finish_batch();
                if inputs.len() == 0 {
                    break;
                }
            }
        }
        if let Some(storage) = self.storage {
            storage.close();
        }
    }

    fn take(&mut self, now: Now, input: ToDatabase) {
        if let Some(storage) = &mut self.storage {
            storage.answered(&input);
        }
        self.service.handle(now, input);
    }

    /// How long to wait for inputs; `None`: for as long as it takes.
    fn patience(&self) -> Option<Duration> {
        let now = read_clock();
        let deadline = self.service.next_deadline_ms(now)?;
        let left_ms = deadline.saturating_sub(now.mono_ms);
        Some(Duration::from_millis(left_ms))
    }

    fn finish_batch(&mut self) {
        let now = read_clock();
        self.service.tick(now);
        self.store(now);
        for job in self.service.outputs().jobs.drain(..) {
            self.worker.order(job);
        }
        self.service.flush_updates();
        self.hand_over();
    }

    /// Writes what the batch wants stored. What is done at once is answered at once, which may ask for more.
    fn store(&mut self, now: Now) {
        loop {
            let stores = std::mem::take(&mut self.service.outputs().stores);
            if stores.is_empty() {
                return;
            }
            let Some(storage) = &mut self.storage else {
                return;
            };
            for answer in storage.store(stores) {
                storage.answered(&answer);
                self.service.handle(now, answer);
            }
        }
    }

    fn hand_over(&mut self) {
        let mut events = std::mem::take(&mut self.service.outputs().events);
        // What a column held when it was first followed comes before what it holds now.
        let early: Vec<Event> = events
            .extract_if(.., |event| {
                matches!(
                    event,
                    Event::Followed(..) | Event::RemotesChanged(..) | Event::Converting(_)
                )
            })
            .collect();
        // Who is told that a commit succeeded finds its remotes as the commit wants them; who hears of a conversion may begin a
        // session that counts as new.
        let must_settle = early
            .iter()
            .any(|event| matches!(event, Event::RemotesChanged(..) | Event::Converting(_)));
        self.main.post(early);
        if must_settle {
            self.main.settle();
        }
        self.deliver();
        // A database that is gone must be free to be opened again by whoever hears of it.
        if events
            .iter()
            .any(|event| matches!(event, Event::Removed(_)))
            && let Some(storage) = self.storage.take()
        {
            storage.close();
        }
        // Last: what the main thread makes of them (sessions to be closed above all) comes after what is delivered.
        self.main.post(events);
    }

    fn deliver(&mut self) {
        let mut by_shard: Vec<Vec<ShardMessage>> = self.shards.iter().map(|_| Vec::new()).collect();
        for deliver in self.service.outputs().deliveries.drain(..) {
            let shard = usize::from(shard_of(deliver.session));
            if let Some(messages) = by_shard.get_mut(shard) {
                messages.push(ShardMessage::Service(ToShard::Deliver(deliver)));
            }
        }
        for (shard, messages) in self.shards.iter().zip(by_shard) {
            if !messages.is_empty() {
                shard.post_batch(messages);
            }
        }
    }
}

/// The time, for a service.
pub fn read_clock() -> Now {
    let now = clock::Now::read();
    Now {
        mono_ms: now.mono_ms,
        wall_ms: now.wall_ms,
    }
}
