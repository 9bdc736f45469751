//! A file is used by the reference's server and ours in turn, with and without column differences.
//! Each server that opens it finds the rows that the other has left, adds rows, compacts the file,
//! and leaves it to the other.
//!
//! The contents are compared as the packaged `ovsdb-client` dumps them. Without the reference these
//! tests cannot run, and report this. `CORVID_UPGRADE_SEED` repeats a run.

#![allow(clippy::unwrap_used, reason = "a failing case may end the program")]

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use sha1::{Digest, Sha1};
use tempfile::TempDir;

use corvid_tests::client::Client;
use corvid_tests::process::Process;
use corvid_tests::random::{self, Random};
use corvid_tests::server::Implementation::{self, Corvid, Reference};
use corvid_tests::{binary, database_file, peer, tails};

const DATABASE: &str = "Hands";
const WITHOUT_DIFFS: &str = "--disable-file-column-diff";
/// The number of transactions before the compaction of a turn, and again after it.
const TRANSACTIONS: u32 = 40;

/// Returns a schema with two tables: one with every kind of column for which differences exist, and
/// one that is garbage-collected.
fn schema() -> Value {
    let many = |base: Value| json!({"type": {"key": base, "min": 0, "max": "unlimited"}});
    let map = json!({"type": {"key": "string", "value": "real", "min": 0, "max": "unlimited"}});
    json!({"name": DATABASE, "version": "1.0.0", "cksum": "1 2", "tables": {
        "Thing": {
            "columns": {
                "name": {"type": "string"},
                "count": {"type": "integer"},
                "ratio": {"type": "real"},
                "up": {"type": {"key": "boolean", "min": 0, "max": 1}},
                "tags": many(json!("string")),
                "numbers": many(json!("integer")),
                "weights": map,
                "parts": many(json!({"type": "uuid", "refTable": "Part", "refType": "strong"})),
                "friends": many(json!({"type": "uuid", "refTable": "Thing", "refType": "weak"})),
                "pair": {"type": {"key": "integer", "min": 0, "max": 2}},
                "mood": {"type": "integer", "ephemeral": true}},
            "indexes": [["name"]], "isRoot": true},
        "Part": {"columns": {"number": {"type": "integer"}, "text": {"type": "string"}}}}})
}

/// The columns that a file contains.
const DUMPS: [&[&str]; 2] = [
    &[
        "Thing", "_uuid", "name", "count", "ratio", "up", "tags", "numbers", "weights", "parts",
        "friends", "pair",
    ],
    &["Part", "_uuid", "number", "text"],
];

/// A file, and the contents that were seen last.
struct Hands {
    folder: TempDir,
    file: PathBuf,
    random: Random,
    number: u32,
    expected: Option<String>,
}

/// A server that currently uses the file.
struct Turn<'a> {
    hands: &'a mut Hands,
    process: Process,
    client: Client,
}

impl Hands {
    fn new() -> Hands {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hands.db");
        database_file::create(&file, &schema()).unwrap();
        let random = Random::new(random::seed("CORVID_UPGRADE_SEED"));
        Hands {
            folder,
            file,
            random,
            number: 0,
            expected: None,
        }
    }

    /// Opens the file and checks that it contains the rows that were left in it.
    fn turn(&mut self, who: Implementation, options: &[&str]) -> Turn<'_> {
        let home = self.folder.path().join(format!("turn-{}", self.number));
        self.number += 1;
        fs::create_dir(&home).unwrap();
        let mut arguments: Vec<OsString> = options.iter().map(OsString::from).collect();
        arguments.push(self.file.clone().into());
        let mut process = Process::new(&who.server_binary().unwrap(), &home, &arguments);
        process.start().unwrap();
        let client = process.connect().unwrap();
        let turn = Turn {
            hands: self,
            process,
            client,
        };
        if let Some(expected) = &turn.hands.expected {
            assert_eq!(
                turn.dump(),
                *expected,
                "{who:?} {options:?} finds something else"
            );
        }
        turn
    }

    fn compact(&self, tool: &Path) {
        peer::run(Command::new(tool).arg("compact").arg(&self.file)).unwrap();
        assert!(!tails::replacement(&self.file).exists());
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(&self.file).unwrap()
    }
}

