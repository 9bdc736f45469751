//! The transaction that undoes changes of the history: for each changed row, the row as it must
//! become, or why that cannot be.
//!
//! A change is undone only where it still holds. A [`Conflict`] is a column that no longer has the
//! value that the change wrote, or a row that was deleted or created again. Elements of sets and
//! maps are judged one by one, so later additions to the same column are kept. A change that is
//! undone already needs nothing. Pure: the rows of now are arguments, and the transaction has a
//! `wait` for each, so it fails if one has changed meanwhile.

pub(crate) mod keys;
pub(crate) mod others;

use bstr::BString;
use corvid_data::{Arc, Datum, Schema, TableId, TableSchema, Uuid, text, wire};
use corvid_history::{ColumnChange, RowChange};
use corvid_json::{Object, Reader, Value};

/// The columns of a row, in the order of the schema.
pub(crate) type Columns = Arc<[Datum]>;

/// A row, by its table and UUID.
pub(crate) type RowId = (TableId, Uuid);

/// A change of a row, as a line of the history tells it.
#[derive(Clone, Debug)]
pub(crate) struct Done {
    pub(crate) table: TableId,
    pub(crate) uuid: Uuid,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// With the columns of the new row.
    Insert(Columns),
    /// The columns by position.
    Modify(Vec<(usize, ColumnChange)>),
    /// With the columns of the old row.
    Delete(Columns),
}

/// Why a change cannot be undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Conflict(String);

impl std::fmt::Display for Conflict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl Done {
    /// Reads a change from its object in a line.
    ///
    /// # Errors
    /// It does not fit the schema, which has been converted since.
    pub(crate) fn parse(change: &Value, schema: &Schema) -> Result<Done, String> {
        let member = |name: &str| {
            let text = change.get(name).and_then(Value::as_str);
            text.ok_or_else(|| format!("a change without \"{name}\""))
        };
        let (name, row, op) = (member("table")?, member("row")?, member("op")?);
        let table = schema.table_id(name);
        let table = table.ok_or_else(|| format!("there is no table {name} any more"))?;
        let uuid = Uuid::parse(row.as_bytes()).ok_or_else(|| format!("{row} is not a UUID"))?;
        let of_table = schema.table(table);
        let mut changes = Vec::new();
        let columns = change.get("columns").and_then(Value::as_object);
        for (column, values) in columns.into_iter().flatten() {
            let id = of_table.column_named(column);
            let id = id.ok_or_else(|| format!("table {name} has no column {column} any more"))?;
            let at = usize::from(id.0);
            let column_type = &of_table.columns()[at].column_type;
            let read = |member: &str| match values.get(member) {
                Some(value) => {
                    let text = value.to_bytes();
                    wire::read_diff(&mut Reader::new(&text), column_type, None)
                        .map(Some)
                        .map_err(|error| format!("column {column} of table {name}: {error}"))
                }
                None => Ok(None),
            };
            let or_default =
                |value: Option<Datum>| value.unwrap_or_else(|| Datum::default_for(column_type));
            let change = match column_type.is_composite() {
                true => ColumnChange::Elements {
                    removed: read("removed")?.unwrap_or_default(),
                    added: read("added")?.unwrap_or_default(),
                },
                false => ColumnChange::Value {
                    old: or_default(read("old")?),
                    new: or_default(read("new")?),
                },
            };
            changes.push((at, change));
        }
        let kind = match op {
            "insert" => Kind::Insert(whole(of_table, &changes, |change| match change {
                ColumnChange::Value { new, .. } => new,
                ColumnChange::Elements { added, .. } => added,
            })),
            "delete" => Kind::Delete(whole(of_table, &changes, |change| match change {
                ColumnChange::Value { old, .. } => old,
                ColumnChange::Elements { removed, .. } => removed,
            })),
            "modify" => Kind::Modify(changes),
            other => return Err(format!("a change of the unknown kind \"{other}\"")),
        };
        Ok(Done { table, uuid, kind })
    }

