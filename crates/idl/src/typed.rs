//! Rows with types: the building blocks of generated code (`ovsdb-idlc`).
//!
//! A generated module has a type for each table, whose values are row handles, with a constant for
//! each column ([`TypedColumn`]). Everything else is here: how Rust values convert to data and back
//! ([`element`], [`kind`]), what every row can do ([`Row`]), and indexes, cursors and conditions
//! that take and give only values of the right type ([`index`], [`cursor`], [`condition`]).
//!
//! The untyped layer stays accessible: a handle converts to a [`RowId`], a typed column to a
//! [`crate::Column`], and the untyped calls of [`Idl`] take both.
//!
//! Invariant: ids in generated code are positions in the schema that the code carries, so they are
//! valid only for classes made from that schema.

pub mod column;
pub mod condition;
pub mod cursor;
pub mod element;
pub mod index;
pub mod kind;

use corvid_json::Value;

pub use crate::class::{Class, ClassError};
pub use crate::idl::Idl;
pub use crate::row::RowId;
pub use crate::track::Tracked;
pub use crate::txn::Misuse;
pub use column::TypedColumn;
pub use condition::{TypedClause, TypedCondition};
pub use corvid_data::{Arc, Atom, AtomRef, ColumnId, Datum, Real, Schema, Str, TableId, Uuid};
pub use corvid_session::Function;
pub use cursor::TypedCursor;
pub use element::Element;
pub use index::{TypedIndex, TypedIndexBuilder, TypedKey};
pub use kind::{Kind, Map, One, OneRow, Optional, Set};

/// A table. Its values are handles of rows, which may or may not exist.
pub trait Row: Copy + Ord {
    /// The table's position in the schema.
    const TABLE: TableId;

    /// The typed handle of a row of this table.
    fn of(row: RowId) -> Self;

    /// The untyped handle.
    fn id(self) -> RowId;

    /// The row's UUID.
    fn uuid(self) -> Uuid {
        self.id().uuid
    }

    /// Whether the replica has the row.
    fn is_there(self, idl: &Idl) -> bool {
        idl.row(Self::TABLE, self.uuid()).is_some()
    }

    /// The rows of the table, in no particular order.
    fn all(idl: &Idl) -> impl Iterator<Item = Self> + '_
    where
        Self: 'static,
    {
        idl.rows(Self::TABLE).map(Self::of)
    }

    /// Looks up a row by UUID; `None` if the replica lacks it.
    fn get(idl: &Idl, uuid: Uuid) -> Option<Self> {
        idl.row(Self::TABLE, uuid).map(Self::of)
    }

    /// The rows that changed since [`Idl::clear_changes`], with their changes.
    fn changes(idl: &Idl) -> impl Iterator<Item = (Self, &Tracked)>
    where
        Self: 'static,
    {
        let handle = |change: &Tracked| {
            Self::of(RowId {
                table: Self::TABLE,
                uuid: change.uuid,
            })
        };
        idl.changes(Self::TABLE)
            .iter()
            .map(move |change| (handle(change), change))
    }

    /// Inserts a row in the open transaction.
    ///
    /// # Errors
    /// Those of [`Idl::insert_new`].
    fn insert(idl: &mut Idl) -> Result<Self, Misuse> {
        idl.insert_new(Self::TABLE).map(Self::of)
    }

    /// Deletes the row in the open transaction.
    ///
    /// # Errors
    /// Those of [`Idl::delete`].
    fn delete(self, idl: &mut Idl) -> Result<(), Misuse> {
        idl.delete(self.id())
    }
}

/// Parses the schema that generated code carries.
///
/// # Panics
/// If the text is not a schema. The generator never writes such a text.
#[must_use]
pub fn schema(text: &str) -> Arc<Schema> {
    let json = Value::parse(text.as_bytes());
    let schema = json.ok().and_then(|json| Schema::from_json(&json).ok());
    Arc::new(schema.expect("the generator has read it before"))
}
