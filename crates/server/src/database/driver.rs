//! What walks the outputs of one database's [`Pump`]: orders jobs, writes its log, hands its outputs to shards and the main thread, and
//! counts. What makes a batch, and in which order its outputs take effect, the pump decides.
//!
//! Invariant: a driver is used by whoever holds the database's mailbox, one at a time: the database's own thread
//! ([`crate::database::thread`]), which has all the time it wants, or a shard ([`crate::database::handle`]), which executes inline. What is posted
//! to a shard is posted before the mailbox is released, so the order of deliveries is the order of batches.

use std::sync::Arc;

use corvid_engine::WorkBudget;
use corvid_net::clock;
use corvid_reactor::shard::ShardHandle;
use corvid_service::frontend::shard_of;
use corvid_service::message::{DatabaseMethod, Deliver, Event, ToDatabase, ToShard};
use corvid_service::pump::{Holder, Output};
use corvid_service::{Now, Pump};

use crate::audit::AuditLog;
use crate::coverage::{self, ReportedCounts};
use crate::database::jobs::JobThreads;
use crate::database::recorder::Recorder;
use crate::database::storage::Storage;
use crate::liveness::Liveness;
use crate::main_handle::MainHandle;
use crate::metrics::database::DatabaseFigures;
use crate::shard::{ShardMessage, ToSource};

/// Deliveries that room is kept for between two batches, for each shard.
const KEPT_DELIVERIES: usize = 1024;

/// A database and what carries its outputs out.
pub(crate) struct Driver {
    /// The database.
    pub(crate) pump: Pump,
    /// Everything that it works with.
    pub(crate) effects: Effects,
}

/// Everything a database works with.
pub(crate) struct Effects {
    /// Its file, if it has one.
    pub(crate) storage: Option<Storage>,
    /// Takes its long jobs.
    pub(crate) job_threads: JobThreads,
    /// Where outputs go.
    pub(crate) shards: Vec<ShardHandle<ShardMessage>>,
    /// Where events go.
    pub(crate) main: MainHandle,
    /// Where the audit trail is kept, if there is one.
    pub(crate) audit: Option<AuditLog>,
    /// Tells that work goes on here.
    pub(crate) liveness: Liveness,
    /// Where durations are counted, if anybody wants to know them.
    pub(crate) figures: Option<Arc<DatabaseFigures>>,
    /// Where everything is recorded, if it is.
    pub(crate) recorder: Option<Recorder>,
    /// What the batch at hand has come to so far.
    pub(crate) batch: BatchState,
}

/// What a driver remembers between two outputs, or two batches.
#[derive(Default)]
pub(crate) struct BatchState {
    /// Deliveries that are not posted yet, by shard.
    to_shards: Vec<Vec<ShardMessage>>,
    has_deliveries: bool,
    /// Events that are not posted yet.
    events: Vec<Event>,
    /// When the transaction began that is being executed, if that is to be timed.
    began_ns: Option<u64>,
    /// When the first commit was stored that somebody has yet to be told of, ns; 0: nobody has, or nobody counts.
    undelivered_since_ns: u64,
    /// What the counters of `coverage/show` have taken over.
    taken: ReportedCounts,
}

impl Holder for Effects {
    fn now(&mut self) -> Now {
        let now = read_clock();
        self.liveness.busy(now.mono_ms);
        now
    }

    fn begin(&mut self, input: &ToDatabase) {
        if let (ToDatabase::Storage(reply), Some(storage)) = (input, &mut self.storage) {
            storage.answered(reply);
        }
        let is_timed = self.figures.is_some()
            && matches!(input, ToDatabase::Request(request) if request.method == DatabaseMethod::Transact);
        self.batch.began_ns = is_timed.then(clock::mono_ns);
    }

    fn executed(&mut self) {
        if let (Some(figures), Some(began_ns)) = (&self.figures, self.batch.began_ns.take()) {
            figures.execute.add(clock::mono_ns() - began_ns);
        }
    }
}

impl Driver {
    /// One batch of the database's own thread. Whether there must be another one at once: inputs are left.
    pub(crate) fn work(&mut self, inputs: &mut impl ExactSizeIterator<Item = ToDatabase>) -> bool {
        self.pump.execute_batch(&mut self.effects, inputs);
        self.walk();
        if let Some(figures) = &self.effects.figures {
            let orders = || self.effects.storage.as_ref().map_or(0, Storage::orders);
            figures.report_if_requested(|| self.pump.report(), orders);
        }
        inputs.len() > 0 || self.pump.has_postponed()
    }

