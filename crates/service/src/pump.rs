//! The pump of one database: which inputs make a batch, who may execute them, and in which order their outputs take effect.
//!
//! The holder of a database calls its pump: the database thread, a shard that executes inline, or the simulator. It executes a batch, then
//! carries out its outputs until there are none:
//!
//! ```text
//! pump.execute_batch(holder, inputs)              or  pump.execute_inline(holder, inputs, budget)
//! while let Some(output) = pump.next_output()
//!     carry the output out; replies to a Store that come at once: pump.stored(holder, replies)
//! pump.has_postponed(), or inputs are left: again   or  pump.end_inline()
//! ```
//!
//! Invariants. A batch ends before the next one begins, so the order of outputs is the order of batches. All decisions are made here, and
//! are pure: the holder tells the time ([`Holder`]) and carries outputs out. Inputs are executed in order; an input that is not executed is
//! returned with everything behind it.
//!
//! A batch's records are written together, then replies are released and updates composed once. So a loaded database wakes threads, writes
//! and notifies less often than it commits. No client waits for the long work of others: a batch ends before a long transaction, and
//! replies leave before many updates are composed.

mod output;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use corvid_data::uuid::UuidSource;
use corvid_engine::{Database, WorkBudget};

pub use output::Output;

use crate::counters::Counters;
use crate::locks::Locks;
use crate::message::{Control, Deliver, Event, Report, ToDatabase};
use crate::recording::{self, Tape};
use crate::schema_epoch::SchemaEpochs;
use crate::{DatabaseService, Now, Options, database};

/// The holder's part while inputs are executed.
pub trait Holder {
    /// Reads the clock. Called when a batch begins, when an input may have taken long, and when a batch of the database thread ends.
    fn now(&mut self) -> Now;

    /// This input is about to be executed. A transaction may be rolled back and handed back instead; a reply of the storage never is.
    fn begin(&mut self, input: &ToDatabase);

    /// The input has been executed.
    fn executed(&mut self);
}

/// A holder whose time does not pass and that observes nothing.
impl Holder for Now {
    fn now(&mut self) -> Now {
        *self
    }

    fn begin(&mut self, _input: &ToDatabase) {}

    fn executed(&mut self) {}
}

/// Limits of one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Inputs of one batch, so that no client waits for a long queue of others; at least one.
    pub batch_max: usize,
    /// A transaction that takes more steps is long: the batch ends before it.
    pub long_steps: u64,
    /// Sessions for which updates are composed inline.
    pub inline_sessions_max: usize,
}

impl Default for Limits {
    /// 256 inputs; about a millisecond; some 50 us, which is the cost of waking the database thread and being woken by it.
    fn default() -> Limits {
        Limits {
            batch_max: 256,
            long_steps: 50_000,
            inline_sessions_max: 32,
        }
    }
}

/// The pump of one database.
pub struct Pump {
    service: DatabaseService,
    limits: Limits,
    /// A transaction that was too long for the last batch; the next one begins with it.
    postponed: Option<ToDatabase>,
    stage: Stage,
    /// When the present batch was executed.
    now: Now,
    is_inline: bool,
    /// Nothing of the present batch is left to the database thread.
    is_done: bool,
    /// Outputs in order; the next ones are collected when these have been carried out.
    ready: VecDeque<Output>,
    /// They come after those, and are moved as they are, because there may be many.
    deliveries: VecDeque<Deliver>,
    /// They come last.
    last: VecDeque<Output>,
    /// The tape of a recording, if there is one.
    tape: Tape,
}

/// The part of a batch that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The batch is over.
    Idle,
    /// Jobs, so that other threads work on them while records are composed and written.
    Jobs,
    /// Records.
    Store,
    /// The holder carries out a [`Output::Store`].
    Storing,
    /// Replies, if composing updates takes long.
    Release,
    /// Updates and replies.
    Compose,
    /// Everything is collected. The recording of the batch is closed, then the stage is `Idle`.
    End,
}

