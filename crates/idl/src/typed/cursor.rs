//! Cursors over indexes that return typed rows: for programs that change the rows that they visit.

use std::marker::PhantomData;

use super::{Row, TypedIndex, TypedKey};
use crate::idl::Idl;
use crate::index::Cursor;

/// A position in an index over the rows of `R`: at a row, or at the end. It borrows nothing, and
/// stays valid if its row changes or is deleted.
///
/// ```no_run
/// use corvid_idl::typed::{Idl, Misuse, Row, TypedIndex};
///
/// /// Deletes every row of a table, in the order of an index.
/// fn clear<R: Row>(index: TypedIndex<R>, idl: &mut Idl) -> Result<(), Misuse> {
///     let mut cursor = index.first(idl);
///     while let Some(row) = cursor.row(idl) {
///         row.delete(idl)?;
///         cursor.next(idl);
///     }
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct TypedCursor<R> {
    cursor: Cursor,
    marker: PhantomData<fn() -> R>,
}

impl<R> Clone for TypedCursor<R> {
    fn clone(&self) -> Self {
        TypedCursor::new(self.cursor.clone())
    }
}

impl<R> TypedCursor<R> {
    fn new(cursor: Cursor) -> TypedCursor<R> {
        TypedCursor {
            cursor,
            marker: PhantomData,
        }
    }

    /// Whether the cursor is at the end.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.cursor.row.is_none()
    }

    /// Moves to the next row: see [`Idl::cursor_next`].
    pub fn next(&mut self, idl: &Idl) {
        idl.cursor_next(&mut self.cursor);
    }

    /// Moves to the next row, or to the end if that row has a different key: see
    /// [`Idl::cursor_next_equal`].
    pub fn next_equal(&mut self, idl: &Idl) {
        idl.cursor_next_equal(&mut self.cursor);
    }
}

impl<R: Row> TypedCursor<R> {
    /// The row at the cursor; `None` at the end, or if the row has been deleted since.
    #[must_use]
    pub fn row(&self, idl: &Idl) -> Option<R> {
        idl.cursor_row(&self.cursor).map(R::of)
    }
}

impl<R: Row> TypedIndex<R> {
    /// A cursor at the first row.
    #[must_use]
    pub fn first(self, idl: &Idl) -> TypedCursor<R> {
        TypedCursor::new(idl.cursor_first(self.id()))
    }
}

impl<R: Row> TypedKey<R> {
    /// A cursor at the first row that is not before the key in the order of the index.
    #[must_use]
    pub fn at_least(&self, idl: &Idl) -> TypedCursor<R> {
        TypedCursor::new(idl.cursor_at_least(self.key()))
    }

    /// A cursor at the first row that equals the key, or at the end.
    #[must_use]
    pub fn first_equal(&self, idl: &Idl) -> TypedCursor<R> {
        TypedCursor::new(idl.cursor_equal(self.key()))
    }
}
