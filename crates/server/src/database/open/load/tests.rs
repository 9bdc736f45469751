//! Loading with several threads, and row by row, compared with applying one transaction after
//! another.

use std::sync::atomic::{AtomicU64, Ordering};

use corvid_data::{HashSeed, TableId, Uuid};
use corvid_log::{Damage, Magic, Record};
use corvid_service::once::RecordedCommits;

use super::*;

/// Parents own children; friends are weak references; two indexes and a row limit produce records
/// that do not commit.
const SCHEMA: &str = r#"{"name":"D","tables":{
    "Parent":{"isRoot":true,"indexes":[["name"]],"maxRows":40,"columns":{
        "name":{"type":"string"},
        "tags":{"type":{"key":"string","min":0,"max":"unlimited"}},
        "children":{"type":{"key":{"type":"uuid","refTable":"Child"},"min":0,"max":"unlimited"}},
        "friends":{"type":{"key":{"type":"uuid","refTable":"Parent","refType":"weak"},"min":0,"max":"unlimited"}}}},
    "Child":{"columns":{
        "n":{"type":"integer"},
        "map":{"type":{"key":"string","value":"integer","min":0,"max":3}}}}}}"#;

/// The identities that one thread generates.
struct Versions;

impl UuidSource for Versions {
    fn fresh(&mut self) -> Uuid {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let mut bytes = [0; 16];
        bytes[8..].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        Uuid::from_random(bytes)
    }
}

/// Everything about a loaded log except row versions.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    rows: Vec<String>,
    extent: Extent,
    damage: Option<Damage>,
}

fn outcome(loaded: &Loaded) -> Outcome {
    loaded.database.check_invariants().expect("consistent");
    let mut rows = Vec::new();
    for (id, table) in loaded.database.schema().iter() {
        for row in loaded.database.rows(id) {
            rows.push(format!("{} {} {:?}", table.name, row.uuid, row.columns));
        }
    }
    rows.sort();
    Outcome {
        rows,
        extent: loaded.extent,
        damage: loaded.damage.clone(),
    }
}

/// The outcome of applying one transaction after another, with [`Load`] alone.
fn one_by_one(file: &[u8]) -> Outcome {
    let mut load = Load::open(file).expect("a schema");
    let mut database = Database::new(load.schema().clone(), HashSeed::FIXED);
    let damage = loop {
        match load.next_transaction() {
            Ok(None) => break None,
            Ok(Some(recorded)) => match database.apply_recorded(recorded, &mut Versions) {
                Ok(_) => {}
                Err(error) => break Some(load.reject(error)),
            },
            Err(damage) => break Some(damage),
        }
    };
    outcome(&Loaded {
        database,
        extent: load.into_feed().1,
        damage,
        recorded: RecordedCommits::default(),
    })
}

/// The log that `open` opens, loaded with this number of workers.
fn loaded_by<S: Source + Send>(workers: usize, open: impl Fn() -> Result<S, WireError>) -> Loaded {
    load(
        "a.db",
        workers,
        open,
        HashSeed::FIXED,
        &mut Versions,
        || Versions,
    )
    .expect("a schema")
}

/// Asserts that all ways to load a file have the same outcome, and returns it.
fn agree(file: &[u8], context: &str) -> Outcome {
    let expected = one_by_one(file);
    for workers in [0, 1, 3] {
        let sources = AtomicU64::new(0);
        let open = || {
            sources.fetch_add(1, Ordering::Relaxed);
            Ok(Unsized(file))
        };
        let loaded = loaded_by(workers, open);
        assert_eq!(outcome(&loaded), expected, "{context}, {workers} workers");
        for run_bytes in [1, 300] {
            let load = Load::open(Unsized(file)).expect("a schema");
            let how = |feed: Feed<_>| feed.with_limits(1, run_bytes);
            if let Ok(loaded) = finish(load, workers, how, HashSeed::FIXED, &mut Versions, &|| {
                Versions
            }) {
                let context = format!("{context}, {workers} workers, runs of {run_bytes}");
                assert_eq!(outcome(&loaded), expected, "{context}");
            }
        }
    }
    expected
}

/// A slice without a known length, so that several threads load even a small one. It returns few
/// bytes at a time.
struct Unsized<'a>(&'a [u8]);

impl Source for Unsized<'_> {
    fn read(&mut self, room: &mut [u8]) -> Result<usize, String> {
        let taken = room.len().min(700);
        self.0.read(&mut room[..taken])
    }
}

