//! The operations of the transaction that makes the changes of a chain.

use std::collections::BTreeMap;

use bstr::BString;
use corvid_data::{AtomRef, ColumnId, Datum, TableSchema, Uuid};
use corvid_json::{Object, Value};

use crate::contents::{Contents, Origin, RowState, Step};

/// A transaction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transaction {
    /// The operations.
    pub operations: Vec<Value>,
    /// The operation that inserts the row of a command: its index by the command's number.
    pub inserts: BTreeMap<usize, usize>,
}

impl Transaction {
    /// The transaction for the changes in `contents`; no operations if there are none. `comment`
    /// goes into the log of the database.
    #[must_use]
    pub(crate) fn of(contents: &Contents<'_>, comment: &str) -> Transaction {
        let names = Names::of(contents);
        let (mut waits, mut changes) = (Vec::new(), Vec::new());
        let mut creators = Vec::new();
        for ((id, uuid), state) in contents.states() {
            let table = contents.schema().table(*id);
            let mutation = names.mutation(table, *uuid, state);
            // A value that is only read decides about the changes of other rows.
            waits.extend(names.wait(table, *uuid, state, mutation.is_some()));
            if let Some(change) = names.change(table, *uuid, state) {
                creators.push(state.creator());
                changes.push(change);
            }
            if let Some(mutation) = mutation {
                creators.push(None);
                changes.push(mutation);
            }
        }
        if changes.is_empty() {
            return Transaction::default();
        }
        let inserts = creators
            .into_iter()
            .enumerate()
            .filter_map(|(index, creator)| Some((creator?, waits.len() + index)))
            .collect();
        let mut operations = waits;
        operations.append(&mut changes);
        operations.push(operation("comment", [("comment", Value::string(comment))]));
        Transaction {
            operations,
            inserts,
        }
    }
}

/// Names by which operations refer to rows that the server has yet to give a UUID.
struct Names(BTreeMap<Uuid, String>);

impl Names {
    fn of(contents: &Contents<'_>) -> Names {
        let created = contents.states().iter().filter_map(|((_, uuid), state)| {
            let is_named = matches!(state.origin, Origin::Created(_)) && !state.is_deleted;
            is_named.then_some(*uuid)
        });
        let numbered = created.enumerate();
        Names(
            numbered
                .map(|(number, uuid)| (uuid, format!("row{number}")))
                .collect(),
        )
    }

    /// The operation that makes the changes of a row, if there are any.
    fn change(&self, table: &TableSchema, uuid: Uuid, state: &RowState) -> Option<Value> {
        let name = ("table", Value::string(&*table.name));
        if state.is_deleted {
            // Rows of other tables live as long as something refers to them: the server decides.
            let is_deletable = state.origin == Origin::Read && table.is_root;
            return is_deletable.then(|| operation("delete", [name, ("where", this_row(uuid))]));
        }
        if state.origin == Origin::Read {
            let changed = state
                .new
                .iter()
                .filter(|(column, value)| state.old.get(column) != Some(value));
            let row = self.row(table, changed);
            let is_changed = row.as_object().is_some_and(|row| !row.is_empty());
            return is_changed
                .then(|| operation("update", [name, ("where", this_row(uuid)), ("row", row)]));
        }
        let row = ("row", self.row(table, state.new.iter()));
        let id = match self.0.get(&uuid) {
            Some(name) => ("uuid-name", Value::string(name)),
            None => ("uuid", Value::string(uuid.to_text())),
        };
        Some(operation("insert", [name, id, row]))
    }

    /// The operation that changes elements of a row, if there are any such changes.
    fn mutation(&self, table: &TableSchema, uuid: Uuid, state: &RowState) -> Option<Value> {
        if state.is_deleted {
            return None;
        }
        let mut mutations = Vec::new();
        for (id, steps) in &state.steps {
            // Elements that are known to be there, or not to be there.
            if state
                .old
                .get(id)
                .is_some_and(|old| state.value(*id).as_ref() == Some(old))
            {
                continue;
            }
            let column = table.column(*id);
            let is_map = column.column_type.is_map();
            mutations.extend(steps.iter().map(|step| {
                let (mutator, elements) = match step {
                    Step::Insert(elements) => ("insert", self.datum(elements, is_map)),
                    Step::Remove(elements) => ("delete", self.datum(elements, is_map)),
                    Step::RemoveKeys(keys) => ("delete", self.datum(keys, false)),
                };
                let name = Value::string(&*column.name);
                Value::Array(vec![name, Value::string(mutator), elements])
            }));
        }
        let is_changed = !mutations.is_empty();
        is_changed.then(|| {
            let members = [
                ("table", Value::string(&*table.name)),
                ("where", this_row(uuid)),
                ("mutations", Value::Array(mutations)),
            ];
            operation("mutate", members)
        })
    }

