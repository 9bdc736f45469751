//! A reference server process in place of our state machine. Each step of a test completes before
//! the next one begins.
//!
//! Invariant: when a call returns, every connection has received all that the server will send. The
//! server answers a connection's requests in order, and sends updates before replies. So an `echo`
//! on each connection, sent after the replies to all earlier requests, is a fence for everything
//! before it. Clients never see these messages.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use corvid_data::{Datum, Schema, TableSchema, Uuid, wire};
use corvid_json::{Framer, Reader, Value, frame::Framed};
use corvid_monitor::SessionId;
use corvid_tests::process::Process;
use corvid_tests::{binary, database_file};
use tempfile::TempDir;

/// Random runs by default.
pub(crate) const LIVES: u64 = 8;

/// Longer than anything takes, even on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The id of our `echo` requests.
const FENCE: &str = "fence";

/// A connection counts as closed once the others have passed this many fences: the server visits
/// its connections in turn, and may visit this one last.
const ROUNDS: usize = 3;

/// Rows by table and UUID, columns by name.
pub(crate) type Contents = BTreeMap<(String, Uuid), BTreeMap<String, Datum>>;

pub(crate) struct Server {
    /// The unread output of each session; `None` once the server has closed it.
    pub(crate) output: BTreeMap<SessionId, Option<Vec<u8>>>,
    connections: BTreeMap<SessionId, Connection>,
    sessions: u64,
    schema: Schema,
    /// Dropped before its folder.
    process: Process,
    _folder: TempDir,
}

impl Server {
    /// Serves an empty database. With `history` it is a cluster of one, because the reference keeps
    /// history only in clusters.
    pub(crate) fn new(schema: Schema, history: bool) -> Server {
        let (Some(program), Some(tool)) = (
            binary::reference("ovsdb-server"),
            binary::reference("ovsdb-tool"),
        ) else {
            // Written to the descriptor, because the test harness would capture the output.
            let word =
                b"SKIPPED: the reference server is not installed, so no client was tried on it\n";
            let _ = std::io::stderr().write_all(word);
            std::process::exit(0);
        };
        let folder = tempfile::Builder::new().prefix("corvid-idl").tempdir();
        let folder = folder.expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let json = serde_json::from_str(&schema.to_json().to_string()).expect("JSON");
        if history {
            std::fs::write(at("schema"), schema.to_json().to_string()).expect("written");
            let made = Command::new(tool)
                .current_dir(folder.path())
                .env("OVS_RUNDIR", folder.path())
                .args(["create-cluster", "db", "schema", "unix:raft"])
                .stderr(Stdio::null())
                .status();
            assert!(made.expect("it runs").success());
        } else {
            database_file::create(&at("db"), &json).expect("written");
        }
        let mut process = Process::new(&program, folder.path(), &[at("db").into()]);
        process.start().expect("it serves");
        let mut server = Server {
            output: BTreeMap::new(),
            connections: BTreeMap::new(),
            sessions: 0,
            schema,
            process,
            _folder: folder,
        };
        server.wait_for_leader();
        server
    }