impl Pump {
    /// The pump of a database.
    #[must_use]
    pub fn new(service: DatabaseService) -> Pump {
        Pump {
            service,
            limits: Limits::default(),
            postponed: None,
            stage: Stage::Idle,
            now: Now::default(),
            is_inline: false,
            is_done: true,
            ready: VecDeque::new(),
            deliveries: VecDeque::new(),
            last: VecDeque::new(),
            tape: Tape::default(),
        }
    }

    /// The pump of a new database, with all its inputs recorded from the beginning on. Only settings that [`crate::message::Control`]
    /// changes may be changed later.
    ///
    /// # Panics
    /// The model [cannot be recorded](crate::Model::can_be_recorded).
    #[must_use]
    pub fn with_tape(
        now: Now,
        options: Options,
        limits: Limits,
        database: Database,
        locks: Arc<Mutex<Locks>>,
        epochs: SchemaEpochs,
        uuids: Box<dyn UuidSource + Send>,
    ) -> Pump {
        assert!(
            options.model.can_be_recorded(),
            "a clustered database cannot be recorded"
        );
        let (tape, uuids) = recording::begin(now, &options, &limits, &database, uuids);
        let mut service = DatabaseService::new(now, options, database, locks, epochs, uuids);
        tape.finish();
        service.set_tape(tape.clone());
        let mut pump = Pump::new(service);
        pump.limits = limits;
        pump.tape = tape;
        pump
    }

    pub(crate) fn set_tape(&mut self, tape: Tape) {
        self.tape = tape;
    }

    /// Takes the frames recorded since the last call, to be appended to the recording ([`recording::MAGIC`] comes first). To be called
    /// between two batches.
    pub fn drain_tape(&mut self) -> Vec<u8> {
        self.tape.take_frames()
    }

    /// Ends the recording, between two batches.
    pub fn end_recording(&mut self) {
        self.tape.end();
        self.service.set_tape(Tape::default());
    }

    /// Sets the limits of later batches.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// The database.
    #[must_use]
    pub fn service(&self) -> &DatabaseService {
        &self.service
    }

    /// The database, to be set up.
    pub fn service_mut(&mut self) -> &mut DatabaseService {
        &mut self.service
    }

    /// Executes a batch of `inputs` as the database thread, and begins its outputs. The first input is executed however long it takes.
    /// Inputs may be left: because there are too many for one batch, or because the next one is a long transaction, which the pump keeps
    /// ([`Pump::has_postponed`]).
    pub fn execute_batch(
        &mut self,
        holder: &mut impl Holder,
        inputs: &mut impl Iterator<Item = ToDatabase>,
    ) {
        assert_eq!(self.stage, Stage::Idle, "the last batch is over");
        self.tape.begin(None);
        let mut now = self.read_clock(holder);
        let postponed = self.postponed.take();
        let is_new = postponed.is_none();
        if let Some(first) = postponed.or_else(|| inputs.next()) {
            if is_new {
                self.tape.input(&first);
            }
            self.handle(holder, now, first);
            let others = inputs.take(self.limits.batch_max.saturating_sub(1));
            for (number, input) in others.enumerate() {
                self.tape.input(&input);
                if number == 0 {
                    now = self.read_clock(holder);
                    self.service.report_slow(now);
                }
                holder.begin(&input);
                let long_steps = self.limits.long_steps;
                self.postponed = self.service.handle_unless_long(now, input, long_steps);
                if self.postponed.is_some() {
                    break;
                }
                holder.executed();
            }
        }
        let now = self.read_clock(holder);
        self.service.report_slow(now);
        self.service.tick(now);
        self.begin_outputs(now, false);
    }

    /// Whether the next batch is due at once, with the long transaction that ended the last one.
    #[must_use]
    pub fn has_postponed(&self) -> bool {
        self.postponed.is_some()
    }

    /// Executes `inputs` as a shard: small transactions that fit into `budget` together, and inputs that cost next to nothing. The first
    /// other input, and everything behind it, stays in `inputs`. Begins the batch's outputs; when they have been carried out,
    /// [`Pump::end_inline`] says whether work is left to the database thread.
    pub fn execute_inline(
        &mut self,
        holder: &mut impl Holder,
        inputs: &mut Vec<ToDatabase>,
        budget: &mut WorkBudget,
    ) {
        assert_eq!(self.stage, Stage::Idle, "the last batch is over");
        let mut left = Vec::new();
        let mut arrived = inputs.drain(..);
        left.extend(self.execute_inline_from(holder, &mut arrived, budget));
        left.extend(arrived);
        if !left.is_empty() {
            *inputs = left;
            self.is_done = false;
        }
    }