impl Turn<'_> {
    fn transact(&mut self, operations: Vec<Value>) {
        let mut params = vec![json!(DATABASE)];
        params.extend(operations);
        let reply = self.client.call("transact", &Value::Array(params)).unwrap();
        let results = reply["result"]
            .as_array()
            .unwrap_or_else(|| panic!("{reply}"));
        assert!(
            results.iter().all(|result| result.get("error").is_none()),
            "{reply}"
        );
    }

    fn grow(&mut self) {
        for _ in 0..TRANSACTIONS {
            self.hands.number += 1;
            let operations = operations(&mut self.hands.random, self.hands.number);
            self.transact(operations);
        }
    }

    fn compact(&mut self) {
        let reply = self.process.control("ovsdb-server/compact", &[]).unwrap();
        assert_eq!(reply["error"], Value::Null);
    }

    fn dump(&self) -> String {
        let client = binary::reference("ovsdb-client").unwrap();
        let mut socket = OsString::from("unix:");
        socket.push(self.process.socket());
        let mut lines = Vec::new();
        for columns in DUMPS {
            let mut command = Command::new(&client);
            command
                .args(["-f", "csv", "dump"])
                .arg(&socket)
                .arg(DATABASE)
                .args(columns);
            let text = peer::run(&mut command).unwrap();
            lines.extend(text.lines().map(str::to_owned));
        }
        lines.sort();
        lines.join("\n")
    }

    /// Records the contents and ends the server.
    fn end(mut self, is_killed: bool) {
        self.hands.expected = Some(self.dump());
        if is_killed {
            self.process.kill();
        } else {
            self.process.stop().unwrap();
        }
        let log = self.process.log();
        let is_complaint = |line: &&str| {
            ["|WARN|", "|ERR|", "|EMER|"]
                .iter()
                .any(|level| line.contains(level))
        };
        let complaints: Vec<&str> = log.lines().filter(is_complaint).collect();
        assert!(complaints.is_empty(), "{complaints:#?}");
    }
}

/// Returns the operations of a transaction. Each kind of transaction leaves different records in a
/// file.
fn operations(random: &mut Random, number: u32) -> Vec<Value> {
    let set = |random: &mut Random, most: u64| {
        let count = random.below(most);
        let numbers: Vec<u64> = (0..count).map(|_| random.below(100)).collect();
        json!([
            "set",
            numbers
                .into_iter()
                .collect::<std::collections::BTreeSet<_>>()
        ])
    };
    let everywhere = |mutations: Value| json!({"op": "mutate", "table": "Thing", "where": [], "mutations": mutations});
    match random.below(9) {
        0 | 1 => {
            let row = json!({
                "name": format!("thing {number}"), "count": number, "ratio": f64::from(number) / 3.0,
                "numbers": set(random, 30), "tags": ["set", ["a", format!("\u{e9} \"{number}\"\n")]],
                "weights": ["map", [["one", 1.5], ["two", -2]]], "parts": ["named-uuid", "part"],
                "friends": ["named-uuid", "thing"]});
            vec![
                json!({"op": "insert", "table": "Part", "uuid-name": "part", "row": {"number": number, "text": "x\\y"}}),
                json!({"op": "insert", "table": "Thing", "uuid-name": "thing", "row": row}),
                everywhere(json!([
                    ["friends", "insert", ["named-uuid", "thing"]],
                    ["mood", "+=", 1]
                ])),
            ]
        }
        2 => vec![everywhere(json!([
            ["numbers", "insert", set(random, 5)],
            ["count", "+=", 1]
        ]))],
        3 => vec![everywhere(json!([
            ["numbers", "delete", set(random, 60)],
            ["ratio", "*=", 1.1]
        ]))],
        4 => {
            let key = format!("k{}", number % 7);
            let value = f64::from(number) / 7.0;
            vec![
                everywhere(json!([["weights", "delete", ["set", [key]]]])),
                everywhere(json!([["weights", "insert", ["map", [[key, value]]]]])),
                json!({"op": "comment", "comment": format!("comment {number}\nof two lines")}),
            ]
        }
        5 => {
            let up = if number.is_multiple_of(2) {
                json!(true)
            } else {
                json!(["set", []])
            };
            vec![
                json!({"op": "update", "table": "Thing", "where": [["count", ">", number / 2]], "row": {"up": up, "tags": ["set", []]}}),
            ]
        }
        6 => vec![
            json!({"op": "update", "table": "Thing", "where": [["count", "<", number / 3]], "row": {"parts": ["set", []]}}),
        ],
        7 => {
            vec![json!({"op": "delete", "table": "Thing", "where": [["count", "==", number / 2]]})]
        }
        _ => vec![everywhere(json!([["mood", "+=", 1]]))],
    }
}