    /// Waits until the cluster of one has elected its leader.
    fn wait_for_leader(&mut self) {
        let begin = Instant::now();
        let name = &self.schema.name;
        let operation = format!(
            r#"{{"op":"select","table":"Database","where":[["name","==","{name}"],["leader","==",true]],"columns":["name"]}}"#
        );
        while self
            .transact_in("_Server", &operation)
            .to_string()
            .contains(r#""rows":[]"#)
        {
            assert!(begin.elapsed() < TIMEOUT, "nobody leads");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The contents of the database.
    pub(crate) fn contents(&mut self) -> Contents {
        let schema = self.schema.clone();
        let select = |table: &TableSchema| {
            let name = &table.name;
            format!(r#"{{"op":"select","table":"{name}","where":[]}}"#)
        };
        let operations: Vec<String> = schema.tables().iter().map(select).collect();
        let results = self.transact(&operations.join(","));
        let results = results.as_array().expect("results");
        let mut contents = Contents::new();
        for (table, result) in schema.tables().iter().zip(results) {
            let rows = result.get("rows").and_then(Value::as_array);
            for row in rows.expect("rows") {
                let uuid = row.get("_uuid").and_then(Value::as_array).expect("one");
                let uuid = (uuid[1].as_str()).and_then(|text| Uuid::parse(text.as_bytes()));
                let columns = table.columns().iter().map(|column| {
                    let value = row.get(&column.name).expect("all are selected");
                    let text = value.to_string();
                    let mut reader = Reader::new(text.as_bytes());
                    let datum = wire::read_datum(&mut reader, &column.column_type, None);
                    (column.name.to_string(), datum.expect("of its type"))
                });
                let key = (table.name.to_string(), uuid.expect("a UUID"));
                contents.insert(key, columns.collect());
            }
        }
        contents
    }

    pub(crate) fn connect(&mut self) -> SessionId {
        self.sessions += 1;
        let session = SessionId(self.sessions);
        let stream = UnixStream::connect(self.process.socket()).expect("it listens");
        let timeout = Some(TIMEOUT);
        stream.set_read_timeout(timeout).expect("a socket");
        self.connections.insert(session, Connection::new(stream));
        self.output.insert(session, Some(Vec::new()));
        session
    }

    pub(crate) fn disconnect(&mut self, session: SessionId) {
        self.output.remove(&session);
        if self.connections.remove(&session).is_some() {
            for _ in 0..ROUNDS {
                self.round();
            }
        }
    }

    /// Sends a message from a client.
    pub(crate) fn receive(&mut self, session: SessionId, message: &[u8]) {
        if let Some(connection) = self.connections.get_mut(&session) {
            connection.send(message);
            self.synchronize();
        }
    }

    /// Converts the database, through a client of its own.
    pub(crate) fn convert(&mut self, schema: &Schema) {
        let session = self.connect();
        let aware = br#"{"id":0,"method":"set_db_change_aware","params":[true]}"#;
        self.receive(session, aware);
        let json = schema.to_json();
        let text = format!(r#"{{"id":1,"method":"convert","params":["idltest",{json}]}}"#);
        self.receive(session, text.as_bytes());
        let output = self.output[&session].clone().expect("it is aware");
        let answer = String::from_utf8_lossy(&output);
        assert!(answer.contains(r#""id":1,"result":{}"#), "{answer}");
        self.disconnect(session);
        self.schema = schema.clone();
    }

    /// Executes operations through a client of its own, and returns the results.
    pub(crate) fn transact(&mut self, operations: &str) -> Value {
        let name = self.schema.name.to_string();
        self.transact_in(&name, operations)
    }

    fn transact_in(&mut self, database: &str, operations: &str) -> Value {
        let session = self.connect();
        let text =
            format!(r#"{{"id":1,"method":"transact","params":["{database}",{operations}]}}"#);
        self.receive(session, text.as_bytes());
        let bytes = self.output[&session].clone().expect("open");
        self.disconnect(session);
        let reply = Value::parse(&bytes).expect("one answer");
        reply.get("result").expect("a result").clone()
    }

    /// Waits until every request is answered and every connection has received the consequences.
    fn synchronize(&mut self) {
        let begin = Instant::now();
        loop {
            self.round();
            let mut waiting = self.connections.values();
            if waiting.all(|connection| connection.awaited.is_empty()) {
                break;
            }
            assert!(
                begin.elapsed() < TIMEOUT,
                "no answer: {}",
                self.process.log()
            );
        }
        self.round();
    }

    /// Sends an echo on every connection, and reads everything up to its reply.
    fn round(&mut self) {
        let mut closed = Vec::new();
        for connection in self.connections.values_mut() {
            connection.send_fence();
        }
        for (session, connection) in &mut self.connections {
            let is_open = connection.read_until_fence();
            if let Some(Some(output)) = self.output.get_mut(session) {
                output.append(&mut connection.heard);
            }
            if !is_open {
                closed.push(*session);
            }
        }
        for session in closed {
            self.connections.remove(&session);
            self.output.insert(session, None);
        }
    }
}

struct Connection {
    stream: UnixStream,
    framer: Framer,
    /// An incomplete message.
    partial: Vec<u8>,
    /// Messages for the client.
    heard: Vec<u8>,
    /// Ids of outstanding requests.
    awaited: BTreeSet<String>,
    fences_sent: u64,
    fences_back: u64,
}

impl Connection {
    fn new(stream: UnixStream) -> Connection {
        Connection {
            stream,
            framer: Framer::new(),
            partial: Vec::new(),
            heard: Vec::new(),
            awaited: BTreeSet::new(),
            fences_sent: 0,
            fences_back: 0,
        }
    }

    /// Sends a message. Errors show when reading.
    fn send(&mut self, message: &[u8]) {
        let json = Value::parse(message).expect("clients send JSON");
        if json.get("method").is_some() {
            self.awaited.extend(json.get("id").map(Value::to_string));
        }
        let _ = self.stream.write_all(message);
    }

    fn send_fence(&mut self) {
        self.fences_sent += 1;
        let text = format!(
            r#"{{"id":"{FENCE}{}","method":"echo","params":[]}}"#,
            self.fences_sent
        );
        let _ = self.stream.write_all(text.as_bytes());
    }

    /// Reads up to the next fence. Returns whether the connection is still open.
    fn read_until_fence(&mut self) -> bool {
        let mut buffer = vec![0; 1 << 16];
        while self.fences_back < self.fences_sent {
            match self.stream.read(&mut buffer) {
                Ok(0) => return false,
                Ok(len) => self.take(&buffer[..len]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("no answer"),
                Err(_) => return false,
            }
        }
        true
    }

    fn take(&mut self, mut bytes: &[u8]) {
        while let Framed::Complete { end, .. } = self.framer.advance(bytes).expect("JSON") {
            let (message, rest) = bytes.split_at(end);
            self.partial.extend_from_slice(message);
            bytes = rest;
            let json = Value::parse(&self.partial).expect("JSON");
            let id = json.get("id").filter(|_| json.get("method").is_none());
            let is_fence = id
                .and_then(Value::as_str)
                .is_some_and(|id| id.starts_with(FENCE));
            if is_fence {
                self.fences_back += 1;
                self.partial.clear();
            } else {
                if let Some(id) = id {
                    self.awaited.remove(&id.to_string());
                }
                self.heard.append(&mut self.partial);
            }
        }
        self.partial.extend_from_slice(bytes);
    }
}
