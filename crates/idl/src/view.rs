//! A view of a row: its columns are read without looking the row up again.
//!
//! Invariant: a view borrows the client, so the row cannot change while the view exists.
//! [`crate::idl`]'s iterators return views. To keep something, keep the [`RowId`] or clone a datum.

use corvid_data::{Datum, Uuid};

use crate::class::Column;
use crate::replica::Layout;
use crate::row::{Row, RowId};

/// A row as the client currently shows it, including the open transaction's changes.
///
/// ```
/// use corvid_data::{Arc, Atom, Datum, Schema};
/// use corvid_idl::{Class, Idl, IndexColumn};
/// use corvid_json::Value;
///
/// let schema = br#"{"name":"Zoo","version":"1.0.0","tables":{"Keeper":{"isRoot":true,"columns":{
///     "name":{"type":"string"},"age":{"type":"integer"}}}}}"#;
/// let mut class = Class::everything(Arc::new(Schema::from_json(&Value::parse(schema).unwrap()).unwrap()));
/// let (name, age) = (class.column("Keeper", "name")?, class.column("Keeper", "age")?);
/// let by_age = class.add_index(age.table, "by age", vec![IndexColumn::descending(age)])?;
///
/// let mut idl = Idl::new(class, 1);
/// idl.begin()?;
/// for (text, years) in [("ann", 40), ("bob", 50), ("cid", 30)] {
///     let keeper = idl.insert_new(name.table)?;
///     idl.write(keeper, name, Datum::one(Atom::String(text.into())))?;
///     idl.write(keeper, age, Datum::one(Atom::Integer(years)))?;
/// }
/// let mut least = idl.key(by_age);
/// least.set(age, Datum::one(Atom::Integer(35)));
/// let names: Vec<_> = (idl.views_of(by_age, None, Some(&least)))
///     .filter_map(|keeper| keeper.get(name)?.as_string())
///     .map(|name| name.to_string())
///     .collect();
/// assert_eq!(names, ["bob", "ann"], "the eldest first, down to 35");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct RowView<'a> {
    pub(crate) id: RowId,
    pub(crate) row: &'a Row,
    pub(crate) layout: &'a Layout,
}

impl<'a> RowView<'a> {
    /// The row's handle.
    #[must_use]
    pub fn id(&self) -> RowId {
        self.id
    }

    /// The row's UUID.
    #[must_use]
    pub fn uuid(&self) -> Uuid {
        self.id.uuid
    }

    /// The replica's value of a column. `None` if the replica does not hold the column
    /// ([`crate::Idl::read`] returns a default there), or if the column belongs to another table.
    #[must_use]
    pub fn get(&self, column: Column) -> Option<&'a Datum> {
        if column.table != self.id.table {
            return None;
        }
        Some(&self.row.columns[self.layout.place(column.id)?])
    }
}
