//! A server with some rows, another client that must be served, and the memory that the server has
//! used.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use corvid_tests::client::{Client, Received};
use corvid_tests::server::{Implementation, Server, Setup};
use serde_json::{Value, json};

/// The time limit for any event on a busy machine.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(60);

/// If a write makes no progress for this time, its peer counts as not reading.
const STUCK: Duration = Duration::from_secs(1);

/// Starts a server with the options and a table `T`, whose rows have a `name` and a `text`.
pub(crate) fn server(options: &[&str]) -> Server {
    let schema = json!({"name": "D", "tables": {"T": {"isRoot": true, "columns": {
        "name": {"type": "string"}, "text": {"type": "string"}}}}});
    let setup = Setup {
        databases: vec![schema],
        options: options.iter().map(|&option| option.to_owned()).collect(),
        ..Setup::default()
    };
    Server::start(Implementation::Corvid, &setup).expect("a server")
}

/// Inserts rows named 0, 1, … with texts of this length.
pub(crate) fn fill(server: &Server, rows: usize, length: usize) {
    let mut client = server.connect().expect("a connection");
    let text = "t".repeat(length);
    for first in (0..rows).step_by(100) {
        let inserts = (first..rows.min(first + 100)).map(|name| {
            json!({"op": "insert", "table": "T", "row": {"name": name.to_string(), "text": text}})
        });
        let params: Vec<Value> = std::iter::once(json!("D")).chain(inserts).collect();
        let reply = client.call("transact", &json!(params)).expect("a reply");
        assert!(reply["error"].is_null(), "{reply}");
    }
}

/// Runs an attack while another client sends requests. At least one round of the other client is
/// entirely within the attack. Returns the result of the attack, and by how many bytes the peak of
/// the memory during the attack exceeds the memory before it.
pub(crate) fn attack<T>(server: &Server, attack: impl FnOnce() -> T) -> (T, u64) {
    round(&mut server.connect().expect("a connection"));
    let before = memory(server, "VmRSS");
    // This resets the peak.
    fs::write(format!("/proc/{}/clear_refs", server.pid()), "5").expect("may be written");
    let is_over = AtomicBool::new(false);
    let outcome = std::thread::scope(|scope| {
        let bystander = scope.spawn(|| {
            let mut client = server.connect().expect("a connection");
            let mut rounds = 0;
            while !is_over.load(Ordering::Relaxed) || rounds < 2 {
                round(&mut client);
                rounds += 1;
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        let end = End(&is_over);
        let outcome = attack();
        drop(end);
        bystander.join().expect("nobody disturbs the bystander");
        outcome
    });
    (outcome, memory(server, "VmHWM").saturating_sub(before))
}

/// Ends the work of the other client, even if the attack has failed.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The requests of the other client: an echo and a transaction.
pub(crate) fn round(client: &mut Client) {
    let echo = client.call("echo", &json!(["here"])).expect("an echo");
    assert_eq!(echo["result"], json!(["here"]));
    let row = json!({"name": "bystander", "text": "small"});
    let params = json!(["D",
        {"op": "insert", "table": "T", "row": row},
        {"op": "delete", "table": "T", "where": [["name", "==", "bystander"]]}]);
    let reply = client.call("transact", &params).expect("a reply");
    assert_eq!(reply["result"][1]["count"], json!(1), "{reply}");
}

/// Returns a line of the process's status, in bytes.
pub(crate) fn memory(server: &Server, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("it runs");
    let line = status.lines().find(|line| line.starts_with(name));
    let kib = line.and_then(|line| line.split_whitespace().nth(1));
    kib.and_then(|kib| kib.parse::<u64>().ok()).expect("a size") * 1024
}

/// Opens a connection whose replies are not read.
pub(crate) fn deaf(server: &Server) -> UnixStream {
    let stream = UnixStream::connect(server.socket()).expect("a connection");
    stream.set_write_timeout(Some(STUCK)).expect("a timeout");
    stream
}

/// Writes until the peer accepts no more or closes the connection, or until everything is written.
/// Returns the number of bytes that were written.
pub(crate) fn pour(stream: &mut UnixStream, mut bytes: &[u8]) -> usize {
    let all = bytes.len();
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    all - bytes.len()
}

/// Returns the next message.
pub(crate) fn next(client: &mut Client) -> Value {
    match client.receive(TIME_LIMIT).expect("it can be received") {
        Received::Text(text) => serde_json::from_slice(&text).expect("JSON"),
        other => panic!("{other:?}"),
    }
}

/// Waits until the server has logged this text.
pub(crate) fn logged(server: &Server, text: &str) {
    wait_for(|| server.log().contains(text), text);
}

/// Waits until a condition is true.
pub(crate) fn wait_for(mut holds: impl FnMut() -> bool, what: &str) {
    let deadline = Instant::now() + TIME_LIMIT;
    while !holds() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the number of sessions according to `memory/show`.
pub(crate) fn sessions(server: &Server) -> usize {
    let reply = server.control("memory/show", &[]).expect("an answer");
    let text = reply["result"].as_str().unwrap_or_default();
    let word = text
        .split_whitespace()
        .find_map(|word| word.strip_prefix("sessions:"));
    word.map_or(0, |count| count.parse().expect("a number"))
}
