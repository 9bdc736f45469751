//! A server without threads: one shard, `_Server` and one database without a file.

use corvid_log::storage::{StorageReply, StorageRequest};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use corvid_data::uuid::UuidSource;
use corvid_data::{Datum, HashSeed, Schema, Uuid};
use corvid_engine::Database;
use corvid_json::{Framer, Value, frame::Framed};
use corvid_monitor::SessionId;
use corvid_service::frontend::session_id;
use corvid_service::locks::Locks;
use corvid_service::message::{
    Control, DatabaseId, Event, Piece, SessionInfo, ToDatabase, ToShard,
};
use corvid_service::pump::Output;
use corvid_service::schema_epoch::SchemaEpochs;
use corvid_service::{
    DatabaseService, Frontend, Model, Now, Options, Pump, ServedDatabases, server_db,
};

/// Random runs by default.
pub(crate) const LIVES: u64 = 60;

/// Rows by table and UUID, columns by name.
pub(crate) type Contents = BTreeMap<(String, Uuid), BTreeMap<String, Datum>>;

/// Counts instead of drawing random UUIDs, so that every run is the same.
struct Counter(u64);

impl UuidSource for Counter {
    fn fresh(&mut self) -> Uuid {
        self.0 += 1;
        Uuid((0x4000_u128 << 64 | u128::from(self.0)).to_be_bytes())
    }
}

struct Served {
    pump: Pump,
    inbox: VecDeque<ToDatabase>,
}

pub(crate) struct Server {
    frontend: Frontend,
    inbox: VecDeque<ToShard>,
    databases: BTreeMap<DatabaseId, Served>,
    sessions: u64,
    /// The unread output of each session; `None` once the server has closed it.
    pub(crate) output: BTreeMap<SessionId, Option<Vec<u8>>>,
}

const SERVER: DatabaseId = DatabaseId(0);
const DATA: DatabaseId = DatabaseId(1);

impl Server {
    /// Serves an empty database. With `history`, clients that reconnect receive only the changes
    /// that they missed.
    pub(crate) fn new(schema: Schema, history: bool) -> Server {
        let (locks, epochs) = (Arc::new(Mutex::new(Locks::new())), SchemaEpochs::default());
        let mut directory = ServedDatabases::default();
        directory.insert(server_db::NAME, SERVER);
        directory.insert(&schema.name, DATA);
        let directory = Arc::new(directory);
        let mut server = Server {
            frontend: Frontend::new(
                0,
                directory.clone(),
                locks.clone(),
                epochs.clone(),
                Uuid::ZERO,
            ),
            inbox: VecDeque::from([ToShard::ServedDatabases(directory)]),
            databases: BTreeMap::new(),
            sessions: 0,
            output: BTreeMap::new(),
        };
        let about = server_db::insert(&schema, Model::standalone().server_row());
        let server_schema = server_db::schema().expect("a constant");
        for (id, schema) in [(SERVER, server_schema), (DATA, schema)] {
            let options = Options {
                id,
                model: match id {
                    SERVER => Model::server_db(),
                    _ => Model::standalone(),
                },
                file: None,
                column_diff: true,
                history: history && id == DATA,
                recorded: corvid_service::once::RecordedCommits::default(),
            };
            let database = Database::new(corvid_data::Arc::new(schema), HashSeed::FIXED);
            let uuids = Box::new(Counter(u64::from(id.0) * 1_000_000_000));
            let (locks, epochs) = (locks.clone(), epochs.clone());
            let service = DatabaseService::new(now(0), options, database, locks, epochs, uuids);
            let (pump, inbox) = (Pump::new(service), VecDeque::new());
            server.databases.insert(id, Served { pump, inbox });
        }
        let inbox = &mut server.databases.get_mut(&SERVER).expect("served").inbox;
        inbox.push_back(ToDatabase::Control(Control::Transact(about)));
        server.run();
        server
    }

    fn database(&self) -> &Database {
        self.databases[&DATA].pump.service().database()
    }

    /// The contents of the database.
    pub(crate) fn contents(&mut self) -> Contents {
        let database = self.database();
        let mut contents = Contents::new();
        for (id, table) in database.schema().iter() {
            for row in database.rows(id) {
                let names = table.columns().iter().map(|column| column.name.to_string());
                let columns = names.zip(row.columns.iter().cloned()).collect();
                contents.insert((table.name.to_string(), row.uuid), columns);
            }
        }
        contents
    }

    pub(crate) fn connect(&mut self) -> SessionId {
        self.sessions += 1;
        let session = session_id(0, self.sessions);
        let info = SessionInfo::new(false, String::new(), None);
        self.frontend.opened(session, info);
        self.output.insert(session, Some(Vec::new()));
        session
    }

