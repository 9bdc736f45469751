//! One database with its deferred bodies, in one thread, and the bytes that clients get.

use std::collections::BTreeMap;
use std::sync::Arc;

use corvid_data::{HashSeed, Schema, Uuid, UuidSource};
use corvid_engine::Database;
use corvid_json::Value;
use corvid_monitor::SessionId;
use corvid_service::client_memory::ClientMemory;
use corvid_service::job::body_scheduler::BodyScheduler;
use corvid_service::message::{
    DatabaseId, DatabaseMethod, Piece, Request, SessionInfo, ToDatabase,
};
use corvid_service::schema_epoch::SchemaEpochs;
use corvid_service::{DatabaseService, Model, Now, Options, Setting};

const SCHEMA: &str = r#"{"name":"D","version":"1.0.0","tables":{
    "Big":{"isRoot":true,"columns":{"k":{"type":"string"},"n":{"type":"integer"}}},
    "Small":{"isRoot":true,"columns":{"n":{"type":"integer"}}}}}"#;

/// A sequence of UUIDs.
struct Counter(u128);

impl UuidSource for Counter {
    fn fresh(&mut self) -> Uuid {
        self.0 += 1;
        // Spread like random UUIDs.
        Uuid(
            (self
                .0
                .wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
            .to_be_bytes(),
        )
    }
}

/// A small generator.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// A database in memory.
pub(crate) struct Served {
    service: DatabaseService,
    turns: BodyScheduler,
    now_ms: u64,
    /// Number of slices written.
    pub(crate) slices: usize,
    /// The concatenated messages of each session.
    pub(crate) told: BTreeMap<u64, Vec<u8>>,
}

impl Served {
    /// Bodies of more than `rows_max` rows are written in slices of this many steps, others by the
    /// database itself.
    pub(crate) fn new(slice_steps: u64, rows_max: usize) -> Served {
        let schema = Value::parse(SCHEMA.as_bytes()).expect("JSON");
        let schema = corvid_data::Arc::new(Schema::from_json(&schema).expect("a schema"));
        let options = Options {
            id: DatabaseId(1),
            model: Model::standalone(),
            file: None,
            column_diff: true,
            history: true,
            recorded: Default::default(),
        };
        let (locks, uuids) = (Arc::default(), Box::new(Counter(0)));
        let (now, database) = (Now::default(), Database::new(schema, HashSeed::FIXED));
        let mut service = DatabaseService::new(
            now,
            options,
            database,
            locks,
            SchemaEpochs::default(),
            uuids,
        );
        service.set(Setting::InitialRowsMax, rows_max as u64);
        service.set(Setting::UpdateRowsMax, rows_max as u64);
        service.set(Setting::SelectStepsMax, rows_max as u64);
        Served {
            service,
            turns: BodyScheduler::new(slice_steps),
            now_ms: 0,
            slices: 0,
            told: BTreeMap::new(),
        }
    }

    /// Limits the memory of all replies, bytes.
    pub(crate) fn limit_replies(&mut self, bytes_max: usize) -> Arc<ClientMemory> {
        let memory = Arc::new(ClientMemory::new(bytes_max));
        self.service.set_client_memory(memory.clone());
        memory
    }

    /// Adds this many numbered rows to a table.
    pub(crate) fn insert(&mut self, table: &str, rows: u64) {
        let mut params = r#"["D""#.to_owned();
        for row in 0..rows {
            let name = if table == "Big" {
                format!(r#""k":"row{}","#, row % 500)
            } else {
                String::new()
            };
            let row = format!(r#"{{{name}"n":{row}}}"#);
            params += &format!(r#",{{"op":"insert","table":"{table}","row":{row}}}"#);
        }
        self.ask(0, DatabaseMethod::Transact, &(params + "]"));
        self.told.remove(&0);
    }

    /// A request of a session that has read everything.
    pub(crate) fn ask(&mut self, session: u64, method: DatabaseMethod, params: &str) {
        let frame = params.as_bytes().to_vec();
        self.handle(ToDatabase::Drained(SessionId(session)));
        self.handle(ToDatabase::Request(Box::new(Request {
            session: SessionId(session),
            info: Arc::new(SessionInfo::new(false, String::new(), None)),
            arrived_ms: self.now_ms,
            stamp: 0,
            id: (*b"0").into(),
            method,
            params: 0..frame.len(),
            frame,
            seqno: None,
            blocked: false,
            foreign_monitors: Vec::new(),
            once: None,
            client: None,
        })));
    }

    /// Writes a slice.
    pub(crate) fn turn(&mut self) {
        if self.turns.is_empty() {
            return;
        }
        self.slices += 1;
        let mut answers = Vec::new();
        self.turns.run_slice(&mut answers);
        for answer in answers {
            self.handle(answer.into());
        }
    }

    /// Writes all bodies.
    pub(crate) fn finish(&mut self) {
        while !self.turns.is_empty() {
            self.turn();
        }
    }

    /// Writes slices until that session gets a message; returns their number.
    pub(crate) fn turns_until(&mut self, session: u64) -> usize {
        let begin = self.slices;
        while !self.told.contains_key(&session) {
            assert!(!self.turns.is_empty(), "nothing is left to be written");
            self.turn();
        }
        self.slices - begin
    }

    /// Lets time pass until no request shares contents with an earlier one.
    pub(crate) fn wait(&mut self) {
        self.now_ms += 60_000;
        self.service.tick(self.now());
    }

    fn now(&self) -> Now {
        Now {
            mono_ms: self.now_ms,
            wall_ms: 0,
        }
    }

    fn handle(&mut self, input: ToDatabase) {
        // Far enough from the last flush that none is delayed.
        self.now_ms += 100;
        let now = self.now();
        self.service.handle(now, input);
        let mut drained = Vec::new();
        loop {
            self.service.tick(now);
            self.service.flush_updates(now);
            let outputs = self.service.outputs();
            for job in outputs.jobs.drain(..) {
                // The other jobs free memory.
                drop(self.turns.push(job));
            }
            for deliver in outputs.deliveries.drain(..) {
                for piece in &deliver.pieces {
                    let told = self.told.entry(deliver.session.0).or_default();
                    match piece {
                        Piece::Long(frame) | Piece::Update(frame) => told.extend(frame.to_bytes()),
                        Piece::Message(text) => told.extend(text),
                    }
                    told.push(b'\n');
                }
                if deliver.report_drained {
                    drained.push(deliver.session);
                }
            }
            let Some(session) = drained.pop() else {
                return;
            };
            self.service.handle(now, ToDatabase::Drained(session));
        }
    }
}
