//! Carries messages between the state machines, in an order that a seed decides.
//!
//! Every machine has one inbox, like the threads of the server; the machine that acts next is
//! drawn. So messages between two machines stay in order and causes precede effects; nothing else
//! about the order is guaranteed. Also drawn: how many inputs a database executes at once, and
//! whether its thread or a shard executes them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

use corvid_consensus::member::Absence;
use corvid_data::{HashSeed, Schema, Uuid};
use corvid_engine::Database;
use corvid_json::Value;
use corvid_json::splitmix::SplitMix64;
use corvid_monitor::SessionId;
use corvid_service::audit::Entry;
use corvid_service::frontend::{InboundFrame, session_id, shard_of};
use corvid_service::job::Job;
use corvid_service::job::body_scheduler::BodyScheduler;
use corvid_service::locks::Locks;
use corvid_service::message::{
    Control, DatabaseId, Event, Piece, SessionInfo, SourceRequest, ToDatabase, ToShard,
};
use corvid_service::pump::Limits;
use corvid_service::recording::MAGIC;
use corvid_service::replication::{SourceId, SourceOrder};
use corvid_service::schema_epoch::SchemaEpochs;
use corvid_service::{
    DatabaseService, Frontend, Model, Now, Options, Pump, ServedDatabases, Setting, server_db,
};

use crate::batches;
use crate::client::{Client, shorten};
use crate::counter::Counter;
use crate::databases::{contents, insert, schema};
use crate::disk::Disk;

const SHARDS: u16 = 2;

/// The database that is served first.
const SERVER: DatabaseId = DatabaseId(0);

/// Runs a play under many orders of events; the result must always be the same.
pub(crate) fn play(act: impl Fn(&mut World) -> String) -> String {
    let mut told: Option<String> = None;
    for seed in 0..SEEDS {
        let mut world = World::new(seed);
        let text = act(&mut world);
        match &told {
            None => told = Some(text),
            Some(told) => assert_eq!(*told, text, "under seed {seed}"),
        }
        world.check_idle();
    }
    told.unwrap_or_default()
}

/// Orders of events per play.
const SEEDS: u64 = 40;

/// A small generator: the order of events must depend only on the seed.
#[derive(Debug)]
pub(crate) struct Dice(SplitMix64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(SplitMix64::new(seed))
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.0.draw() % bound as u64).expect("below usize")
    }
}

pub(crate) struct Shard {
    pub(crate) frontend: Frontend,
    pub(crate) inbox: VecDeque<ToShard>,
    /// Long frames waiting to be parsed.
    texts: VecDeque<(SessionId, InboundFrame)>,
    /// Databases whose mailboxes the shard has acquired.
    databases: BTreeSet<DatabaseId>,
}

pub(crate) struct Served {
    pub(crate) pump: Pump,
    pub(crate) disk: Option<Disk>,
    pub(crate) inbox: VecDeque<ToDatabase>,
    /// A shard has left inputs to the database thread.
    pub(crate) is_left: bool,
    /// Shards may execute inline. They write every selection that fits into their budget at once.
    pub(crate) may_inline: bool,
    /// The recording; empty if nothing is recorded.
    pub(crate) recording: Vec<u8>,
    /// Entries of the audit trail.
    pub(crate) audit: Vec<Entry>,
    /// Orders to the connection to a backup's source.
    pub(crate) source_orders: Vec<(SourceId, u64, SourceOrder)>,
    /// Requests of a relay for its source.
    pub(crate) relay_requests: VecDeque<SourceRequest>,
    pub(crate) jobs: VecDeque<Job>,
    /// Bodies that are being written.
    turns: BodyScheduler,
    /// Jobs are not executed until this is cleared.
    pub(crate) is_worker_held: bool,
    /// Number of jobs started.
    jobs_done: usize,
}

