//! The real engine and its monitors, compared with the model.
//!
//! Invariant after every call of [`ModelCheck::transact`] that returns `Ok`: results and contents
//! are equal, the engine's own audit passes, and undoing and repeating the commit has changed
//! nothing. The tests call this module.

use std::collections::BTreeMap;

use corvid_data::{Arc, AtomRef, ColumnId, Delta, HashSeed, Schema, Uuid, UuidSource};
use corvid_engine::{Context, Database, LockOwner, Outcome};
use corvid_json::Value;

use crate::generator::Generator;
use crate::normal::{self, Known};
use crate::world::dice::Dice;
use corvid_model as model;
use corvid_model::atom::{Atom, Real};
use corvid_model::datum::Datum;
use corvid_model::fault::Faults;
use corvid_model::{Element, Model, Request, Row, Tables};

/// UUIDs derived from a counter.
#[derive(Clone, Debug)]
struct Counter(u64);

impl UuidSource for Counter {
    fn fresh(&mut self) -> Uuid {
        self.0 += 1;
        // Mixed, so that the order of creation differs from the sort order.
        let mut dice = Dice::new(self.0);
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&dice.draw().to_be_bytes());
        bytes[8..].copy_from_slice(&dice.draw().to_be_bytes());
        Uuid::from_random(bytes)
    }
}

/// The locks of the only session.
const LOCKS: [&str; 1] = ["mine"];

struct Locks;

impl LockOwner for Locks {
    fn owns(&self, lock: &str) -> bool {
        LOCKS.contains(&lock)
    }
}

/// The engine and the model.
#[derive(Debug)]
pub struct ModelCheck {
    /// The model.
    pub model: Model,
    /// The engine.
    pub database: Database,
    /// Names of rows that both have.
    pub known: Known,
    uuids: Counter,
}

/// The outcome of a transaction.
#[derive(Debug)]
pub struct Done {
    /// The changes of the commit.
    pub delta: Option<Arc<Delta>>,
    /// The errors with any of which the transaction may have failed.
    pub faults: Faults,
}

impl ModelCheck {
    /// Both empty, with the generator's schema.
    ///
    /// # Panics
    /// The engine refuses the schema.
    #[must_use]
    pub fn new(generator: &Generator) -> ModelCheck {
        let schema = Schema::from_json(&generator.schema.json).expect("a valid schema");
        ModelCheck {
            model: Model::new(generator.schema.clone()),
            database: Database::new(Arc::new(schema), HashSeed::FIXED),
            known: Known::new(),
            uuids: Counter(0),
        }
    }

    /// Executes operations on both.
    ///
    /// # Errors
    /// Any disagreement, as text.
    pub fn transact(
        &mut self,
        operations: &[Value],
        is_read_only: bool,
        again: bool,
    ) -> Result<Done, String> {
        let mut params = vec![Value::string("Gen")];
        params.extend_from_slice(operations);
        let params = Value::Array(params).to_bytes();
        let before = self.uuids.clone();
        let outcome = self.execute(&params, is_read_only);
        let (result, delta) = match outcome {
            Outcome::Blocked { deadline_ms, .. } => {
                let expected = self.model_outcome(operations, &[], is_read_only);
                if expected != model::Outcome::Blocked(deadline_ms) {
                    return Err(format!(
                        "blocked until {deadline_ms:?}, model: {expected:?}"
                    ));
                }
                return Ok(Done {
                    delta: None,
                    faults: Faults::new(),
                });
            }
            Outcome::Done { result, delta, .. } => (result, delta),
        };
        let actual = Value::parse(&result).map_err(|_| "the result is no JSON".to_owned())?;
        normal::check_canonical(&actual)?;
        let actual = actual
            .as_array()
            .ok_or("the result is not an array")?
            .to_vec();
        let expected = match self.model_outcome(operations, &actual, is_read_only) {
            model::Outcome::Done(elements) => elements,
            model::Outcome::Blocked(deadline) => {
                return Err(format!("not blocked, model: until {deadline:?}"));
            }
        };
        for identity in identities(operations, &actual).into_iter().flatten() {
            self.known.name(&identity.to_string(), identity.to_string());
        }
        compare_results(&self.known, operations, &expected, &actual)?;
        self.compare_content()?;
        self.database.check_invariants()?;
        if let Some(delta) = delta.as_ref().filter(|_| again) {
            self.redo(&params, is_read_only, before, delta, &result)?;
        }
        let faults = expected.into_iter().filter_map(|element| match element {
            Element::Faults(faults) => Some(faults),
            _ => None,
        });
        let faults = faults.flatten().collect();
        Ok(Done { delta, faults })
    }

    fn execute(&mut self, params: &[u8], is_read_only: bool) -> Outcome {
        let mut context = Context {
            elapsed_ms: 0,
            read_only: is_read_only,
            identities: &[],
            can_wait: true,
            uuids: &mut self.uuids,
            locks: &Locks,
        };
        self.database.execute(params, &mut context)
    }

    fn model_outcome(
        &mut self,
        operations: &[Value],
        actual: &[Value],
        is_read_only: bool,
    ) -> model::Outcome {
        let identities = identities(operations, actual);
        self.model.execute(&Request {
            operations,
            identities: &identities,
            is_read_only,
            locks: &LOCKS,
        })
    }

