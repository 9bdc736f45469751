//! A database with a predictable source of UUIDs. Every transaction is checked, undone, redone,
//! undone, checked, and executed once more with long selects deferred and written afterwards, in
//! slices.
//!
//! UUIDs are numbered from 1 in the order in which the engine asks for them. In requests and
//! results `<N>` stands for the N-th.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use corvid_data::{Arc, Delta, HashSeed, Row, Schema, TableId, Uuid, UuidSource};
use corvid_engine::{
    Context, Database, Identity, LockOwner, LongResult, Outcome, Slice, WorkBudget,
};
use corvid_json::Value;

/// So few steps for selects that those of more than one or two rows are deferred.
const SELECTS_LEFT_OUT: WorkBudget = WorkBudget::unlimited().with_select_steps(12);

/// Most tests share this schema.
pub(crate) const ZOO: &str = r#"{"name":"Zoo","version":"1.0.0","tables":{
    "Keeper":{"isRoot":true,"indexes":[["name"]],"columns":{
        "name":{"type":"string"},
        "age":{"type":{"key":"integer","min":0,"max":1}},
        "tags":{"type":{"key":"string","min":0,"max":"unlimited"}},
        "cfg":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}},
        "pets":{"type":{"key":{"type":"uuid","refTable":"Pet"},"min":0,"max":"unlimited"}},
        "friends":{"type":{"key":{"type":"uuid","refTable":"Keeper","refType":"weak"},"min":0,"max":"unlimited"}},
        "badge":{"type":"integer","mutable":false},
        "busy":{"type":"boolean","ephemeral":true}}},
    "Pet":{"columns":{
        "kind":{"type":"string"},
        "toys":{"type":{"key":{"type":"uuid","refTable":"Pet"},"min":0,"max":"unlimited"}}}},
    "Cage":{"isRoot":true,"maxRows":2,"indexes":[["row","col"]],"columns":{
        "row":{"type":"integer"},
        "col":{"type":"integer"},
        "note":{"type":"string"},
        "inmate":{"type":{"key":{"type":"uuid","refTable":"Pet","refType":"weak"},"min":0,"max":1}},
        "warden":{"type":{"key":"string","value":{"type":"uuid","refTable":"Keeper","refType":"weak"},"min":0,"max":"unlimited"}}}},
    "Limits":{"isRoot":true,"columns":{
        "small":{"type":{"key":{"type":"integer","minInteger":-5,"maxInteger":10}}},
        "numbers":{"type":{"key":{"type":"integer","maxInteger":100},"min":0,"max":4}},
        "real":{"type":"real"},
        "reals":{"type":{"key":"real","min":0,"max":"unlimited"}},
        "big":{"type":"integer"},
        "some":{"type":{"key":"string","min":1,"max":3}},
        "color":{"type":{"key":{"type":"string","enum":["set",["","red","green"]]}}}}},
    "Strict":{"isRoot":true,"columns":{
        "must":{"type":{"key":{"type":"integer","minInteger":1}}},
        "guard":{"type":{"key":{"type":"uuid","refTable":"Keeper","refType":"weak"},"min":1,"max":"unlimited"}}}}}}"#;

/// Returns 1, 2, 3...
#[derive(Default)]
pub(crate) struct Counter(pub(crate) u64);

impl UuidSource for Counter {
    fn fresh(&mut self) -> Uuid {
        self.0 += 1;
        numbered(self.0)
    }
}

/// The UUID that `<number>` denotes.
pub(crate) fn numbered(number: u64) -> Uuid {
    let mut bytes = *b"\0\0\0\0\0\0\x40\0\x80\0\0\0\0\0\0\0";
    bytes[10..].copy_from_slice(&number.to_be_bytes()[2..]);
    Uuid(bytes)
}

struct Locks<'a>(&'a [String]);

impl LockOwner for Locks<'_> {
    fn owns(&self, lock: &str) -> bool {
        self.0.iter().any(|owned| owned == lock)
    }
}

/// Rows by table and UUID.
pub(crate) type Contents = BTreeMap<(TableId, Uuid), Arc<Row>>;

/// A database, and the properties of the session that uses it.
pub(crate) struct Fixture {
    pub(crate) database: Database,
    pub(crate) uuids: Counter,
    pub(crate) elapsed_ms: u64,
    pub(crate) read_only: bool,
    pub(crate) can_wait: bool,
    pub(crate) role: Option<String>,
    pub(crate) client_id: Option<String>,
    /// A second role that must allow the operations, and its client.
    pub(crate) also: Option<(String, String)>,
    pub(crate) locks: Vec<String>,
    pub(crate) last: Option<Arc<Delta>>,
    pub(crate) durable: bool,
}

impl Fixture {
    pub(crate) fn new(schema: &str) -> Fixture {
        Fixture {
            database: Database::new(parse_schema(schema), HashSeed::FIXED),
            uuids: Counter::default(),
            elapsed_ms: 0,
            read_only: false,
            can_wait: true,
            role: None,
            client_id: None,
            also: None,
            locks: Vec::new(),
            last: None,
            durable: false,
        }
    }

    pub(crate) fn zoo() -> Fixture {
        Fixture::new(ZOO)
    }