/// Events that can happen next.
#[derive(Clone, Copy, Debug)]
enum Choice {
    /// A shard handles a client's frame.
    Frame(SessionId),
    /// A client's output is written.
    Drained(SessionId),
    /// A shard handles a message.
    Shard(usize),
    /// A long frame has been parsed, and its shard handles it.
    LongFrame(usize),
    /// A database thread executes inputs.
    Database(DatabaseId),
    /// A shard executes inputs of a database inline.
    Inline(DatabaseId),
    /// A disk executes a request.
    Disk(DatabaseId),
    /// A worker executes or starts a job, or writes a slice of a body.
    Worker(DatabaseId),
    /// The main thread handles an event.
    Main,
}

impl Served {
    fn schema(&self) -> &corvid_data::Arc<Schema> {
        self.pump.service().database().schema()
    }
}

pub(crate) struct World {
    pub(crate) now_ms: u64,
    pub(crate) dice: Dice,
    pub(crate) clients: BTreeMap<SessionId, Client>,
    pub(crate) locks: Arc<Mutex<Locks>>,
    /// Events that the main thread ignores.
    pub(crate) events: Vec<Event>,
    names: BTreeMap<String, DatabaseId>,
    pub(crate) databases: BTreeMap<DatabaseId, Served>,
    pub(crate) shards: Vec<Shard>,
    texts: BTreeMap<SessionId, VecDeque<Vec<u8>>>,
    pub(crate) main: VecDeque<Event>,
    pub(crate) epochs: SchemaEpochs,
    /// Steps that a database may spend on selections.
    select_steps_max: u64,
    /// Updates with up to this many changed rows are written by the database itself.
    update_rows_max: usize,
    long_atoms: u64,
    /// A transaction of more steps is long and ends its batch.
    long_steps: u64,
    /// Steps that a shard may execute inline; `None`: shards leave everything to threads.
    pub(crate) inline_steps: Option<u64>,
    /// All inputs of databases are recorded, and replayed once nothing is left to do.
    is_recorded: bool,
    /// Updates are precomputed at once; otherwise those jobs are dropped.
    pub(crate) precomputes_updates: bool,
    /// Steps of a slice of a body.
    slice_steps: u64,
    /// Long frames are not parsed until this is cleared.
    pub(crate) is_reading_held: bool,
    /// The main thread handles no events until this is cleared.
    pub(crate) is_main_held: bool,
    /// Databases that have reported their removal.
    pub(crate) removed: BTreeSet<DatabaseId>,
    is_exiting: bool,
    sessions: u64,
    /// `--max-message-size`
    pub(crate) text_bytes_max: usize,
    /// Relays' databases that have no contents yet.
    pub(crate) listed: BTreeSet<String>,
    /// Added to the numbers that replace UUIDs: worlds that exchange rows must not share them.
    pub(crate) uuid_base: u64,
}

impl World {
    /// `_Server`, `A` and `B`, without clients.
    pub(crate) fn new(seed: u64) -> World {
        World::with_id(seed, Uuid::ZERO)
    }

    /// Like [`World::new`], with this server id.
    pub(crate) fn with_id(seed: u64, server_id: Uuid) -> World {
        let mut world = World::bare(seed, server_id);
        world.serve(schema("A"));
        world.serve(schema("B"));
        world.run();
        world
    }

