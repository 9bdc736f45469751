//! Servers in this process. Several shards on one database: requests are executed by the shard that
//! read them, by another shard, or by the database's thread. All clients see one order.

use std::cell::RefCell;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use corvid_data::Uuid;
use corvid_json::Value;
use corvid_log::cluster::{
    Cid, Data, Eid, Header, Index, Membership, Servers, Sid, Snapshot, Term,
};
use corvid_log::{Magic, Record};

use super::reconfiguration::{Reconfiguration, WantedDatabase};
use super::{Config, Server};
use crate::database::handle::lock;
use crate::main_handle::MainMessage;
use crate::member::handle::ToMember;
use crate::remotes::options::RemoteOptions;
use crate::status::{MemberStatus, Status};

const SCHEMA: &str = r#"{"name":"D","tables":{
    "c":{"columns":{"n":{"type":"integer"}},"isRoot":true},
    "t":{"columns":{"i":{"type":"integer"}},"isRoot":true}}}"#;
const LIMIT: Duration = Duration::from_secs(120);
const CLIENTS: usize = 8;
const ROUNDS: usize = 150;
/// More rows than the work budget of an inline execution.
const ROWS: usize = 10_000;

struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A connection that reads whole messages.
struct Client {
    stream: UnixStream,
    received: Vec<u8>,
}

impl Client {
    fn connect(path: &PathBuf) -> Client {
        let stream = UnixStream::connect(path).expect("listening");
        stream.set_read_timeout(Some(LIMIT)).expect("a limit");
        Client {
            stream,
            received: Vec::new(),
        }
    }

    fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).expect("sent");
    }

    /// The next message. No string in this test contains a brace.
    fn next(&mut self) -> String {
        loop {
            let mut depth = 0;
            let end = self.received.iter().position(|byte| {
                depth += i32::from(*byte == b'{') - i32::from(*byte == b'}');
                *byte == b'}' && depth == 0
            });
            if let Some(end) = end {
                let rest = self.received.split_off(end + 1);
                let message = std::mem::replace(&mut self.received, rest);
                return String::from_utf8(message).expect("UTF-8");
            }
            let mut room = [0; 65536];
            let got = self.stream.read(&mut room).expect("a message");
            assert!(got > 0, "the connection ended");
            self.received.extend_from_slice(&room[..got]);
        }
    }
}