    /// Executes operations (the elements of the array, without its brackets). Returns the result,
    /// or `blocked until ...`.
    pub(crate) fn run(&mut self, operations: &str) -> String {
        let before = self.contents();
        let start = self.uuids.0;
        let first = self.attempt(operations, WorkBudget::unlimited());
        let Some(delta) = self.last.clone() else {
            assert_eq!(before, self.contents(), "nothing changed");
            // If an error could name several rows, the one that it names depends on earlier
            // attempts.
            if !first.contains("\"error\"") {
                let after = std::mem::replace(&mut self.uuids.0, start);
                let again = self.attempt(operations, SELECTS_LEFT_OUT);
                assert_eq!(again, first, "long selects left out");
                self.uuids.0 = after;
            }
            return first;
        };
        let after = self.contents();
        self.database.undo(&delta);
        self.database
            .check_invariants()
            .expect("consistent after undo");
        assert_eq!(before, self.contents(), "undone");
        self.database.redo(&delta);
        self.database
            .check_invariants()
            .expect("consistent after redo");
        assert_eq!(after, self.contents(), "redone");
        self.database.undo(&delta);
        assert_eq!(before, self.contents(), "undone again");
        self.uuids.0 = start;
        let again = self.attempt(operations, SELECTS_LEFT_OUT);
        assert_eq!(again, first, "executed again, long selects left out");
        assert_eq!(after, self.contents(), "executed again");
        first
    }

    /// Whether operations that change nothing can be executed in this many steps.
    pub(crate) fn fits_into(&mut self, operations: &str, steps: u64) -> bool {
        let params = format!("[\"db\",{}]", expand(operations));
        let mut context = Context {
            elapsed_ms: 0,
            read_only: true,
            identities: &[],
            can_wait: false,
            uuids: &mut self.uuids,
            locks: &Locks(&self.locks),
        };
        let mut budget = WorkBudget::new(steps);
        let outcome = self
            .database
            .execute_within(params.as_bytes(), &mut context, &mut budget);
        outcome.is_ok()
    }

    fn attempt(&mut self, operations: &str, mut budget: WorkBudget) -> String {
        let comma = if operations.trim().is_empty() {
            ""
        } else {
            ","
        };
        let params = format!("[\"db\"{comma}{}]", expand(operations));
        Value::parse(params.as_bytes()).expect("a request is valid JSON");
        let mut identities = Vec::new();
        identities.extend(self.role.as_deref().map(|role| Identity {
            role,
            client_id: self.client_id.as_deref(),
        }));
        identities.extend(self.also.as_ref().map(|(role, client)| Identity {
            role,
            client_id: Some(client),
        }));
        let outcome = self.database.execute_within(
            params.as_bytes(),
            &mut Context {
                elapsed_ms: self.elapsed_ms,
                read_only: self.read_only,
                identities: &identities,
                can_wait: self.can_wait,
                uuids: &mut self.uuids,
                locks: &Locks(&self.locks),
            },
            &mut budget,
        );
        self.database
            .check_invariants()
            .expect("consistent after a transaction");
        match outcome.expect("only selects are limited") {
            Outcome::Done {
                result,
                deferred_selections,
                delta,
                durable,
                ..
            } => {
                self.last = delta;
                self.durable = durable;
                let result = LongResult::new(result, deferred_selections);
                let steps = if result.rows() < 1000 { 1 } else { 100 };
                while result.advance(&|_, _| true, &mut Slice::new(steps)) > 0 {}
                let result = result.text().concat();
                Value::parse(&result).expect("a result is valid JSON");
                abridge(&String::from_utf8(result).expect("a result is UTF-8"))
            }
            Outcome::Blocked { deadline_ms, .. } => {
                self.last = None;
                format!("blocked until {deadline_ms:?}")
            }
        }
    }

    pub(crate) fn contents(&self) -> Contents {
        let schema = self.database.schema();
        let rows = schema.iter().flat_map(|(table, _)| {
            let rows = self.database.rows(table);
            rows.map(move |row| ((table, row.uuid), row.clone()))
        });
        rows.collect()
    }

    /// The last delta, one line per row: `insert`, `delete`, or the differences of a modified row.
    pub(crate) fn changes(&self) -> String {
        let mut out = String::new();
        let Some(delta) = &self.last else {
            return "none".into();
        };
        for change in &delta.changes {
            let schema = self.database.schema().table(change.table);
            write!(out, "{} {}", schema.name, change.uuid).expect("a string takes all");
            match (&change.old, &change.new) {
                (None, Some(_)) => out.push_str(" insert"),
                (Some(_), None) => out.push_str(" delete"),
                _ => {}
            }
            for diff in &change.diffs {
                let column = schema.column(diff.column);
                let mut text = Vec::new();
                corvid_data::wire::write_datum(&mut text, &diff.diff, column.column_type.is_map());
                let text = String::from_utf8(text).expect("data are UTF-8");
                write!(out, " {}={text}", column.name).expect("a string takes all");
            }
            out.push('\n');
        }
        abridge(&out)
    }
}

pub(crate) fn parse_schema(text: &str) -> Arc<Schema> {
    let json = Value::parse(text.as_bytes()).expect("a schema is JSON");
    Arc::new(Schema::from_json(&json).expect("a schema is valid"))
}

/// Replaces `<N>` by UUIDs.
pub(crate) fn expand(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        out.push_str(before);
        match after.split_once('>') {
            Some((number, tail)) if number.parse::<u64>().is_ok() => {
                let number = number.parse().expect("just parsed");
                write!(out, "{}", numbered(number)).expect("a string takes all");
                rest = tail;
            }
            _ => {
                out.push('<');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// Replaces UUIDs by `<N>`.
pub(crate) fn abridge(text: &str) -> String {
    let prefix = "00000000-0000-4000-8000-";
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(prefix) {
        out.push_str(before);
        let number = u64::from_str_radix(&after[..12], 16).expect("twelve hex digits");
        write!(out, "<{number}>").expect("a string takes all");
        rest = &after[12..];
    }
    out.push_str(rest);
    out
}
