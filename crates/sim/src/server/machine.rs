//! One life of the server: shards, databases, their storage and the main thread, driven as in the
//! `server` crate, except that the order of their steps is drawn. The machine collects messages to
//! clients, which the caller delivers.
//!
//! Invariant: messages between two parts stay in order, and causes precede effects. No other order
//! is kept.

mod clustered;
mod relayed;

use corvid_consensus::MemberRequest;
use corvid_consensus::member::ServerRow;
use corvid_log::storage::{Rewriter, StorageReply, StorageRequest, StoreError};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use corvid_data::HashSeed;
use corvid_data::uuid::UuidSource;
use corvid_engine::{Database, WorkBudget};
use corvid_log::LogWriter;
use corvid_monitor::SessionId;
use corvid_service::applied_index::AppliedIndex;
use corvid_service::frontend::{Close, InboundFrame, session_id, shard_of};
use corvid_service::job::Job;
use corvid_service::job::body_scheduler::BodyScheduler;
use corvid_service::locks::Locks;
use corvid_service::message::{
    Control, ControlAnswer, DatabaseId, Event, Piece, SessionInfo, SourceRequest, ToDatabase,
    ToShard,
};
use corvid_service::once::{RecordedCommits, announce};
use corvid_service::pump::{Holder, Limits, Output};
use corvid_service::replication::{Role, SourceEvent, SourceId, SourceOrder};
use corvid_service::schema_epoch::SchemaEpochs;
use corvid_service::storage::FileState;
use corvid_service::{
    DatabaseService, Frontend, Model, Now, Options, Pump, ServedDatabases, Setting, member_row,
    server_db,
};

use super::opening::Opened;
pub(crate) use super::seeded_uuids::SeededUuids;
use crate::world::dice::Dice;
use crate::world::disk::{Handle, SimDisk};
use crate::world::storage::Storage;

const SHARDS: u16 = 2;

const SERVER: DatabaseId = DatabaseId(0);

/// The database that has a file.
const STORED: DatabaseId = DatabaseId(1);

/// Maximum number of inputs that a database executes in one batch.
const BATCH_MAX: usize = 8;

/// A message or signal to a client.
#[derive(Debug)]
pub(crate) enum ToClient {
    Message(Vec<u8>),
    /// Stop reading from the client (`true`), or continue.
    Pause(bool),
    Closed(Close),
}

/// A step that can be taken next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// A shard reads a message.
    Shard(usize),
    /// A long text has been parsed; its shard handles it.
    LongFrame(usize),
    /// The database thread executes a batch, or a deadline has come.
    Database(DatabaseId),
    /// A shard executes inputs of a database inline.
    Inline(DatabaseId),
    /// The disk thread acts.
    Disk,
    /// The rewrite thread acts.
    Rewrite,
    /// The `jobs` thread executes one job, or the `contents` thread writes a slice of a body.
    Job,
    /// The main thread handles an event.
    Main,
}

struct Shard {
    frontend: Frontend,
    inbox: VecDeque<ToShard>,
    /// Long texts that must be parsed.
    texts: VecDeque<(SessionId, InboundFrame)>,
}

struct Served {
    pump: Pump,
    inbox: VecDeque<ToDatabase>,
    /// A shard has left inputs to the thread; no shard executes inline until it has run.
    is_left: bool,
}

/// Inline execution and its budget in one life of the server.
#[derive(Clone, Copy, Debug)]
struct Execution {
    /// Shards execute inline.
    is_inline: bool,
    /// Work budget of a shard, steps.
    inline_steps: usize,
    limits: Limits,
}

impl Execution {
    /// Draws the settings. In some lives the budgets are the server's. In others they are so small
    /// that transactions are rolled back and left to the thread.
    fn draw(dice: &mut Dice) -> Execution {
        let limits = Limits::default();
        Execution {
            is_inline: dice.chance(75),
            inline_steps: *dice.pick(&[8192, 600, 200]),
            limits: Limits {
                long_steps: *dice.pick(&[limits.long_steps, 200, 100]),
                inline_sessions_max: *dice.pick(&[limits.inline_sessions_max, 1]),
                ..limits
            },
        }
    }
}

