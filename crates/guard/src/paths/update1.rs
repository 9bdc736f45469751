//! `update1`: the whole server but for sockets, files and threads: the message of an update of one row comes in at a session,
//! and its reply leaves there; ten sessions in turn, as in the workload of that name.

use std::hint::black_box;
use std::mem;
use std::sync::Arc;

use corvid_data::{Schema, Uuid};
use corvid_engine::Database;
use corvid_json::Value;
use corvid_monitor::SessionId;
use corvid_service::frontend::session_id;
use corvid_service::message::{DatabaseId, FileSize, SessionInfo, Store, ToDatabase, ToShard};
use corvid_service::storage::FileState;
use corvid_service::{DatabaseService, Directory, Frontend, Now, Options};

use super::Path;
use crate::uuids::Uuids;

pub(super) const PATH: Path = Path {
    name: "update1",
    about: "an update of one row of 1,000 through session and database, record and reply included",
    times: 200,
    prepare,
};

const SCHEMA: &str = include_str!("../../../bench/src/bench.ovsschema");
const ROWS: usize = 1000;
const SESSIONS: u64 = 10;
const DATABASE: DatabaseId = DatabaseId(1);
const NOW: Now = Now {
    mono_ms: 1000,
    wall_ms: 1_700_000_000_000,
};

fn prepare(times: usize) -> Box<dyn FnMut()> {
    let mut server = Server::new();
    for session in 0..SESSIONS {
        server.frontend.opened(
            session_id(0, session),
            SessionInfo::new(false, String::new(), None),
        );
    }
    let rows: Vec<String> = (0..ROWS).map(insertion).collect();
    let filling = format!(
        r#"{{"method":"transact","params":["Bench",{}],"id":0}}"#,
        rows.join(",")
    );
    server.answer(session_id(0, 0), filling.into_bytes());
    let messages: Vec<_> = (0..times)
        .map(|number| (session_id(0, number as u64 % SESSIONS), update(number)))
        .collect();
    let mut messages = messages.into_iter();
    Box::new(move || {
        let (session, message) = messages.next().expect("one each time");
        server.answer(session, message);
    })
}

fn insertion(number: usize) -> String {
    let (high, low) = (number / 256, number % 256);
    format!(
        r#"{{"op":"insert","table":"Item","row":{{"name":"item-{number:08}","number":{number},"up":true,"addresses":["set",["0a:00:00:00:{high:02x}:{low:02x}","10.0.{high}.{low}"]],"options":["map",[["requested-chassis","host-{low}"],["mcast_flood","true"]]]}}}}"#
    )
}

fn update(number: usize) -> Vec<u8> {
    // Without locality.
    let row = number * 619 % ROWS;
    format!(
        r#"{{"method":"transact","params":["Bench",{{"op":"update","table":"Item","where":[["name","==","item-{row:08}"]],"row":{{"number":{number},"options":["map",[["requested-chassis","host-{}"],["mcast_flood","true"]]]}}}}],"id":{number}}}"#,
        number % 512
    )
    .into_bytes()
}

/// A shard and a database, with a file that is written at once.
struct Server {
    frontend: Frontend,
    database: DatabaseService,
}

impl Server {
    fn new() -> Server {
        let json = Value::parse(SCHEMA.as_bytes()).expect("the schema is a constant");
        let schema = Schema::from_json(&json).expect("the schema is a constant");
        let mut directory = Directory::default();
        directory.insert(schema.name.as_str(), DATABASE);
        let locks = Arc::default();
        let frontend = Frontend::new(0, Arc::new(directory), Arc::clone(&locks), Uuid::ZERO);
        let options = Options {
            id: DATABASE,
            file: Some(FileState {
                records: 1,
                size: FileSize { base: 0, end: 1000 },
            }),
            column_diff: true,
            read_only: false,
            history: true,
        };
        let database = Database::new(corvid_data::Arc::new(schema));
        let uuids = Box::new(Uuids::default());
        Server {
            frontend,
            database: DatabaseService::new(NOW, options, database, locks, uuids),
        }
    }

    /// Takes one message and brings about its reply.
    fn answer(&mut self, session: SessionId, message: Vec<u8>) {
        self.frontend.frame(NOW.mono_ms, session, message);
        for (_, input) in mem::take(&mut self.frontend.outputs().to_databases) {
            self.database.handle(NOW, input);
        }
        self.database.tick(NOW);
        for store in self.database.take_stores() {
            let Store::Append { ticket, record, .. } = store else {
                panic!("a record");
            };
            black_box(record);
            self.database
                .handle(NOW, ToDatabase::Stored(ticket, Ok(())));
        }
        self.database.flush_updates(NOW);
        for delivery in mem::take(&mut self.database.outputs().deliveries) {
            let delivery = ToShard::Deliver(delivery);
            self.frontend.message(NOW.mono_ms, delivery);
        }
        let sent = mem::take(&mut self.frontend.outputs().send);
        assert!(sent.len() == 1 && sent[0].0 == session, "one reply");
        black_box(sent);
    }
}