    /// Undoes the commit and executes it again with the same UUIDs.
    fn redo(
        &mut self,
        params: &[u8],
        is_read_only: bool,
        uuids: Counter,
        delta: &Arc<Delta>,
        result: &[u8],
    ) -> Result<(), String> {
        let after = std::mem::replace(&mut self.uuids, uuids);
        self.database.undo(delta);
        self.database
            .check_invariants()
            .map_err(|problem| format!("after undo: {problem}"))?;
        let Outcome::Done {
            result: second,
            delta: Some(_),
            ..
        } = self.execute(params, is_read_only)
        else {
            return Err("after undo: changed nothing".to_owned());
        };
        if self.uuids.0 != after.0 {
            return Err("after undo: took another number of UUIDs".to_owned());
        }
        let (first, second) = (Value::parse(result), Value::parse(&second));
        let (Ok(first), Ok(second)) = (first, second) else {
            return Err("no JSON".to_owned());
        };
        if Known::new().value(&first) != Known::new().value(&second) {
            return Err(format!("after undo: {second} instead of {first}"));
        }
        self.compare_content()
            .map_err(|problem| format!("after undo: {problem}"))
    }

    /// Compares all rows. Versions differ between the two; users of [`ModelCheck::versions`]
    /// compare when they change.
    fn compare_content(&self) -> Result<(), String> {
        let actual = content(&self.database);
        for (table, rows) in &actual {
            let expected = &self.model.tables[table];
            if expected.len() != rows.len() {
                return Err(format!(
                    "{table} has {} rows, model: {}",
                    rows.len(),
                    expected.len()
                ));
            }
            for (uuid, row) in rows {
                let Some(expected) = expected.get(uuid) else {
                    return Err(format!("{table} has {uuid}, the model has not"));
                };
                for (column, datum) in row.iter().filter(|(column, _)| *column != "_version") {
                    if *datum != expected[column]
                        && !self.are_equal(table, column, datum, &expected[column])
                    {
                        return Err(format!(
                            "{table} {uuid} {column} is {datum:?}, model: {:?}",
                            expected[column]
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether two values are equal, except for UUIDs of names that were never inserted.
    fn are_equal(&self, table: &str, column: &str, a: &Datum, b: &Datum) -> bool {
        let ty = self.model.schema.tables[table]
            .ty(column)
            .expect("a column");
        self.known.value(&a.to_json(&ty)) == self.known.value(&b.to_json(&ty))
    }

    /// Versions by table and identity: the engine's and the model's.
    #[must_use]
    pub fn versions(&self) -> BTreeMap<(String, Uuid), (Datum, Datum)> {
        let mut versions = BTreeMap::new();
        for (table, rows) in content(&self.database) {
            for (uuid, row) in rows {
                let expected = self.model.tables[&table][&uuid]["_version"].clone();
                versions.insert((table.clone(), uuid), (row["_version"].clone(), expected));
            }
        }
        versions
    }
}

/// The UUID in the result of each operation.
fn identities(operations: &[Value], result: &[Value]) -> Vec<Option<Uuid>> {
    let identity = |position: usize| {
        let uuid = result
            .get(position)
            .and_then(|element| element.get("uuid")?.as_array()?.get(1)?.as_str());
        uuid.and_then(|uuid| Uuid::parse(uuid.as_bytes()))
    };
    (0..operations.len()).map(identity).collect()
}

/// Compares the elements of a result.
fn compare_results(
    known: &Known,
    operations: &[Value],
    expected: &[Element],
    actual: &[Value],
) -> Result<(), String> {
    if expected.len() != actual.len() {
        return Err(format!("{} elements, model: {expected:?}", actual.len()));
    }
    for (position, (expected, actual)) in expected.iter().zip(actual).enumerate() {
        let shown = known.value(actual);
        let is_equal = match expected {
            Element::Null => *actual == Value::Null,
            Element::Value(value) => known.value(value) == shown,
            Element::Faults(faults) => faults
                .iter()
                .any(|fault| known.value(&fault.to_json()) == shown),
        };
        if !is_equal {
            return Err(format!(
                "element {position} is {shown}, model: {expected:?}"
            ));
        }
        let sort = operations
            .get(position)
            .and_then(|operation| operation.get("sort")?.as_array());
        if let (Some(sort), Element::Value(value)) = (sort, expected) {
            let keys = |value| normal::sort_keys(known, sort, value);
            if keys(value) != keys(actual) {
                return Err(format!("order of {actual}, model: {value}"));
            }
        }
    }
    Ok(())
}

/// All rows of an engine in the model's form.
#[must_use]
pub fn content(database: &Database) -> Tables {
    let mut tables = Tables::new();
    for (id, table) in database.schema().iter() {
        let rows = database.rows(id).map(|row| {
            let column = |(ColumnId(number), column): (ColumnId, &corvid_data::ColumnSchema)| {
                (
                    column.name.to_string(),
                    datum(&row.columns[usize::from(number)]),
                )
            };
            let mut columns: Row = table.iter().map(column).collect();
            columns.insert("_uuid".to_owned(), Datum::scalar(Atom::Uuid(row.uuid)));
            columns.insert(
                "_version".to_owned(),
                Datum::scalar(Atom::Uuid(row.version)),
            );
            (row.uuid, columns)
        });
        tables.insert(table.name.to_string(), rows.collect());
    }
    tables
}

fn datum(datum: &corvid_data::Datum) -> Datum {
    Datum::from_pairs(
        datum
            .iter()
            .map(|(key, value)| (atom(key), value.map(atom))),
    )
}

fn atom(atom: AtomRef<'_>) -> Atom {
    match atom {
        AtomRef::Integer(integer) => Atom::Integer(integer),
        AtomRef::Real(real) => Atom::Real(Real::new(real.get())),
        AtomRef::Boolean(boolean) => Atom::Boolean(boolean),
        AtomRef::String(string) => Atom::String(string.to_string()),
        AtomRef::Uuid(uuid) => Atom::Uuid(uuid),
    }
}