/// Counters of the batches in which databases executed their inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Batches {
    /// Inline batches.
    pub(crate) inline: u64,
    /// Transactions that a shard has rolled back and left to the thread.
    pub(crate) rolled_back: u64,
    /// Batches that ended before a long transaction.
    pub(crate) cut: u64,
}

/// The holder of a database: its thread, or a shard. Time stands still while it holds the database.
struct Hand<'m> {
    now: Now,
    /// The storage, if the database has a file.
    storage: Option<&'m mut Storage>,
    store_failures: &'m mut u64,
}

impl Holder for Hand<'_> {
    fn now(&mut self) -> Now {
        self.now
    }

    fn begin(&mut self, input: &ToDatabase) {
        if let (ToDatabase::Storage(reply), Some(storage)) = (input, &mut self.storage) {
            storage.answered(reply);
            *self.store_failures += u64::from(is_failure(input));
        }
    }

    fn executed(&mut self) {}
}

/// The database that a server serves in addition to `_Server`.
struct Content {
    database: Database,
    model: Model,
    file: Option<(Storage, FileState)>,
    history: bool,
    recorded: RecordedCommits,
    /// Its row in `_Server` and the index in the row, if its member decides them.
    row: Option<(ServerRow, AppliedIndex)>,
}

/// A running server.
pub(crate) struct Machine {
    seed: u64,
    disk: SimDisk,
    shards: Vec<Shard>,
    databases: BTreeMap<DatabaseId, Served>,
    /// `None`: the database is clustered, and its member has the file.
    storage: Option<Storage>,
    /// Index of the last applied entry of the clustered database.
    applied: Option<AppliedIndex>,
    locks: Arc<Mutex<Locks>>,
    epochs: SchemaEpochs,
    execution: Execution,
    jobs: VecDeque<(DatabaseId, Job)>,
    /// Bodies that are being written.
    turns: Vec<(DatabaseId, BodyScheduler)>,
    main: VecDeque<Event>,
    sessions: u64,
    /// Messages to clients.
    pub(crate) to_clients: Vec<(SessionId, ToClient)>,
    /// Records that the database has asked to be written, with their positions.
    pub(crate) records: Vec<(u64, Vec<u8>)>,
    /// Compactions that have ended.
    pub(crate) compacted: Vec<(Option<u64>, Result<(), String>)>,
    /// Number of storage replies that made the database undo commits.
    pub(crate) store_failures: u64,
    /// How databases executed their inputs.
    pub(crate) batches: Batches,
    /// Requests to the source that the database replicates.
    pub(crate) to_source: Vec<(SourceId, u64, SourceOrder)>,
    /// Requests to the member of the clustered database.
    pub(crate) to_member: Vec<MemberRequest>,
    /// Requests to the source of the relay.
    pub(crate) to_relay: Vec<SourceRequest>,
    /// Roles that the database has assumed, by their tokens.
    pub(crate) roles_taken: Vec<u64>,
    /// The database has reported that it is removed.
    pub(crate) is_removed: bool,
    /// The reason why the clustered database cannot apply a committed entry.
    pub(crate) refused_entry: Option<String>,
}

impl Machine {
    /// Starts a server on the opened file. `history`: reconnecting clients get only missed changes.
    pub(crate) fn start(
        now: Now,
        seed: u64,
        disk: &SimDisk,
        file: Handle,
        opened: Opened,
        history: bool,
    ) -> Machine {
        let mut writer = LogWriter::new(disk.clone(), file);
        writer.set_end(opened.state.size.end);
        let storage = Storage::new(writer, seed.is_multiple_of(2));
        let served = Content {
            database: opened.database,
            model: Model::standalone(),
            file: Some((storage, opened.state)),
            history,
            recorded: opened.recorded,
            row: None,
        };
        Machine::assemble(now, seed, disk, served)
    }