fn file_of(bodies: &[String]) -> Vec<u8> {
    let mut file = Vec::new();
    for body in [SCHEMA]
        .into_iter()
        .chain(bodies.iter().map(String::as_str))
    {
        let mut record = Record::begin(&mut file, Magic::Standalone);
        record.body().extend_from_slice(body.as_bytes());
        record.finish();
    }
    file
}

fn uuid(kind: char, number: usize) -> String {
    format!("{kind}0000000-0000-4000-8000-{number:012}")
}

/// A small pseudo-random generator: the same seed gives the same numbers.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % limit
    }

    fn uuids(&mut self, kind: char, most: usize) -> String {
        let mut numbers: Vec<usize> = (0..self.below(most + 1)).map(|_| self.below(12)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let items: Vec<String> = numbers
            .iter()
            .map(|number| format!("[\"uuid\",\"{}\"]", uuid(kind, *number)))
            .collect();
        format!("[\"set\",[{}]]", items.join(","))
    }

    /// A record. Most records commit if children precede the parents that refer to them; with
    /// `is_odd` they often do not.
    fn body(&mut self, is_odd: bool) -> String {
        let (mut parents, mut children) = (Vec::new(), Vec::new());
        for _ in 0..1 + self.below(3) {
            let number = self.below(12);
            let name = if is_odd { self.below(12) } else { number };
            parents.push(match self.below(if is_odd { 6 } else { 50 }) {
                0 => format!("\"{}\":null", uuid('a', number)),
                _ => format!(
                    "\"{}\":{{\"name\":\"p{name}\",\"tags\":\"t{}\",\"friends\":{}{}}}",
                    uuid('a', number),
                    self.below(4),
                    self.uuids('a', 2),
                    if self.below(2) == 0 {
                        format!(",\"children\":{}", self.uuids('c', 2))
                    } else {
                        String::new()
                    },
                ),
            });
        }
        for number in 0..12 {
            children.push(format!(
                "\"{}\":{{\"n\":{},\"map\":[\"map\",[[\"k\",{}]]]}}",
                uuid('c', number),
                self.below(9),
                self.below(3)
            ));
        }
        let (parents, children) = (parents.join(","), children.join(","));
        let is_diff = if self.below(2) == 0 {
            ",\"_is_diff\":true"
        } else {
            ""
        };
        format!(
            "{{\"_date\":1700000000000,\"Child\":{{{children}}},\"Parent\":{{{parents}}}{is_diff}}}"
        )
    }
}

#[test]
fn all_ways_of_loading_have_the_same_outcome() {
    let mut transactions = 0;
    for seed in 0..150 {
        let mut chance = Chance(seed);
        let is_odd = seed % 3 == 0;
        let bodies: Vec<String> = (0..1 + chance.below(12))
            .map(|_| chance.body(is_odd))
            .collect();
        let mut file = file_of(&bodies);
        let schema = file_of(&[]).len();
        if chance.below(3) == 0 {
            let at = schema + chance.below(file.len() - schema);
            file[at] ^= 1 << chance.below(7);
        }
        transactions += agree(&file, &format!("seed {seed}")).extent.records() - 1;
    }
    assert!(
        transactions > 100,
        "only {transactions} transactions are good"
    );
}

/// This number of parents, each with a child and a friend.
fn family(parents: usize) -> (Vec<String>, Vec<String>) {
    (0..parents)
        .map(|number| {
            let friend = uuid('a', (number + 1) % parents);
            let parent = format!(
                "\"{}\":{{\"name\":\"p{number}\",\"children\":[\"uuid\",\"{}\"],\"friends\":[\"uuid\",\"{friend}\"]}}",
                uuid('a', number),
                uuid('c', number)
            );
            (parent, format!("\"{}\":{{\"n\":{number}}}", uuid('c', number)))
        })
        .unzip()
}

fn record_of(parents: &[String], children: &[String]) -> String {
    format!(
        "{{\"Parent\":{{{}}},\"Child\":{{{}}},\"_is_diff\":true}}",
        parents.join(","),
        children.join(",")
    )
}