fn transact(id: usize, operation: &str) -> String {
    format!(r#"{{"method":"transact","params":["D",{operation}],"id":{id}}}"#)
}

fn count_up(id: usize) -> String {
    let operation = r#"{"op":"mutate","table":"c","where":[],"mutations":[["n","+=",1]]}"#;
    transact(id, operation)
}

/// Increments the counter, three requests at a time, sometimes with a long request between them.
/// All replies arrive in order.
fn count(path: &PathBuf) {
    let mut client = Client::connect(path);
    let long = r#"{"op":"update","table":"t","where":[["i","==",-1]],"row":{"i":0}}"#;
    for round in 0..ROUNDS {
        let id = 4 * round;
        let is_long = round % 10 == 9;
        let mut requests = count_up(id);
        if is_long {
            requests += &transact(id + 1, long);
        }
        requests += &count_up(id + 2);
        requests += &count_up(id + 3);
        client.send(&requests);
        let replies: &[(usize, usize)] = if is_long {
            &[(0, 1), (1, 0), (2, 1), (3, 1)]
        } else {
            &[(0, 1), (2, 1), (3, 1)]
        };
        for (offset, count) in replies {
            let reply = client.next();
            let (number, rows) = (id + offset, format!("\"count\":{count}"));
            assert!(
                reply.contains(&format!("\"id\":{number},")) && reply.contains(&rows),
                "{reply}"
            );
        }
    }
}

/// Monitors the counter until it is `last`. It must never decrease.
fn watch(path: &PathBuf, last: usize) {
    let mut client = Client::connect(path);
    client.send(r#"{"method":"monitor","params":["D",null,{"c":{"columns":["n"]}}],"id":0}"#);
    let mut seen = None;
    while seen != Some(last) {
        let message = client.next();
        let (_, new) = message.split_once("\"new\":{\"n\":").expect("a row");
        let digits = new.split(|byte: char| !byte.is_ascii_digit()).next();
        let number = digits.and_then(|digits| digits.parse().ok());
        assert!(
            number.is_some() && number > seen,
            "{message} after {seen:?}"
        );
        seen = number;
    }
}

/// A server of the database `D`, which has no rows, in a directory of its own.
struct Started {
    server: Server,
    poll: mio::Poll,
    socket: PathBuf,
    _directory: Directory,
}

impl Started {
    fn new(name: &str) -> Started {
        Started::of(name, Magic::Standalone, |_, body| {
            body.extend_from_slice(SCHEMA.as_bytes());
        })
    }

    /// A server of the only member of a cluster.
    fn clustered(name: &str) -> Started {
        Started::of(name, Magic::Clustered, |directory, body| {
            let local_address = format!("unix:{}", directory.join("raft").display());
            let id = |number| Uuid([number; 16]);
            let header = Header {
                server_id: Sid(id(1)),
                name: "D".to_owned(),
                local_address: local_address.clone(),
                cluster_id: Cid::new(id(2)),
                membership: Membership::Joined {
                    servers: Servers::one(Sid(id(1)), &local_address),
                    snapshot: Some(Snapshot {
                        index: Index(1),
                        term: Term(1),
                        eid: Eid(id(3)),
                        data: Data::of(Some(SCHEMA.as_bytes()), Some(b"{}")),
                        election_timer_ms: None,
                    }),
                },
            };
            header.encode(body);
        })
    }

    fn of(name: &str, magic: Magic, write: impl FnOnce(&Path, &mut Vec<u8>)) -> Started {
        let path = std::env::temp_dir().join(format!("corvid-{name}-{}", std::process::id()));
        fs::create_dir(&path).expect("a directory of its own");
        let directory = Directory(path);
        let (file, socket) = (directory.0.join("d.db"), directory.0.join("socket"));
        let mut bytes = Vec::new();
        let mut record = Record::begin(&mut bytes, magic);
        write(&directory.0, record.body());
        record.finish();
        fs::write(&file, &bytes).expect("writable");

        let poll = mio::Poll::new().expect("a poll");
        let waker = Arc::new(mio::Waker::new(poll.registry(), mio::Token(0)).expect("a waker"));
        let config = Config {
            shards: 4,
            column_diff: true,
            data_conversion: false,
            ..Config::default()
        };
        let mut server = Server::start(config, waker).expect("started");
        let database = WantedDatabase {
            entry: file.display().to_string(),
            file: file.display().to_string(),
            config: None,
        };
        let remote = format!("punix:{}", socket.display());
        server.begin(Reconfiguration::new(
            [database],
            [(remote, RemoteOptions::default())],
        ));
        let mut started = Started {
            server,
            poll,
            socket,
            _directory: directory,
        };
        let mut outcome = None;
        started.run_until("the file is being opened", |server| {
            outcome = server.take_started();
            outcome.is_some()
        });
        outcome.expect("an outcome").expect("served");
        started.server.started(None);
        started
    }

    /// Runs the main loop until something is true.
    fn run_until(&mut self, what: &str, mut is_done: impl FnMut(&mut Server) -> bool) {
        let mut events = mio::Events::with_capacity(8);
        let deadline = Instant::now() + LIMIT;
        self.server.run_events();
        while !is_done(&mut self.server) {
            assert!(Instant::now() < deadline, "{what}");
            self.poll
                .poll(&mut events, Some(Duration::from_millis(20)))
                .expect("polled");
            self.server.run_events();
        }
    }
}

#[test]
fn the_name_of_a_database_is_taken_until_its_removal_has_ended() {
    let mut started = Started::new("removal");
    let server = &mut started.server;
    assert!(server.is_taken("D"));
    server.remove_database("D", "removed", None);
    assert!(server.is_taken("D"), "the row of `_Server` is still there");
    started.run_until("the removal does not end", |server| !server.is_taken("D"));
    started.server.shut_down();
}

#[test]
fn a_status_names_the_thread_that_does_not_answer() {
    let mut started = Started::new("silent");
    let status = |started: &mut Started| {
        let documents = Rc::new(RefCell::new(Vec::new()));
        let taken = documents.clone();
        let finish = move |status: &Status| taken.borrow_mut().push(status.json());
        started.server.gather_status(Box::new(finish));
        started.run_until("no status", |_| !documents.borrow().is_empty());
        documents.take().remove(0)
    };
    let database = |status: &Value| {
        let databases = status.get("databases").and_then(Value::as_array);
        let mut found = databases.into_iter().flatten();
        let named = |database: &&Value| database.get("name").and_then(Value::as_str) == Some("D");
        found.find(named).expect("the database").clone()
    };
    let driver = started
        .server
        .databases
        .served("D")
        .expect("served")
        .handle
        .driver()
        .clone();
    let held = lock(&driver);
    let late = status(&mut started);
    let silent = Value::Array(vec![Value::string("db:D")]);
    assert_eq!(late.get("unanswered"), Some(&silent));
    assert!(database(&late).get("tables").is_none());
    assert!(
        late.get("sessions")
            .is_some_and(|it| it.as_array().is_some())
    );
    drop(held);
    let whole = status(&mut started);
    assert_eq!(whole.get("unanswered"), Some(&Value::Array(Vec::new())));
    assert!(database(&whole).get("tables").is_some());
    started.server.shut_down();
}

#[test]
fn commands_that_wait_for_a_member_are_answered_when_it_ends() {
    let mut started = Started::new("ended");
    let server = &mut started.server;
    let told = Rc::new(RefCell::new(Vec::new()));
    let mut ask = |database: &str| {
        let (told, name) = (told.clone(), database.to_owned());
        server.pending.await_member(database, move |_, status| {
            told.borrow_mut().push((name, status.is_some()));
        })
    };
    ask("other");
    let late = ask("D");
    server.remove_database("D", "removed", None);
    started.run_until("the removal does not end", |server| !server.is_taken("D"));
    assert_eq!(told.take(), [("D".to_owned(), false)]);
    // An answer that arrives later finds no continuation.
    assert!(started.server.pending.told(late).is_none());
    started.server.shut_down();
}

/// Whether requests for the status of the member of `D` were answered with a status.
type Told = Rc<RefCell<Vec<bool>>>;

fn note(told: &Told) -> impl FnOnce(&mut Server, Option<MemberStatus>) + 'static {
    let told = told.clone();
    move |_, status| told.borrow_mut().push(status.is_some())
}

#[test]
fn a_member_whose_thread_ends_by_itself_leaves_no_command_waiting() {
    let mut started = Started::clustered("vanished");
    let told = Told::default();
    started.server.ask_member("D", note(&told));
    started.run_until("no status", |_| !told.borrow().is_empty());
    assert_eq!(told.take(), [true]);
    // A question that the thread does not answer any more.
    started.server.pending.await_member("D", note(&told));
    let member = started.server.databases.member("D");
    let handle = member.expect("a member").handle.clone();
    // As far as the main thread knows, the thread ends by itself.
    handle.post([ToMember::End]);
    started.run_until("the question waits", |_| !told.borrow().is_empty());
    assert_eq!(told.take(), [false]);
    // The database has ended with it, so nobody waits for that either.
    started.run_until("it is still served", |server| !server.is_taken("D"));
    started.server.ask_member("D", note(&told));
    assert_eq!(told.take(), [false]);
    started.server.shut_down();
}

#[test]
fn a_member_whose_thread_has_panicked_is_not_asked() {
    let mut started = Started::clustered("panicked");
    let told = Told::default();
    started.server.pending.await_member("D", note(&told));
    let id = started.server.databases.served("D").expect("served").id;
    started.server.run_message(MainMessage::MemberEnded(id));
    assert_eq!(told.take(), [false]);
    started.server.ask_member("D", note(&told));
    assert_eq!(told.take(), [false]);
    // The status is complete without its part.
    let documents = Rc::new(RefCell::new(Vec::new()));
    let taken = documents.clone();
    let finish = move |status: &Status| taken.borrow_mut().push(status.json());
    started.server.gather_status(Box::new(finish));
    started.run_until("no status", |_| !documents.borrow().is_empty());
    let status = documents.take().remove(0);
    assert_eq!(status.get("unanswered"), Some(&Value::Array(Vec::new())));
    started.server.shut_down();
}

#[test]
fn clients_of_several_shards_see_one_order() {
    let mut started = Started::new("shards");
    let socket = started.socket.clone();
    let clients = std::thread::spawn(move || {
        let mut first = Client::connect(&socket);
        let rows: Vec<String> = (0..ROWS)
            .map(|i| format!(r#"{{"op":"insert","table":"t","row":{{"i":{i}}}}}"#))
            .collect();
        first.send(&transact(0, r#"{"op":"insert","table":"c","row":{"n":0}}"#));
        first.send(&transact(1, &rows.join(",")));
        assert!(!first.next().contains("error\":{") && !first.next().contains("error\":{"));
        let watchers = (0..3).map(|_| {
            let socket = socket.clone();
            std::thread::spawn(move || watch(&socket, CLIENTS * ROUNDS * 3))
        });
        let counters = (0..CLIENTS).map(|_| {
            let socket = socket.clone();
            std::thread::spawn(move || count(&socket))
        });
        let all: Vec<_> = watchers.chain(counters).collect();
        for thread in all {
            thread.join().expect("no panic");
        }
    });
    started.run_until("the clients do not finish", |_| clients.is_finished());
    started.server.shut_down();
    clients.join().expect("no panic");
}
