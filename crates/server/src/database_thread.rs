//! Runs a [`DatabaseService`] on a thread of its own: takes inputs in batches, writes the log, hands outputs to shards.
//!
//! One batch: all inputs that have arrived are executed, their records written together, then replies released and updates
//! composed once. So a loaded database wakes, writes and notifies less often than it commits.

use std::sync::Arc;
use std::time::{Duration, Instant};

use corvid_os::clock;
use corvid_os::shard::ShardHandle;
use corvid_service::frontend::shard_of;
use corvid_service::message::{Event, ToDatabase, ToShard};
use corvid_service::{DatabaseService, Now};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};

use crate::shard::ShardMessage;
use crate::storage::Storage;

/// Inputs executed before outputs are handed over, so that no client waits for a long queue of others.
const BATCH_MAX: usize = 256;

/// What the main thread is sent.
#[derive(Debug)]
pub enum Report {
    /// From a database.
    Event(Event),
    /// Answer when all reports before this one have been taken care of.
    Barrier(Sender<()>),
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
    pub inbox: Receiver<ToDatabase>,
    /// Its file, if it has one.
    pub storage: Option<Storage>,
    /// Where outputs go.
    pub shards: Vec<ShardHandle<ShardMessage>>,
    /// Where events go.
    pub main: MainThread,
}

impl DatabaseThread {
    /// Runs until every sender of the inbox is gone.
    pub fn run(mut self) {
        loop {
            match self.receive() {
                Ok(first) => {
                    let now = read_clock();
                    self.take(now, first);
                    for _ in 0..BATCH_MAX {
                        let Ok(input) = self.inbox.try_recv() else {
                            break;
                        };
                        self.take(now, input);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let now = read_clock();
            if self
                .service
                .next_deadline_ms()
                .is_some_and(|deadline| deadline <= now.mono_ms)
            {
                self.service.tick(now);
            }
            self.store(now);
            self.service.flush_updates();
            self.hand_over();
        }
        if let Some(storage) = self.storage {
            storage.close();
        }
    }

    fn take(&mut self, now: Now, input: ToDatabase) {
        if let (ToDatabase::Stored(ticket, _), Some(storage)) = (&input, &mut self.storage) {
            storage.answered(*ticket);
        }
        self.service.handle(now, input);
    }

    fn receive(&self) -> Result<ToDatabase, RecvTimeoutError> {
        match self.service.next_deadline_ms() {
            None => self
                .inbox
                .recv()
                .map_err(|_| RecvTimeoutError::Disconnected),
            Some(deadline) => {
                let left = Duration::from_millis(deadline.saturating_sub(clock::mono_ms()));
                self.inbox.recv_deadline(Instant::now() + left)
            }
        }
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
            for (ticket, result) in storage.store(stores) {
                self.service.handle(now, ToDatabase::Stored(ticket, result));
            }
        }
    }

    fn hand_over(&mut self) {
        let mut events = std::mem::take(&mut self.service.outputs().events);
        let is_configuring = |event: &Event| matches!(event, Event::RemotesChanged(..));
        if let Some(last) = events.iter().rposition(is_configuring) {
            // Who is told that a commit succeeded finds its remotes as the commit wants them.
            self.main.post(events.drain(..=last));
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

fn read_clock() -> Now {
    let now = clock::Now::read();
    Now {
        mono_ms: now.mono_ms,
        wall_ms: now.wall_ms,
    }
}