    /// Only `_Server`.
    pub(crate) fn bare(seed: u64, server_id: Uuid) -> World {
        let (locks, epochs) = (Arc::new(Mutex::new(Locks::new())), SchemaEpochs::default());
        let shard = |number| Shard {
            frontend: Frontend::new(
                number,
                Arc::new(ServedDatabases::default()),
                locks.clone(),
                epochs.clone(),
                server_id,
            ),
            inbox: VecDeque::new(),
            texts: VecDeque::new(),
            databases: BTreeSet::new(),
        };
        let mut world = World {
            now_ms: 1000,
            dice: Dice::new(seed),
            clients: BTreeMap::new(),
            locks: locks.clone(),
            events: Vec::new(),
            names: BTreeMap::new(),
            databases: BTreeMap::new(),
            shards: (0..SHARDS).map(shard).collect(),
            texts: BTreeMap::new(),
            main: VecDeque::new(),
            epochs: epochs.clone(),
            // With every other seed, jobs write the results of selections.
            select_steps_max: if seed.is_multiple_of(2) { 1000 } else { 0 },
            // With every third seed, they also write updates.
            update_rows_max: if seed % 3 == 1 { 0 } else { 1000 },
            // In half of the runs every commit is long; in half of those its update is precomputed.
            long_atoms: if seed % 4 < 2 { 1000 } else { 0 },
            precomputes_updates: seed % 4 == 2,
            // In some runs transactions are too long for the first attempt.
            long_steps: if seed % 5 == 4 { 100 } else { 50_000 },
            is_recorded: (seed / 3).is_multiple_of(2),
            inline_steps: [None, Some(8192), Some(150)][seed as usize / 2 % 3],
            slice_steps: 1 + seed % 40,
            is_reading_held: false,
            is_main_held: false,
            removed: BTreeSet::new(),
            is_exiting: false,
            sessions: 0,
            text_bytes_max: usize::MAX,
            listed: BTreeSet::new(),
            uuid_base: 0,
        };
        world.serve(server_db::schema().expect("a constant"));
        world
    }

    /// Adds a database while there is no session that this would close.
    pub(crate) fn serve(&mut self, schema: Schema) -> DatabaseId {
        let schema = corvid_data::Arc::new(schema);
        let id = self.open(&schema);
        self.tell_server_db(server_db::insert(&schema, Model::standalone().server_row()));
        id
    }

    fn open(&mut self, schema: &corvid_data::Arc<Schema>) -> DatabaseId {
        let model = match schema.name.as_str() {
            server_db::NAME => Model::server_db(),
            _ => Model::standalone(),
        };
        self.serve_as(model, Database::new(schema.clone(), HashSeed::FIXED))
    }

    pub(crate) fn serve_as(&mut self, model: Model, database: Database) -> DatabaseId {
        let id = DatabaseId(u32::try_from(self.databases.len()).expect("few"));
        let schema = database.schema().clone();
        let is_server_db = schema.name.as_str() == server_db::NAME;
        let has_disk = !is_server_db && !model.is_relay();
        let disk = has_disk.then(|| Disk::new(&schema));
        let is_recorded = self.is_recorded && model.can_be_recorded();
        let options = Options {
            id,
            model,
            file: disk.as_ref().map(Disk::state),
            column_diff: true,
            history: !is_server_db,
            recorded: Default::default(),
        };
        let uuids = Box::new(Counter(self.uuid_base + u64::from(id.0) * 1_000_000));
        let (locks, epochs) = (self.locks.clone(), self.epochs.clone());
        let limits = Limits {
            long_steps: self.long_steps,
            ..Limits::default()
        };
        let now = self.now();
        let mut pump = if is_recorded {
            Pump::with_tape(now, options, limits, database, locks, epochs, uuids)
        } else {
            let service = DatabaseService::new(now, options, database, locks, epochs, uuids);
            let mut pump = Pump::new(service);
            pump.set_limits(limits);
            pump
        };
        let service = pump.service_mut();
        service.set(Setting::SelectStepsMax, self.select_steps_max);
        service.set(Setting::UpdateRowsMax, self.update_rows_max as u64);
        service.set(Setting::LongAtoms, self.long_atoms);
        let served = Served {
            pump,
            disk,
            inbox: VecDeque::new(),
            is_left: false,
            may_inline: self.inline_steps.is_some(),
            recording: MAGIC.to_vec(),
            audit: Vec::new(),
            source_orders: Vec::new(),
            relay_requests: VecDeque::new(),
            jobs: VecDeque::new(),
            turns: BodyScheduler::new(self.slice_steps),
            is_worker_held: false,
            jobs_done: 0,
        };
        self.databases.insert(id, served);
        self.names.insert(schema.name.to_string(), id);
        self.publish();
        id
    }

