//! Filters of tables: the expressions of [`corvid_filter`], with names of rows from the replica.

use corvid::data::{ColumnId, Datum, Schema, TableId, Uuid};
use corvid::{Column, Idl, RowView};
use corvid_filter::{Fault, Names, Where};

use crate::database::contents::Contents;
use crate::database::naming::Naming;

/// Parses a filter of a table's rows. An empty text selects all.
///
/// # Errors
/// The text is not a filter; the error says why.
pub(crate) fn parse(
    idl: &Idl,
    naming: &Naming,
    table: TableId,
    text: &str,
) -> Result<Option<Where>, String> {
    parse_named(idl, naming, table, text).map(|(filter, _)| filter)
}

/// Parses a filter. Also returns the tables whose rows it names: it may mean other rows once these
/// tables have changed.
///
/// # Errors
/// Those of [`parse`].
pub(crate) fn parse_named(
    idl: &Idl,
    naming: &Naming,
    table: TableId,
    text: &str,
) -> Result<(Option<Where>, Vec<TableId>), String> {
    if text.trim().is_empty() {
        return Ok((None, Vec::new()));
    }
    let mut names = OfReplica {
        idl,
        naming,
        named: Vec::new(),
    };
    let filter = corvid_filter::parse(&mut names, table, text)?;
    Ok((Some(filter), names.named))
}

/// Whether a filter holds for a row.
pub(crate) fn holds(filter: &Where, contents: Contents<'_>, uuid: Uuid) -> bool {
    filter.holds(&mut |id| Ok::<_, ()>(contents.value(uuid, id))) == Ok(true)
}

/// The value of a column that the replica lacks.
static NO_VALUE: Datum = Datum::empty();

/// Whether a filter holds for a row of the replica. Costs no look-up of the row.
pub(crate) fn holds_for(filter: &Where, view: RowView<'_>) -> bool {
    let table = view.id().table;
    filter.holds_for(&|id| view.get(Column { table, id }).unwrap_or(&NO_VALUE))
}

struct OfReplica<'i> {
    idl: &'i Idl,
    naming: &'i Naming,
    /// The tables whose rows were named.
    named: Vec<TableId>,
}

impl Names for OfReplica<'_> {
    type Error = String;

    fn schema(&self) -> &Schema {
        self.idl.schema()
    }

    fn column(&mut self, table: TableId, word: &str) -> Result<ColumnId, String> {
        let table = self.idl.schema().table(table);
        let fits = |name: &str| name.eq_ignore_ascii_case(word);
        let found = table.iter().find(|(_, column)| fits(&column.name));
        found
            .map(|(id, _)| id)
            .ok_or_else(|| format!("{} has no column \"{word}\"", table.name))
    }

    fn row(&mut self, table: TableId, word: &str) -> Result<Uuid, String> {
        if let Some(uuid) = Uuid::parse(word.as_bytes()) {
            return Ok(uuid);
        }
        self.named.push(table);
        let named = self.idl.rows(table).find(|row| {
            let name = self.naming.name(self.idl, table, row.uuid);
            name.as_deref() == Some(word)
        });
        let name = &self.idl.schema().table(table).name;
        named.map(|row| row.uuid).ok_or_else(|| {
            format!("no row of {name} is named \"{word}\"; rows of tables that nobody looks at are named by their UUIDs")
        })
    }

    fn fault(&self, fault: Fault) -> String {
        match fault {
            Fault::Form(text) | Fault::Value(text) => text,
        }
    }
}