    /// The same with any iterator; returns the first input that is left.
    pub(crate) fn execute_inline_from(
        &mut self,
        holder: &mut impl Holder,
        inputs: &mut impl Iterator<Item = ToDatabase>,
        budget: &mut WorkBudget,
    ) -> Option<ToDatabase> {
        assert!(
            self.postponed.is_none(),
            "only the database thread keeps one"
        );
        self.tape.begin(Some(budget.steps_left()));
        let now = self.read_clock(holder);
        let mut left = None;
        for input in inputs {
            let may_be_short = matches!(
                input,
                ToDatabase::Request(_)
                    | ToDatabase::Drained(_)
                    | ToDatabase::Fence(..)
                    | ToDatabase::Member(_)
                    | ToDatabase::Relay(_)
                    | ToDatabase::Control(Control::ShowIndex(_))
            );
            if !may_be_short {
                left = Some(input);
                break;
            }
            self.tape.input(&input);
            holder.begin(&input);
            left = self.service.try_inline(now, input, budget);
            if left.is_some() {
                break;
            }
            holder.executed();
        }
        // Inline transactions are short.
        self.service.report_slow(now);
        self.is_done = left.is_none() && !self.service.must_tick(now);
        self.begin_outputs(now, true);
        left
    }

    /// Ends an inline batch whose outputs have been carried out. False when the database thread must be woken: for the inputs that
    /// [`Pump::execute_inline`] left, or for work that takes longer.
    #[must_use]
    pub fn end_inline(&mut self) -> bool {
        assert_eq!(self.stage, Stage::Idle, "every output has been carried out");
        self.is_done
    }

    /// The next output of the present batch. `None`: it is over.
    pub fn next_output(&mut self) -> Option<Output> {
        loop {
            if let Some(output) = self.ready.pop_front() {
                return Some(output);
            }
            if let Some(deliver) = self.deliveries.pop_front() {
                self.tape.deliver(&deliver);
                return Some(Output::Deliver(deliver));
            }
            if let Some(output) = self.last.pop_front() {
                return Some(output);
            }
            match self.stage {
                Stage::Idle => return None,
                Stage::End => {
                    // The order of outputs is the order of batches.
                    assert!(
                        self.service.outputs().are_taken(),
                        "every output of a batch leaves with it"
                    );
                    self.tape.finish();
                    self.stage = Stage::Idle;
                }
                Stage::Jobs => {
                    self.collect_jobs();
                    self.stage = Stage::Store;
                }
                Stage::Store => {
                    let stores = self.service.take_stores();
                    if !stores.is_empty() {
                        self.stage = Stage::Storing;
                        return Some(Output::Store(stores));
                    }
                    // Before the member and the sessions learn what follows from the entries.
                    let applied = self.service.take_applied();
                    self.ready.extend(applied.map(Output::Applied));
                    self.ready
                        .extend(self.service.take_member_requests().map(Output::Member));
                    self.ready
                        .extend(self.service.take_source_requests().map(Output::Relay));
                    self.stage = Stage::Release;
                }
                // Its replies will be inputs.
                Stage::Storing => {
                    self.tape.answers(&[]);
                    self.stage = Stage::Release;
                }
                Stage::Release => {
                    if self.is_inline {
                        self.is_done &= !self.service.has_stores();
                    } else if self.service.is_flush_long() {
                        self.collect_outputs();
                        self.last.push_back(Output::PostDeliveries);
                    }
                    self.stage = Stage::Compose;
                }
                Stage::Compose => {
                    if self.is_inline {
                        let sessions_max = self.limits.inline_sessions_max;
                        self.is_done &= self.service.flush_if_small(self.now, sessions_max);
                    } else {
                        self.service.flush_updates(self.now);
                    }
                    self.collect_jobs();
                    self.collect_outputs();
                    self.stage = Stage::End;
                }
            }
        }
    }