    /// One batch of a shard. What does not fit, and everything behind it, stays in `inputs`. False when that is something, or when there
    /// is something else that must be left to the database's thread.
    pub(crate) fn work_inline(
        &mut self,
        inputs: &mut Vec<ToDatabase>,
        budget: &mut WorkBudget,
    ) -> bool {
        self.pump.execute_inline(&mut self.effects, inputs, budget);
        self.walk();
        coverage::DB_BATCH_INLINE.bump();
        self.pump.end_inline()
    }

    /// When a batch is due though nothing arrives, monotonic ms; `None`: never.
    pub(crate) fn deadline_ms(&self) -> Option<u64> {
        self.pump.deadline_ms(read_clock())
    }

    /// Carries out the outputs of a batch, in order.
    fn walk(&mut self) {
        let (pump, effects) = (&mut self.pump, &mut self.effects);
        effects.stamp_undelivered(pump);
        while let Some(output) = pump.next_output() {
            match output {
                Output::Job(job) => effects.job_threads.order(job),
                Output::Store(stores) => {
                    if let Some(storage) = &mut effects.storage {
                        let answers = storage.store(stores);
                        pump.stored(effects, answers);
                    }
                    effects.stamp_undelivered(pump);
                }
                Output::Audit(entries) => {
                    if let Some(audit) = &effects.audit {
                        audit.push(entries);
                    }
                }
                Output::Event(event) => {
                    effects.post_deliveries(pump);
                    effects.batch.events.push(event);
                }
                Output::AwaitMain => {
                    effects.post_events();
                    effects.main.await_processed();
                }
                Output::Deliver(deliver) => {
                    effects.post_events();
                    effects.deliver(deliver);
                }
                Output::SourceOrder(id, connection, order) => {
                    effects.post_deliveries(pump);
                    let order = ToSource::Order(connection, order);
                    effects.shards[0].post(ShardMessage::Source(id, order));
                }
                Output::Flush => {
                    effects.post_events();
                    effects.post_deliveries(pump);
                }
                Output::CloseFile => {
                    if let Some(storage) = effects.storage.take() {
                        storage.close();
                    }
                }
            }
        }
        effects.post_deliveries(pump);
        effects.post_events();
        effects.record(pump);
        let (counts, composed) = pump.counts();
        effects.batch.taken.count_batch(counts, composed);
    }
}

impl Effects {
    /// Hands over what has been recorded of the batch.
    fn record(&mut self, pump: &mut Pump) {
        if let Some(recorder) = &mut self.recorder
            && !recorder.append(&pump.drain_recording())
        {
            self.recorder = None;
            pump.end_recording();
        }
    }

    fn deliver(&mut self, deliver: Deliver) {
        let progress = &mut self.batch;
        if progress.to_shards.is_empty() {
            progress.to_shards.resize_with(self.shards.len(), Vec::new);
        }
        let shard = usize::from(shard_of(deliver.session));
        if let Some(messages) = progress.to_shards.get_mut(shard) {
            messages.push(ShardMessage::Service(ToShard::Deliver(deliver)));
            progress.has_deliveries = true;
        }
    }

    /// Wakes each shard that sleeps once.
    fn post_deliveries(&mut self, pump: &mut Pump) {
        if std::mem::take(&mut self.batch.has_deliveries) {
            for (shard, messages) in self.shards.iter().zip(&mut self.batch.to_shards) {
                if !messages.is_empty() {
                    shard.post_batch(messages.drain(..));
                    messages.shrink_to(KEPT_DELIVERIES);
                }
            }
        }
        self.count_delivered(pump);
    }

    fn post_events(&mut self) {
        if !self.batch.events.is_empty() {
            self.main.post(self.batch.events.drain(..));
        }
    }

    /// Takes note that somebody has to be told of what has been stored.
    fn stamp_undelivered(&mut self, pump: &Pump) {
        if self.figures.is_some()
            && self.batch.undelivered_since_ns == 0
            && pump.has_pending_updates()
        {
            self.batch.undelivered_since_ns = clock::mono_ns();
        }
    }

    /// Counts how long answers and updates took that have been handed over.
    fn count_delivered(&mut self, pump: &mut Pump) {
        let Some(figures) = &self.figures else {
            return;
        };
        let is_told = self.batch.undelivered_since_ns != 0 && !pump.has_pending_updates();
        let answered = pump.answered_stamps();
        if !is_told && answered.is_empty() {
            return;
        }
        let now_ns = clock::mono_ns();
        for stamp_ns in answered.drain(..) {
            figures.transaction.add(now_ns.saturating_sub(stamp_ns));
        }
        if is_told {
            let since_ns = std::mem::take(&mut self.batch.undelivered_since_ns);
            figures.tell.add(now_ns.saturating_sub(since_ns));
        }
    }
}

/// The time, for a service.
pub(crate) fn read_clock() -> Now {
    let now = clock::Now::read();
    Now {
        mono_ms: now.mono_ms,
        wall_ms: now.wall_ms,
    }
}
