//! `[COLUMN, OPERATOR, ARGUMENT]`: the shape that clauses and mutations share, and the errors that
//! go with it.
//!
//! The shape is checked before its elements. [`crate::condition`] and [`crate::mutation`] decide
//! which operators and arguments are valid.

use std::borrow::Cow;

use corvid_data::{ColumnId, ColumnSchema, TableSchema, Tag, WireError};
use corvid_json::Reader;

/// A clause or mutation of a known column.
pub(crate) struct Triple<'a> {
    /// A reader at the triple's start; read again only for errors.
    whole: Reader<'a>,
    /// The column, which may be a standard one.
    pub(crate) column: ColumnId,
    /// The name of a function or mutator.
    pub(crate) operator: Cow<'a, [u8]>,
    /// Raw JSON.
    pub(crate) argument: &'a [u8],
}

impl<'a> Triple<'a> {
    /// Reads the next value of `reader`, which is valid JSON.
    ///
    /// # Errors
    /// The error of `malformed` for another shape, or that of [`unknown_column`].
    pub(crate) fn read(
        table: &TableSchema,
        reader: &mut Reader<'a>,
        malformed: fn(&[u8]) -> WireError,
    ) -> Result<Triple<'a>, WireError> {
        let whole = reader.clone();
        let Some((name, operator, argument)) = elements(reader) else {
            return Err(malformed(text(whole)));
        };
        let Some(column) = table.column_named(&name) else {
            return Err(unknown_column(table, &name, text(whole)));
        };
        Ok(Triple {
            whole,
            column,
            operator,
            argument,
        })
    }

    /// The fast path for the next value of `reader`. `read` gets the column and the operator, and
    /// parses the argument or declines. `None` if anything is unusual or wrong: then the reader has
    /// not moved, and [`Triple::read`] makes the error.
    pub(crate) fn read_usual<T>(
        table: &TableSchema,
        reader: &mut Reader<'a>,
        read: impl FnOnce(ColumnId, &[u8], &mut Reader<'a>) -> Option<T>,
    ) -> Option<T> {
        let mut ahead = reader.clone();
        ahead.begin_array().ok()?;
        let name = next(&mut ahead, Reader::string)?;
        let column = table.column_named(&name)?;
        let operator = next(&mut ahead, Reader::string)?;
        if !ahead.next_element().ok()? {
            return None;
        }
        let value = read(column, &operator, &mut ahead)?;
        if ahead.next_element().ok()? {
            return None;
        }
        *reader = ahead;
        Some(value)
    }

    /// The triple's raw text, for errors.
    pub(crate) fn raw(&self) -> &'a [u8] {
        text(self.whole.clone())
    }

    /// The operator as messages show it.
    pub(crate) fn shown_operator(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.operator)
    }

    /// `Type mismatch: ...`: the operator is not defined for columns like `column`.
    pub(crate) fn type_mismatch(&self, column: &ColumnSchema) -> WireError {
        let details = format!(
            "Type mismatch: \"{}\" operator may not be applied to column {} of type {}.",
            self.shown_operator(),
            column.name,
            column.column_type.english(),
        );
        WireError::syntax(self.raw(), details)
    }
}

/// `No column C in table T.`, with the clause, mutation or row in which it was found.
pub(crate) fn unknown_column(table: &TableSchema, name: &[u8], fragment: &[u8]) -> WireError {
    let name = String::from_utf8_lossy(name);
    WireError::new(
        Tag::UnknownColumn,
        format!("No column {name} in table {}.", table.name),
    )
    .with_fragment(fragment)
}

/// Two strings and the raw text of a third element.
type Elements<'a> = (Cow<'a, [u8]>, Cow<'a, [u8]>, &'a [u8]);

/// The elements of an array of two strings and something else; `None` for anything else. The reader
/// is unusable then.
fn elements<'a>(reader: &mut Reader<'a>) -> Option<Elements<'a>> {
    reader.begin_array().ok()?;
    let name = next(reader, Reader::string)?;
    let operator = next(reader, Reader::string)?;
    let argument = next(reader, Reader::skip)?;
    let has_more = reader.next_element().ok()?;
    (!has_more).then_some((name, operator, argument))
}

/// The next element of an array, if there is one of that kind.
fn next<'a, T>(
    reader: &mut Reader<'a>,
    read: impl FnOnce(&mut Reader<'a>) -> Result<T, corvid_json::Error>,
) -> Option<T> {
    let is_there = reader.next_element().ok()?;
    is_there.then(|| read(reader).ok()).flatten()
}

/// The next value of a reader. Requests are valid JSON, so there is one.
fn text(mut reader: Reader<'_>) -> &[u8] {
    reader.skip().unwrap_or(b"null")
}
