//! Rows that a revert would change besides those that it means to. A server deletes rows of some
//! tables when nothing refers to them any more, and removes weak references to deleted rows. Both
//! could destroy what others have done since, so they are conflicts.

use std::collections::{BTreeMap, BTreeSet};

use corvid_data::{AtomRef, BaseType, RefType, Schema, TableId, Uuid};
use corvid_history::RowChange;
use corvid_json::Value;

use super::{Columns, Conflict, RowId, compare, object};

/// A row about whose other referrers the server has to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Target {
    row: RowId,
    /// A deleted row, to which weak references must not exist. Otherwise a row that loses a strong
    /// reference, of which another one must exist.
    is_deleted: bool,
}

/// The strong references of a row.
fn strong(schema: &Schema, table: TableId, columns: &Columns) -> BTreeSet<RowId> {
    let described = schema.table(table).columns().iter().zip(columns.iter());
    let mut found = BTreeSet::new();
    for (column, datum) in described {
        let column_type = &column.column_type;
        let is_strong = |base: &BaseType| {
            let reference = base.reference.as_ref();
            let reference = reference.filter(|found| found.ref_type == RefType::Strong);
            reference.map(|reference| reference.table)
        };
        if let Some(target) = is_strong(&column_type.key) {
            found.extend(uuids(datum.keys()).map(|uuid| (target, uuid)));
        }
        if let Some(target) = column_type.value.as_ref().and_then(is_strong) {
            found.extend(uuids(datum.values()).map(|uuid| (target, uuid)));
        }
    }
    found
}

fn uuids<'d>(atoms: impl Iterator<Item = AtomRef<'d>>) -> impl Iterator<Item = Uuid> {
    atoms.filter_map(|atom| match atom {
        AtomRef::Uuid(uuid) => Some(uuid),
        _ => None,
    })
}

/// The rows to ask the server about.
///
/// # Errors
/// The conflicts that are known without it: rows that would be deleted as soon as they are back.
pub(crate) fn targets(
    schema: &Schema,
    changes: &[RowChange],
) -> Result<Vec<Target>, Vec<Conflict>> {
    let planned: BTreeSet<RowId> = changes.iter().map(id).collect();
    let mut kept = BTreeSet::new();
    let mut lost = BTreeSet::new();
    for change in changes {
        let of = |columns: &Option<Columns>| {
            let columns = columns.as_ref();
            columns.map_or_else(BTreeSet::new, |columns| {
                strong(schema, change.table, columns)
            })
        };
        let (before, after) = (of(&change.old), of(&change.new));
        lost.extend(before.difference(&after).copied());
        kept.extend(after);
    }
    let is_collected = |table: TableId| !schema.table(table).is_root;
    let conflicts: Vec<Conflict> = changes
        .iter()
        .filter(|change| change.old.is_none() && is_collected(change.table))
        .filter(|change| !kept.contains(&id(change)))
        .map(|change| {
            let (table, uuid) = (&change.table().name, change.uuid);
            Conflict(format!(
                "{table} {uuid}: nothing would refer to the row, so it would be deleted at once"
            ))
        })
        .collect();
    if !conflicts.is_empty() {
        return Err(conflicts);
    }
    let lost = lost.difference(&kept).copied();
    let lost = lost.filter(|row| is_collected(row.0) && !planned.contains(row));
    let losing = lost.map(|row| Target {
        row,
        is_deleted: false,
    });
    let deleted = changes.iter().filter(|change| change.new.is_none());
    let deleted = deleted.map(|change| Target {
        row: id(change),
        is_deleted: true,
    });
    Ok(losing.chain(deleted).collect())
}

fn id(change: &RowChange) -> RowId {
    (change.table, change.uuid)
}

/// A column that may refer to a target.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    table: TableId,
    table_name: String,
    column: String,
    uuid: Uuid,
    /// No condition finds a UUID in a map, so all rows are read.
    is_map: bool,
}

/// The columns that may refer to a target.
pub(crate) fn searches(schema: &Schema, target: Target) -> Vec<Search> {
    let (table, uuid) = target.row;
    let wanted = match target.is_deleted {
        true => RefType::Weak,
        false => RefType::Strong,
    };
    let refers = |base: &BaseType| {
        let reference = base.reference.as_ref();
        reference.is_some_and(|it| it.table == table && it.ref_type == wanted)
    };
    let mut searches = Vec::new();
    for (referring, described) in schema.iter() {
        for column in described.columns() {
            let column_type = &column.column_type;
            if refers(&column_type.key) || column_type.value.as_ref().is_some_and(refers) {
                searches.push(Search {
                    table: referring,
                    table_name: described.name.to_string(),
                    column: column.name.to_string(),
                    uuid,
                    is_map: column_type.is_map(),
                });
            }
        }
    }
    searches
}

impl Search {
    fn condition(&self) -> Value {
        match self.is_map {
            true => Value::Array(Vec::new()),
            false => compare(&self.column, "includes", self.uuid),
        }
    }

    fn columns(&self) -> Value {
        let mut columns = vec![Value::string("_uuid")];
        if self.is_map {
            columns.push(Value::string(self.column.as_str()));
        }
        Value::Array(columns)
    }

    /// The operation that finds the rows.
    pub(crate) fn select(&self) -> Value {
        object([
            ("op", Value::string("select")),
            ("table", Value::string(self.table_name.as_str())),
            ("where", self.condition()),
            ("columns", self.columns()),
        ])
    }

    /// The operation that fails unless these are still the rows.
    pub(crate) fn guard(&self, rows: &[Value]) -> Value {
        object([
            ("op", Value::string("wait")),
            ("timeout", Value::Integer(0)),
            ("table", Value::string(self.table_name.as_str())),
            ("where", self.condition()),
            ("columns", self.columns()),
            ("until", Value::string("==")),
            ("rows", Value::Array(rows.to_vec())),
        ])
    }

    /// The rows that refer to the target.
    pub(crate) fn referrers<'s>(&'s self, rows: &'s [Value]) -> impl Iterator<Item = RowId> + 's {
        let text = self.uuid.to_string();
        let refers = move |row: &&Value| {
            // In JSON a UUID is a string of its own, wherever it is in the map.
            !self.is_map
                || row
                    .get(&self.column)
                    .is_some_and(|map| has_string(map, &text))
        };
        rows.iter().filter(refers).filter_map(|row| {
            let uuid = row.get("_uuid")?.as_array()?.get(1)?.as_str()?;
            Some((self.table, Uuid::parse(uuid.as_bytes())?))
        })
    }
}

fn has_string(value: &Value, text: &str) -> bool {
    match value.as_array() {
        Some(elements) => elements.iter().any(|element| has_string(element, text)),
        None => value.as_str() == Some(text),
    }
}

/// The conflict with the rows that refer to a target, if there is one.
pub(crate) fn judge(
    schema: &Schema,
    target: Target,
    referrers: &[RowId],
    changes: &[RowChange],
) -> Option<Conflict> {
    let planned: BTreeMap<RowId, &RowChange> =
        changes.iter().map(|change| (id(change), change)).collect();
    let mut others = referrers.iter().filter(|row| !planned.contains_key(row));
    let (table, uuid) = target.row;
    let name = &schema.table(table).name;
    match (target.is_deleted, others.next()) {
        (true, Some((table, other))) => Some(Conflict(format!(
            "{name} {uuid}: {} {other} refers to the row now",
            schema.table(*table).name
        ))),
        (false, None) => Some(Conflict(format!(
            "{name} {uuid}: nothing would refer to the row any more, so it would be deleted"
        ))),
        _ => None,
    }
}