    fn assemble(now: Now, seed: u64, disk: &SimDisk, content: Content) -> Machine {
        let mut directory = ServedDatabases::default();
        let schema = content.database.schema().clone();
        match &content.row {
            Some((_, applied)) => {
                directory.insert_clustered(&schema.name, STORED, Some(applied.clone()));
            }
            None => directory.insert(&schema.name, STORED),
        }
        let hash_seed = content.database.hash_seed();
        let mut machine = Machine::bare(now, seed, disk, hash_seed, directory);
        let insertion = match &content.row {
            Some((row, _)) => member_row::insert(&schema.name, Some(&schema), row),
            None => server_db::insert(&schema, content.model.server_row()),
        };
        machine.applied = content.row.as_ref().map(|(_, applied)| applied.clone());
        machine.serve(now, content);
        machine.update_server_db(insertion);
        if let Some(applied) = machine.applied.clone() {
            machine.post(SERVER, ToDatabase::Control(Control::ShowIndex(applied)));
        }
        machine
    }

    /// Returns a server of `_Server` only. `directory` has the other databases that shards know.
    fn bare(
        now: Now,
        seed: u64,
        disk: &SimDisk,
        hash_seed: HashSeed,
        mut directory: ServedDatabases,
    ) -> Machine {
        let (locks, epochs) = (Arc::new(Mutex::new(Locks::new())), SchemaEpochs::default());
        directory.insert(server_db::NAME, SERVER);
        let directory = Arc::new(directory);
        let server_id = announce(SeededUuids(Dice::new(seed.rotate_left(16))).fresh());
        let shard = |number| Shard {
            frontend: Frontend::new(
                number,
                directory.clone(),
                locks.clone(),
                epochs.clone(),
                server_id,
            ),
            inbox: VecDeque::new(),
            texts: VecDeque::new(),
        };
        let server_schema = server_db::schema().unwrap_or_else(|error| panic!("{error}"));
        let server = Database::new(corvid_data::Arc::new(server_schema), hash_seed);
        let mut machine = Machine {
            seed,
            disk: disk.clone(),
            shards: (0..SHARDS).map(shard).collect(),
            databases: BTreeMap::new(),
            storage: None,
            applied: None,
            locks: locks.clone(),
            epochs,
            execution: Execution::draw(&mut Dice::new(seed.rotate_left(32))),
            jobs: VecDeque::new(),
            turns: [SERVER, STORED]
                .map(|id| (id, BodyScheduler::new([8, 64, 4096][seed as usize % 3])))
                .into(),
            main: VecDeque::new(),
            sessions: 0,
            to_clients: Vec::new(),
            records: Vec::new(),
            compacted: Vec::new(),
            store_failures: 0,
            batches: Batches::default(),
            to_source: Vec::new(),
            to_member: Vec::new(),
            to_relay: Vec::new(),
            roles_taken: Vec::new(),
            is_removed: false,
            refused_entry: None,
        };
        let options = Options {
            id: SERVER,
            model: Model::server_db(),
            file: None,
            column_diff: true,
            history: false,
            recorded: RecordedCommits::default(),
        };
        machine.begin_database(now, options, server);
        machine
    }

    /// Serves a database in addition to `_Server`.
    fn serve(&mut self, now: Now, content: Content) {
        let (storage, file) = content.file.unzip();
        self.storage = storage;
        let options = Options {
            id: STORED,
            model: content.model,
            file,
            column_diff: true,
            history: content.history,
            recorded: content.recorded,
        };
        self.begin_database(now, options, content.database);
    }

    fn begin_database(&mut self, now: Now, options: Options, database: Database) {
        let (id, seed) = (options.id, self.seed);
        let uuids = Box::new(SeededUuids(Dice::new(seed ^ u64::from(id.0) << 32)));
        let (locks, epochs) = (self.locks.clone(), self.epochs.clone());
        let mut service = DatabaseService::new(now, options, database, locks, epochs, uuids);
        // Jobs write all initial contents in half of the runs, and all updates in a third.
        let rows_max = |every| if seed.is_multiple_of(every) { 0 } else { 1000 };
        service.set(Setting::InitialRowsMax, rows_max(2));
        service.set(Setting::UpdateRowsMax, rows_max(3));
        // In half of the runs, every commit counts as long.
        service.set(Setting::LongAtoms, if seed % 4 < 2 { 0 } else { 8192 });
        // In a third, records name clients.
        service.set(Setting::RecordClients, u64::from(seed % 3 == 1));
        let mut pump = Pump::new(service);
        pump.set_limits(self.execution.limits);
        let served = Served {
            pump,
            inbox: VecDeque::new(),
            is_left: false,
        };
        self.databases.insert(id, served);
    }

