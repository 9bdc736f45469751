//! Databases are removed, and servers exit, while files are rewritten or copied. Every command must
//! be answered, and no thread, descriptor or temporary file may remain. This uses real processes
//! and many short races of each kind.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use corvid_tests::client::{Client, Received};
use corvid_tests::random::{Random, seed};
use corvid_tests::server::{Implementation, Server, Setup};
use serde_json::{Value, json};

const LIMIT: Duration = Duration::from_secs(60);

/// The number of races of each kind between a command and the removal of its database.
const REMOVALS: u64 = 120;

/// The number of races of each kind between a command and the end of the server.
const EXITS: u64 = 12;

/// The size of the text in the row, in bytes. It makes the writing of a new file take some
/// milliseconds.
const ROW_BYTES: usize = 200_000;

fn schema(version: &str) -> Value {
    json!({"name": "D", "version": version, "tables": {"T": {"isRoot": true, "columns": {
        "text": {"type": "string"}}}}})
}

/// Starts a server with a row in its database. Also returns the client that has inserted the row,
/// which stays connected.
fn start() -> (Server, Client) {
    let setup = Setup {
        databases: vec![schema("1.0.0")],
        ..Setup::default()
    };
    let server = Server::start(Implementation::Corvid, &setup).expect("a server");
    let text = "x".repeat(ROW_BYTES);
    let insert = json!(["D", {"op": "insert", "table": "T", "row": {"text": text}}]);
    let mut client = server.connect().expect("a connection");
    client.call("transact", &insert).expect("a row");
    let awareness = client.call("set_db_change_aware", &json!([true]));
    awareness.expect("awareness");
    (server, client)
}

/// A command that has been sent on its own connection and has not been answered yet.
struct PendingRequest(Client);

impl PendingRequest {
    fn send(path: &Path, method: &str, params: &Value) -> PendingRequest {
        let mut client = Client::connect(path).expect("a connection");
        let request = json!({"id": "asked", "method": method, "params": params});
        client.send(request.to_string().as_bytes()).expect("sent");
        PendingRequest(client)
    }

    /// Returns the reply, which must come.
    fn answer(self, what: &str) -> Value {
        let answer = self.answer_or_end(what);
        answer.unwrap_or_else(|| panic!("{what}: closed without an answer"))
    }

    /// Returns the reply, or `None` if the connection is closed without a reply.
    fn answer_or_end(mut self, what: &str) -> Option<Value> {
        loop {
            match self.0.receive(LIMIT).expect("received") {
                Received::Text(text) => {
                    let message: Value = serde_json::from_slice(&text).expect("JSON");
                    if message["id"] == "asked" {
                        return Some(message);
                    }
                }
                Received::Closed => return None,
                Received::Nothing => panic!("{what}: neither answered nor closed"),
            }
        }
    }
}

/// The work that uses the database's file at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    CompactOne,
    CompactAll,
    Backup,
    Convert,
    DurableCommit,
}

const WORKS: [Work; 5] = [
    Work::CompactOne,
    Work::CompactAll,
    Work::Backup,
    Work::Convert,
    Work::DurableCommit,
];

fn ask_for(server: &Server, work: Work, number: u64) -> PendingRequest {
    let control = server.control_socket();
    match work {
        Work::CompactOne => PendingRequest::send(&control, "ovsdb-server/compact", &json!(["D"])),
        Work::CompactAll => PendingRequest::send(&control, "ovsdb-server/compact", &json!([])),
        Work::Backup => {
            let copy = server.dir().join(format!("copy{number}.db"));
            PendingRequest::send(&control, "ovsdb-server/backup", &json!(["D", copy]))
        }
        Work::Convert => aware(server, "convert", &json!(["D", schema("2.0.0")])),
        Work::DurableCommit => {
            let row = json!({"op": "insert", "table": "T", "row": {"text": "y"}});
            let commit = json!({"op": "commit", "durable": true});
            aware(server, "transact", &json!(["D", row, commit]))
        }
    }
}

/// Waits until the server has begun the work. Returns false if this cannot be seen from outside.
fn has_begun(server: &Server, work: Work, number: u64) -> bool {
    let copy = |suffix: &str| server.dir().join(format!("copy{number}.db{suffix}"));
    let deadline = Instant::now() + LIMIT;
    loop {
        let has_begun = match work {
            Work::CompactOne | Work::CompactAll => server.log().contains("compacting D database"),
            Work::Backup => copy(".tmp").exists() || copy("").exists(),
            Work::Convert | Work::DurableCommit => return false,
        };
        if has_begun {
            return true;
        }
        assert!(Instant::now() < deadline, "{work:?} does not begin");
    }
}

