//! The pump of one database: which inputs form a batch, who may execute them, and in which order
//! their outputs take effect.
//!
//! The holder of a database calls its pump: the database thread, a shard that executes inline, or
//! the simulator. It executes a batch, then carries out the outputs until there are none:
//!
//! ```text
//! pump.execute_batch(holder, inputs)              or  pump.execute_inline(holder, inputs, budget)
//! while let Some(output) = pump.next_output()
//!     carry the output out; replies to a Store that come at once: pump.stored(holder, replies)
//! pump.has_postponed(), or inputs are left: again   or  pump.end_inline()
//! ```
//!
//! Invariants: a batch ends before the next one begins, so outputs are in the order of batches.
//! Every decision is made here and is pure: the holder supplies the time ([`Holder`]) and carries
//! outputs out. Inputs are executed in order; an input that is not executed is returned together
//! with everything after it.
//!
//! The records of a batch are written together; then replies are released and updates composed
//! once. So a loaded database wakes threads, writes and notifies less often than it commits. No
//! client waits for the long work of others: a batch ends before a long transaction, and replies
//! leave before many updates are composed.

pub(crate) mod head;
mod output;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use corvid_data::uuid::UuidSource;
use corvid_engine::{Database, WorkBudget};

pub use output::Output;

use crate::counters::Counters;
use crate::locks::Locks;
use crate::message::{Control, Deliver, Event, Now, Report, ToDatabase};
use crate::schema_epoch::SchemaEpochs;
use crate::tape::Tape;
use crate::{DatabaseService, Options, database};

/// The holder's part in the execution of inputs.
pub trait Holder {
    /// Reads the clock. Called when a batch begins, when an input may have taken long, and when a
    /// batch of the database thread ends.
    fn now(&mut self) -> Now;

    /// This input is about to be executed. A transaction may be rolled back and returned instead; a
    /// storage reply never is.
    fn begin(&mut self, input: &ToDatabase);

    /// The input has been executed.
    fn executed(&mut self);
}

/// A holder with a stopped clock, which observes nothing.
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
    /// Inputs of one batch, at least 1; keeps clients from waiting for a long queue of other
    /// clients' inputs.
    pub batch_max: usize,
    /// A transaction that takes more steps than this is long: the batch ends before it.
    pub long_steps: u64,
    /// Sessions for which updates are composed inline, at most.
    pub inline_sessions_max: usize,
}

impl Default for Limits {
    /// 256 inputs; about 1 ms; about 50 us, the cost of waking the database thread and being woken
    /// by it.
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
    /// A transaction too long for the last batch; the next batch begins with it.
    postponed: Option<ToDatabase>,
    stage: Stage,
    /// The time at which the current batch was executed.
    now: Now,
    is_inline: bool,
    /// The current batch leaves no work to the database thread.
    is_done: bool,
    /// Outputs in order; the next stage is collected once they are carried out.
    ready: VecDeque<Output>,
    /// Deliveries, carried out after `ready`. Moved as a whole because there may be many.
    deliveries: VecDeque<Deliver>,
    /// Outputs carried out after `deliveries`.
    last: VecDeque<Output>,
    /// The tape of a recording; inactive without one.
    tape: Tape,
}

