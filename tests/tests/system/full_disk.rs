//! The disk fills up under a running server. Writes are rejected with the reference's text, reads
//! and monitors continue, and when there is room again, writes are accepted without a restart.
//! Nothing that was acknowledged is lost, and nothing that was rejected is kept.
//!
//! Each test runs on a file system of two megabytes, see [`corvid_tests::small_disk`]. With
//! `CORVID_REFERENCE=1`, the reference is tested instead of our server. This tests the tests
//! themselves, where they do not ask for more than the reference does.

#![allow(clippy::unwrap_used, reason = "a failing case may end the program")]

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use corvid_tests::client::{Client, Received};
use corvid_tests::ledger::{self, Answer, Contents, DATABASE, Ledger};
use corvid_tests::process::Process;
use corvid_tests::server::Implementation;
use corvid_tests::small_disk::{SmallDisk, on_small_disk};
use corvid_tests::{binary, database_file, peer, tails};

/// The number of rejections that each writer collects before it stops.
const REFUSALS: usize = 50;
/// The maximum size of the text in a row, in bytes.
const TEXT_BYTES: u64 = 2_000;
/// The maximum number of lines that the log may contain about a condition that lasts a second.
const COMPLAINTS_MAX: usize = 5;
/// The time limit for a reply.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// A server whose file is on the small disk, while its log and sockets are elsewhere.
struct Fixture {
    file: PathBuf,
    process: Process,
    ledgers: Vec<Ledger>,
    fillers: usize,
    /// Dropped last.
    _home: TempDir,
}

impl Fixture {
    fn new(disk: &SmallDisk, fillers: usize) -> Fixture {
        let home = tempfile::tempdir().unwrap();
        let file = disk.file("ledger.db");
        database_file::create(&file, &ledger::schema(1)).unwrap();
        let program = Implementation::from_env().server_binary().unwrap();
        let mut process = Process::new(&program, home.path(), &[file.clone().into()]);
        process.start().unwrap();
        let ledgers: Vec<Ledger> = (0..3)
            .map(|writer| Ledger::new(writer, writer > 0, TEXT_BYTES))
            .collect();
        let mut params = vec![json!(DATABASE)];
        params.extend(ledgers.iter().map(Ledger::beginning));
        let mut client = process.connect().unwrap();
        client.call("transact", &Value::Array(params)).unwrap();
        ledger::fill(&mut client, fillers, 200).unwrap();
        Fixture {
            file,
            process,
            ledgers,
            fillers,
            _home: home,
        }
    }

    /// Lets all writers write at the same time, each on its own connection, until each has had
    /// [`REFUSALS`] transactions rejected.
    fn write_until_refused(&mut self) {
        let (process, file) = (&self.process, &self.file);
        thread::scope(|scope| {
            for ledger in &mut self.ledgers {
                scope.spawn(|| {
                    let mut client = process.connect().unwrap();
                    let mut refusals = 0;
                    while refusals < REFUSALS {
                        if let Some(reply) = write(&mut client, ledger) {
                            assert_refused_for_room(&reply, file);
                            refusals += 1;
                        }
                    }
                });
            }
        });
    }

    /// Lets every writer in turn write `times` transactions, each of which must be accepted.
    fn write_accepted(&mut self, times: usize) {
        let mut client = connect_aware(&self.process);
        for ledger in &mut self.ledgers {
            for _ in 0..times {
                let refusal = write(&mut client, ledger);
                assert_eq!(refusal, None, "\n{}", self.process.said());
            }
        }
    }

    /// Checks that the server has the rows of the writers' ledgers, and that the reference's tool
    /// reads the same rows from the file.
    fn assert_intact(&mut self) {
        assert!(
            !self.process.has_ended(),
            "the server has ended:\n{}",
            self.process.said()
        );
        let contents = Contents::read(&mut self.process.connect().unwrap()).unwrap();
        let mut faults = contents.strays(&self.ledgers);
        faults.extend(
            self.ledgers
                .iter()
                .flat_map(|ledger| ledger.check(&contents)),
        );
        assert!(faults.is_empty(), "{faults:#?}\n{}", self.process.said());
        assert_eq!(contents.fillers(), self.fillers);
        if let Some(theirs) = peer::query(&self.file, &ledger::selection()).unwrap() {
            let theirs = Contents::from_results(&theirs).unwrap();
            assert!(
                theirs == contents,
                "the reference's tool reads other contents"
            );
        }
    }

    /// Whether the last commit failed, and why, as `/status.json` has it.
    fn told_of_storage(&self) -> (Value, Value) {
        let json = ["--json".to_owned()];
        let reply = self.process.control("ovsdb-server/status", &json).unwrap();
        let status: Value = serde_json::from_str(reply["result"].as_str().unwrap()).unwrap();
        let databases = status["databases"].as_array().unwrap();
        let own = databases
            .iter()
            .find(|database| database["name"] == DATABASE);
        let storage = &own.unwrap()["storage"];
        (storage["failed"].clone(), storage["error"].clone())
    }

