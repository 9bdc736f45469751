//! Measures the cost of a commit with many sessions: run
//! `cargo run --release -p corvid-monitor --example fanout`.
//!
//! The cost must not depend on the number of sessions that are behind, on the number of groups
//! whose clauses name other values, or on the size of a set of which one element changed.

use std::time::Instant;

use corvid_data::{
    Arc, Atom, ColumnDiff, ColumnId, Datum, Delta, HashSeed, Row, RowChange, Schema, Str,
};
use corvid_data::{TableId, Uuid};
use corvid_engine::Database;
use corvid_json::Value;
use corvid_monitor::{Frame, Monitors, SessionId, Version};

const SCHEMA: &str = r#"{"name":"D","version":"1.0.0","tables":{"T":{"isRoot":true,"columns":{
    "host":{"type":"string"},
    "size":{"type":"integer"},
    "tags":{"type":{"key":"integer","min":0,"max":"unlimited"}}}}}}"#;
const COMMITS: u32 = 2_000;

fn main() {
    for sessions in [1, 100, 1_000] {
        flushed_each_commit(sessions);
    }
    for sessions in [1, 1_000] {
        never_flushed(sessions);
    }
    for groups in [1, 500] {
        by_value(groups);
    }
    for elements in [10, 30_000] {
        large_set(elements);
    }
    for clauses in [10, 3_000] {
        grown_condition(clauses);
    }
}

/// One subscription. Every session is flushed after every commit.
fn flushed_each_commit(sessions: u32) {
    let mut fixture = Fixture::new();
    for session in 0..sessions {
        fixture.monitor(session, r#"{"T":{"columns":["host","size"]}}"#);
    }
    let spent = fixture.run(true);
    println!(
        "flush each commit:{sessions:5} sessions {:8.2} us a commit, {:.3} us a session",
        spent,
        spent / f64::from(sessions)
    );
}

/// One subscription. No session is ever ready.
fn never_flushed(sessions: u32) {
    let mut fixture = Fixture::new();
    for session in 0..sessions {
        fixture.monitor(session, r#"{"T":{"columns":["host","size"]}}"#);
        fixture.monitors.set_ready(SessionId(session.into()), false);
    }
    println!(
        "never flushed:    {sessions:5} sessions {:8.2} us a commit",
        fixture.run(true)
    );
}

/// Each session monitors rows of its own host. The commit concerns one of them.
fn by_value(groups: u32) {
    let mut fixture = Fixture::new();
    for group in 0..groups {
        let condition = format!(r#"[["host","==","h{group}"]]"#);
        fixture.monitor(
            group,
            &format!(r#"{{"T":{{"columns":["size"],"where":{condition}}}}}"#),
        );
    }
    println!(
        "own host each:    {groups:5} groups   {:8.2} us a commit",
        fixture.run(true)
    );
}

/// One element of a set is added and removed.
fn large_set(elements: i64) {
    let mut fixture = Fixture::new();
    fixture.monitor(0, r#"{"T":{"columns":["tags"]}}"#);
    for element in 0..elements {
        fixture.tags.insert(Atom::Integer(element * 2), None);
    }
    println!(
        "set, one element: {elements:5} elements {:8.2} us a commit",
        fixture.run(false)
    );
}

/// A condition of many clauses gets one more. The remaining cost is parsing the request.
fn grown_condition(clauses: usize) {
    let mut fixture = Fixture::new();
    let mut condition: Vec<String> = (0..clauses)
        .map(|clause| format!(r#"["host","==","h{clause}"]"#))
        .collect();
    let table = |condition: &[String]| format!(r#""where":[{}]"#, condition.join(","));
    fixture.monitor(0, &format!(r#"{{"T":[{{{}}}]}}"#, table(&condition)));
    condition.push(r#"["size","==",5]"#.to_owned());
    let params = format!(r#"[null,null,{{"T":[{{{}}}]}}]"#, table(&condition));
    let start = Instant::now();
    let (monitors, database) = (&mut fixture.monitors, &mut fixture.database);
    let change = monitors.change_condition(
        database,
        SessionId(0),
        params.as_bytes(),
        corvid_monitor::RequestContext {
            past: &corvid_monitor::no_past,
            id_in_use: &|_| false,
            admit: &|_| Ok(std::sync::Arc::new(())),
        },
    );
    let changed = monitors.apply(SessionId(0), change.expect("valid"));
    assert!(changed.is_some(), "the monitor exists");
    let spent = start.elapsed().as_secs_f64() * 1e6;
    println!("one more clause:  {clauses:5} clauses  {spent:8.2} us a change");
}

struct Fixture {
    database: Database,
    monitors: Monitors,
    tags: Datum,
}

impl Fixture {
    fn new() -> Fixture {
        let json = Value::parse(SCHEMA.as_bytes()).expect("schema text");
        let schema = Arc::new(Schema::from_json(&json).expect("schema"));
        Fixture {
            database: Database::new(schema.clone(), HashSeed::FIXED),
            monitors: Monitors::new(schema, Uuid::ZERO, HashSeed::FIXED),
            tags: Datum::empty(),
        }
    }

    fn monitor(&mut self, session: u32, requests: &str) {
        let params = format!("[\"D\",null,{requests}]");
        let session = SessionId(session.into());
        self.monitors
            .monitor(
                &self.database,
                session,
                Version::V2,
                params.as_bytes(),
                &|_| false,
            )
            .expect("started");
    }

    /// Commits modifications of one row, and flushes ready sessions. Returns microseconds per
    /// commit. If `scalar`, its `size` changes, else one of its `tags`.
    fn run(&mut self, scalar: bool) -> f64 {
        let mut row = Arc::new(Row {
            uuid: Uuid([1; 16]),
            version: Uuid([2; 16]),
            columns: Box::new([
                Datum::one(Atom::String(Str::new("h0"))),
                Datum::one(Atom::Integer(0)),
                self.tags.clone(),
            ]),
        });
        let (mut sessions, mut frames): (Vec<SessionId>, Vec<Frame>) = (Vec::new(), Vec::new());
        let start = Instant::now();
        for commit in 1..=i64::from(COMMITS) {
            let delta = next(&mut row, commit, scalar);
            self.monitors.commit(&delta, Uuid::ZERO, 1_000);
            self.monitors.take_pending(&mut sessions);
            for session in sessions.drain(..) {
                self.monitors.flush(session, &mut frames);
            }
            frames.clear();
        }
        start.elapsed().as_secs_f64() * 1e6 / f64::from(COMMITS)
    }
}

/// Builds the next version of `row`.
fn next(row: &mut Arc<Row>, commit: i64, scalar: bool) -> Arc<Delta> {
    let mut columns = row.columns.clone();
    let column = if scalar { 1 } else { 2 };
    let diff = if scalar {
        columns[1] = Datum::one(Atom::Integer(commit));
        columns[1].clone()
    } else {
        let element = Atom::Integer(15);
        if !columns[2].remove(element.as_ref()) {
            columns[2].insert(element.clone(), None);
        }
        Datum::one(element)
    };
    let new = Arc::new(Row {
        columns,
        ..Row::clone(row)
    });
    let change = RowChange {
        table: TableId(0),
        uuid: row.uuid,
        old: Some(row.clone()),
        new: Some(new.clone()),
        diffs: Box::new([ColumnDiff {
            column: ColumnId(column),
            diff,
        }]),
    };
    *row = new;
    Arc::new(Delta {
        changes: vec![change],
        ..Delta::default()
    })
}