    /// The operation that fails if a value that the chain relies on has changed, or if the row of a
    /// mutation is gone.
    fn wait(
        &self,
        table: &TableSchema,
        uuid: Uuid,
        state: &RowState,
        is_mutated: bool,
    ) -> Option<Value> {
        if state.relied_on.is_empty() {
            let id = Object::from([(BString::from("_uuid"), pair("uuid", &uuid.to_text()))]);
            return is_mutated.then(|| {
                let members = [
                    ("table", Value::string(&*table.name)),
                    ("timeout", Value::Integer(0)),
                    ("where", this_row(uuid)),
                    ("columns", Value::Array(vec![Value::string("_uuid")])),
                    ("until", Value::string("==")),
                    ("rows", Value::Array(vec![Value::Object(id)])),
                ];
                operation("wait", members)
            });
        }
        let columns = state.relied_on.iter();
        let names = columns
            .clone()
            .map(|id| Value::string(&*table.column(*id).name));
        let old = columns.filter_map(|id| Some((id, state.old.get(id)?)));
        Some(operation(
            "wait",
            [
                ("table", Value::string(&*table.name)),
                ("timeout", Value::Integer(0)),
                ("where", this_row(uuid)),
                ("columns", Value::Array(names.collect())),
                ("until", Value::string("==")),
                ("rows", Value::Array(vec![self.row(table, old)])),
            ],
        ))
    }

    fn row<'d>(
        &self,
        table: &TableSchema,
        values: impl Iterator<Item = (&'d ColumnId, &'d Datum)>,
    ) -> Value {
        let members = values.map(|(id, value)| {
            let column = table.column(*id);
            let json = self.datum(value, column.column_type.is_map());
            (BString::from(column.name.as_bytes()), json)
        });
        Value::Object(members.collect::<Object>())
    }

    fn datum(&self, datum: &Datum, is_map: bool) -> Value {
        let mut members: Vec<Value> = datum
            .iter()
            .map(|(key, value)| match value {
                Some(value) => Value::Array(vec![self.atom(key), self.atom(value)]),
                None => self.atom(key),
            })
            .collect();
        if !is_map && members.len() == 1 {
            return members.remove(0);
        }
        let tag = if is_map { "map" } else { "set" };
        Value::Array(vec![Value::string(tag), Value::Array(members)])
    }

    fn atom(&self, atom: AtomRef<'_>) -> Value {
        match atom {
            AtomRef::Integer(value) => Value::Integer(value),
            AtomRef::Real(value) => Value::Real(value.get()),
            AtomRef::Boolean(value) => Value::Bool(value),
            AtomRef::String(text) => Value::string(&**text),
            AtomRef::Uuid(uuid) => match self.0.get(&uuid) {
                Some(name) => pair("named-uuid", name.as_bytes()),
                None => pair("uuid", &uuid.to_text()),
            },
        }
    }
}

/// A datum as JSON, outside of a transaction.
#[must_use]
pub(crate) fn datum_json(datum: &Datum, is_map: bool) -> Value {
    Names(BTreeMap::new()).datum(datum, is_map)
}

fn pair(tag: &str, text: &[u8]) -> Value {
    Value::Array(vec![Value::string(tag), Value::string(text)])
}

/// The `where` that selects one row.
fn this_row(uuid: Uuid) -> Value {
    let clause = vec![
        Value::string("_uuid"),
        Value::string("=="),
        pair("uuid", &uuid.to_text()),
    ];
    Value::Array(vec![Value::Array(clause)])
}

/// An operation with its members.
#[must_use]
pub(crate) fn operation<const N: usize>(name: &str, members: [(&str, Value); N]) -> Value {
    let op = std::iter::once(("op", Value::string(name)));
    let members = op.chain(members);
    Value::Object(
        members
            .map(|(name, value)| (BString::from(name), value))
            .collect::<Object>(),
    )
}