    /// Removes a database, as the main thread does.
    pub(crate) fn remove(&mut self, name: &str) {
        let id = self.names.remove(name).expect("served");
        self.publish();
        self.post(id, ToDatabase::Control(Control::Remove));
    }

    /// Adds a database while clients are connected, as the main thread does.
    pub(crate) fn add(&mut self, schema: Schema) {
        let id = self.open(&corvid_data::Arc::new(schema));
        let epoch = self.epochs.advance();
        self.tell_shards(|| ToShard::DisconnectUnaware(Arc::from("added"), epoch));
        let schema = self.databases[&id].schema().clone();
        self.tell_server_db(server_db::insert(&schema, Model::standalone().server_row()));
    }

    /// The server exits: every database is removed, `_Server` last.
    pub(crate) fn exit(&mut self) {
        self.is_exiting = true;
        let names = std::mem::take(&mut self.names);
        self.publish();
        for id in names.into_values().filter(|id| *id != SERVER) {
            self.post(id, ToDatabase::Control(Control::Remove));
        }
    }

    pub(crate) fn publish(&mut self) {
        let mut served = ServedDatabases::default();
        for (name, id) in &self.names {
            match self.databases[id].pump.service().model().is_relay() {
                true => served.insert_clustered(name, *id, None),
                false => served.insert(name, *id),
            }
        }
        for name in &self.listed {
            served.insert_absent(name, Absence::Joining);
        }
        let served = Arc::new(served);
        for shard in &mut self.shards {
            shard
                .inbox
                .push_back(ToShard::ServedDatabases(served.clone()));
        }
    }

    pub(crate) fn tell_server_db(&mut self, params: Vec<u8>) {
        self.post(SERVER, ToDatabase::Control(Control::Transact(params)));
    }

    /// Sends an input to a database.
    pub(crate) fn post(&mut self, id: DatabaseId, message: ToDatabase) {
        if let Some(served) = self.databases.get_mut(&id) {
            served.inbox.push_back(message);
        }
    }

    /// Number of jobs that a database's worker has executed.
    pub(crate) fn jobs_done(&self, name: &str) -> usize {
        self.databases[&self.id(name)].jobs_done
    }

    /// Number of inputs queued for a database.
    pub(crate) fn inbox_len(&self, name: &str) -> usize {
        self.databases[&self.id(name)].inbox.len()
    }

    /// The number of a served database.
    pub(crate) fn id(&self, name: &str) -> DatabaseId {
        self.names[name]
    }

    pub(crate) fn service(&mut self, name: &str) -> &mut DatabaseService {
        let id = self.id(name);
        self.databases
            .get_mut(&id)
            .expect("served")
            .pump
            .service_mut()
    }

    pub(crate) fn served(&mut self, name: &str) -> &mut Served {
        let id = self.id(name);
        self.databases.get_mut(&id).expect("served")
    }

    pub(crate) fn disk(&mut self, name: &str) -> &mut Disk {
        let id = self.id(name);
        let served = self.databases.get_mut(&id).expect("served");
        served.disk.as_mut().expect("has a file")
    }

    /// Connects a client, alternating between the shards.
    pub(crate) fn connect(&mut self) -> SessionId {
        self.connect_as(SessionInfo::new(false, String::new(), None))
    }

    pub(crate) fn connect_as(&mut self, info: SessionInfo) -> SessionId {
        self.sessions += 1;
        let shard = u16::try_from(self.sessions % u64::from(SHARDS)).expect("small");
        let session = session_id(shard, self.sessions);
        self.shards[usize::from(shard)]
            .frontend
            .opened(session, info);
        self.clients.insert(session, Client::default());
        self.texts.insert(session, VecDeque::new());
        session
    }

