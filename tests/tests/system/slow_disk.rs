//! A disk that is slow, fails, or does not sync directories, under a running server: which clients
//! wait for it and which do not, and what is logged.
//!
//! The disk is real. A library that is loaded before the C library makes it slow or fail, see
//! [`corvid_tests::troubled_disk`].

#![allow(clippy::unwrap_used, reason = "a failing case may end the program")]

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use corvid_tests::client::{Client, Received};
use corvid_tests::process::Process;
use corvid_tests::server::Implementation;
use corvid_tests::{database_file, troubled_disk};

/// The time limit for any event.
const TIME_LIMIT: Duration = Duration::from_secs(60);
/// The duration of a write on the slow disk, in us.
const WRITE_US: u64 = 500_000;
/// The number of attempts, and how many of them must succeed. Not all of them must, because the
/// machine may be busy.
const ROUNDS: usize = 30;
const SHOWN_MIN: usize = 3;

struct Fixture {
    process: Process,
    trigger: PathBuf,
    trace: PathBuf,
    /// Dropped last.
    home: TempDir,
}

impl Fixture {
    /// Starts a server on a disk with these variables, which apply while the trigger file exists.
    fn new(variables: &[(&str, String)]) -> Fixture {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        let (file, trigger, trace) = (at("D.db"), at("trigger"), at("trace"));
        let schema = json!({"name": "D", "version": "1.0.0", "tables": {
            "T": {"columns": {"n": {"type": "integer"}}, "isRoot": true}}});
        database_file::create(&file, &schema).unwrap();
        let program = Implementation::Corvid.server_binary().unwrap();
        let library = troubled_disk::library(home.path());
        let mut process = Process::new(&program, home.path(), &[file.into()])
            .with_variable("LD_PRELOAD", library)
            .with_variable(troubled_disk::FILE, "D.db")
            .with_variable(troubled_disk::WHILE, &trigger)
            .with_variable(troubled_disk::TRACE, &trace);
        for (name, value) in variables {
            process = process.with_variable(name, value);
        }
        process.start().unwrap();
        Fixture {
            process,
            trigger,
            trace,
            home,
        }
    }

    fn status(&self) -> String {
        let command = "ovsdb-server/get-db-storage-status";
        let reply = self.process.control(command, &["D".to_owned()]).unwrap();
        reply["result"].as_str().unwrap().to_owned()
    }

    fn is_disk_left_to_its_thread(&self) {
        let trace = fs::read_to_string(&self.trace).unwrap_or_default();
        assert!(trace.contains("disk sync"), "{trace}");
        let is_of_holder = |line: &&str| line.starts_with("shard") || line.starts_with("db:");
        let wrong: Vec<&str> = trace.lines().filter(is_of_holder).collect();
        assert!(wrong.is_empty(), "a client waits for these: {wrong:?}");
    }
}

fn insertion(number: usize) -> String {
    json!({"id": number, "method": "transact", "params":
        ["D", {"op": "insert", "table": "T", "row": {"n": number}}]})
    .to_string()
}

fn reply(client: &mut Client) -> Value {
    match client.receive(TIME_LIMIT).unwrap() {
        Received::Text(text) => serde_json::from_slice(&text).unwrap(),
        other => panic!("no reply but {other:?}"),
    }
}

fn insert(client: &mut Client, number: usize) -> Value {
    client.send(insertion(number).as_bytes()).unwrap();
    reply(client)
}

fn is_stored(reply: &Value) -> bool {
    reply["error"] == Value::Null && reply["result"].as_array().is_some_and(|all| all.len() == 1)
}

