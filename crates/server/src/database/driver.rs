//! Carries out the outputs of one database's [`Pump`]: starts jobs, writes the log, posts
//! deliveries to shards and events to the main thread, and counts. The pump decides which inputs
//! form a batch and in which order its outputs take effect.
//!
//! Invariant: only the holder of the database's mailbox uses the driver: either the database's own
//! thread ([`crate::database::thread`]), whose batches have no time limit, or a shard that executes
//! inline ([`crate::database::handle`]). Deliveries are posted to shards before the mailbox is
//! released, so they arrive in the order of the batches.

use std::num::NonZeroU64;
use std::sync::Arc;

use corvid_engine::WorkBudget;
use corvid_net::clock;
use corvid_reactor::shard::ShardHandle;
use corvid_service::frontend::shard_of;
use corvid_service::message::{DatabaseMethod, Deliver, Event, SessionInfo, ToDatabase};
use corvid_service::pump::{Holder, Output};
use corvid_service::{Now, Pump};

use crate::audit::AuditSlot;
use crate::coverage::{self, ReportedCounts};
use crate::database::jobs::JobThreads;
use crate::database::recorder::Recorder;
use crate::database::shown_index::ShownIndex;
use crate::database::storage::Storage;
use crate::database::upstream::UpstreamHandle;
use crate::liveness::Liveness;
use crate::main_handle::MainHandle;
use crate::member::handle::ToMember;
use crate::metrics::database::DatabaseFigures;
use crate::metrics::switch::Switched;
use crate::relay::handle::ToRelay;
use crate::session_cost::HolderSpans;
use crate::shard::{ShardMessage, ToSource};

/// The capacity for deliveries that each shard's list keeps between two batches.
const KEPT_DELIVERIES: usize = 1024;

/// A database, and the effects that carry out its outputs.
pub(crate) struct Driver {
    /// The pump of the database.
    pub(crate) pump: Pump,
    /// Its effects.
    pub(crate) effects: Effects,
}

/// The effects of a database: its file, its threads, and the receivers of its outputs.
pub(crate) struct Effects {
    /// Its file, if it has one.
    pub(crate) storage: Option<Storage>,
    /// The thread that decides the database's commits, if it is clustered or a relay.
    pub(crate) upstream: Option<UpstreamHandle>,
    /// Publishes the database's index in `_Server`, if it is clustered.
    pub(crate) shown_index: Option<ShownIndex>,
    /// The threads for its long jobs.
    pub(crate) job_threads: JobThreads,
    /// The receivers of deliveries.
    pub(crate) shards: Vec<ShardHandle<ShardMessage>>,
    /// The receiver of events.
    pub(crate) main: MainHandle,
    /// The audit log, once it is open.
    pub(crate) audit: AuditSlot,
    /// Records when the current batch began.
    pub(crate) liveness: Liveness,
    /// The figures.
    pub(crate) figures: Switched<DatabaseFigures>,
    /// The recording, with `--record`.
    pub(crate) recorder: Option<Recorder>,
    /// The state of the current batch.
    pub(crate) batch: BatchState,
}

/// The state kept between two outputs of a batch, or between two batches.
#[derive(Default)]
pub(crate) struct BatchState {
    /// Deliveries not posted yet, by shard.
    to_shards: Vec<Vec<Deliver>>,
    /// The number of these deliveries.
    deliveries: u64,
    /// The spans of this batch that sessions are charged with.
    spans: HolderSpans,
    /// The input that is being executed.
    executing: Executing,
    /// Events not posted yet.
    events: Vec<Event>,
    /// When the current transaction began, if it is timed.
    began_ns: Option<u64>,
    /// When the first commit was stored whose updates are not posted yet, ns; 0: no such commit, or
    /// metrics are off.
    undelivered_since_ns: u64,
    /// The counts already added to `coverage/show`.
    taken: ReportedCounts,
}

/// An input that is being executed, as its cost is concerned.
#[derive(Default)]
enum Executing {
    /// None, or one that costs next to nothing: its time is part of the next span.
    #[default]
    Nothing,
    /// A request of this session.
    Request(Arc<SessionInfo>),
    /// An input that no session is charged with.
    Other,
}

