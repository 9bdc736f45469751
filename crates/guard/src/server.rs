//! A shard and a database with the benchmark's schema, whose writes complete at once. This is the
//! whole server without sockets, files and threads. Paths that begin with a message and end with
//! its reply use it.

use corvid_log::storage::{FileSize, StorageReply, StorageRequest};
use std::hint::black_box;
use std::mem;
use std::sync::Arc;

use corvid_data::{HashSeed, Schema, Uuid};
use corvid_engine::Database;
use corvid_json::Value;
use corvid_monitor::SessionId;
use corvid_service::message::{DatabaseId, SessionInfo, ToDatabase, ToShard};
use corvid_service::pump::Output;
use corvid_service::schema_epoch::SchemaEpochs;
use corvid_service::storage::FileState;
use corvid_service::{DatabaseService, Frontend, Model, Now, Options, Pump, ServedDatabases};

use crate::uuids::Uuids;

const SCHEMA: &str = include_str!("../../bench/src/bench.ovsschema");
const DATABASE: DatabaseId = DatabaseId(1);
const NOW: Now = Now {
    mono_ms: 1000,
    wall_ms: 1_700_000_000_000,
};

/// A server without effects.
pub(crate) struct Server {
    frontend: Frontend,
    pump: Pump,
}

impl Server {
    pub(crate) fn new() -> Server {
        let json = Value::parse(SCHEMA.as_bytes()).expect("the schema is a constant");
        let schema = Schema::from_json(&json).expect("the schema is a constant");
        let mut directory = ServedDatabases::default();
        directory.insert(schema.name.as_str(), DATABASE);
        let locks = Arc::default();
        let frontend = Frontend::new(
            0,
            Arc::new(directory),
            Arc::clone(&locks),
            SchemaEpochs::default(),
            Uuid::ZERO,
        );
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
        let database = Database::new(corvid_data::Arc::new(schema), HashSeed::FIXED);
        let uuids = Box::new(Uuids::default());
        let service = DatabaseService::new(
            NOW,
            options,
            database,
            locks,
            SchemaEpochs::default(),
            uuids,
        );
        Server {
            frontend,
            pump: Pump::new(service),
        }
    }

    /// Opens the session of a new client.
    pub(crate) fn connect(&mut self, session: SessionId) {
        let info = SessionInfo::new(false, String::new(), None);
        self.frontend.opened(session, info);
    }

    /// Handles one message and all effects of it. Returns the number of texts that were sent, all
    /// of them to the same client.
    pub(crate) fn handle(&mut self, session: SessionId, message: Vec<u8>) -> usize {
        self.frontend.frame(NOW.mono_ms, session, message);
        let inputs = mem::take(&mut self.frontend.outputs().to_databases);
        let mut inputs = inputs.into_iter().map(|(_, input)| input);
        self.pump.execute_batch(&mut { NOW }, &mut inputs);
        while let Some(output) = self.pump.next_output() {
            match output {
                Output::Store(stores) => {
                    let answers = stores.into_iter().map(|store| {
                        let StorageRequest::Append {
                            position, record, ..
                        } = store
                        else {
                            panic!("a record");
                        };
                        black_box(record);
                        ToDatabase::Storage(StorageReply::Appended(position, Ok(())))
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
        assert!(sent.iter().all(|(to, _)| *to == session));
        black_box(sent).len()
    }
}