    fn storage_status(&self) -> String {
        let name = [DATABASE.to_owned()];
        let command = "ovsdb-server/get-db-storage-status";
        let reply = self.process.control(command, &name).unwrap();
        let text = reply["result"]
            .as_str()
            .unwrap_or_else(|| panic!("{reply}"));
        text.trim().to_owned()
    }
}

/// Opens a connection that survives conversions.
fn connect_aware(process: &Process) -> Client {
    let mut client = process.connect().unwrap();
    client.call("set_db_change_aware", &json!([true])).unwrap();
    client
}

/// Sends one transaction. Returns the reply if it was rejected.
fn write(client: &mut Client, ledger: &mut Ledger) -> Option<Value> {
    client.send(ledger.request(false).as_bytes()).unwrap();
    let text = match client.receive(TIME_LIMIT).unwrap() {
        Received::Text(text) => text,
        other => panic!("no answer but {other:?}"),
    };
    match ledger
        .apply_reply(&serde_json::from_slice(&text).unwrap())
        .unwrap()
    {
        Answer::Acknowledged => None,
        Answer::Refused(reply) => Some(reply),
    }
}

/// Checks that a reply contains the results of all operations and then the reason why the commit
/// failed.
fn assert_refused_for_room(reply: &Value, file: &Path) {
    let results = reply["result"]
        .as_array()
        .unwrap_or_else(|| panic!("{reply}"));
    let (last, operations) = results.split_last().unwrap_or_else(|| panic!("{reply}"));
    let details = format!("{}: write failed", file.display());
    let error =
        json!({"details": details, "error": "I/O error", "io-error": "No space left on device"});
    assert_eq!(*last, error);
    assert!(
        operations
            .iter()
            .all(|result| result.get("error").is_none()),
        "{reply}"
    );
    // There is at least one row of `Entry`, the row of `Total`, and the row of `Tally`.
    assert!(operations.len() >= 3, "{reply}");
}

fn is_ours() -> bool {
    Implementation::from_env() == Implementation::Corvid
}

#[test]
fn writes_are_refused_until_there_is_room() {
    on_small_disk(
        "full_disk::writes_are_refused_until_there_is_room",
        |disk| {
            let mut place = Fixture::new(disk, 100);
            let mut watcher = Watcher::new(&place.process);
            disk.take(512 * 1024).unwrap();
            place.write_until_refused();

            // Everything except for writing continues.
            place.assert_intact();
            watcher.assert_goes_on(&place);
            Watcher::new(&place.process).assert_goes_on(&place);

            // The very next write succeeds.
            disk.give_back().unwrap();
            place.write_accepted(20);
            place.assert_intact();
            watcher.assert_goes_on(&place);

            // The second time must be like the first.
            disk.take_all_but(64 * 1024).unwrap();
            place.write_until_refused();
            disk.give_back().unwrap();
            place.write_accepted(1);

            place.process.start().unwrap();
            place.assert_intact();
            place.write_accepted(1);
            place.assert_intact();
            let log = place.process.log();
            assert!(
                !log.contains("|EMER|") && !log.contains("panicked"),
                "{log}"
            );
        },
    );
}

#[test]
fn a_full_disk_is_logged_once() {
    on_small_disk("full_disk::a_full_disk_is_logged_once", |disk| {
        let mut place = Fixture::new(disk, 100);
        disk.take_all_but(16 * 1024).unwrap();
        place.write_until_refused();
        let log = place.process.log();
        let is_complaint = |line: &&str| line.contains("write failed");
        let complaints: Vec<&str> = log.lines().filter(is_complaint).collect();
        let refusals = place.ledgers.len() * REFUSALS;
        // The reference repeats it for as long as it lasts.
        if is_ours() {
            assert!(
                complaints.len() <= COMPLAINTS_MAX,
                "{} lines for {refusals} refusals, such as\n{}",
                complaints.len(),
                complaints[0]
            );
        }
        assert!(!complaints.is_empty(), "{log}");
    });
}

#[test]
fn the_status_of_the_storage_reports_a_full_disk() {
    on_small_disk(
        "full_disk::the_status_of_the_storage_reports_a_full_disk",
        |disk| {
            let mut place = Fixture::new(disk, 100);
            assert_eq!(place.storage_status(), "status: ok");
            disk.take_all_but(16 * 1024).unwrap();
            place.write_until_refused();
            let status = place.storage_status();
            // The reference reports that everything is well.
            let expected = format!(
                "status: I/O error: {}: write failed (No space left on device)",
                place.file.display()
            );
            assert_eq!(status, if is_ours() { &expected } else { "status: ok" });
            if is_ours() {
                let told = (json!(true), json!("No space left on device"));
                assert_eq!(place.told_of_storage(), told);
            }
            disk.give_back().unwrap();
            place.write_accepted(1);
            assert_eq!(place.storage_status(), "status: ok");
            if is_ours() {
                assert_eq!(place.told_of_storage(), (json!(false), Value::Null));
            }
        },
    );
}

