//! Columns that know their table and the type of their values.

use std::marker::PhantomData;

use corvid_data::ColumnId;
use corvid_session::{Clause, Function};

use super::{Element, Kind, Map, Optional, Row, Set, TypedClause};
use crate::class::Column;
use crate::fetch::{FetchError, FetchId};
use crate::idl::Idl;
use crate::track::Tracked;
use crate::txn::Misuse;

/// A column of the table `R`, of a [`Kind`].
pub struct TypedColumn<R, K> {
    id: ColumnId,
    name: &'static str,
    marker: PhantomData<fn() -> (R, K)>,
}

impl<R, K> Clone for TypedColumn<R, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R, K> Copy for TypedColumn<R, K> {}

impl<R, K> std::fmt::Debug for TypedColumn<R, K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("TypedColumn").field(&self.name).finish()
    }
}

impl<R, K> TypedColumn<R, K> {
    /// For generated code: a column from its position in the table and its name.
    #[must_use]
    pub const fn new(id: ColumnId, name: &'static str) -> TypedColumn<R, K> {
        TypedColumn {
            id,
            name,
            marker: PhantomData,
        }
    }

    /// The column's name in the schema.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }
}

impl<R: Row, K: Kind> TypedColumn<R, K> {
    /// The untyped column, for the untyped calls of [`Idl`].
    #[must_use]
    pub const fn column(self) -> Column {
        Column {
            table: R::TABLE,
            id: self.id,
        }
    }

    /// The value in a row. If the row does not exist, the value of an empty column.
    #[must_use]
    pub fn read(self, row: R, idl: &Idl) -> K::Value {
        let datum = idl.read(row.id(), self.column());
        K::read(&datum.unwrap_or_default(), idl)
    }

    /// Writes the value as a whole.
    ///
    /// # Errors
    /// Those of [`Idl::write`].
    pub fn write(self, row: R, idl: &mut Idl, value: K::Value) -> Result<(), Misuse> {
        idl.write(row.id(), self.column(), K::write(value))
    }

    /// Makes the commit depend on the column's value: see [`Idl::verify`].
    ///
    /// # Errors
    /// Those of [`Idl::verify`].
    pub fn verify(self, row: R, idl: &mut Idl) -> Result<(), Misuse> {
        idl.verify(row.id(), self.column())
    }

    /// Fetches the column of one row: see [`Idl::fetch_row`].
    ///
    /// # Errors
    /// Those of [`Idl::fetch_row`].
    pub fn fetch(self, row: R, idl: &mut Idl) -> Result<FetchId, FetchError> {
        idl.fetch_row(row.id(), self.column())
    }

    /// Fetches the column of all rows: see [`Idl::fetch_column`].
    ///
    /// # Errors
    /// Those of [`Idl::fetch_column`].
    pub fn fetch_all(self, idl: &mut Idl) -> Result<FetchId, FetchError> {
        idl.fetch_column(self.column())
    }

    /// Whether the column of a row was fetched since the replica last received the row.
    #[must_use]
    pub fn is_fetched(self, row: R, idl: &Idl) -> bool {
        idl.is_fetched(row.id(), self.column())
    }

    /// Whether a tracked change of a row changed this column.
    #[must_use]
    pub fn is_changed(self, change: &Tracked) -> bool {
        change.is_updated(self.id)
    }

    /// The column's value before a tracked change; `None` if the change did not affect the column
    /// or the row is new.
    #[must_use]
    pub fn old(self, change: &Tracked, idl: &Idl) -> Option<K::Value> {
        change.old(self.id).map(|datum| K::read(datum, idl))
    }

    /// A clause of a condition with any function.
    #[must_use]
    pub fn clause(self, function: Function, value: K::Value) -> TypedClause<R> {
        TypedClause::new(Clause::new(
            self.name,
            function,
            &K::write(value),
            K::IS_MAP,
        ))
    }

    /// Selects rows with this value.
    #[must_use]
    pub fn equal(self, value: K::Value) -> TypedClause<R> {
        self.clause(Function::Equal, value)
    }

    /// Selects rows with any other value.
    #[must_use]
    pub fn not_equal(self, value: K::Value) -> TypedClause<R> {
        self.clause(Function::NotEqual, value)
    }

    /// Selects rows whose value contains none of these elements.
    #[must_use]
    pub fn excludes(self, value: K::Value) -> TypedClause<R> {
        self.clause(Function::Excludes, value)
    }

    /// Selects rows whose value contains all of these elements.
    #[must_use]
    pub fn includes(self, value: K::Value) -> TypedClause<R> {
        self.clause(Function::Includes, value)
    }
}

impl<R: Row, K: Kind> From<TypedColumn<R, K>> for Column {
    fn from(column: TypedColumn<R, K>) -> Column {
        column.column()
    }
}

/// Changes of single elements. Other clients may change other elements at the same time. Each call
/// returns whether the column changed.
impl<R: Row, E: Element> TypedColumn<R, Set<E>> {
    /// Adds an element.
    ///
    /// # Errors
    /// Those of [`Idl::add_value`].
    pub fn add(self, row: R, idl: &mut Idl, value: E) -> Result<bool, Misuse> {
        idl.add_value(row.id(), self.column(), value.into_atom())
    }

    /// Removes an element.
    ///
    /// # Errors
    /// Those of [`Idl::remove_value`].
    pub fn remove(self, row: R, idl: &mut Idl, value: E) -> Result<bool, Misuse> {
        idl.remove_value(row.id(), self.column(), value.into_atom())
    }
}

impl<R: Row, E: Element> TypedColumn<R, Optional<E>> {
    /// Adds the element. The server refuses the transaction if the column holds another element by
    /// then.
    ///
    /// # Errors
    /// Those of [`Idl::add_value`].
    pub fn add(self, row: R, idl: &mut Idl, value: E) -> Result<bool, Misuse> {
        idl.add_value(row.id(), self.column(), value.into_atom())
    }

    /// Removes the element if the column holds exactly this one.
    ///
    /// # Errors
    /// Those of [`Idl::remove_value`].
    pub fn remove(self, row: R, idl: &mut Idl, value: E) -> Result<bool, Misuse> {
        idl.remove_value(row.id(), self.column(), value.into_atom())
    }
}

impl<R: Row, K: Element, V: Element> TypedColumn<R, Map<K, V>> {
    /// Sets the value at a key.
    ///
    /// # Errors
    /// Those of [`Idl::set_key`].
    pub fn set_key(self, row: R, idl: &mut Idl, key: K, value: V) -> Result<bool, Misuse> {
        idl.set_key(row.id(), self.column(), key.into_atom(), value.into_atom())
    }

    /// Removes a key.
    ///
    /// # Errors
    /// Those of [`Idl::remove_key`].
    pub fn remove_key(self, row: R, idl: &mut Idl, key: K) -> Result<bool, Misuse> {
        idl.remove_key(row.id(), self.column(), key.into_atom())
    }
}
