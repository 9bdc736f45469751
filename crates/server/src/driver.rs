//! What drives one [`DatabaseService`]: hands it inputs in batches, writes its log, hands its outputs to shards.
//!
//! One batch: all inputs that have arrived are executed, their records written together, then replies released and updates
//! composed once. So a loaded database wakes, writes and notifies less often than it commits. Nobody waits for the work of others that
//! is long: a batch ends before a long transaction, and answers leave before many updates are composed.
//!
//! Invariant: a driver is used by whoever holds the database's mailbox, one at a time: the database's own thread
//! ([`crate::database_thread`]), which has all the time it wants, or a shard ([`crate::inbox`]), which does errands only. What is posted
//! to a shard is posted before the mailbox is let go, so the order of deliveries is the order of batches.

use std::sync::Arc;

use corvid_engine::Allowance;
use corvid_os::clock;
use corvid_os::shard::ShardHandle;
use corvid_service::frontend::shard_of;
use corvid_service::message::{Event, Method, ToDatabase, ToShard};
use corvid_service::{DatabaseService, Now};

use crate::audit::AuditLog;
use crate::coverage::{self, Taken};
use crate::heartbeat::Heartbeat;
use crate::main_thread::MainThread;
use crate::metrics::database::DatabaseFigures;
use crate::shard::{ShardMessage, ToSource};
use crate::storage::Storage;
use crate::worker::Worker;

/// Sessions for which a shard composes updates itself: some 50 us, which is what waking the database's thread and being woken by it costs.
const ERRAND_SESSIONS: usize = 32;

/// Everything a database works with.
pub struct Driver {
    /// The database.
    pub service: DatabaseService,
    /// Its file, if it has one.
    pub storage: Option<Storage>,
    /// Takes its long jobs.
    pub worker: Worker,
    /// Where outputs go.
    pub shards: Vec<ShardHandle<ShardMessage>>,
    /// Where events go.
    pub main: MainThread,
    /// Where the audit trail is kept, if there is one.
    pub audit: Option<AuditLog>,
    /// Tells that work goes on here.
    pub heartbeat: Heartbeat,
    /// Where durations are counted, if anybody wants to know them.
    pub figures: Option<Arc<DatabaseFigures>>,
    /// When the first commit was stored that somebody has yet to be told of, ns; 0: nobody has, or nobody counts.
    pub untold_since_ns: u64,
    /// What the counters of `coverage/show` have taken over.
    pub taken: Taken,
}

impl Driver {
    /// Executes one input of a batch.
    pub fn take(&mut self, now: Now, input: ToDatabase) {
        if let Some(storage) = &mut self.storage {
            storage.answered(&input);
        }
        let began_ns = self.begin(&input);
        self.service.handle(now, input);
        self.executed(began_ns);
    }

    /// When a transaction begins, if executing it is to be timed.
    fn begin(&self, input: &ToDatabase) -> Option<u64> {
        let is_timed = self.figures.is_some()
            && matches!(input, ToDatabase::Request(request) if request.method == Method::Transact);
        is_timed.then(clock::mono_ns)
    }

    fn executed(&self, began_ns: Option<u64>) {
        if let (Some(figures), Some(began_ns)) = (&self.figures, began_ns) {
            figures.execute.add(clock::mono_ns() - began_ns);
        }
    }

    /// Executes the first of `inputs`, if there is one, however long it takes. `now` is the time when it is done, if others follow.
    pub fn take_first(
        &mut self,
        now: &mut Now,
        inputs: &mut impl ExactSizeIterator<Item = ToDatabase>,
    ) {
        if let Some(first) = inputs.next() {
            self.take(*now, first);
        }
        if inputs.len() > 0 {
            *now = read_clock();
            self.heartbeat.work(now.mono_ms);
            self.service.note_slow(*now);
        }
    }

    /// Executes one input that is not the first of its batch. When it is a long transaction, the batch ends before it: whoever is to be
    /// answered or told of something does not wait for it, too.
    pub fn take_next(&mut self, now: Now, input: ToDatabase) {
        if let Some(storage) = &mut self.storage {
            storage.answered(&input);
        }
        let began_ns = self.begin(&input);
        let Some(long) = self.service.take_unless_long(now, input) else {
            self.executed(began_ns);
            return;
        };
        self.finish_batch();
        let now = read_clock();
        self.heartbeat.work(now.mono_ms);
        let began_ns = self.begin(&long);
        self.service.handle(now, long);
        self.executed(began_ns);
        self.service.note_slow(read_clock());
    }

    /// When a batch is due though nothing arrives, monotonic ms; `None`: never.
    pub fn deadline_ms(&self) -> Option<u64> {
        self.service.next_deadline_ms(read_clock())
    }

    /// Ends a batch.
    pub fn finish_batch(&mut self) {
        let now = read_clock();
        self.heartbeat.work(now.mono_ms);
        self.service.note_slow(now);
        self.service.tick(now);
        self.store(now);
        self.note_untold();
        if self.service.has_much_to_tell() {
            self.hand_over();
        }
        self.service.flush_updates(now);
        self.order_jobs();
        self.hand_over();
        self.count_batch();
        if let Some(figures) = &self.figures {
            let orders = || self.storage.as_ref().map_or(0, Storage::orders);
            figures.look(|| self.service.report(), orders);
        }
    }