    /// The replies to the last [`Output::Store`] that came at once. The pump handles them as inputs of this batch. A failed append has no reply
    /// at once: the disk thread cuts the file first, and its reply is an input of a later batch.
    pub fn stored(&mut self, holder: &mut impl Holder, answers: Vec<ToDatabase>) {
        assert_eq!(self.stage, Stage::Storing, "something is being stored");
        self.tape.answers(&answers);
        // Replies that the database thread handles may cause further requests to the storage.
        self.stage = match self.is_inline || answers.is_empty() {
            true => Stage::Release,
            false => Stage::Jobs,
        };
        for answer in answers {
            self.handle(holder, self.now, answer);
        }
    }

    /// When a batch is due though nothing arrives, monotonic ms; `None`: never.
    #[must_use]
    pub fn deadline_ms(&self, now: Now) -> Option<u64> {
        self.service.next_deadline_ms(now)
    }

    /// Whether a session that is ready has pending updates.
    #[must_use]
    pub fn has_pending_updates(&self) -> bool {
        self.service.has_pending_updates()
    }

    /// Stamps of transactions whose replies have been delivered since the last call, except those without a stamp and those that blocked.
    pub fn answered_stamps(&mut self) -> &mut Vec<u64> {
        &mut self.service.outputs().answered
    }

    /// Checks what the parts of the database rely on of each other, between two batches. Costs in
    /// proportion to all that waits: for simulations.
    ///
    /// # Panics
    /// One does not hold.
    pub fn check(&self) {
        assert_eq!(self.stage, Stage::Idle, "no batch is under way");
        database::check_parts(&self.service);
    }

    /// The counters of the database, with the updates that it has composed.
    #[must_use]
    pub fn counts(&self) -> (&Counters, [u64; 3]) {
        (self.service.counts(), self.service.updates_composed())
    }

    /// The report of the database.
    #[must_use]
    pub fn report(&self) -> Report {
        self.service.report()
    }

    fn read_clock(&self, holder: &mut impl Holder) -> Now {
        let now = holder.now();
        self.tape.now(now);
        now
    }

    fn handle(&mut self, holder: &mut impl Holder, now: Now, input: ToDatabase) {
        holder.begin(&input);
        self.service.handle(now, input);
        holder.executed();
    }

    fn begin_outputs(&mut self, now: Now, is_inline: bool) {
        self.now = now;
        self.is_inline = is_inline;
        self.stage = Stage::Jobs;
    }

    fn collect_jobs(&mut self) {
        let jobs = &mut self.service.outputs().jobs;
        if !jobs.is_empty() {
            self.ready.extend(jobs.drain(..).map(Output::Job));
        }
    }

    /// Collects the outputs that may leave now, in order.
    fn collect_outputs(&mut self) {
        let outputs = self.service.outputs();
        if !outputs.audit.is_empty() {
            let entries = std::mem::take(&mut outputs.audit);
            self.ready.push_back(Output::Audit(entries));
        }
        assert!(self.deliveries.is_empty(), "they have been posted");
        std::mem::swap(&mut self.deliveries, &mut outputs.deliveries);
        if !outputs.source_orders.is_empty() {
            let orders = outputs.source_orders.drain(..);
            let orders =
                orders.map(|(id, connection, order)| Output::SourceOrder(id, connection, order));
            self.last.extend(orders);
        }
        if outputs.events.is_empty() {
            return;
        }
        // The first report of a watched column comes before reports of its changes.
        let early = outputs.events.extract_if(.., |event| {
            matches!(event, Event::ColumnWatched(..) | Event::RemotesChanged(..))
        });
        let mut has_changed = false;
        for event in early {
            has_changed |= matches!(event, Event::RemotesChanged(..));
            self.ready.push_back(Output::Event(event));
        }
        if has_changed {
            self.ready.push_back(Output::AwaitMain);
        }
        let mut is_removed = outputs.events.iter();
        if is_removed.any(|event| matches!(event, Event::Removed(_))) {
            self.last.push_back(Output::CloseFile);
        }
        let events = outputs.events.drain(..);
        self.last.extend(events.map(Output::Event));
    }
}