    pub(crate) fn disconnect(&mut self, session: SessionId) {
        if self.output.remove(&session).flatten().is_some() {
            self.frontend.closed(session);
            self.run();
        }
    }

    /// Delivers a message of a client.
    pub(crate) fn receive(&mut self, session: SessionId, message: &[u8]) {
        if self.output.get(&session).is_some_and(Option::is_some) {
            self.frontend.frame(0, session, message.to_vec());
            self.run();
        }
    }

    /// Converts the database, through a client of its own.
    pub(crate) fn convert(&mut self, schema: &Schema) {
        let session = self.connect();
        let schema = schema.to_json();
        let text = format!(r#"{{"id":1,"method":"convert","params":["idltest",{schema}]}}"#);
        self.receive(session, text.as_bytes());
        let output = self.output.remove(&session).flatten().unwrap_or_default();
        let answer = String::from_utf8_lossy(&output);
        assert!(
            answer.is_empty() || answer.contains(r#""result":{}"#),
            "{answer}"
        );
    }

    /// Executes operations through a client of its own, and returns the results.
    pub(crate) fn transact(&mut self, operations: &str) -> Value {
        let session = self.connect();
        let name = self.database().schema().name.clone();
        let text = format!(r#"{{"id":1,"method":"transact","params":["{name}",{operations}]}}"#);
        self.receive(session, text.as_bytes());
        let bytes = self.output[&session].clone().expect("open");
        let Ok(Framed::Complete { start, end }) = Framer::new().advance(&bytes) else {
            panic!("no answer to {operations}");
        };
        self.disconnect(session);
        let reply = Value::parse(&bytes[start..end]).expect("JSON");
        reply.get("result").expect("a result").clone()
    }

    /// Runs until nothing more can happen.
    fn run(&mut self) {
        loop {
            self.collect();
            if let Some(message) = self.inbox.pop_front() {
                self.frontend.message(0, message);
            } else if !self.run_databases() {
                break;
            }
        }
    }

    fn run_databases(&mut self) -> bool {
        let (mut has_run, mut about) = (false, Vec::new());
        for served in self.databases.values_mut() {
            if served.inbox.is_empty() {
                continue;
            }
            has_run = true;
            let mut events = Vec::new();
            let mut inputs = std::mem::take(&mut served.inbox).into_iter();
            while inputs.len() > 0 || served.pump.has_postponed() {
                served.pump.execute_batch(&mut now(0), &mut inputs);
                while let Some(output) = served.pump.next_output() {
                    match output {
                        Output::Store(stores) => {
                            let answer = |store| match store {
                                StorageRequest::Append { position, .. } => Some(
                                    ToDatabase::Storage(StorageReply::Appended(position, Ok(()))),
                                ),
                                _ => None,
                            };
                            let answers = stores.into_iter().filter_map(answer).collect();
                            served.pump.stored(&mut now(0), answers);
                        }
                        Output::Job(job) => {
                            served.inbox.extend(job.carry_out().map(ToDatabase::from));
                        }
                        Output::Deliver(deliver) => {
                            self.inbox.push_back(ToShard::Deliver(deliver));
                        }
                        Output::Event(event) => events.push(event),
                        _ => {}
                    }
                }
            }
            for event in events {
                if let Event::Converted(_, schema, epoch) = event {
                    about.push(server_db::update_schema(&schema));
                    let reason = Arc::from("converted");
                    let message = ToShard::DisconnectUnaware(reason, epoch);
                    self.inbox.push_back(message);
                }
            }
        }
        if let Some(server) = self.databases.get_mut(&SERVER) {
            let orders = about.into_iter().map(Control::Transact);
            server.inbox.extend(orders.map(ToDatabase::Control));
        }
        has_run
    }

    fn collect(&mut self) {
        let outputs = self.frontend.outputs();
        let mut drained = Vec::new();
        for (session, piece) in outputs.send.drain(..) {
            let bytes = match piece {
                Piece::Message(bytes) => bytes,
                Piece::Long(frame) | Piece::Update(frame) => frame.to_bytes(),
            };
            if let Some(Some(output)) = self.output.get_mut(&session) {
                output.extend(bytes);
                drained.push(session);
            }
        }
        let mut closed = Vec::new();
        for (session, _) in outputs.close.drain(..) {
            closed.push(session);
        }
        for (id, message) in outputs.to_databases.drain(..) {
            if let Some(served) = self.databases.get_mut(&id) {
                served.inbox.push_back(message);
            }
        }
        for (_, message) in outputs.to_shards.drain(..) {
            self.inbox.push_back(message);
        }
        for session in drained {
            self.frontend.drained(session);
        }
        for session in closed {
            self.output.insert(session, None);
            self.frontend.closed(session);
        }
    }
}

fn now(mono_ms: u64) -> Now {
    Now {
        mono_ms,
        wall_ms: 0,
    }
}