    /// Returns the database that has a file.
    pub(crate) fn service(&self) -> &DatabaseService {
        self.databases[&STORED].pump.service()
    }

    /// Whether the lock table says that a session owns a lock.
    pub(crate) fn owns(&self, session: SessionId, lock: &str) -> bool {
        let locks = self.locks.lock();
        locks.is_ok_and(|locks| locks.owns(session, lock))
    }

    /// A client connects.
    pub(crate) fn connect(&mut self) -> SessionId {
        self.sessions += 1;
        let shard = (self.sessions % u64::from(SHARDS)) as u16;
        let session = session_id(shard, self.sessions);
        let info = SessionInfo::new(false, String::new(), None);
        self.shards[usize::from(shard)]
            .frontend
            .opened(session, info);
        session
    }

    /// A client has disconnected.
    pub(crate) fn disconnect(&mut self, session: SessionId) {
        let shard = usize::from(shard_of(session));
        self.shards[shard].frontend.closed(session);
        self.collect(shard);
    }

    /// A shard reads a client's message.
    pub(crate) fn text(&mut self, now: Now, session: SessionId, text: Vec<u8>) {
        let shard = usize::from(shard_of(session));
        let frontend = &mut self.shards[shard].frontend;
        frontend.frame(now.mono_ms, session, text);
        self.collect(shard);
    }

    /// Output that was queued for a client has been written.
    pub(crate) fn drained(&mut self, session: SessionId) {
        let shard = usize::from(shard_of(session));
        self.shards[shard].frontend.drained(session);
        self.collect(shard);
    }

    /// The operator requests a compaction.
    pub(crate) fn compact(&mut self, token: u64) {
        self.post(STORED, ToDatabase::Control(Control::Compact(Some(token))));
    }

    /// The operator removes the database.
    pub(crate) fn remove(&mut self) {
        let mut directory = ServedDatabases::default();
        directory.insert(server_db::NAME, SERVER);
        let directory = Arc::new(directory);
        self.post_to_shards(|| ToShard::ServedDatabases(directory.clone()));
        self.post(STORED, ToDatabase::Control(Control::Remove));
    }

    /// Whether no new file is being written or requested.
    pub(crate) fn has_no_rewrite(&self) -> bool {
        self.storage.as_ref().is_none_or(Storage::has_no_rewrite)
    }

    /// Tells the database to accept writes, or to replicate another server. `token` is in
    /// `roles_taken` once the database has done so.
    pub(crate) fn set_role(&mut self, role: Role, token: u64) {
        self.post(STORED, ToDatabase::Control(Control::SetRole(role, token)));
    }

    /// Passes an event of the connection to the source.
    pub(crate) fn source(&mut self, id: SourceId, event: SourceEvent) {
        self.post(STORED, ToDatabase::Source(id, event));
    }

    /// Returns the next time at which something happens without input, ms.
    pub(crate) fn next_deadline_ms(&self, now: Now) -> Option<u64> {
        let served = self.databases.values();
        let deadlines = served.filter_map(|served| served.pump.deadline_ms(now));
        deadlines.min()
    }