    /// Connects a change-aware client.
    pub(crate) fn connect_aware(&mut self) -> SessionId {
        let session = self.connect();
        self.ask(session, r#""aware""#, "set_db_change_aware", "[true]");
        self.run();
        self.take(session);
        session
    }

    /// A client sends a frame.
    pub(crate) fn send(&mut self, session: SessionId, text: &str) {
        let texts = self.texts.get_mut(&session).expect("connected");
        texts.push_back(text.as_bytes().to_vec());
    }

    /// A client sends a request.
    pub(crate) fn ask(&mut self, session: SessionId, id: &str, method: &str, params: &str) {
        let text = format!(r#"{{"id":{id},"method":"{method}","params":{params}}}"#);
        self.send(session, &text);
    }

    /// A client sends a transaction.
    pub(crate) fn transact(
        &mut self,
        session: SessionId,
        id: &str,
        database: &str,
        operations: &str,
    ) {
        let params = format!(r#"["{database}",{operations}]"#);
        self.ask(session, id, "transact", &params);
    }

    /// A client writes, and the world runs until nothing is left to do.
    pub(crate) fn transact_here(&mut self, operations: &str) {
        let client = self.connect();
        self.transact(client, "1", "A", operations);
        self.run();
        self.disconnect(client);
        self.run();
    }

    /// A client inserts a row with this key.
    pub(crate) fn insert(&mut self, session: SessionId, id: &str, database: &str, key: &str) {
        self.transact(session, id, database, &insert(key));
    }

    /// A client monitors the keys of all rows.
    pub(crate) fn monitor(&mut self, session: SessionId, id: &str, database: &str, monitor: &str) {
        let params = format!(r#"["{database}","{monitor}",{{"T":{{"columns":["k"]}}}}]"#);
        self.ask(session, id, "monitor", &params);
    }

    /// A client disconnects at once; frames that the server has not read are lost.
    pub(crate) fn disconnect(&mut self, session: SessionId) {
        self.clients.get_mut(&session).expect("connected").is_gone = true;
        self.texts.remove(&session);
        let shard = usize::from(shard_of(session));
        self.shards[shard].frontend.closed(session);
        self.collect_shard(shard);
    }

    /// A client closes its sending side. Returns whether the server may close the session at once.
    pub(crate) fn half_close(&mut self, session: SessionId) -> bool {
        let shard = usize::from(shard_of(session));
        self.shards[shard].frontend.end_of_input(session)
    }

    /// The main thread sends a message to all shards.
    pub(crate) fn tell_shards(&mut self, message: impl Fn() -> ToShard) {
        for shard in &mut self.shards {
            shard.inbox.push_back(message());
        }
    }

    /// The messages of a client since the last call, one per line, with `<n>` for UUIDs.
    pub(crate) fn take(&mut self, session: SessionId) -> String {
        let client = self.clients.get_mut(&session).expect("connected");
        let mut names = BTreeMap::new();
        let lines = client.received[client.seen..]
            .iter()
            .map(|message| shorten(&message.to_string(), &mut names) + "\n")
            .collect();
        client.seen = client.received.len();
        lines
    }

    /// Lets time pass.
    pub(crate) fn wait(&mut self, ms: u64) {
        self.run();
        self.now_ms += ms;
        let now = self.now();
        let is_due = |served: &Served| {
            let deadline_ms = served.pump.deadline_ms(now);
            deadline_ms.is_some_and(|at_ms| at_ms <= now.mono_ms)
        };
        let due = self.databases.iter().filter(|(_, served)| is_due(served));
        for id in due.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.execute_batch(id, 0);
        }
        self.run();
    }

    pub(crate) fn now(&self) -> Now {
        Now {
            mono_ms: self.now_ms,
            wall_ms: 0,
        }
    }

    /// Runs until a condition holds; panics if it never does.
    pub(crate) fn run_until(&mut self, is_so: impl Fn(&World) -> bool) {
        while !is_so(self) {
            assert!(self.step(), "it never comes");
        }
    }

    /// Runs until nothing can happen.
    pub(crate) fn run(&mut self) {
        while self.step() {}
    }

    /// Makes one event happen; returns false if none can.
    pub(crate) fn step(&mut self) -> bool {
        let choices = self.choices();
        if choices.is_empty() {
            return false;
        }
        let choice = choices[self.dice.below(choices.len())];
        self.act(choice);
        true
    }

    fn choices(&self) -> Vec<Choice> {
        let mut choices = Vec::new();
        for (session, client) in &self.clients {
            if client.is_heard() && !self.texts[session].is_empty() {
                choices.push(Choice::Frame(*session));
            }
            if client.is_full && !client.is_stalled && !client.is_gone {
                choices.push(Choice::Drained(*session));
            }
        }
        for (number, shard) in self.shards.iter().enumerate() {
            if !shard.inbox.is_empty() {
                choices.push(Choice::Shard(number));
            }
            if !self.is_reading_held && !shard.texts.is_empty() {
                choices.push(Choice::LongFrame(number));
            }
        }
        for (id, served) in &self.databases {
            if !served.inbox.is_empty() || served.is_left {
                choices.push(Choice::Database(*id));
            }
            if served.may_inline && !served.inbox.is_empty() && !served.is_left {
                choices.push(Choice::Inline(*id));
            }
            if served.disk.as_ref().is_some_and(Disk::has_work) {
                choices.push(Choice::Disk(*id));
            }
            let has_jobs = !served.jobs.is_empty() || !served.turns.is_empty();
            if !served.is_worker_held && has_jobs {
                choices.push(Choice::Worker(*id));
            }
        }
        if !self.is_main_held && !self.main.is_empty() {
            choices.push(Choice::Main);
        }
        choices
    }

    fn act(&mut self, choice: Choice) {
        match choice {
            Choice::Frame(session) => {
                let shard = usize::from(shard_of(session));
                if let Some(text) = self.texts.get_mut(&session).and_then(VecDeque::pop_front) {
                    self.text_arrives(session, text);
                }
                self.collect_shard(shard);
            }
            Choice::Drained(session) => {
                if let Some(client) = self.clients.get_mut(&session) {
                    client.is_full = false;
                }
                let shard = usize::from(shard_of(session));
                self.shards[shard].frontend.drained(session);
                self.collect_shard(shard);
            }
            Choice::Shard(number) => {
                let shard = &mut self.shards[number];
                if let Some(message) = shard.inbox.pop_front() {
                    if let ToShard::ServedDatabases(served) = &message {
                        shard.databases =
                            served.names().filter_map(|name| served.get(name)).collect();
                    }
                    shard.frontend.message(self.now_ms, message);
                }
                self.collect_shard(number);
            }
            Choice::LongFrame(number) => {
                let shard = &mut self.shards[number];
                if let Some((session, mut text)) = shard.texts.pop_front() {
                    text.parse();
                    shard.frontend.frame_parsed(self.now_ms, session, text);
                }
                self.collect_shard(number);
            }
            Choice::Database(id) => {
                let waiting = self.databases[&id].inbox.len();
                let taken = 1 + self.dice.below(waiting.max(1));
                self.execute_batch(id, taken);
            }
            Choice::Inline(id) => self.execute_inline(id),
            Choice::Disk(id) => {
                let Some(served) = self.databases.get_mut(&id) else {
                    return;
                };
                let answers = served.disk.as_mut().map(Disk::work).unwrap_or_default();
                served
                    .inbox
                    .extend(answers.into_iter().map(ToDatabase::Storage));
            }
            Choice::Worker(id) => {
                let Some(served) = self.databases.get_mut(&id) else {
                    return;
                };
                let is_slice =
                    !served.turns.is_empty() && (served.jobs.is_empty() || self.dice.below(2) == 0);
                if is_slice {
                    let mut answers = Vec::new();
                    served.turns.run_slice(&mut answers);
                    let answers = answers.into_iter().map(ToDatabase::from);
                    served.inbox.extend(answers);
                } else if let Some(job) = served.jobs.pop_front() {
                    served.jobs_done += 1;
                    let other = served.turns.push(job);
                    let answer = other.and_then(Job::carry_out);
                    served.inbox.extend(answer.map(ToDatabase::from));
                }
            }
            Choice::Main => {
                if let Some(event) = self.main.pop_front() {
                    self.take_event(event);
                }
            }
        }
    }

    /// Handles an event of the main thread.
    fn take_event(&mut self, event: Event) {
        match event {
            Event::Converted(_, schema, epoch) => {
                self.tell_shards(|| ToShard::DisconnectUnaware(Arc::from("converted"), epoch));
                self.tell_server_db(server_db::update_schema(&schema));
            }
            Event::Removed(id) => {
                self.removed.insert(id);
                if !self.is_exiting {
                    let name = self.databases[&id].schema().name.to_string();
                    let epoch = self.epochs.advance();
                    self.tell_shards(|| ToShard::DisconnectUnaware(Arc::from("removed"), epoch));
                    self.tell_server_db(server_db::delete(&name));
                } else if self.databases.len() == self.removed.len() + 1 {
                    self.post(SERVER, ToDatabase::Control(Control::Remove));
                }
            }
            other => self.events.push(other),
        }
    }

    /// Carries out the outputs of a shard.
    fn collect_shard(&mut self, number: usize) {
        let shard = &mut self.shards[number];
        let outputs = shard.frontend.outputs();
        for (session, piece) in outputs.send.drain(..) {
            let Some(client) = self
                .clients
                .get_mut(&session)
                .filter(|client| !client.is_gone)
            else {
                continue;
            };
            let bytes = match piece {
                Piece::Message(bytes) => bytes,
                Piece::Long(frame) | Piece::Update(frame) => frame.to_bytes(),
            };
            client.received.push(Value::parse(&bytes).expect("JSON"));
            client.is_full = true;
        }
        for (session, is_paused) in outputs.pause.drain(..) {
            if let Some(client) = self.clients.get_mut(&session) {
                client.is_paused = is_paused;
            }
        }
        let closed: Vec<_> = outputs.close.drain(..).collect();
        shard.texts.extend(outputs.to_parse.drain(..));
        for (id, message) in outputs.to_databases.drain(..) {
            if shard.databases.contains(&id)
                && let Some(served) = self.databases.get_mut(&id)
            {
                served.inbox.push_back(message);
            }
        }
        for (to, message) in outputs.to_shards.drain(..).collect::<Vec<_>>() {
            self.shards[usize::from(to)].inbox.push_back(message);
        }
        for (session, why) in closed {
            if let Some(client) = self.clients.get_mut(&session)
                && client.closed.is_none()
                && !client.is_gone
            {
                client.closed = Some(why);
                self.disconnect(session);
            }
        }
    }

    /// Asserts that closed sessions leave nothing behind, and files equal their databases.
    pub(crate) fn check_idle(&mut self) {
        self.run();
        for session in self.clients.keys().copied().collect::<Vec<_>>() {
            if !self.clients[&session].is_gone {
                self.disconnect(session);
            }
        }
        self.run();
        for shard in &self.shards {
            assert!(shard.frontend.is_empty(), "a shard keeps sessions");
        }
        assert!(
            self.locks.lock().expect("no panics").is_empty(),
            "locks are left"
        );
        if self.is_recorded {
            for served in self.databases.values() {
                if served.pump.service().model().can_be_recorded() {
                    batches::replay(served);
                }
            }
        }
        let names = self.names.clone();
        for (name, id) in names {
            let served = self.databases.get_mut(&id).expect("served");
            assert!(served.pump.service().is_idle(), "{name} keeps something");
            served
                .pump
                .service()
                .database()
                .check_invariants()
                .expect("consistent");
            if let Some(disk) = &served.disk {
                let stored = disk.load(&mut Counter(0));
                let (left, right) = (
                    contents(served.pump.service().database()),
                    contents(&stored),
                );
                assert_eq!(left, right, "the file of {name}");
            }
        }
    }

    /// All rows of a database, sorted.
    pub(crate) fn contents(&mut self, name: &str) -> Vec<String> {
        contents(self.service(name).database())
    }
}