/// Sends a request on a connection that is aware of database changes.
fn aware(server: &Server, method: &str, params: &Value) -> PendingRequest {
    let mut client = server.connect().expect("a connection");
    let awareness = client.call("set_db_change_aware", &json!([true]));
    awareness.expect("awareness");
    let request = json!({"id": "asked", "method": method, "params": params});
    client.send(request.to_string().as_bytes()).expect("sent");
    PendingRequest(client)
}

/// Waits for a random time, which decides the race.
fn spin(random: &mut Random) {
    let until = Instant::now() + Duration::from_micros(random.below(4000));
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

/// The threads and descriptors that a server has.
#[derive(Debug)]
struct Resources {
    /// The names of the threads with their numbers, without the allocator's threads, which may
    /// start at any time.
    threads: BTreeMap<String, usize>,
    descriptors: usize,
}

impl Resources {
    /// Whether this is no more than the server had at another time. It may be less: when the server
    /// was first looked at, it may not have noticed yet that the connection on which the test found
    /// out that it listens was closed.
    fn is_within(&self, other: &Resources) -> bool {
        let mut threads = self.threads.iter();
        threads.all(|(name, number)| other.threads.get(name).is_some_and(|most| number <= most))
            && self.descriptors <= other.descriptors
    }
}

fn held(server: &Server) -> io::Result<Resources> {
    let process = format!("/proc/{}", server.pid());
    let mut threads = BTreeMap::new();
    for task in fs::read_dir(format!("{process}/task"))? {
        // A thread may have ended in the meantime.
        let name = fs::read_to_string(task?.path().join("comm")).unwrap_or_default();
        if !name.is_empty() && !name.starts_with("jemalloc") {
            *threads.entry(name.trim().to_owned()).or_insert(0) += 1;
        }
    }
    let descriptors = fs::read_dir(format!("{process}/fd"))?.count();
    Ok(Resources {
        threads,
        descriptors,
    })
}

/// Returns the result of [`held`] once every thread has its name. A new thread has the name of the
/// process until it sets its own.
fn held_at_rest(server: &Server) -> Resources {
    let deadline = Instant::now() + LIMIT;
    loop {
        let now = held(server).expect("a process");
        if now.threads.get("ovsdb-server") == Some(&1) {
            return now;
        }
        assert!(Instant::now() < deadline, "{now:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn temporary_files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    names.filter(|name| name.ends_with(".tmp")).collect()
}

#[test]
fn requests_that_wait_for_a_file_are_answered_when_its_database_is_removed() {
    let mut random = Random::new(seed("CORVID_SEED"));
    for work in WORKS {
        let (server, _client) = start();
        let control = server.control_socket();
        let before = held_at_rest(&server);
        for number in 0..REMOVALS {
            let what = format!("{work:?} {number}");
            let asked = ask_for(&server, work, number);
            spin(&mut random);
            let removal = PendingRequest::send(&control, "ovsdb-server/remove-db", &json!(["D"]));
            let removed = removal.answer(&format!("the removal after {what}"));
            assert_eq!(removed["error"], Value::Null, "{what}");
            asked.answer(&what);
            let file = server.dir().join("D.db").display().to_string();
            let added = server.control("ovsdb-server/add-db", &[file]);
            assert_eq!(added.expect("a reply")["error"], Value::Null, "{what}");
        }
        // The threads of a removed database may end after the reply.
        let deadline = Instant::now() + LIMIT;
        loop {
            let now = held(&server).expect("a process");
            if now.is_within(&before) {
                break;
            }
            assert!(Instant::now() < deadline, "{work:?}: {before:?}, {now:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(temporary_files(server.dir()), [""; 0], "{work:?}");
    }
}

#[test]
fn requests_that_wait_for_a_file_are_answered_when_the_server_exits() {
    let mut random = Random::new(seed("CORVID_SEED"));
    for work in WORKS {
        for number in 0..EXITS {
            let what = format!("{work:?} {number}");
            let (mut server, _client) = start();
            let asked = ask_for(&server, work, number);
            let has_begun = has_begun(&server, work, number);
            spin(&mut random);
            let exit = PendingRequest::send(&server.control_socket(), "exit", &json!([]));
            exit.answer(&format!("the exit after {what}"));
            let answer = asked.answer_or_end(&what);
            // Requests that the server has not read when it exits get no reply.
            assert!(answer.is_some() || !has_begun, "{what}");
            server.await_end().expect(&what);
            assert_eq!(temporary_files(server.dir()), [""; 0], "{what}");
        }
    }
}