    /// Returns all steps that can be taken now.
    pub(crate) fn choices(&self, now: Now) -> Vec<Choice> {
        let mut choices = Vec::new();
        for (number, shard) in self.shards.iter().enumerate() {
            if !shard.inbox.is_empty() {
                choices.push(Choice::Shard(number));
            }
            if !shard.texts.is_empty() {
                choices.push(Choice::LongFrame(number));
            }
        }
        for (id, served) in &self.databases {
            let deadline = served.pump.deadline_ms(now);
            let is_due = served.is_left || deadline.is_some_and(|at| at <= now.mono_ms);
            if !served.inbox.is_empty() || is_due {
                choices.push(Choice::Database(*id));
            }
            if self.execution.is_inline && !served.inbox.is_empty() && !served.is_left {
                choices.push(Choice::Inline(*id));
            }
        }
        if self.storage.as_ref().is_some_and(Storage::disk_has_work) {
            choices.push(Choice::Disk);
        }
        if self.storage.as_ref().is_some_and(Storage::rewrite_has_work) {
            choices.push(Choice::Rewrite);
        }
        if !self.jobs.is_empty() || self.turns.iter().any(|(_, turns)| !turns.is_empty()) {
            choices.push(Choice::Job);
        }
        if !self.main.is_empty() {
            choices.push(Choice::Main);
        }
        choices
    }

    /// Takes a step. [Run](Rewriter::run) a returned value, then pass it to [`Machine::written`].
    pub(crate) fn act(
        &mut self,
        now: Now,
        choice: Choice,
        dice: &mut Dice,
    ) -> Option<Rewriter<SimDisk>> {
        match choice {
            Choice::Shard(number) => {
                let shard = &mut self.shards[number];
                if let Some(message) = shard.inbox.pop_front() {
                    shard.frontend.message(now.mono_ms, message);
                }
                self.collect(number);
            }
            Choice::LongFrame(number) => {
                let shard = &mut self.shards[number];
                if let Some((session, mut text)) = shard.texts.pop_front() {
                    text.parse();
                    shard.frontend.frame_parsed(now.mono_ms, session, text);
                }
                self.collect(number);
            }
            Choice::Database(id) => self.execute_batch(now, id, dice),
            Choice::Inline(id) => self.execute_inline(now, id, dice),
            Choice::Disk => {
                if let Some(storage) = &mut self.storage {
                    let answers = storage.work_on_disk(dice);
                    self.answer(answers);
                }
            }
            Choice::Rewrite => {
                if let Some(storage) = &mut self.storage {
                    let (rewriter, answer) = storage.work_on_rewrite();
                    self.answer(answer);
                    return rewriter;
                }
            }
            Choice::Job => {
                if self.jobs.is_empty() || dice.below(2) == 0 {
                    self.write_bodies();
                } else if let Some((id, job)) = self.jobs.pop_front() {
                    self.begin(id, job);
                }
            }
            Choice::Main => {
                if let Some(event) = self.main.pop_front() {
                    self.take_event(event);
                }
            }
        }
        None
    }

    /// Gives a job to a thread: the thread for bodies begins it, any other thread executes it.
    fn begin(&mut self, id: DatabaseId, job: Job) {
        if let (Job::ReadPast(number, order), STORED, Some(storage)) = (&job, id, &self.storage) {
            return self.post(id, storage.read_past(*number, order).into());
        }
        let found = self.turns.iter_mut().find(|(of, _)| *of == id);
        let other = match found {
            Some((_, turns)) => turns.push(job),
            None => Some(job),
        };
        if let Some(answer) = other.and_then(Job::carry_out) {
            self.post(id, answer.into());
        }
    }

    /// Each `contents` thread writes a slice of a body.
    fn write_bodies(&mut self) {
        let mut answers = Vec::new();
        for (id, turns) in &mut self.turns {
            let mut done = Vec::new();
            turns.run_slice(&mut done);
            answers.extend(done.into_iter().map(|answer| (*id, answer.into())));
        }
        for (id, answer) in answers {
            self.post(id, answer);
        }
    }

    /// Returns the end of the file for the thread that copies it, in bytes.
    pub(crate) fn end(&self) -> u64 {
        self.storage.as_ref().map_or(0, Storage::end)
    }

    /// Whether the file that is being written is still wanted.
    pub(crate) fn is_rewrite_wanted(&self) -> bool {
        self.storage.as_ref().is_some_and(Storage::is_wanted)
    }

