//! Columns that know whose they are and what they hold.

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
    /// For generated code: the column's place in its table, and its name.
    #[must_use]
    pub const fn new(id: ColumnId, name: &'static str) -> TypedColumn<R, K> {
        TypedColumn {
            id,
            name,
            marker: PhantomData,
        }
    }

    /// Its name in the schema.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }
}

impl<R: Row, K: Kind> TypedColumn<R, K> {
    /// Without its types: for the untyped calls of [`Idl`].
    #[must_use]
    pub const fn column(self) -> Column {
        Column {
            table: R::TABLE,
            id: self.id,
        }
    }

    /// The value in a row; what an empty column holds if the row is not there.
    #[must_use]
    pub fn read(self, row: R, idl: &Idl) -> K::Value {
        let datum = idl.read(row.id(), self.column());
        K::read(&datum.unwrap_or_default(), idl)
    }

    /// Writes the value as a whole.
    ///
    /// # Errors
    /// As [`Idl::write`].
    pub fn write(self, row: R, idl: &mut Idl, value: K::Value) -> Result<(), Misuse> {
        idl.write(row.id(), self.column(), K::write(value))
    }

    /// As [`Idl::verify`].
    ///
    /// # Errors
    /// As there.
    pub fn verify(self, row: R, idl: &mut Idl) -> Result<(), Misuse> {
        idl.verify(row.id(), self.column())
    }

    /// Fetches the column of one row: as [`Idl::fetch_row`].
    ///
    /// # Errors
    /// As there.
    pub fn fetch(self, row: R, idl: &mut Idl) -> Result<FetchId, FetchError> {
        idl.fetch_row(row.id(), self.column())
    }

    /// Fetches the column of all rows: as [`Idl::fetch_column`].
    ///
    /// # Errors
    /// As there.
    pub fn fetch_all(self, idl: &mut Idl) -> Result<FetchId, FetchError> {
        idl.fetch_column(self.column())
    }

    /// Whether the column of a row was fetched since the replica last got the row.
    #[must_use]
    pub fn is_fetched(self, row: R, idl: &Idl) -> bool {
        idl.is_fetched(row.id(), self.column())
    }

    /// Whether a tracked change of a row changed this column.
    #[must_use]
    pub fn is_changed(self, change: &Tracked) -> bool {
        change.is_updated(self.id)
    }

    /// The value of the column before a tracked change, if that changed it and the row is not new.
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

    /// Rows whose value is this one.
    #[must_use]
    pub fn equal(self, value: K::Value) -> TypedClause<R> {
        self.clause(Function::Equal, value)
    }

    /// Rows whose value is another one.
    #[must_use]
    pub fn not_equal(self, value: K::Value) -> TypedClause<R> {
        self.clause(Function::NotEqual, value)
    }

    /// Rows whose value includes none of these elements.
    #[must_use]
    pub fn excludes(self, value: K::Value) -> TypedClause<R> {
        self.clause(Function::Excludes, value)
    }

    /// Rows whose value includes these elements.
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

/// Changes of single elements. Other clients may change other elements at the same time. Each returns whether the column changed.
impl<R: Row, E: Element> TypedColumn<R, Set<E>> {
    /// Puts an element in.
    ///
    /// # Errors
    /// As [`Idl::add_value`].
    pub fn add(self, row: R, idl: &mut Idl, value: E) -> Result<bool, Misuse> {
        idl.add_value(row.id(), self.column(), value.into_atom())
    }

    /// Takes an element out.
    ///
    /// # Errors
    /// As [`Idl::remove_value`].
    pub fn remove(self, row: R, idl: &mut Idl, value: E) -> Result<bool, Misuse> {
        idl.remove_value(row.id(), self.column(), value.into_atom())
    }
}

impl<R: Row, E: Element> TypedColumn<R, Optional<E>> {
    /// Puts the element in; refused by the server if there is another one by then.
    ///
    /// # Errors
    /// As [`Idl::add_value`].
    pub fn add(self, row: R, idl: &mut Idl, value: E) -> Result<bool, Misuse> {
        idl.add_value(row.id(), self.column(), value.into_atom())
    }

    /// Takes the element out, if it is this one.
    ///
    /// # Errors
    /// As [`Idl::remove_value`].
    pub fn remove(self, row: R, idl: &mut Idl, value: E) -> Result<bool, Misuse> {
        idl.remove_value(row.id(), self.column(), value.into_atom())
    }
}

impl<R: Row, K: Element, V: Element> TypedColumn<R, Map<K, V>> {
    /// Sets the value at a key.
    ///
    /// # Errors
    /// As [`Idl::set_key`].
    pub fn set_key(self, row: R, idl: &mut Idl, key: K, value: V) -> Result<bool, Misuse> {
        idl.set_key(row.id(), self.column(), key.into_atom(), value.into_atom())
    }

    /// Takes a key out.
    ///
    /// # Errors
    /// As [`Idl::remove_key`].
    pub fn remove_key(self, row: R, idl: &mut Idl, key: K) -> Result<bool, Misuse> {
        idl.remove_key(row.id(), self.column(), key.into_atom())
    }
}
