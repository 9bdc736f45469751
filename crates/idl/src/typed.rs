//! Rows with types: what generated code is made of (`ovsdb-idlc`).
//!
//! A generated module has a type for each table, whose values are handles of rows, with a constant for each column
//! ([`TypedColumn`]). Everything else is here: how values of Rust become data and back ([`element`], [`kind`]), what every row can do
//! ([`Row`]), indexes, cursors and conditions that take and give the right values only ([`index`], [`cursor`], [`condition`]).
//!
//! Nothing is hidden behind it: a handle is a [`RowId`], a typed column has a [`crate::Column`], and the untyped calls of [`Idl`] take both.
//!
//! Invariant: ids in generated code are places in the schema that the code carries, so they are good for classes made of that schema, and
//! for no others.

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

/// A table: its values are handles of rows, whether these are there or not.
pub trait Row: Copy + Ord {
    /// Its place in the schema.
    const TABLE: TableId;

    /// The handle of a row of this table.
    fn of(row: RowId) -> Self;

    /// The row.
    fn id(self) -> RowId;

    /// Its identity.
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

    /// A row by identity.
    fn get(idl: &Idl, uuid: Uuid) -> Option<Self> {
        idl.row(Self::TABLE, uuid).map(Self::of)
    }

    /// The rows that changed since [`Idl::clear_changes`], with how they did.
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
    /// As [`Idl::insert_new`].
    fn insert(idl: &mut Idl) -> Result<Self, Misuse> {
        idl.insert_new(Self::TABLE).map(Self::of)
    }

    /// Deletes the row in the open transaction.
    ///
    /// # Errors
    /// As [`Idl::delete`].
    fn delete(self, idl: &mut Idl) -> Result<(), Misuse> {
        idl.delete(self.id())
    }
}

/// The schema that generated code carries.
///
/// # Panics
/// When the text is no schema, which what the generator wrote is.
#[must_use]
pub fn schema(text: &str) -> Arc<Schema> {
    let json = Value::parse(text.as_bytes());
    let schema = json.ok().and_then(|json| Schema::from_json(&json).ok());
    Arc::new(schema.expect("the generator has read it before"))
}