#[test]
fn a_server_starts_on_a_full_disk() {
    on_small_disk("full_disk::a_server_starts_on_a_full_disk", |disk| {
        let mut place = Fixture::new(disk, 100);
        disk.take(512 * 1024).unwrap();
        place.write_until_refused();
        disk.give_back().unwrap();
        disk.take_all_but(0).unwrap();
        place.process.start().unwrap();
        let mut client = place.process.connect().unwrap();
        for ledger in &mut place.ledgers {
            // The last page of the file may have room for a small transaction.
            if let Some(reply) = write(&mut client, ledger) {
                assert_refused_for_room(&reply, &place.file);
            }
        }
        place.assert_intact();
        disk.give_back().unwrap();
        place.write_accepted(10);
        place.process.start().unwrap();
        place.assert_intact();
    });
}

#[test]
fn compaction_and_conversion_need_room_and_fail_without_harm() {
    on_small_disk(
        "full_disk::compaction_and_conversion_need_room_and_fail_without_harm",
        |disk| {
            let mut place = Fixture::new(disk, 3_000);
            disk.take_all_but(128 * 1024).unwrap();
            let before = fs::metadata(&place.file).unwrap();
            let replacement = tails::replacement(&place.file);
            for _ in 0..3 {
                let reply = place.process.control("ovsdb-server/compact", &[]).unwrap();
                let error = reply["error"].as_str().unwrap_or_else(|| panic!("{reply}"));
                assert!(error.contains("No space left on device"), "{error}");
                assert!(!replacement.exists());
                let error = convert(&place.process, 2);
                assert!(
                    error.to_string().contains("No space left on device"),
                    "{error}"
                );
                assert!(!replacement.exists());
                place.write_accepted(1);
            }
            let after = fs::metadata(&place.file).unwrap();
            assert_eq!(after.ino(), before.ino(), "the file was replaced");
            assert!(after.len() > before.len(), "the file was not written");
            place.assert_intact();

            place.process.kill();
            if is_ours() {
                let output = Command::new(binary::bin("ovsdb-tool"))
                    .arg("compact")
                    .arg(&place.file)
                    .output();
                let output = output.unwrap();
                assert_eq!(output.status.code(), Some(1), "{output:?}");
                assert!(!replacement.exists());
            }
            assert_eq!(fs::metadata(&place.file).unwrap().ino(), before.ino());
            place.process.start().unwrap();
            place.assert_intact();

            disk.give_back().unwrap();
            let reply = place.process.control("ovsdb-server/compact", &[]).unwrap();
            assert_eq!(reply["error"], Value::Null);
            assert_eq!(convert(&place.process, 2), Value::Null);
            place.write_accepted(5);
            place.process.start().unwrap();
            place.assert_intact();
        },
    );
}

/// Returns the error of a conversion to that version of the schema, or null.
fn convert(process: &Process, version: u32) -> Value {
    let mut client = connect_aware(process);
    let reply = client
        .call("convert", &json!([DATABASE, ledger::schema(version)]))
        .unwrap();
    reply["error"].clone()
}

/// A client that monitors. It must get an update of each committed transaction and of no other.
struct Watcher {
    client: Client,
    /// The number of transactions of which it has received an update.
    heard: usize,
}

impl Watcher {
    fn new(process: &Process) -> Watcher {
        let mut client = process.connect().unwrap();
        let requests = json!({"Total": {"columns": ["serial"]}, "Tally": {"columns": ["mood"]}});
        let reply = client
            .call("monitor", &json!([DATABASE, null, requests]))
            .unwrap();
        let rows = reply["result"]["Total"].as_object();
        Watcher {
            client,
            heard: rows.map_or(0, serde_json::Map::len),
        }
    }

    /// Changes an ephemeral column, which needs no room, and reads the updates up to this change.
    fn assert_goes_on(&mut self, place: &Fixture) {
        static MOODS: AtomicU64 = AtomicU64::new(1);
        let mood = MOODS.fetch_add(1, Ordering::Relaxed);
        let update = json!({"op": "update", "table": "Tally", "where": [["writer", "==", 0]], "row": {"mood": mood}});
        let reply = place
            .process
            .connect()
            .unwrap()
            .call("transact", &json!([DATABASE, update]))
            .unwrap();
        assert_eq!(
            reply["result"],
            json!([{"count": 1}]),
            "a change that is not stored"
        );
        loop {
            let Received::Text(text) = self.client.receive(TIME_LIMIT).unwrap() else {
                panic!("the monitor does not go on");
            };
            let message: Value = serde_json::from_slice(&text).unwrap();
            let changed = &message["params"][1];
            self.heard += changed["Total"].as_object().map_or(0, serde_json::Map::len);
            let rows = changed["Tally"].as_object();
            if rows.is_some_and(|rows| rows.values().any(|row| row["new"]["mood"] == json!(mood))) {
                break;
            }
        }
        let count: i64 = place.ledgers.iter().map(Ledger::count).sum();
        assert_eq!(
            self.heard,
            usize::try_from(count).unwrap(),
            "transactions that the monitor heard of"
        );
    }
}