/// The next part of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// No batch is in progress.
    Idle,
    /// Jobs, first, so that other threads work on them while records are composed and written.
    Jobs,
    /// Records to store.
    Store,
    /// The holder is carrying out an [`Output::Store`].
    Storing,
    /// Replies alone, if composing updates takes long.
    Release,
    /// Updates and replies.
    Compose,
    /// Everything is collected; the recording of the batch is closed next.
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

    /// The pump of a new database, with all its inputs recorded from the start. Later changes of
    /// settings are recorded only if they come as [`crate::message::Control`].
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
        let (tape, uuids) = head::begin(now, &options, &limits, &database, uuids);
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

    /// Takes the frames recorded since the last call, to append to the recording, which begins with
    /// [`MAGIC`](crate::recording::MAGIC). Call between two batches.
    pub fn drain_tape(&mut self) -> Vec<u8> {
        self.tape.take_frames()
    }

    /// Ends the recording. Call between two batches.
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

    /// The database, for setting it up.
    pub fn service_mut(&mut self) -> &mut DatabaseService {
        &mut self.service
    }

    /// Executes a batch of `inputs` as the database thread and starts its outputs. The first input
    /// is executed however long it takes. Inputs may be left: too many for one batch, or after a
    /// long transaction, which the pump keeps ([`Pump::has_postponed`]).
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
        // The first input has no limit: a postponed transaction would otherwise be postponed for
        // ever.
        if let Some(first) = postponed.or_else(|| inputs.next()) {
            // A postponed input is on the tape already, in the batch that postponed it.
            if is_new {
                self.tape.input(&first);
            }
            self.handle(holder, now, first);
            let others = inputs.take(self.limits.batch_max.saturating_sub(1));
            for (number, input) in others.enumerate() {
                self.tape.input(&input);
                // The first input may have been long, so the clock is read again. The others are
                // short: one more reading serves them all.
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
        // After the inputs: a commit of this batch may have completed a blocked transaction whose
        // deadline has passed.
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

    /// Executes `inputs` as a shard: small transactions that fit into `budget` together, and inputs
    /// of negligible cost. The first other input stays in `inputs` together with everything after
    /// it. Starts the batch's outputs; after them, [`Pump::end_inline`] says whether work is left
    /// to the database thread.
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

    /// [`Pump::execute_inline`] for any iterator; returns the first input that is left.
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
            // Any other kind of input may be long, or concerns the file or jobs: the database
            // thread gets it, and everything after it so that the order is kept.
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
        // Inline transactions are short: one reading of the clock serves all.
        self.service.report_slow(now);
        self.is_done = left.is_none() && !self.service.must_tick(now);
        self.begin_outputs(now, true);
        left
    }

    /// Ends an inline batch whose outputs have been carried out. Returns false if the database
    /// thread must be woken: for the inputs that [`Pump::execute_inline`] left, or for work that
    /// takes longer.
    #[must_use]
    pub fn end_inline(&mut self) -> bool {
        assert_eq!(self.stage, Stage::Idle, "every output has been carried out");
        self.is_done
    }

    /// The next output of the current batch; `None` if the batch is over.
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
                    // An output that stayed would leave after outputs of the next batch.
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
                    // `_Server` can read the index before the member and the sessions learn
                    // anything that follows from the entries.
                    if let Some(index) = self.service.take_applied() {
                        self.ready.push_back(Output::Applied(index));
                    }
                    for request in self.service.take_member_requests() {
                        self.ready.push_back(Output::Member(request));
                    }
                    for request in self.service.take_source_requests() {
                        self.ready.push_back(Output::Relay(request));
                    }
                    self.stage = Stage::Release;
                }
                // The storage has nothing to report yet: its replies will be inputs of later
                // batches.
                Stage::Storing => {
                    self.tape.answers(&[]);
                    self.stage = Stage::Release;
                }
                Stage::Release => {
                    // Replies leave before updates are composed where that takes long. A shard does
                    // not compose many updates, and leaves records to the database thread.
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
                    // Composing may have started jobs; they precede the deliveries, as everywhere.
                    self.collect_jobs();
                    self.collect_outputs();
                    self.stage = Stage::End;
                }
            }
        }
    }

    /// Handles the immediate replies to the last [`Output::Store`] as inputs of this batch. A
    /// failed append has no immediate reply: the disk thread truncates the file first, and replies
    /// as an input of a later batch.
    pub fn stored(&mut self, holder: &mut impl Holder, answers: Vec<ToDatabase>) {
        assert_eq!(self.stage, Stage::Storing, "something is being stored");
        self.tape.answers(&answers);
        // On the database thread, the replies may cause further requests to the storage, which are
        // collected from the first stage on. A shard leaves these to the database thread.
        self.stage = match self.is_inline || answers.is_empty() {
            true => Stage::Release,
            false => Stage::Jobs,
        };
        for answer in answers {
            self.handle(holder, self.now, answer);
        }
    }

    /// When a batch is due although nothing arrives, monotonic ms; `None` if never.
    #[must_use]
    pub fn deadline_ms(&self, now: Now) -> Option<u64> {
        self.service.next_deadline_ms(now)
    }

    /// Whether a session that can take updates has pending ones.
    #[must_use]
    pub fn has_pending_updates(&self) -> bool {
        self.service.has_pending_updates()
    }

    /// Stamps of transactions whose replies have been delivered since the last call; without those
    /// that have no stamp or that blocked.
    pub fn answered_stamps(&mut self) -> &mut Vec<u64> {
        &mut self.service.outputs().answered
    }

    /// Checks the invariants that the parts of the database rely on. Call between two batches. The
    /// cost is proportional to everything that waits: for simulations.
    ///
    /// # Panics
    /// An invariant does not hold.
    pub fn check(&self) {
        assert_eq!(self.stage, Stage::Idle, "no batch is under way");
        database::check_parts(&self.service);
    }

    /// The database's counters, and the updates that it has composed by monitor version.
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
        // The audit trail has the entry before any client has the reply that it is about.
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
        // The main thread learns a watched column's remotes first, then their changes. Both precede
        // the deliveries, so that a client with the reply can connect to the remotes.
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
        // The file is closed after the deliveries and before [`Event::Removed`], which allows the
        // main thread to open it again.
        let mut is_removed = outputs.events.iter();
        if is_removed.any(|event| matches!(event, Event::Removed(_))) {
            self.last.push_back(Output::CloseFile);
        }
        // After the deliveries: the main thread may close sessions in reaction, and those still get
        // what precedes.
        let events = outputs.events.drain(..);
        self.last.extend(events.map(Output::Event));
    }
}