impl Holder for Effects {
    fn now(&mut self) -> Now {
        let now = clock::Now::read();
        self.batch.spans.begin(now.mono_ns);
        self.liveness.busy(now.mono_ms);
        in_service(now)
    }

    fn begin(&mut self, input: &ToDatabase) {
        if let (ToDatabase::Storage(reply), Some(storage)) = (input, &mut self.storage) {
            storage.observe_reply(reply);
        }
        let is_timed = self.figures.is_on()
            && matches!(input, ToDatabase::Request(request) if request.method == DatabaseMethod::Transact);
        self.batch.began_ns = is_timed.then(clock::mono_ns);
        self.batch.executing = match input {
            ToDatabase::Request(request) => Executing::Request(request.info.clone()),
            ToDatabase::Drained(_) | ToDatabase::Fence(..) => Executing::Nothing,
            _ => Executing::Other,
        };
    }

    fn executed(&mut self) {
        let Some(now_ns) = self.batch.charge_executed() else {
            return;
        };
        if let (Some(figures), Some(began_ns)) =
            (self.figures.counted(), self.batch.began_ns.take())
        {
            figures.execute.add(now_ns - began_ns);
        }
    }
}

impl Driver {
    /// Executes one batch on the database's own thread. Returns true if inputs are left, so that
    /// another batch must follow at once.
    pub(crate) fn work(&mut self, inputs: &mut impl ExactSizeIterator<Item = ToDatabase>) -> bool {
        self.pump.execute_batch(&mut self.effects, inputs);
        self.carry_out();
        let orders = || self.effects.storage.as_ref().map_or(0, Storage::orders);
        let figures = self.effects.figures.state();
        figures.report_if_requested(|| self.pump.report(), orders);
        inputs.len() > 0 || self.pump.has_postponed()
    }

    /// Executes one batch on a shard. The first input that exceeds the budget, and every input
    /// after it, stay in `inputs`. Returns false if inputs are left, or if the database's thread
    /// has other work.
    pub(crate) fn work_inline(
        &mut self,
        inputs: &mut Vec<ToDatabase>,
        budget: &mut WorkBudget,
    ) -> bool {
        self.pump.execute_inline(&mut self.effects, inputs, budget);
        self.carry_out();
        coverage::DB_BATCH_INLINE.bump();
        self.pump.end_inline()
    }

    /// When a batch is due even without an input, monotonic ms; `None`: never.
    pub(crate) fn deadline_ms(&self) -> Option<u64> {
        self.pump.deadline_ms(read_clock())
    }