/// The shard writes commits itself until the disk becomes slow. Then the shard serves its other
/// connections while the disk thread waits, so that an echo is answered before a commit that was
/// sent before it.
#[test]
fn a_slow_disk_delays_only_committing_clients() {
    let place = Fixture::new(&[(troubled_disk::WRITE_US, WRITE_US.to_string())]);
    let mut writer = place.process.connect().unwrap();
    // Connections are distributed over the shards. There are at most as many shards as processors,
    // so one of these connections has the same shard as the writer.
    let others = thread::available_parallelism().map_or(1, usize::from);
    let mut others: Vec<Client> = (0..others)
        .map(|_| place.process.connect().unwrap())
        .collect();
    for number in 0..100 {
        assert!(is_stored(&insert(&mut writer, number)));
    }
    let inline = coverage(&place.process, "db_batch_inline");
    assert!(inline > 0, "shards have written");

    fs::write(&place.trigger, "").unwrap();
    // The shard may still write this commit itself, because it cannot know yet that the disk is
    // slow.
    assert!(is_stored(&insert(&mut writer, 100)));
    let mut shown = 0;
    for round in 0..ROUNDS {
        writer.send(insertion(101 + round).as_bytes()).unwrap();
        // The commit is being written when the echoes are sent, or a moment later.
        let sent = Instant::now();
        for other in &mut others {
            let echo = json!({"id": round, "method": "echo", "params": []});
            other.send(echo.to_string().as_bytes()).unwrap();
        }
        for other in &mut others {
            assert_eq!(reply(other)["id"], json!(round));
        }
        let echoed = sent.elapsed();
        assert!(is_stored(&reply(&mut writer)));
        let stored = sent.elapsed();
        shown += usize::from(echoed * 10 < stored);
        if shown == SHOWN_MIN {
            break;
        }
    }
    assert_eq!(shown, SHOWN_MIN, "echoes wait for the disk");

    fs::remove_file(&place.trigger).unwrap();
    for number in 0..100 {
        assert!(is_stored(&insert(&mut writer, 1000 + number)));
    }
    place.is_disk_left_to_its_thread();
}

/// The disk thread truncates the bytes that a failed write has left, and the next commits are
/// stored.
#[test]
fn the_disk_thread_truncates_after_a_failed_write() {
    let place = Fixture::new(&[(troubled_disk::WRITE_ERRNO, "28".to_owned())]);
    let mut writer = place.process.connect().unwrap();
    for number in 0..100 {
        assert!(is_stored(&insert(&mut writer, number)));
    }
    for round in 0..3 {
        fs::write(&place.trigger, "").unwrap();
        for number in 0..3 {
            let refused = insert(&mut writer, number);
            assert!(refused.to_string().contains("No space left"), "{refused}");
        }
        let status = place.status();
        assert!(status.contains("write failed"), "{status}");
        fs::remove_file(&place.trigger).unwrap();
        for number in 0..50 {
            assert!(is_stored(&insert(&mut writer, 100 * round + number)));
        }
        assert_eq!(place.status(), "status: ok\n");
    }
    let trace = fs::read_to_string(&place.trace).unwrap();
    assert!(trace.contains("disk cut"), "{trace}");
    place.is_disk_left_to_its_thread();
}

#[test]
fn a_failed_sync_of_the_directory_is_logged_once() {
    let place = Fixture::new(&[]);
    assert_eq!(place.status(), "status: ok\n");
    drop(place);

    // File systems that do not sync directories return EINVAL.
    let place = Fixture::new(&[(troubled_disk::DIRECTORY_ERRNO, "22".to_owned())]);
    let mut writer = place.process.connect().unwrap();
    let durable =
        json!(["D", {"op": "insert", "table": "T", "row": {}}, {"op": "commit", "durable": true}]);
    assert_eq!(
        writer.call("transact", &durable).unwrap()["error"],
        Value::Null
    );
    for _ in 0..2 {
        let reply = place.process.control("ovsdb-server/compact", &[]).unwrap();
        assert_eq!(reply["error"], Value::Null);
    }
    let status = place.status();
    let folder = place.home.path().canonicalize().unwrap();
    let words = format!(
        "directory {} cannot be forced to disk (Invalid argument)",
        folder.display()
    );
    let lines: Vec<&str> = status.lines().collect();
    assert_eq!(lines.len(), 2, "{status}");
    assert_eq!(lines[0], "status: ok");
    assert!(
        lines[1].starts_with(&format!("warning: {words}")),
        "{status}"
    );
    let log = place.process.log();
    let told = log.lines().filter(|line| line.contains(&words));
    let told: Vec<&str> = told.collect();
    assert_eq!(told.len(), 1, "{log}");
    assert!(told[0].contains("|WARN|"), "{}", told[0]);
}

/// Returns the total of a counter of `coverage/show`.
fn coverage(process: &Process, name: &str) -> u64 {
    let reply = process.control("coverage/read-counter", &[name.to_owned()]);
    let reply = reply.unwrap();
    let text = reply["result"]
        .as_str()
        .unwrap_or_else(|| panic!("{reply}"));
    text.trim().parse().unwrap()
}