    /// Takes a new file that has been written, or whose write has failed.
    pub(crate) fn written(&mut self, rewriter: Rewriter<SimDisk>, outcome: Result<(), StoreError>) {
        if let Some(storage) = &mut self.storage {
            let answer = storage.written(rewriter, outcome);
            self.answer(answer);
        }
    }

    fn answer(&mut self, answers: impl IntoIterator<Item = StorageReply>) {
        for answer in answers {
            self.post(STORED, ToDatabase::Storage(answer));
        }
    }

    fn post(&mut self, id: DatabaseId, message: ToDatabase) {
        if let Some(served) = self.databases.get_mut(&id) {
            served.inbox.push_back(message);
        }
    }

    fn post_to_shards(&mut self, message: impl Fn() -> ToShard) {
        for shard in &mut self.shards {
            shard.inbox.push_back(message());
        }
    }

    fn update_server_db(&mut self, params: Vec<u8>) {
        self.post(SERVER, ToDatabase::Control(Control::Transact(params)));
    }

    /// The database thread executes one batch.
    fn execute_batch(&mut self, now: Now, id: DatabaseId, dice: &mut Dice) {
        let Some(served) = self.databases.get_mut(&id) else {
            return;
        };
        let mut hand = Hand {
            now,
            storage: self.storage.as_mut().filter(|_| id == STORED),
            store_failures: &mut self.store_failures,
        };
        served.is_left = false;
        served.pump.set_limits(Limits {
            batch_max: 1 + dice.below(BATCH_MAX),
            ..self.execution.limits
        });
        let mut inputs = std::iter::from_fn(|| served.inbox.pop_front());
        served.pump.execute_batch(&mut hand, &mut inputs);
        // The thread continues at once, before a shard can execute inline.
        served.is_left = served.pump.has_postponed();
        self.batches.cut += u64::from(served.is_left);
        self.walk(now, id, dice);
    }

    /// A shard executes one batch, and leaves the rest to the database thread.
    fn execute_inline(&mut self, now: Now, id: DatabaseId, dice: &mut Dice) {
        let Some(served) = self.databases.get_mut(&id) else {
            return;
        };
        let mut hand = Hand {
            now,
            storage: self.storage.as_mut().filter(|_| id == STORED),
            store_failures: &mut self.store_failures,
        };
        // Inputs that arrive during the batch are in the next batch.
        let taken = 1 + dice.below(served.inbox.len());
        let mut inputs: Vec<ToDatabase> = served.inbox.drain(..taken).collect();
        let mut budget = WorkBudget::new(self.execution.inline_steps as u64);
        let pump = &mut served.pump;
        pump.execute_inline(&mut hand, &mut inputs, &mut budget);
        self.batches.inline += 1;
        self.batches.rolled_back += u64::from(matches!(
            inputs.first(),
            Some(ToDatabase::Request(request)) if request.seqno.is_some()
        ));
        self.walk(now, id, dice);
        let Some(served) = self.databases.get_mut(&id) else {
            return;
        };
        served.is_left = !served.pump.end_inline();
        for input in inputs.into_iter().rev() {
            served.inbox.push_front(input);
        }
    }

