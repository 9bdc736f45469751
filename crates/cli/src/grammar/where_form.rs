//! `--where`: the expressions of [`corvid_filter`] with the program's names of columns and rows.

use corvid_data::{ColumnId, Schema, TableId, Uuid};
use corvid_filter::{Fault, Names};

pub(crate) use corvid_filter::Where;

use super::{names, record};
use crate::contents::Contents;
use crate::failure::Failure;

/// Parses an expression about the rows of a table. Names of rows that columns refer to are looked
/// up.
///
/// # Errors
/// The text is not such an expression, or a row does not exist.
pub(crate) fn parse(
    contents: &mut Contents<'_>,
    table: TableId,
    text: &str,
) -> Result<Where, Failure> {
    corvid_filter::parse(&mut OfContents(contents), table, text)
}

/// Names as all commands understand them.
struct OfContents<'p, 'c>(&'p mut Contents<'c>);

impl Names for OfContents<'_, '_> {
    type Error = Failure;

    fn schema(&self) -> &Schema {
        self.0.schema()
    }

    fn column(&mut self, table: TableId, word: &str) -> Result<ColumnId, Failure> {
        names::column(self.0.schema().table(table), word)
    }

    fn row(&mut self, table: TableId, word: &str) -> Result<Uuid, Failure> {
        let row = record::get(self.0, table, word, false)?;
        Ok(row.unwrap_or_default())
    }

    fn fault(&self, fault: Fault) -> Failure {
        match fault {
            Fault::Form(text) => Failure::usage(format!("--where: {text}")),
            Fault::Value(text) => Failure::usage(text),
        }
    }
}
