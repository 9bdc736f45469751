//! A shard and a database: the whole server except sockets, files and threads. Requests enter as
//! bytes.

use corvid_log::storage::{FileSize, StorageReply, StorageRequest};
use std::mem;
use std::sync::Arc;

use corvid_data::{HashSeed, Schema, Uuid, UuidSource};
use corvid_engine::Database;
use corvid_json::Value;
use corvid_monitor::SessionId;
use corvid_service::message::{DatabaseId, Piece, SessionInfo, ToDatabase, ToShard};
use corvid_service::pump::Output;
use corvid_service::schema_epoch::SchemaEpochs;
use corvid_service::storage::FileState;
use corvid_service::{DatabaseService, Frontend, Model, Now, Options, Pump, ServedDatabases};

const SCHEMA: &str = r#"{"name": "D", "tables": {"T": {"isRoot": true, "indexes": [["name"], ["a", "b"]], "columns": {
    "name": {"type": "string"}, "a": {"type": "integer"}, "b": {"type": "integer"}}}}}"#;
const DATABASE: DatabaseId = DatabaseId(1);
const SESSION: SessionId = SessionId(1);
const NOW: Now = Now {
    mono_ms: 1000,
    wall_ms: 1_700_000_000_000,
};

/// A row to insert.
pub(crate) struct Row {
    pub(crate) uuid: Uuid,
    pub(crate) name: String,
    pub(crate) a: i64,
    pub(crate) b: i64,
}

struct Counter(u128);

impl UuidSource for Counter {
    fn fresh(&mut self) -> Uuid {
        self.0 += 1;
        Uuid(self.0.to_be_bytes())
    }
}

pub(crate) struct Server {
    frontend: Frontend,
    pump: Pump,
}

impl Server {
    pub(crate) fn new(seed: HashSeed) -> Server {
        let json = Value::parse(SCHEMA.as_bytes()).expect("a constant");
        let schema = corvid_data::Arc::new(Schema::from_json(&json).expect("a constant"));
        let mut directory = ServedDatabases::default();
        directory.insert(schema.name.as_str(), DATABASE);
        let (directory, locks) = (Arc::new(directory), Arc::default());
        let epochs = SchemaEpochs::default();
        let mut frontend = Frontend::new(0, directory, Arc::clone(&locks), epochs, Uuid::ZERO);
        frontend.opened(SESSION, SessionInfo::new(false, String::new(), None));
        let options = Options {
            id: DATABASE,
            model: Model::standalone(),
            file: Some(FileState {
                records: 1,
                size: FileSize { base: 0, end: 1000 },
            }),
            column_diff: true,
            history: true,
            recorded: corvid_service::once::RecordedCommits::default(),
        };
        let (database, uuids) = (Database::new(schema, seed), Box::new(Counter(0)));
        let epochs = SchemaEpochs::default();
        let service = DatabaseService::new(NOW, options, database, locks, epochs, uuids);
        Server {
            frontend,
            pump: Pump::new(service),
        }
    }

    /// Inserts rows with given UUIDs. Panics if a row is refused.
    pub(crate) fn insert(&mut self, rows: &[Row]) {
        let mut request = br#"{"id":0,"method":"transact","params":["D""#.to_vec();
        for Row { uuid, name, a, b } in rows {
            let row = format!(r#"{{"name":"{name}","a":{a},"b":{b}}}"#);
            let operation =
                format!(r#",{{"op":"insert","table":"T","uuid":"{uuid}","row":{row}}}"#);
            request.extend_from_slice(operation.as_bytes());
        }
        request.extend_from_slice(b"]}");
        let replies = self.take(request);
        let [reply] = &replies[..] else {
            panic!("{} replies", replies.len());
        };
        let reply = Value::parse(reply).expect("valid JSON");
        let result = reply.get("result").and_then(Value::as_array);
        let is_done = |element: &Value| element.get("uuid").is_some();
        assert!(
            result.is_some_and(|result| result.iter().all(is_done)),
            "{reply}"
        );
    }

    fn take(&mut self, message: Vec<u8>) -> Vec<Vec<u8>> {
        self.frontend.frame(NOW.mono_ms, SESSION, message);
        let inputs = mem::take(&mut self.frontend.outputs().to_databases);
        let mut inputs = inputs.into_iter().map(|(_, input)| input);
        self.pump.execute_batch(&mut { NOW }, &mut inputs);
        while let Some(output) = self.pump.next_output() {
            match output {
                Output::Store(stores) => {
                    let answers = stores.into_iter().map(|store| match store {
                        StorageRequest::Append { position, .. } => {
                            ToDatabase::Storage(StorageReply::Appended(position, Ok(())))
                        }
                        _ => panic!("a record"),
                    });
                    let answers = answers.collect();
                    self.pump.stored(&mut { NOW }, answers);
                }
                Output::Deliver(delivery) => {
                    let delivery = ToShard::Deliver(delivery);
                    self.frontend.message(NOW.mono_ms, delivery);
                }
                _ => {}
            }
        }
        let sent = mem::take(&mut self.frontend.outputs().send);
        self.frontend.drained(SESSION);
        sent.into_iter()
            .map(|(_, piece)| match piece {
                Piece::Message(text) => text,
                Piece::Long(frame) | Piece::Update(frame) => frame.to_bytes().to_vec(),
            })
            .collect()
    }

    pub(crate) fn rows(&self) -> usize {
        let database = self.pump.service().database();
        let table = database.schema().table_id("T").expect("a table");
        database.row_count(table)
    }

    /// Number of pairs of entries whose look-ups begin at the same slot, in all tables and indexes.
    pub(crate) fn collisions(&self) -> u64 {
        self.pump.service().database().hash_collisions()
    }
}
