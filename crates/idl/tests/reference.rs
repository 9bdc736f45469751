//! A client over a real socket to the reference server, if it is installed: what plays against our own server show holds there too.
//!
//! The driver here is the least there can be: one socket, one thread.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use corvid_cs::{Clause, Condition, Function, Input, Output};
use corvid_data::{Arc, Atom, Datum, Schema, Uuid};
use corvid_idl::{Class, Column, FetchOutcome, Idl, RowId, Status};
use corvid_json::Value;
use corvid_rpc::notice::End;

const SCHEMA: &str = r#"{"name":"zoo","version":"1.0.0","tables":{
 "keeper":{"isRoot":true,"columns":{
   "name":{"type":"string"},"age":{"type":"integer"},
   "tags":{"type":{"key":"string","min":0,"max":"unlimited"}},
   "cfg":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}},
   "pets":{"type":{"key":{"type":"uuid","refTable":"pet"},"min":0,"max":"unlimited"}},
   "secret":{"type":"string"}}},
 "pet":{"columns":{"kind":{"type":"string"}}}}}"#;

/// Longer than anything takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The server, and its folder; both go with it.
struct Server {
    process: Child,
    folder: PathBuf,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Server {
    /// `None`, with a word, where there is none.
    fn start(name: &str) -> Option<Server> {
        let folder = std::env::temp_dir().join(format!("corvid-idl-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let (schema, database) = (folder.join("schema"), folder.join("db"));
        std::fs::write(&schema, SCHEMA).expect("written");
        let skip = |program: &str| {
            let _ = std::fs::remove_dir_all(&folder);
            eprintln!("SKIPPED: {program} is not installed, so no client was tried on it");
            None
        };
        let made = Command::new("ovsdb-tool")
            .arg("create")
            .args([&database, &schema])
            .env("OVS_RUNDIR", &folder)
            .status();
        if !made.is_ok_and(|status| status.success()) {
            return skip("ovsdb-tool");
        }
        let process = Command::new("ovsdb-server")
            .arg(format!(
                "--remote=punix:{}",
                folder.join("socket").display()
            ))
            .arg(format!("--unixctl={}", folder.join("ctl").display()))
            .arg("-vconsole:off")
            .arg(&database)
            .env("OVS_RUNDIR", &folder)
            .stderr(Stdio::null())
            .spawn();
        match process {
            Ok(process) => Some(Server { process, folder }),
            Err(_) => skip("ovsdb-server"),
        }
    }

    /// Converts the database to another schema.
    fn convert(&self, schema: &str) {
        let file = self.folder.join("new-schema");
        std::fs::write(&file, schema).expect("written");
        let socket = format!("unix:{}", self.folder.join("socket").display());
        let status = Command::new("ovsdb-client")
            .arg("convert")
            .arg(socket)
            .arg(&file)
            .status();
        assert!(status.expect("it is installed").success());
    }
}

/// A client and its connection.
struct Driven {
    idl: Idl,
    stream: Option<UnixStream>,
    begin: Instant,
}

impl Driven {
    fn new(server: &Server, class: Class) -> Driven {
        let mut idl = Idl::new(class, 1);
        let socket = server.folder.join("socket");
        idl.session()
            .set_remote(0, &format!("unix:{}", socket.display()), true);
        Driven {
            idl,
            stream: None,
            begin: Instant::now(),
        }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.begin.elapsed().as_millis()).expect("soon")
    }

    fn input(&mut self, input: Input<'_>) {
        let now_ms = self.now_ms();
        self.idl.handle(now_ms, input).expect("none is open");
    }

    fn run(&mut self) {
        while let Some(output) = self.idl.poll_output() {
            match output {
                Output::Connect { remote } => {
                    let path = remote.strip_prefix("unix:").expect("a socket");
                    match UnixStream::connect(path) {
                        Ok(stream) => {
                            let timeout = Some(Duration::from_millis(5));
                            stream.set_read_timeout(timeout).expect("a socket");
                            self.stream = Some(stream);
                            self.input(Input::Connected);
                        }
                        Err(error) => {
                            self.input(Input::Disconnected(End::Failed(error.to_string())));
                        }
                    }
                }
                Output::Disconnect => self.stream = None,
                Output::Send(bytes) => {
                    if let Some(stream) = &mut self.stream {
                        // A failure shows when reading.
                        let _ = stream.write_all(&bytes);
                    }
                }
            }
        }
        let mut buffer = [0; 65536];
        match self.stream.as_mut().map(|stream| stream.read(&mut buffer)) {
            None => {
                std::thread::sleep(Duration::from_millis(5));
                self.input(Input::Tick);
            }
            Some(Ok(0)) => {
                self.stream = None;
                self.input(Input::Disconnected(End::Closed));
            }
            Some(Ok(len)) => self.input(Input::Received(&buffer[..len])),
            Some(Err(error)) if error.kind() == ErrorKind::WouldBlock => {
                self.input(Input::Received(b""));
            }
            Some(Err(error)) => {
                self.stream = None;
                self.input(Input::Disconnected(End::Failed(error.to_string())));
            }
        }
    }

    fn run_until(&mut self, what: &str, is_so: impl Fn(&Idl) -> bool) {
        let begin = Instant::now();
        while !is_so(&self.idl) {
            assert!(
                begin.elapsed() < PATIENCE,
                "{what}: {:?}",
                self.idl.session_state()
            );
            self.run();
        }
    }

    fn transact(&mut self, act: impl FnOnce(&mut Idl)) -> (corvid_idl::TxnId, Status) {
        let txn = self.idl.begin().expect("none is open");
        act(&mut self.idl);
        self.idl.commit().expect("it is open");
        self.run_until("an answer", |idl| {
            idl.status(txn) != Some(Status::Incomplete)
        });
        (txn, self.idl.status(txn).expect("remembered"))
    }

    fn column(&self, table: &str, name: &str) -> Column {
        self.idl.class().column(table, name).expect("a column")
    }
}

fn schema(text: &str) -> Arc<Schema> {
    Arc::new(Schema::from_json(&Value::parse(text.as_bytes()).expect("JSON")).expect("a schema"))
}

fn string(text: &str) -> Datum {
    Datum::one(Atom::String(text.into()))
}

fn uuid(number: u8) -> Uuid {
    Uuid::from_random([number; 16])
}

/// A client that monitors everything but `secret`, which it fetches, and tracks all.
fn connected(server: &Server) -> Driven {
    let mut class = Class::everything(schema(SCHEMA));
    class.track_all();
    let secret = class.column("keeper", "secret").expect("a column");
    class.on_demand(secret);
    let mut driven = Driven::new(server, class);
    driven.run_until("contents", Idl::has_ever_connected);
    driven
}

/// Inserts a keeper with a pet.
fn insert_ann(driven: &mut Driven) -> RowId {
    let (name, pets) = (
        driven.column("keeper", "name"),
        driven.column("keeper", "pets"),
    );
    let (secret, kind) = (
        driven.column("keeper", "secret"),
        driven.column("pet", "kind"),
    );
    let mut ann = None;
    let (txn, status) = driven.transact(|idl| {
        let pet = idl.insert(kind.table, uuid(1), false).expect("new");
        idl.write(pet, kind, string("owl")).expect("fits");
        let row = idl.insert(name.table, uuid(2), false).expect("new");
        idl.write(row, name, string("ann")).expect("fits");
        idl.write(row, secret, string("xyzzy")).expect("fits");
        idl.write(row, pets, Datum::one(Atom::Uuid(pet.uuid)))
            .expect("fits");
        idl.add_comment("a test").expect("open");
        ann = Some(row);
    });
    assert_eq!((status, driven.idl.txn_error(txn)), (Status::Success, None));
    let uuid = driven
        .idl
        .inserted_uuid(txn, ann.expect("inserted"))
        .expect("told");
    driven
        .idl
        .row(name.table, uuid)
        .expect("shown before the answer")
}

#[test]
fn transactions_of_every_kind() {
    let Some(server) = Server::start("transactions") else {
        return;
    };
    let mut driven = connected(&server);
    let ann = insert_ann(&mut driven);
    let column = |name: &str| driven.column("keeper", name);
    let (name, age, tags, cfg, pets) = (
        column("name"),
        column("age"),
        column("tags"),
        column("cfg"),
        column("pets"),
    );
    let pet = driven.idl.read(ann, pets).and_then(|pets| pets.as_uuid());
    let pet_table = driven.column("pet", "kind").table;
    assert!(driven.idl.row(pet_table, pet.expect("one")).is_some());
    let key = |text: &str| Atom::String(text.into());
    for round in 0..3 {
        let (txn, status) = driven.transact(|idl| {
            idl.verify(ann, name).expect("held");
            idl.set_key(ann, cfg, key("k"), key(&round.to_string()))
                .expect("fits");
            idl.add_value(ann, tags, key(&format!("t{round}")))
                .expect("fits");
            idl.increment(ann, age, false).expect("a number");
        });
        assert_eq!(status, Status::Success, "{:?}", driven.idl.txn_error(txn));
        assert_eq!(driven.idl.incremented_to(txn), Some(round + 1));
    }
    let cfg_now = driven.idl.read(ann, cfg).expect("held");
    assert_eq!(cfg_now, Datum::pair(key("k"), key("2")));
    assert_eq!(driven.idl.read(ann, tags).map(|tags| tags.len()), Some(3));
    let (_, status) = driven.transact(|idl| {
        idl.remove_key(ann, cfg, key("k")).expect("fits");
        idl.remove_value(ann, tags, key("t1")).expect("fits");
        idl.set_dry_run().expect("open");
    });
    assert_eq!(status, Status::Success);
    assert_eq!(
        driven.idl.read(ann, tags).map(|tags| tags.len()),
        Some(3),
        "it was dry"
    );
    let (_, status) = driven.transact(|idl| idl.delete(ann).expect("there"));
    assert_eq!(
        (status, driven.idl.row_count(name.table)),
        (Status::Success, 0)
    );
    assert_eq!(driven.idl.row_count(pet_table), 0, "collected");
}

#[test]
fn conditions_fetches_and_connections() {
    let Some(server) = Server::start("connections") else {
        return;
    };
    let mut driven = connected(&server);
    let ann = insert_ann(&mut driven);
    let (name, secret) = (
        driven.column("keeper", "name"),
        driven.column("keeper", "secret"),
    );
    assert_eq!(driven.idl.read(ann, secret), Some(string("")));
    let fetch = driven.idl.fetch_row(ann, secret).expect("on demand");
    driven.run_until("a fetch", |idl| !idl.is_row_fetch_pending(ann));
    let outcome = driven.idl.take_fetch_outcome(fetch);
    assert_eq!(outcome, Some(FetchOutcome::Success));
    assert_eq!(driven.idl.read(ann, secret), Some(string("xyzzy")));
    let mut wanted = Condition::none();
    wanted.add(Clause::new("name", Function::Equal, &string("bob"), false));
    for (condition, count) in [(wanted, 0), (Condition::all(), 1)] {
        let now_ms = driven.now_ms();
        let promise = driven.idl.set_condition(now_ms, name.table, condition);
        driven.run_until("a condition", |idl| idl.condition_seqno() >= promise);
        assert_eq!(driven.idl.row_count(name.table), count);
    }
    driven.idl.clear_changes();
    let seqno = driven.idl.session_state().session_seqno();
    let now_ms = driven.now_ms();
    driven.idl.session().force_reconnect(now_ms);
    driven.run_until("another connection", |idl| {
        let state = idl.session_state();
        state.session_seqno() >= seqno + 2 && state.is_monitoring()
    });
    assert!(
        driven.idl.changes(name.table).is_empty(),
        "nothing changed meanwhile"
    );
    assert_eq!(driven.idl.row_count(name.table), 1);
}

#[test]
fn a_conversion_is_followed_on_the_same_connection() {
    let Some(server) = Server::start("conversion") else {
        return;
    };
    let mut driven = connected(&server);
    let ann = insert_ann(&mut driven);
    let (age, tags) = (
        driven.column("keeper", "age"),
        driven.column("keeper", "tags"),
    );
    let seqno = driven.idl.session_state().session_seqno();
    let without_tags = SCHEMA
        .replace(
            r#""tags":{"type":{"key":"string","min":0,"max":"unlimited"}},"#,
            "",
        )
        .replace("1.0.0", "2.0.0");
    server.convert(&without_tags);
    driven.run_until("the new schema", |idl| {
        idl.server_column(tags).is_none() && idl.session_state().is_monitoring()
    });
    assert!(driven.idl.server_column(age).is_some());
    server.convert(SCHEMA);
    driven.run_until("the old schema", |idl| {
        idl.server_column(tags).is_some() && idl.session_state().is_monitoring()
    });
    assert_eq!(driven.idl.session_state().session_seqno(), seqno);
    let (_, status) = driven.transact(|idl| {
        let tag = Atom::String("t".into());
        idl.add_value(ann, tags, tag).expect("fits");
    });
    assert_eq!(status, Status::Success);
}
