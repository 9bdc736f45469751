//! For tests only: a naive model of the engine and of monitors. Maps by name, cloned for every transaction; each rule of the commit is
//! computed over the whole database (docs/spec/protocol.md 5).
//!
//! Invariant: it is written from the protocol, not from the engine. The two share the JSON tree and the UUID type and nothing else: values,
//! types, conditions, references and the commit are the model's own.
//!
//! Where the protocol does not say which of several errors is reported, the model returns all of them. UUIDs of new rows come from the
//! caller, which knows the other side's choice; versions are the model's own.

pub mod atom;
mod commit;
pub mod condition;
pub mod datum;
pub mod fault;
mod members;
pub mod monitor;
mod mutation;
mod operation;
pub mod schema;

use std::collections::BTreeMap;

use corvid_data::Uuid;
use corvid_json::Value;

use atom::Atom;
use datum::Datum;
use fault::Faults;
use operation::Execution;
use schema::Schema;

/// A row: all columns by name, `_uuid` and `_version` too.
pub type Row = BTreeMap<String, Datum>;

/// All rows by table and identity.
pub type Tables = BTreeMap<String, BTreeMap<Uuid, Row>>;

/// A database.
#[derive(Clone, Debug)]
pub struct Model {
    /// Its schema.
    pub schema: Schema,
    /// Its content.
    pub tables: Tables,
    versions: u64,
}

/// An element of a result.
#[derive(Clone, Debug, PartialEq)]
pub enum Element {
    /// The result of an operation.
    Value(Value),
    /// An error; any of these.
    Faults(Faults),
    /// An operation that was not executed.
    Null,
}

/// The outcome of a transaction.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The elements of its result.
    Done(Vec<Element>),
    /// A wait is not satisfied; try again after this many milliseconds.
    Blocked(Option<u64>),
}

/// A transaction and the other side's choices.
pub struct Request<'r> {
    /// The operations.
    pub operations: &'r [Value],
    /// For each operation, the UUID for the row of an `insert` without `uuid`.
    pub identities: &'r [Option<Uuid>],
    /// Writing operations fail.
    pub is_read_only: bool,
    /// Locks of the session.
    pub locks: &'r [&'r str],
}

impl Model {
    /// An empty database.
    #[must_use]
    pub fn new(schema: Schema) -> Model {
        let tables = schema
            .tables
            .keys()
            .map(|name| (name.clone(), BTreeMap::new()));
        Model {
            tables: tables.collect(),
            schema,
            versions: 0,
        }
    }

    /// Executes a transaction that has just arrived.
    pub fn execute(&mut self, request: &Request<'_>) -> Outcome {
        let count = request.operations.len();
        let mut execution = Execution::new(self, request);
        let mut elements = Vec::new();
        for (position, operation) in request.operations.iter().enumerate() {
            match execution.run(position, operation) {
                Ok(value) => elements.push(Element::Value(value)),
                Err(operation::Failure::Faults(faults)) => {
                    elements.push(Element::Faults(faults));
                    elements.resize(count, Element::Null);
                    return Outcome::Done(elements);
                }
                Err(operation::Failure::Blocked) => return Outcome::Blocked(execution.deadline_ms),
            }
        }
        let mut tables = std::mem::take(&mut execution.tables);
        drop(execution);
        match commit::commit(&self.schema, &self.tables, &mut tables) {
            Ok(()) => {
                self.renew_versions(&mut tables);
                self.tables = tables;
            }
            Err(faults) => elements.push(Element::Faults(faults)),
        }
        Outcome::Done(elements)
    }

    fn fresh_version(&mut self) -> Datum {
        self.versions += 1;
        let mut bytes = [0xff; 16];
        bytes[8..].copy_from_slice(&self.versions.to_be_bytes());
        Datum::scalar(Atom::Uuid(Uuid(bytes)))
    }

    /// Modified rows get a new version; new rows have one.
    fn renew_versions(&mut self, tables: &mut Tables) {
        let old_tables = self.tables.clone();
        for (name, rows) in tables {
            for (uuid, row) in rows {
                if old_tables[name].get(uuid).is_some_and(|old| old != row) {
                    row.insert("_version".to_owned(), self.fresh_version());
                }
            }
        }
    }
}
