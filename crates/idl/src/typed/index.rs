//! Indexes and keys that accept only columns of their own table, with values of the right type.

use std::marker::PhantomData;

use super::{Element, Kind, Map, Row, TypedColumn};
use crate::class::{Class, ClassError};
use crate::idl::Idl;
use crate::index::{Comparator, Direction, IndexColumn, IndexId, Key};

/// Builds an index. The class must hold its columns.
#[derive(Debug)]
pub struct TypedIndexBuilder<R> {
    columns: Vec<IndexColumn>,
    marker: PhantomData<fn() -> R>,
}

impl<R: Row> Default for TypedIndexBuilder<R> {
    fn default() -> Self {
        TypedIndexBuilder {
            columns: Vec::new(),
            marker: PhantomData,
        }
    }
}

impl<R: Row> TypedIndexBuilder<R> {
    /// An index without columns yet.
    #[must_use]
    pub fn new() -> TypedIndexBuilder<R> {
        TypedIndexBuilder::default()
    }

    fn with(mut self, column: IndexColumn) -> TypedIndexBuilder<R> {
        self.columns.push(column);
        self
    }

    /// Adds a column, least value first.
    #[must_use]
    pub fn ascending<K: Kind>(self, column: TypedColumn<R, K>) -> TypedIndexBuilder<R> {
        self.with(IndexColumn::ascending(column.column()))
    }

    /// Adds a column, greatest value first.
    #[must_use]
    pub fn descending<K: Kind>(self, column: TypedColumn<R, K>) -> TypedIndexBuilder<R> {
        self.with(IndexColumn::descending(column.column()))
    }

    /// Adds a column with its own comparator.
    #[must_use]
    pub fn ordered<K: Kind>(
        self,
        column: TypedColumn<R, K>,
        direction: Direction,
        comparator: Comparator,
    ) -> TypedIndexBuilder<R> {
        self.with(IndexColumn {
            column: column.column(),
            direction,
            comparator: Some(comparator),
        })
    }

    /// Adds a map column, in ascending order of the values at one key. Rows without the key come
    /// first. In a [`TypedKey`] the column's value is a map of that one pair.
    #[must_use]
    pub fn at_key<K: Element, V: Element>(
        self,
        column: TypedColumn<R, Map<K, V>>,
        key: K,
    ) -> TypedIndexBuilder<R> {
        self.with(IndexColumn::at_key(column.column(), key.into_atom()))
    }

    /// Builds the index over the existing rows.
    ///
    /// # Errors
    /// Those of [`Idl::add_index`].
    pub fn build_late(self, idl: &mut Idl) -> Result<TypedIndex<R>, ClassError> {
        let id = idl.add_index(R::TABLE, "", self.columns)?;
        Ok(TypedIndex {
            id,
            marker: PhantomData,
        })
    }

    /// Adds the index to a class.
    ///
    /// # Errors
    /// Those of [`Class::add_index`].
    pub fn build(self, class: &mut Class) -> Result<TypedIndex<R>, ClassError> {
        let id = class.add_index(R::TABLE, "", self.columns)?;
        Ok(TypedIndex {
            id,
            marker: PhantomData,
        })
    }
}

/// An index over the rows of `R`.
#[derive(Debug)]
pub struct TypedIndex<R> {
    id: IndexId,
    marker: PhantomData<fn() -> R>,
}

impl<R> Clone for TypedIndex<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for TypedIndex<R> {}

impl<R: Row> TypedIndex<R> {
    /// The untyped index.
    #[must_use]
    pub fn id(self) -> IndexId {
        self.id
    }

    /// A key with every column at its default.
    #[must_use]
    pub fn key(self, idl: &Idl) -> TypedKey<R> {
        TypedKey {
            key: idl.key(self.id),
            marker: PhantomData,
        }
    }

    /// All rows in the order of the index.
    pub fn rows(self, idl: &Idl) -> impl Iterator<Item = R> + '_
    where
        R: 'static,
    {
        idl.range_of(self.id, None, None).map(R::of)
    }

    /// The rows from one key to another, both included, in the order of the index; `None` means no
    /// bound.
    pub fn range<'a>(
        self,
        idl: &'a Idl,
        from: Option<&'a TypedKey<R>>,
        to: Option<&'a TypedKey<R>>,
    ) -> impl Iterator<Item = R> + 'a
    where
        R: 'static,
    {
        let keys = (from.map(|from| &from.key), to.map(|to| &to.key));
        idl.range_of(self.id, keys.0, keys.1).map(R::of)
    }
}

/// A value for each column of an index of `R`.
#[derive(Debug, Clone)]
pub struct TypedKey<R> {
    key: Key,
    marker: PhantomData<fn() -> R>,
}

impl<R: Row> TypedKey<R> {
    /// Sets the value of a column. A column that the index lacks is ignored.
    #[must_use]
    pub fn with<K: Kind>(mut self, column: TypedColumn<R, K>, value: K::Value) -> TypedKey<R> {
        self.key.set(column.column(), K::write(value));
        self
    }

    /// The untyped key.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The first row that equals the key.
    #[must_use]
    pub fn find(&self, idl: &Idl) -> Option<R> {
        idl.find(&self.key).map(R::of)
    }

    /// The rows that equal the key, ordered by UUID.
    pub fn rows<'a>(&'a self, idl: &'a Idl) -> impl Iterator<Item = R> + 'a
    where
        R: 'static,
    {
        idl.equal(&self.key).map(R::of)
    }
}
