//! Values of indexes that other rows have taken since. The server would refuse a revert that gives
//! such a value to a second row, and name the first one only.

use std::collections::BTreeMap;

use corvid_data::{ColumnId, Uuid, text, wire};
use corvid_history::RowChange;
use corvid_json::Value;

use super::{Columns, Conflict, RowId, object};

/// A value of an index that a row would get.
#[derive(Debug)]
pub(crate) struct Key<'c> {
    change: &'c RowChange,
    index: &'c [ColumnId],
    /// The row as it would become.
    new: &'c Columns,
}

/// The values of indexes that rows would get and do not have now.
pub(crate) fn keys(changes: &[RowChange]) -> Vec<Key<'_>> {
    let keys_of = |change| {
        let RowChange { old, new, .. }: &RowChange = change;
        let indexes = change.table().indexes.iter();
        indexes.filter_map(move |index| {
            let key = Key {
                change,
                index,
                new: new.as_ref()?,
            };
            let has_it = old.as_ref().is_some_and(|old| key.is_of(old));
            (!has_it).then_some(key)
        })
    };
    changes.iter().flat_map(keys_of).collect()
}

impl Key<'_> {
    /// Whether the row has the same value.
    fn is_of(&self, columns: &Columns) -> bool {
        let mut places = self.index.iter().map(|id| usize::from(id.0));
        places.all(|at| columns[at] == self.new[at])
    }

    /// The operation that finds the rows that have it now.
    pub(crate) fn select(&self) -> Value {
        let clauses = self.index.iter().map(|id| {
            let column = self.change.table().column(*id);
            let mut text = Vec::new();
            let datum = &self.new[usize::from(id.0)];
            wire::write_datum(&mut text, datum, column.column_type.is_map());
            let value = Value::parse(&text).expect("a datum is written as JSON");
            Value::Array(vec![
                Value::string(column.name.as_str()),
                Value::string("=="),
                value,
            ])
        });
        object([
            ("op", Value::string("select")),
            ("table", Value::string(self.change.table().name.as_str())),
            ("where", Value::Array(clauses.collect())),
            ("columns", Value::Array(vec![Value::string("_uuid")])),
        ])
    }

    /// The conflict with the rows that have it now, unless the revert takes it from them.
    pub(crate) fn judge(&self, rows: &[Value], changes: &[RowChange]) -> Option<Conflict> {
        let planned: BTreeMap<RowId, &RowChange> = changes
            .iter()
            .map(|change| ((change.table, change.uuid), change))
            .collect();
        let found = rows.iter().filter_map(|row| {
            let uuid = row.get("_uuid")?.as_array()?.get(1)?.as_str()?;
            Uuid::parse(uuid.as_bytes())
        });
        let mut others = found.filter(|uuid| {
            let keeps_it = match planned.get(&(self.change.table, *uuid)) {
                Some(change) => change.new.as_ref().is_some_and(|new| self.is_of(new)),
                None => true,
            };
            *uuid != self.change.uuid && keeps_it
        });
        others.next().map(|other| self.conflict(other))
    }

    fn conflict(&self, other: Uuid) -> Conflict {
        let table = self.change.table();
        let (mut names, mut values) = (Vec::new(), Vec::new());
        for id in self.index {
            let column = table.column(*id);
            let mut value = String::new();
            text::write_datum(
                &mut value,
                &self.new[usize::from(id.0)],
                &column.column_type,
            );
            names.push(column.name.as_str());
            values.push(value);
        }
        let name = self.change.name().map(|name| format!("\"{name}\" "));
        Conflict(format!(
            "{} {}{}: row {other} has the same value ({}) for the index on ({}) now; change or delete that row first",
            table.name,
            name.unwrap_or_default(),
            self.change.uuid,
            values.join(", "),
            names.join(", "),
        ))
    }
}