    /// The change of the row that undoes this one; `None` if nothing is left to undo. `now` are its
    /// columns; `None`: it does not exist.
    ///
    /// # Errors
    /// The conflicts with what has changed since.
    pub(crate) fn undo(
        &self,
        schema: &Arc<Schema>,
        now: Option<&Columns>,
    ) -> Result<Option<RowChange>, Vec<Conflict>> {
        let table = schema.table(self.table);
        let new = match (&self.kind, now) {
            (Kind::Insert(_), None) => return Ok(None),
            (Kind::Insert(columns), Some(now)) => {
                let is_kept = |at: usize| table.columns()[at].persistent;
                let changed = (0..columns.len())
                    .filter(|at| is_kept(*at) && now[*at] != columns[*at])
                    .map(|at| {
                        let change = ColumnChange::Value {
                            old: Datum::default(),
                            new: columns[at].clone(),
                        };
                        self.conflict_of(table, now, at, &change)
                    });
                let changed: Vec<Conflict> = changed.collect();
                if !changed.is_empty() {
                    return Err(changed);
                }
                None
            }
            (Kind::Delete(columns), None) => Some(columns.clone()),
            (Kind::Delete(columns), Some(now)) if columns == now => return Ok(None),
            (Kind::Delete(_), Some(_)) => {
                return Err(vec![self.of_row(table, now, "the row exists again")]);
            }
            (Kind::Modify(_), None) => {
                return Err(vec![self.of_row(table, now, "the row is deleted")]);
            }
            (Kind::Modify(changes), Some(now)) => {
                let mut columns = now.to_vec();
                let mut conflicts = Vec::new();
                for (at, change) in changes {
                    match before(change, &columns[*at]) {
                        Some(old) => columns[*at] = old,
                        None => conflicts.push(self.conflict_of(table, now, *at, change)),
                    }
                }
                if !conflicts.is_empty() {
                    return Err(conflicts);
                }
                if columns[..] == now[..] {
                    return Ok(None);
                }
                Some(Arc::from(columns))
            }
        };
        Ok(Some(RowChange {
            schema: schema.clone(),
            table: self.table,
            uuid: self.uuid,
            old: now.cloned(),
            new,
        }))
    }

    /// A change of a column no longer holds: the conflict with its value of now.
    fn conflict_of(
        &self,
        table: &TableSchema,
        now: &Columns,
        at: usize,
        change: &ColumnChange,
    ) -> Conflict {
        let shown = |datum: &Datum| {
            let mut out = String::new();
            text::write_datum(&mut out, datum, &table.columns()[at].column_type);
            out
        };
        let made = match change {
            ColumnChange::Value { new, .. } => format!("set it to {}", shown(new)),
            ColumnChange::Elements { removed, added } => {
                let parts = [("added", added), ("removed", removed)];
                let parts = parts.into_iter().filter(|(_, datum)| !datum.is_empty());
                let parts: Vec<String> = parts
                    .map(|(what, datum)| format!("{what} {}", shown(datum)))
                    .collect();
                parts.join(" and ")
            }
        };
        let (name, value) = (&table.columns()[at].name, shown(&now[at]));
        self.of_row(
            table,
            Some(now),
            &format!("{name} is {value} now, and the change {made}"),
        )
    }

    fn of_row(&self, table: &TableSchema, now: Option<&Columns>, problem: &str) -> Conflict {
        let name = table.column_id("name").and_then(|id| {
            let columns = match &self.kind {
                Kind::Insert(columns) | Kind::Delete(columns) => Some(columns),
                Kind::Modify(_) => now,
            };
            columns?[usize::from(id.0)].as_string().cloned()
        });
        let name = name.map_or_else(String::new, |name| format!("\"{}\" ", &*name));
        Conflict(format!("{} {name}{}: {problem}", table.name, self.uuid))
    }
}

/// The columns of a row, of which some are given and the others have their defaults.
fn whole(
    table: &TableSchema,
    given: &[(usize, ColumnChange)],
    value: impl Fn(&ColumnChange) -> &Datum,
) -> Columns {
    let defaults = table.columns().iter();
    let mut columns: Vec<Datum> = defaults
        .map(|column| Datum::default_for(&column.column_type))
        .collect();
    for (at, change) in given {
        columns[*at] = value(change).clone();
    }
    Arc::from(columns)
}