    /// Executes the outputs of a batch.
    fn walk(&mut self, now: Now, id: DatabaseId, dice: &mut Dice) {
        let Some(served) = self.databases.get_mut(&id) else {
            return;
        };
        let mut shown = None;
        while let Some(output) = served.pump.next_output() {
            match output {
                // Some updates are precomputed before the record is written.
                Output::Job(job @ Job::PrecomputedUpdate(_)) if dice.below(2) == 0 => {
                    job.carry_out();
                }
                Output::Job(job) => self.jobs.push_back((id, job)),
                Output::Store(stores) => {
                    for store in &stores {
                        if let StorageRequest::Append {
                            position, record, ..
                        } = store
                        {
                            self.records
                                .push((position.0, record.to_slice().into_owned()));
                        }
                    }
                    let Some(storage) = &mut self.storage else {
                        continue;
                    };
                    let answers = storage.store(stores);
                    let mut hand = Hand {
                        now,
                        storage: Some(storage),
                        store_failures: &mut self.store_failures,
                    };
                    served.pump.stored(
                        &mut hand,
                        answers.into_iter().map(ToDatabase::Storage).collect(),
                    );
                }
                Output::SourceOrder(source, connection, order) => {
                    self.to_source.push((source, connection, order));
                }
                // The thread died before it could report this output.
                Output::Deliver(_) | Output::Event(_) if self.disk.is_down() => {}
                Output::Deliver(deliver) => {
                    let shard = usize::from(shard_of(deliver.session));
                    let inbox = &mut self.shards[shard].inbox;
                    inbox.push_back(ToShard::Deliver(deliver));
                }
                Output::Event(event) => self.main.push_back(event),
                Output::Applied(index) => {
                    if let Some(applied) = self.applied.clone()
                        && applied.set(index)
                    {
                        shown = Some(applied);
                    }
                }
                // In the simulation no client connects to configured remotes, every delivery is
                // posted at once, and the file stays with the machine.
                Output::Member(request) => self.to_member.push(request),
                Output::Relay(request) => self.to_relay.push(request),
                Output::Audit(_)
                | Output::AwaitMain
                | Output::PostDeliveries
                | Output::CloseFile => {}
            }
        }
        served.pump.check();
        self.locks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .check();
        // No other part has acted since the output.
        if let Some(applied) = shown {
            self.post(SERVER, ToDatabase::Control(Control::ShowIndex(applied)));
        }
    }

    /// The main thread handles an event.
    fn take_event(&mut self, event: Event) {
        match event {
            Event::Converted(_, schema, epoch) => {
                self.post_to_shards(|| ToShard::DisconnectUnaware(Arc::from("converted"), epoch));
                self.update_server_db(server_db::update_schema(&schema));
            }
            Event::Compacted(result) => {
                let result = result.map_err(|error| error.details);
                self.compacted.push((None, result));
            }
            Event::Answered(token, ControlAnswer::Compacted(result)) => {
                let result = result.map_err(|error| error.details);
                self.compacted.push((Some(token), result));
            }
            Event::Answered(token, ControlAnswer::RoleSet) => self.roles_taken.push(token),
            Event::Removed(_) => self.is_removed = true,
            Event::OutcomeUnknown(session, reason) => {
                let shard = usize::from(shard_of(session));
                let message = ToShard::CloseSession(session, reason);
                self.shards[shard].inbox.push_back(message);
            }
            Event::EntryRefused(line) => self.refused_entry = Some(line),
            _ => {}
        }
    }

    /// Executes the outputs of a shard.
    fn collect(&mut self, number: usize) {
        let shard = &mut self.shards[number];
        let outputs = shard.frontend.outputs();
        for (session, piece) in outputs.send.drain(..) {
            let bytes = match piece {
                Piece::Message(bytes) => bytes,
                Piece::Long(frame) | Piece::Update(frame) => frame.to_bytes(),
            };
            self.to_clients.push((session, ToClient::Message(bytes)));
        }
        for (session, is_paused) in outputs.pause.drain(..) {
            self.to_clients.push((session, ToClient::Pause(is_paused)));
        }
        for (session, why) in outputs.close.drain(..) {
            self.to_clients.push((session, ToClient::Closed(why)));
        }
        shard.texts.extend(outputs.to_parse.drain(..));
        let to_shards: Vec<_> = outputs.to_shards.drain(..).collect();
        for (id, message) in outputs.to_databases.drain(..) {
            if let Some(served) = self.databases.get_mut(&id) {
                served.inbox.push_back(message);
            }
        }
        for (to, message) in to_shards {
            self.shards[usize::from(to)].inbox.push_back(message);
        }
    }
}

/// Whether the input makes the database undo commits whose records could not be stored.
fn is_failure(input: &ToDatabase) -> bool {
    matches!(
        input,
        ToDatabase::Storage(StorageReply::Appended(_, Err(_)))
    )
}