/// Whether the reference is installed. Reports it if it is not.
fn has_reference(test: &str) -> bool {
    let is_here = ["ovsdb-server", "ovsdb-client", "ovsdb-tool"]
        .iter()
        .all(|name| binary::reference(name).is_some());
    if !is_here {
        peer::say_skipped(&format!("{test}: the reference is not installed"));
    }
    is_here
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

#[test]
fn a_file_moves_between_servers_up_and_down() {
    if !has_reference("a_file_moves_between_servers_up_and_down") {
        return;
    }
    let our_tool = binary::bin("ovsdb-tool");
    let their_tool = binary::reference("ovsdb-tool").unwrap();
    let mut hands = Hands::new();
    for round in 0..4 {
        // The rounds are: both with differences, the reference without, both without, and ours
        // without.
        let (theirs, ours) = [(true, true), (false, true), (false, false), (true, false)][round];
        for (who, has_diffs) in [(Reference, theirs), (Corvid, ours)] {
            let options: &[&str] = if has_diffs { &[] } else { &[WITHOUT_DIFFS] };
            let mut turn = hands.turn(who, options);
            let before = turn.hands.bytes().len();
            turn.grow();
            let grown = turn.hands.bytes().split_off(before);
            assert_eq!(
                contains(&grown, "\"_is_diff\":true"),
                has_diffs,
                "{who:?} {options:?}"
            );
            if round % 2 == 0 {
                turn.compact();
                let compacted = turn.hands.bytes();
                assert_eq!(
                    contains(&compacted, "\"_is_diff\":true"),
                    has_diffs,
                    "{who:?} {options:?}"
                );
            }
            turn.grow();
            turn.end(round == 1);
            if round % 2 == 1 {
                // Each server's tool compacts the file that the other server has written.
                hands.compact(if who == Corvid {
                    &their_tool
                } else {
                    &our_tool
                });
            }
        }
    }
    hands.turn(Reference, &[]).end(false);
    hands.turn(Corvid, &[]).end(false);
}

#[test]
fn differences_may_be_turned_on_once_all_are_upgraded() {
    if !has_reference("differences_may_be_turned_on_once_all_are_upgraded") {
        return;
    }
    let mut hands = Hands::new();
    for who in [Corvid, Reference, Corvid] {
        let mut turn = hands.turn(who, &[WITHOUT_DIFFS]);
        turn.grow();
        let before = turn.hands.bytes().len();
        let reply = turn
            .process
            .control("ovsdb/file/column-diff-enable", &[])
            .unwrap();
        assert_eq!(reply["error"], Value::Null, "{who:?}");
        turn.grow();
        assert!(
            contains(&turn.hands.bytes()[before..], "\"_is_diff\":true"),
            "{who:?}"
        );
        turn.end(false);
    }
}

/// Up to release 3.2, the reference reads a difference with the limits of its column. It cannot
/// read a difference that has more elements than the column allows. So such a release can open a
/// file with such columns only if the file contains no such differences: either a server without
/// differences has written it, or it has been compacted.
#[test]
fn narrow_sets_survive_the_way_down_without_differences() {
    if !has_reference("narrow_sets_survive_the_way_down_without_differences") {
        return;
    }
    let mut hands = Hands::new();
    let pair = |numbers: Value| json!({"op": "update", "table": "Thing", "where": [], "row": {"pair": numbers}});
    for who in [Corvid, Reference, Corvid] {
        let mut turn = hands.turn(who, &[WITHOUT_DIFFS]);
        if turn.hands.expected.is_none() {
            turn.transact(vec![json!({"op": "insert", "table": "Thing", "row": {}})]);
        }
        turn.transact(vec![pair(json!(["set", [3, 4]]))]);
        turn.transact(vec![pair(json!(9))]);
        turn.transact(vec![pair(json!(["set", [5, 6]]))]);
        turn.end(false);
    }
    // With differences, our server can read the file that it has written.
    let mut turn = hands.turn(Corvid, &[]);
    turn.transact(vec![pair(json!(["set", [3, 4]]))]);
    turn.end(false);
    let mut turn = hands.turn(Corvid, &[]);
    turn.compact();
    turn.end(false);
    hands.turn(Reference, &[]).end(false);
}

/// The oldest files have no version, no checksum and no root tables, and contain dates in seconds
/// and whole values.
#[test]
fn the_oldest_files_are_read_and_grown() {
    if !has_reference("the_oldest_files_are_read_and_grown") {
        return;
    }
    let mut hands = Hands::new();
    let mut oldest = schema();
    let members = oldest.as_object_mut().unwrap();
    members.remove("version");
    members.remove("cksum");
    for table in oldest["tables"].as_object_mut().unwrap().values_mut() {
        table.as_object_mut().unwrap().remove("isRoot");
    }
    let (one, two) = (
        "00000000-0000-4000-8000-000000000001",
        "00000000-0000-4000-8000-000000000002",
    );
    let bodies = [
        oldest,
        json!({"_date": 1_200_000_000, "_comment": "long ago", "Thing": {
            one: {"name": "one", "numbers": ["set", [1, 2, 3]], "weights": ["map", [["k", 1.5]]]},
            two: {"name": "two"}}}),
        json!({"_date": 1_200_000_001, "Thing": {one: {"numbers": ["set", [3, 4]], "weights": ["map", []]}}}),
        json!({"_date": 1_200_000_002, "Thing": {two: null}}),
    ];
    let mut text = String::new();
    for body in bodies {
        let body = format!("{body}\n");
        let hash: String = Sha1::digest(body.as_bytes())
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        text.push_str(&format!("OVSDB JSON {} {hash}\n{body}", body.len()));
    }
    fs::write(&hands.file, text).unwrap();
    hands.turn(Reference, &[]).end(false);
    let dump = hands.expected.clone().unwrap();
    assert!(dump.contains("[3, 4]") && !dump.contains("two"), "{dump}");
    for who in [Corvid, Reference, Corvid] {
        let mut turn = hands.turn(who, &[]);
        turn.grow();
        turn.compact();
        turn.grow();
        turn.end(false);
    }
    hands.turn(Reference, &[]).end(false);
}

#[test]
fn a_converted_file_moves_between_servers() {
    if !has_reference("a_converted_file_moves_between_servers") {
        return;
    }
    let mut hands = Hands::new();
    for (turns, who) in (0u32..).zip([Corvid, Reference, Corvid, Reference]) {
        let mut turn = hands.turn(who, &[]);
        turn.grow();
        let mut schema = schema();
        schema["version"] = json!(format!("2.0.{turns}"));
        schema["tables"]["Thing"]["columns"]["note"] = json!({"type": "string"});
        if turns % 2 == 1 {
            schema["tables"]["Extra"] = json!({"columns": {"number": {"type": "integer"}}});
        }
        turn.client
            .call("set_db_change_aware", &json!([true]))
            .unwrap();
        let reply = turn
            .client
            .call("convert", &json!([DATABASE, schema]))
            .unwrap();
        assert_eq!(reply["error"], Value::Null, "{who:?}");
        turn.grow();
        turn.end(false);
    }
    hands.turn(Corvid, &[]).end(false);
    hands.turn(Reference, &[]).end(false);
}
