//! The flight recorder. A server under load, with a monitor and a write that fails, is recorded and
//! replayed to the same bytes. A damaged recording is reported. A recording ends when it has its
//! maximum size, and the server continues.

#![allow(clippy::unwrap_used, reason = "a failing case may end the program")]

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;

use serde_json::{Value, json};
use tempfile::TempDir;

use corvid_tests::client::Client;
use corvid_tests::process::Process;
use corvid_tests::server::Implementation;
use corvid_tests::{binary, database_file, troubled_disk};

const WRITERS: usize = 4;
const ROUNDS: usize = 60;
/// The value of `ENOSPC` on Linux.
const NO_SPACE: &str = "28";

struct Fixture {
    process: Process,
    /// Writes to the database's file fail while this file exists.
    trigger: PathBuf,
    recordings: PathBuf,
    _home: TempDir,
}

impl Fixture {
    fn new(options: &[&str]) -> Fixture {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        let (file, trigger, recordings) = (at("D.db"), at("trigger"), at("recordings"));
        let schema = json!({"name": "D", "version": "1.0.0", "tables": {"T": {
            "columns": {"n": {"type": "integer"}, "text": {"type": "string"}}, "isRoot": true}}});
        database_file::create(&file, &schema).unwrap();
        let mut arguments: Vec<OsString> = options.iter().map(OsString::from).collect();
        arguments.push(format!("--record={}", recordings.display()).into());
        arguments.push(file.into());
        let program = Implementation::Corvid.server_binary().unwrap();
        let mut process = Process::new(&program, home.path(), &arguments)
            .with_variable("LD_PRELOAD", troubled_disk::library(home.path()))
            .with_variable(troubled_disk::FILE, "D.db")
            .with_variable(troubled_disk::WHILE, &trigger)
            .with_variable(troubled_disk::WRITE_ERRNO, NO_SPACE);
        process.start().unwrap();
        Fixture {
            process,
            trigger,
            recordings,
            _home: home,
        }
    }

    /// Runs several clients at the same time. Returns the replies that contain an error.
    fn load(&self) -> Vec<Value> {
        thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    scope.spawn(move || write(&mut self.process.connect().unwrap(), writer))
                })
                .collect();
            let errors = writers
                .into_iter()
                .flat_map(|writer| writer.join().unwrap());
            errors.collect()
        })
    }

    fn recording(&self) -> PathBuf {
        self.recordings.join("D.recording")
    }
}

/// Inserts, updates and deletes rows that only this writer uses, and reads all rows.
fn write(client: &mut Client, writer: usize) -> Vec<Value> {
    let mut errors = Vec::new();
    for round in 0..ROUNDS {
        let n = writer * ROUNDS + round;
        let text = "x".repeat(100 * (round % 7));
        let params = json!(["D",
            {"op": "insert", "table": "T", "row": {"n": n, "text": text}},
            {"op": "update", "table": "T", "where": [["n", "==", n]], "row": {"text": "new"}},
            {"op": "delete", "table": "T", "where": [["n", "<", n], ["text", "==", "new"]]},
            {"op": "select", "table": "T", "where": []},
            {"op": "commit", "durable": round % 10 == 9}]);
        let reply = client.call("transact", &params).unwrap();
        if reply.to_string().contains("I/O error") {
            errors.push(reply);
        }
    }
    errors
}

fn replay(directory: &Path) -> Output {
    let mut command = Command::new(binary::bin("ovsdb-server"));
    command.arg(format!("--replay={}", directory.display()));
    command.output().unwrap()
}

#[test]
fn replays_repeat_the_same_bytes_and_report_damage() {
    let mut place = Fixture::new(&[]);
    let mut watcher = place.process.connect().unwrap();
    let monitor = json!(["D", "m", {"T": {"columns": ["n", "text"]}}]);
    watcher.call("monitor_cond", &monitor).unwrap();
    assert_eq!(place.load(), Vec::<Value>::new());
    fs::write(&place.trigger, "").unwrap();
    assert!(!place.load().is_empty(), "writes fail");
    fs::remove_file(&place.trigger).unwrap();
    // The first transactions may still fail.
    place.load();
    place.process.stop().unwrap();

    let output = replay(&place.recordings);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}{complaints}");
    assert!(
        said.contains("D.recording") && said.contains("_Server.recording"),
        "{said}"
    );
    assert!(said.contains("the same bytes"), "{said}");

    let whole = fs::read(place.recording()).unwrap();
    fs::write(place.recording(), &whole[..whole.len() - 5]).unwrap();
    let output = replay(&place.recordings);
    let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(complaints.contains("D.recording: batch "), "{complaints}");
    assert!(
        complaints.contains("the recording is cut off"),
        "{complaints}"
    );
    let mut damaged = whole;
    let middle = damaged.len() / 2;
    damaged[middle] ^= 4;
    fs::write(place.recording(), &damaged).unwrap();
    let complaints = replay(&place.recordings).stderr;
    let complaints = String::from_utf8_lossy(&complaints).into_owned();
    assert!(
        complaints.contains("damaged") || complaints.contains("cut off"),
        "{complaints}"
    );
}

#[test]
fn a_recording_ends_at_its_size_and_that_of_the_run_before_is_kept() {
    let mut place = Fixture::new(&["--max-recording-size=1M"]);
    let mut rounds = 0;
    while !place.process.log().contains("D: the recording ends") {
        assert_eq!(place.load(), Vec::<Value>::new(), "the server goes on");
        rounds += 1;
        assert!(rounds < 200, "{}", place.process.log());
    }
    assert_eq!(place.load(), Vec::<Value>::new(), "the server goes on");
    assert!(fs::metadata(place.recording()).unwrap().len() <= 1 << 20);
    assert_eq!(
        place.process.log().matches("D: the recording ends").count(),
        1
    );
    place.process.stop().unwrap();
    let output = replay(&place.recordings);
    let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{complaints}");
    let before = fs::metadata(place.recording()).unwrap().len();
    place.process.start().unwrap();
    place.process.stop().unwrap();
    let old = fs::metadata(place.recordings.join("D.recording.old")).unwrap();
    assert_eq!(old.len(), before);
}

#[test]
fn a_directory_without_recordings_is_reported() {
    let home = tempfile::tempdir().unwrap();
    let output = replay(home.path());
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is no recording"));
}
