//! A naive model of the engine and of monitors, for tests only. It keeps maps by name, clones them
//! for every transaction, and checks each commit rule over the whole database
//! (docs/spec/protocol.md 5).
//!
//! The model is written from the protocol, not from the engine. Both use the same JSON tree and
//! UUID type and share nothing else: the model has its own values, types, conditions, references
//! and commit.
//!
//! If the protocol leaves open which of several errors is reported, the model returns all of them.
//! The caller passes in the UUIDs of new rows, because it knows those that the engine chose. The
//! model makes its own row versions.

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

/// A row: every column by name, `_uuid` and `_version` included.
pub type Row = BTreeMap<String, Datum>;

/// All rows, by table and row UUID.
pub type Tables = BTreeMap<String, BTreeMap<Uuid, Row>>;

/// A database of the model.
#[derive(Clone, Debug)]
pub struct Model {
    /// The schema.
    pub schema: Schema,
    /// The current rows.
    pub tables: Tables,
    versions: u64,
}

/// One element of a transaction's result.
#[derive(Clone, Debug, PartialEq)]
pub enum Element {
    /// The result of an operation that succeeded.
    Value(Value),
    /// The errors of which the engine may report any one.
    Faults(Faults),
    /// The place of an operation that was not executed.
    Null,
}

/// The outcome of a transaction.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The transaction ended, with these result elements.
    Done(Vec<Element>),
    /// A `wait` is not satisfied. The transaction can be tried again; it times out after this many
    /// milliseconds, if a time-out is given.
    Blocked(Option<u64>),
}

/// A transaction, with the facts that the model cannot know by itself.
pub struct Request<'r> {
    /// The operations of the transaction.
    pub operations: &'r [Value],
    /// For each operation, the UUID that the engine chose for the row of an `insert` without
    /// `uuid`.
    pub identities: &'r [Option<Uuid>],
    /// Whether operations that write fail.
    pub is_read_only: bool,
    /// The locks that the session holds.
    pub locks: &'r [&'r str],
}

impl Model {
    /// Makes an empty database.
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

    /// Executes a transaction as on its arrival: a `wait` with time-out 0 fails if it is not
    /// satisfied.
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

    /// Gives each modified row a new version. New rows already have one.
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
