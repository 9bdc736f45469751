//! The change of one row, in names and values: what `log` and `diff` show.

use corvid_data::{Arc, AtomRef, Change, Datum, DatumBuilder, Schema, TableId, TableSchema, Uuid};

/// The change of a row.
#[derive(Clone, Debug)]
pub struct RowChange {
    /// The schema of both versions.
    pub schema: Arc<Schema>,
    /// The table.
    pub table: TableId,
    /// The row.
    pub uuid: Uuid,
    /// The columns before, in the order of the schema; `None` if it was inserted.
    pub old: Option<Columns>,
    /// The columns after; `None` if it was deleted.
    pub new: Option<Columns>,
}

/// The columns of a row, in the order of the schema.
pub type Columns = Arc<[Datum]>;

/// The change of one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnChange {
    /// Another value of a column with at most one element.
    Value {
        /// The value before.
        old: Datum,
        /// The value after.
        new: Datum,
    },
    /// Elements of a set, or pairs of a map. A key with another value is in both.
    Elements {
        /// Elements that the change removed.
        removed: Datum,
        /// Elements that the change added.
        added: Datum,
    },
}

impl RowChange {
    /// The table's schema.
    #[must_use]
    pub fn table(&self) -> &TableSchema {
        self.schema.table(self.table)
    }

    /// The value of the column `name`, if the row has a string there: what people call the row.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        let column = self.table().column_id("name")?;
        let columns = self.old.as_ref().or(self.new.as_ref())?;
        columns
            .get(usize::from(column.0))?
            .as_string()
            .map(|name| &**name)
    }

    /// Each changed column with its position in the schema. In an inserted row these are the
    /// columns that differ from their defaults, in a deleted one as well.
    #[must_use]
    pub fn columns(&self) -> Vec<(usize, ColumnChange)> {
        let mut changes = Vec::new();
        for (at, column) in self.table().columns().iter().enumerate() {
            let default = Datum::default_for(&column.column_type);
            let value = |columns: &Option<Columns>| {
                columns
                    .as_ref()
                    .and_then(|columns| columns.get(at).cloned())
            };
            let (old, new) = (value(&self.old), value(&self.new));
            let (old, new) = (
                old.unwrap_or_else(|| default.clone()),
                new.unwrap_or(default),
            );
            if old == new {
                continue;
            }
            changes.push((
                at,
                match column.column_type.is_composite() {
                    true => elements(&old, &new),
                    false => ColumnChange::Value { old, new },
                },
            ));
        }
        changes
    }
}

/// The elements in which two sets or maps differ.
fn elements(old: &Datum, new: &Datum) -> ColumnChange {
    let (mut removed, mut added) = (DatumBuilder::new(), DatumBuilder::new());
    corvid_data::diff::changes(old, new, &mut |change| match change {
        Change::Added(key, value) => {
            added.push(key.to_owned(), value.map(AtomRef::to_owned));
        }
        Change::Removed(key, value) => {
            removed.push(key.to_owned(), value.map(AtomRef::to_owned));
        }
        Change::Replaced(key, before, after) => {
            removed.push(key.to_owned(), Some(before.to_owned()));
            added.push(key.to_owned(), Some(after.to_owned()));
        }
    });
    // Keys of one datum are distinct.
    ColumnChange::Elements {
        removed: removed.finish().unwrap_or_default(),
        added: added.finish().unwrap_or_default(),
    }
}