    /// Carries out the outputs of a batch, in order.
    fn carry_out(&mut self) {
        let (pump, effects) = (&mut self.pump, &mut self.effects);
        // A transaction that was too long for this batch has been executed in part.
        effects.batch.charge_executed();
        effects.stamp_undelivered(pump);
        while let Some(output) = pump.next_output() {
            match output {
                Output::Job(job) => effects.job_threads.order(job),
                Output::Store(stores) => {
                    if let Some(storage) = &mut effects.storage {
                        let answers = storage.store(stores);
                        let answers = answers.into_iter().map(ToDatabase::Storage).collect();
                        pump.stored(effects, answers);
                    }
                    effects.stamp_undelivered(pump);
                }
                Output::Applied(index) => {
                    // Before the deliveries that follow from this entry: a client that has its
                    // reply already finds the index in `_Server`.
                    if let Some(shown) = &effects.shown_index {
                        shown.show(index);
                    }
                }
                Output::Member(request) => {
                    if let Some(UpstreamHandle::Member(member)) = &effects.upstream {
                        member.post([ToMember::Request(request)]);
                    }
                }
                Output::Relay(request) => {
                    if let Some(UpstreamHandle::Relay(relay)) = &effects.upstream {
                        relay.post([ToRelay::Request(request)]);
                    }
                }
                Output::Audit(entries) => {
                    if let Some(audit) = effects.audit.get() {
                        audit.push(entries);
                    }
                }
                Output::Event(event) => {
                    // Deliveries and events are collected separately. Each kind is posted before
                    // the other kind is collected, so both leave in the order of the outputs.
                    effects.post_deliveries(pump);
                    effects.batch.events.push(event);
                }
                Output::AwaitMain => {
                    // The deliveries come next: a client that gets a commit's reply must be able to
                    // connect to the remotes that the commit added.
                    effects.post_events();
                    effects.main.await_processed();
                }
                Output::Deliver(deliver) => {
                    effects.post_events();
                    effects.deliver(deliver);
                }
                Output::SourceOrder(id, connection, order) => {
                    effects.post_deliveries(pump);
                    // Shard 0 owns the connections to sources.
                    let order = ToSource::Order(connection, order);
                    effects.shards[0].post(ShardMessage::Source(id, order));
                }
                Output::PostDeliveries => {
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
        effects.batch.spans.end();
        // No client waits for the recording, so it comes last.
        effects.record(pump);
        let (counts, composed) = pump.counts();
        effects.batch.taken.count_batch(counts, composed);
    }
}

impl BatchState {
    /// Charges the input that is being executed to its session. Returns the time, unless there was
    /// nothing to charge.
    fn charge_executed(&mut self) -> Option<u64> {
        match std::mem::take(&mut self.executing) {
            Executing::Nothing => None,
            Executing::Request(session) => {
                let now_ns = clock::mono_ns();
                session.charge_cpu(self.spans.end_span(now_ns));
                Some(now_ns)
            }
            Executing::Other => {
                let now_ns = clock::mono_ns();
                self.spans.skip_span(now_ns);
                Some(now_ns)
            }
        }
    }
}

impl Effects {
    /// Appends the batch to the recording. Ends the recording if it cannot continue.
    fn record(&mut self, pump: &mut Pump) {
        if let Some(recorder) = &mut self.recorder
            && !recorder.append(&pump.drain_tape())
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
        assert!(
            shard < progress.to_shards.len(),
            "the number of a session tells its shard"
        );
        if let Some(messages) = progress.to_shards.get_mut(shard) {
            messages.push(deliver);
            progress.deliveries += 1;
        }
    }

    /// Posts the deliveries. Each sleeping shard is woken once.
    fn post_deliveries(&mut self, pump: &mut Pump) {
        if let Some(deliveries) = NonZeroU64::new(std::mem::take(&mut self.batch.deliveries)) {
            // The rest of the time, such as composing an update, was for all of them.
            let share_ns = self.batch.spans.end_span(clock::mono_ns()) / deliveries;
            for (shard, messages) in self.shards.iter().zip(&mut self.batch.to_shards) {
                if !messages.is_empty() {
                    let charged = |deliver| ShardMessage::Deliver(deliver, share_ns);
                    shard.post_batch(messages.drain(..).map(charged));
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

    /// Records the time if a commit has just been stored and no earlier commit's updates are
    /// undelivered.
    fn stamp_undelivered(&mut self, pump: &Pump) {
        if self.figures.is_on()
            && self.batch.undelivered_since_ns == 0
            && pump.has_pending_updates()
        {
            self.batch.undelivered_since_ns = clock::mono_ns();
        }
    }

    /// Counts how long the replies and updates that have just been posted took.
    fn count_delivered(&mut self, pump: &mut Pump) {
        let Some(figures) = self.figures.counted() else {
            // Stamps from a time when metrics were on are dropped.
            self.batch.undelivered_since_ns = 0;
            pump.answered_stamps().clear();
            return;
        };
        let is_delivered = self.batch.undelivered_since_ns != 0 && !pump.has_pending_updates();
        let answered = pump.answered_stamps();
        if !is_delivered && answered.is_empty() {
            return;
        }
        let now_ns = clock::mono_ns();
        for stamp_ns in answered.drain(..) {
            figures.transaction.add(now_ns.saturating_sub(stamp_ns));
        }
        if is_delivered {
            let since_ns = std::mem::take(&mut self.batch.undelivered_since_ns);
            figures.delivery.add(now_ns.saturating_sub(since_ns));
        }
    }
}

/// The current time, in the service's type.
pub(crate) fn read_clock() -> Now {
    in_service(clock::Now::read())
}

fn in_service(now: clock::Now) -> Now {
    Now {
        mono_ms: now.mono_ms,
        wall_ms: now.wall_ms,
    }
}