/// The value of a column before a change, if it is `now` after it; `now` itself if it is undone
/// already. `None`: it was changed since.
fn before(change: &ColumnChange, now: &Datum) -> Option<Datum> {
    match change {
        ColumnChange::Value { old, new } => (now == new || now == old).then(|| old.clone()),
        ColumnChange::Elements { removed, added } => {
            if now.includes(removed) && now.excludes(added) {
                return Some(now.clone());
            }
            let mut datum = now.clone();
            let is_whole = datum.remove_all(added) == added.len();
            // A key of a map may be there again with another value.
            let is_free = datum.insert_all(removed) == removed.len();
            (is_whole && is_free).then_some(datum)
        }
    }
}

/// The operations that make these changes, unless one of the rows has changed meanwhile.
pub(crate) fn operations(changes: &[RowChange]) -> Vec<Value> {
    let mut operations: Vec<Value> = changes.iter().map(guard).collect();
    operations.extend(changes.iter().map(operation));
    operations
}

/// A condition that compares a column with a UUID.
fn compare(column: &str, function: &str, uuid: Uuid) -> Value {
    let uuid = Value::Array(vec![Value::string("uuid"), Value::string(uuid.to_string())]);
    let clause = vec![Value::string(column), Value::string(function), uuid];
    Value::Array(vec![Value::Array(clause)])
}

/// A condition for this row.
pub(crate) fn is_row(uuid: Uuid) -> Value {
    compare("_uuid", "==", uuid)
}

pub(crate) fn object(members: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    let members = members.into_iter();
    Value::Object(
        members
            .map(|(name, value)| (BString::from(name), value))
            .collect(),
    )
}

/// Columns of a row, those for which `is_wanted` holds.
fn row(change: &RowChange, columns: &Columns, is_wanted: impl Fn(usize) -> bool) -> Object {
    let described = change.table().columns().iter().enumerate();
    let wanted = described.filter(|(at, _)| is_wanted(*at));
    wanted
        .map(|(at, column)| {
            let mut text = Vec::new();
            wire::write_datum(&mut text, &columns[at], column.column_type.is_map());
            let value = Value::parse(&text).expect("a datum is written as JSON");
            (BString::from(column.name.as_str()), value)
        })
        .collect()
}

/// Waits for nothing: fails unless the row is as it was read.
fn guard(change: &RowChange) -> Value {
    let (columns, rows) = match &change.old {
        // Columns that are not kept in files change often, and a revert leaves them alone.
        Some(old) => {
            let row = row(change, old, |at| change.table().columns()[at].persistent);
            let names = row.keys().map(|name| Value::String(name.clone())).collect();
            (names, vec![Value::Object(row)])
        }
        None => (vec![Value::string("_uuid")], Vec::new()),
    };
    object([
        ("op", Value::string("wait")),
        ("timeout", Value::Integer(0)),
        ("table", Value::string(change.table().name.as_str())),
        ("where", is_row(change.uuid)),
        ("columns", Value::Array(columns)),
        ("until", Value::string("==")),
        ("rows", Value::Array(rows)),
    ])
}

fn operation(change: &RowChange) -> Value {
    let table = ("table", Value::string(change.table().name.as_str()));
    match (&change.old, &change.new) {
        (_, None) => object([
            ("op", Value::string("delete")),
            table,
            ("where", is_row(change.uuid)),
        ]),
        (None, Some(new)) => {
            let is_set = |at: usize| {
                let column = &change.table().columns()[at];
                column.persistent && !new[at].is_default(&column.column_type)
            };
            object([
                ("op", Value::string("insert")),
                table,
                ("uuid", Value::string(change.uuid.to_string())),
                ("row", Value::Object(row(change, new, is_set))),
            ])
        }
        (Some(old), Some(new)) => object([
            ("op", Value::string("update")),
            table,
            ("where", is_row(change.uuid)),
            (
                "row",
                Value::Object(row(change, new, |at| old[at] != new[at])),
            ),
        ]),
    }
}

#[cfg(test)]
mod tests;