/// Loads a file with this first record row by row, and returns whether that was possible. All ways
/// of loading must have the same outcome in either case.
fn is_filled(body: String) -> bool {
    let later = format!(
        "{{\"Parent\":{{\"{}\":{{\"tags\":\"later\"}}}}}}",
        uuid('a', 0)
    );
    let file = file_of(&[body, later]);
    agree(&file, "a long record");
    let load = Load::open(Unsized(&file)).expect("a schema");
    let how = |feed: Feed<_>| feed.with_limits(1, 100);
    finish(load, 1, how, HashSeed::FIXED, &mut Versions, &|| Versions).is_ok()
}

#[test]
fn a_snapshot_is_loaded_row_by_row() {
    let (parents, children) = family(40);
    assert!(is_filled(record_of(&parents, &children)));
    assert!(is_filled(record_of(&[], &[])));
}

#[test]
fn a_record_that_a_commit_would_change_is_committed() {
    let change = |how: &dyn Fn(&mut Vec<String>, &mut Vec<String>)| {
        let (mut parents, mut children) = family(5);
        how(&mut parents, &mut children);
        record_of(&parents, &children)
    };
    // In this order: a dangling strong reference, a dangling weak reference, an orphan, a duplicate
    // key, a duplicate row, a deletion, an oversized map.
    assert!(!is_filled(change(&|_, children| drop(children.pop()))));
    assert!(!is_filled(change(&|parents, _| drop(parents.pop()))));
    let orphan = format!("\"{}\":{{}}", uuid('c', 99));
    assert!(!is_filled(change(
        &|_, children| children.push(orphan.clone())
    )));
    let twin = format!("\"{}\":{{\"name\":\"p1\"}}", uuid('a', 99));
    assert!(!is_filled(change(&|parents, _| parents.push(twin.clone()))));
    assert!(!is_filled(change(
        &|parents, _| parents.push(parents[1].clone())
    )));
    let deletion = format!("\"{}\":null", uuid('a', 99));
    assert!(!is_filled(change(
        &|parents, _| parents.push(deletion.clone())
    )));
    let large = format!(
        "\"{}\":{{\"map\":[\"map\",[[\"a\",1],[\"b\",2],[\"c\",3],[\"d\",4]]]}}",
        uuid('c', 0)
    );
    assert!(!is_filled(change(
        &|_, children| children[0].clone_from(&large)
    )));
    let (parents, children) = family(41);
    assert!(
        !is_filled(record_of(&parents, &children)),
        "more rows than the schema allows"
    );
}

#[test]
fn a_cycle_of_strong_references_is_kept() {
    let schema = r#"{"name":"D","tables":{"R":{"isRoot":true,"columns":{"x":{"type":"integer"}}},
        "N":{"columns":{"next":{"type":{"key":{"type":"uuid","refTable":"N"},"min":0}}}}}}"#;
    let cycle = format!(
        "{{\"N\":{{\"{0}\":{{\"next\":[\"uuid\",\"{1}\"]}},\"{1}\":{{\"next\":[\"uuid\",\"{0}\"]}}}}}}",
        uuid('a', 0),
        uuid('a', 1)
    );
    let own = format!(
        "{{\"N\":{{\"{0}\":{{\"next\":[\"uuid\",\"{0}\"]}}}}}}",
        uuid('a', 0)
    );
    for (body, rows) in [(cycle, 2), (own, 0)] {
        let mut file = Vec::new();
        for body in [schema, &body] {
            let mut record = Record::begin(&mut file, Magic::Standalone);
            record.body().extend_from_slice(body.as_bytes());
            record.finish();
        }
        let outcome = agree(&file, "a cycle");
        assert_eq!((outcome.rows.len(), outcome.damage), (rows, None));
    }
}

#[test]
fn a_database_without_transactions_is_empty() {
    let outcome = agree(&file_of(&[]), "only a schema");
    assert_eq!((outcome.rows.len(), outcome.extent.records()), (0, 1));
}

#[test]
fn reading_waits_while_the_limit_of_jobs_is_reached() {
    // Each read of the source makes a batch, so there are far more batches than jobs allowed in
    // flight.
    let bodies: Vec<String> = (0..3000)
        .map(|number| {
            format!(
                "{{\"Parent\":{{\"{}\":{{\"tags\":\"t{number}\"}}}}}}",
                uuid('a', 0)
            )
        })
        .collect();
    let file = file_of(&bodies);
    for workers in [0, 1, 4] {
        let open = || Ok(Unsized(&file));
        let loaded = loaded_by(workers, open);
        assert_eq!(loaded.extent.records(), 3001);
        assert_eq!(loaded.database.row_count(TableId(1)), 1);
    }
}
