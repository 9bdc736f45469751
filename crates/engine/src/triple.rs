//! `[COLUMN, OPERATOR, ARGUMENT]`: the shape that clauses and mutations share, and the errors that go with it.
//!
//! The shape is checked before anything in it. What operators there are and what an argument must be is the matter of
//! [`crate::condition`] and [`crate::mutation`].

use std::borrow::Cow;

use corvid_data::{ColumnId, ColumnSchema, TableSchema, Tag, WireError};
use corvid_json::Reader;

/// A clause or mutation of a known column.
pub(crate) struct Triple<'a> {
    raw: &'a [u8],
    /// The column, standard ones included.
    pub(crate) column: ColumnId,
    /// The name of a function or mutator.
    pub(crate) operator: Cow<'a, [u8]>,
    /// Raw JSON.
    pub(crate) argument: &'a [u8],
}

impl<'a> Triple<'a> {
    /// Reads the raw text of one, valid JSON.
    ///
    /// # Errors
    /// What `malformed` makes of another shape; [`unknown_column`].
    pub(crate) fn read(
        table: &TableSchema,
        raw: &'a [u8],
        malformed: fn(&[u8]) -> WireError,
    ) -> Result<Triple<'a>, WireError> {
        let [name, operator, argument] = elements(raw).ok_or_else(|| malformed(raw))?;
        let string = |raw| Reader::trusted(raw).string().ok();
        let (Some(name), Some(operator)) = (string(name), string(operator)) else {
            return Err(malformed(raw));
        };
        let column = std::str::from_utf8(&name)
            .ok()
            .and_then(|name| table.column_id(name))
            .ok_or_else(|| unknown_column(table, &name, raw))?;
        Ok(Triple {
            raw,
            column,
            operator,
            argument,
        })
    }

    /// The operator as messages show it.
    pub(crate) fn shown_operator(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.operator)
    }

    /// `Type mismatch: ...`: the operator is not for columns like `column`.
    pub(crate) fn type_mismatch(&self, column: &ColumnSchema) -> WireError {
        let details = format!(
            "Type mismatch: \"{}\" operator may not be applied to column {} of type {}.",
            self.shown_operator(),
            column.name,
            column.column_type.english(),
        );
        WireError::syntax(self.raw, details)
    }
}

/// `No column C in table T.`, with the clause, mutation or row it was found in.
pub(crate) fn unknown_column(table: &TableSchema, name: &[u8], fragment: &[u8]) -> WireError {
    let name = String::from_utf8_lossy(name);
    WireError::new(
        Tag::UnknownColumn,
        format!("No column {name} in table {}.", table.name),
    )
    .with_fragment(fragment)
}

/// The three elements of an array of three.
fn elements(raw: &[u8]) -> Option<[&[u8]; 3]> {
    let mut reader = Reader::trusted(raw);
    reader.begin_array().ok()?;
    let mut elements: [&[u8]; 3] = [&[]; 3];
    for element in &mut elements {
        if !reader.next_element().ok()? {
            return None;
        }
        *element = reader.skip().ok()?;
    }
    let has_more = reader.next_element().ok()?;
    (!has_more).then_some(elements)
}