    /// A whole batch of errands. What is no errand, and everything behind it, stays in `inputs`. False when that is something, or when
    /// there is something else that must be left to the database's thread.
    pub fn do_errands(&mut self, inputs: &mut Vec<ToDatabase>, allowance: &mut Allowance) -> bool {
        let now = read_clock();
        self.heartbeat.work(now.mono_ms);
        let mut left = Vec::new();
        let mut arrived = inputs.drain(..);
        for input in arrived.by_ref() {
            let began_ns = self.begin(&input);
            if let Some(back) = self.service.take_along(now, input, allowance) {
                left.push(back);
                break;
            }
            self.executed(began_ns);
        }
        left.extend(arrived);
        // Errands are short.
        self.service.note_slow(now);
        let mut all_done = left.is_empty() && !self.service.must_tick(now);
        let answers = self.store_once();
        // What a failed write undoes may be much.
        if answers.iter().any(is_failure) {
            left.splice(..0, answers);
            all_done = false;
        } else {
            for answer in answers {
                self.take(now, answer);
            }
            all_done &= !self.service.has_stores();
        }
        if !left.is_empty() {
            *inputs = left;
        }
        self.note_untold();
        all_done &= self.service.flush_few(now, ERRAND_SESSIONS);
        self.order_jobs();
        self.hand_over();
        coverage::DB_BATCH_INLINE.bump();
        self.count_batch();
        all_done
    }

    /// Takes what the batch has added over to the counters of `coverage/show`.
    fn count_batch(&mut self) {
        let counts = self.service.counts();
        self.taken
            .note_batch(counts, self.service.updates_composed());
    }

    fn order_jobs(&mut self) {
        for job in self.service.outputs().jobs.drain(..) {
            self.worker.order(job);
        }
    }

    /// Writes what the batch wants stored. What is done at once is answered at once, which may ask for more.
    fn store(&mut self, now: Now) {
        loop {
            let answers = self.store_once();
            if answers.is_empty() {
                return;
            }
            for answer in answers {
                self.take(now, answer);
            }
        }
    }

    /// Returns what is answered at once.
    fn store_once(&mut self) -> Vec<ToDatabase> {
        // Updates that are written while records are.
        self.order_jobs();
        let stores = self.service.take_stores();
        match &mut self.storage {
            Some(storage) if !stores.is_empty() => storage.store(stores),
            _ => Vec::new(),
        }
    }

    fn hand_over(&mut self) {
        let entries = std::mem::take(&mut self.service.outputs().audit);
        if let Some(audit) = self.audit.as_ref().filter(|_| !entries.is_empty()) {
            audit.push(entries);
        }
        let mut events = std::mem::take(&mut self.service.outputs().events);
        // What a column held when it was first followed comes before what it holds now.
        let early: Vec<Event> = events
            .extract_if(.., |event| {
                matches!(event, Event::Followed(..) | Event::RemotesChanged(..))
            })
            .collect();
        // A client that gets the commit's reply can already connect to the remotes that the commit added.
        let must_settle = early
            .iter()
            .any(|event| matches!(event, Event::RemotesChanged(..)));
        self.main.post(early);
        if must_settle {
            self.main.settle();
        }
        self.deliver();
        self.count_told();
        for (id, connection, order) in self.service.outputs().source_orders.drain(..) {
            let order = ToSource::Order(connection, order);
            self.shards[0].post(ShardMessage::Source(id, order));
        }
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

    /// Takes note that somebody has to be told of what has been stored.
    fn note_untold(&mut self) {
        if self.figures.is_some() && self.untold_since_ns == 0 && self.service.has_to_tell() {
            self.untold_since_ns = clock::mono_ns();
        }
    }

    /// Counts how long answers and updates took that have been handed over.
    fn count_told(&mut self) {
        let Some(figures) = &self.figures else {
            return;
        };
        let is_told = self.untold_since_ns != 0 && !self.service.has_to_tell();
        let answered = &mut self.service.outputs().answered;
        if !is_told && answered.is_empty() {
            return;
        }
        let now_ns = clock::mono_ns();
        for stamp_ns in answered.drain(..) {
            figures.transaction.add(now_ns.saturating_sub(stamp_ns));
        }
        if is_told {
            let since_ns = std::mem::take(&mut self.untold_since_ns);
            figures.tell.add(now_ns.saturating_sub(since_ns));
        }
    }

    fn deliver(&mut self) {
        let deliveries = &mut self.service.outputs().deliveries;
        if deliveries.is_empty() {
            return;
        }
        // A share of them for each shard that gets one: there may be many shards, and most batches are for few sessions.
        let room = deliveries.len().div_ceil(self.shards.len().max(1));
        let mut by_shard: Vec<Vec<ShardMessage>> = self.shards.iter().map(|_| Vec::new()).collect();
        for deliver in deliveries.drain(..) {
            let shard = usize::from(shard_of(deliver.session));
            if let Some(messages) = by_shard.get_mut(shard) {
                if messages.is_empty() {
                    messages.reserve(room);
                }
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

fn is_failure(answer: &ToDatabase) -> bool {
    matches!(
        answer,
        ToDatabase::Stored(_, Err(_)) | ToDatabase::Rewrite(..)
    )
}

/// The time, for a service.
pub fn read_clock() -> Now {
    let now = clock::Now::read();
    Now {
        mono_ms: now.mono_ms,
        wall_ms: now.wall_ms,
    }
}
