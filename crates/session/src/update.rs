//! Updates of rows in a monitor's replies and notifications: `<table-updates>`
//! (docs/spec/protocol.md 4.6) and `<table-updates2>` (docs/spec/protocol.md 4.7), read into one
//! form.
//!
//! [`read_updates`] owns the syntax. Its visitor decides which tables and columns exist, how values
//! are read, and what happens to a row. A client's session reads leniently and collects the rows. A
//! server that replicates another reads strictly, by its own schema, and applies each row. Neither
//! builds a tree.

use corvid_data::{ColumnId, Datum, TableId, Uuid, WireError};
use corvid_json::{Kind, Reader};
use thiserror::Error;

/// The changes in one message, by table of the server's schema
/// ([`Plan::schema`](crate::Plan::schema)).
#[derive(Debug, Default, Clone, PartialEq)]
pub struct TableUpdates {
    /// The changed tables, in the order of the message.
    pub tables: Vec<TableUpdate>,
}

/// The changes of one table.
#[derive(Debug, Clone, PartialEq)]
pub struct TableUpdate {
    /// The table's position in the server's schema.
    pub table: TableId,
    /// The changed rows, in the order of the message.
    pub rows: Vec<RowUpdate>,
}

/// The change of one row.
#[derive(Debug, Clone, PartialEq)]
pub struct RowUpdate {
    /// The row's UUID.
    pub uuid: Uuid,
    /// How the row changed.
    pub change: RowChange,
}

/// Columns of the schema with their data, in the order of the message.
pub type Columns = Vec<(ColumnId, Datum)>;

/// How a row changed.
#[derive(Debug, Clone, PartialEq)]
pub enum RowChange {
    /// The row was inserted, or a condition selects it now. Columns not listed have their defaults.
    Insert(Columns),
    /// The listed columns now have these values ([`Encoding::Values`]).
    Replace(Columns),
    /// The listed columns changed by these differences ([`Encoding::Differences`]); apply them with
    /// [`Datum::apply_diff`].
    Diff(Columns),
    /// The row was deleted, or no condition selects it any more.
    Delete,
}

/// The encoding of row changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// The encoding of `monitor` and `update`: values, in the members `old` and `new`.
    Values,
    /// The encoding of `monitor_cond`, `monitor_cond_since`, `update2` and `update3`: whole new
    /// rows, and changed columns as differences, in one of the members `initial`, `insert`,
    /// `modify` and `delete`.
    Differences,
}

/// An error in an update, or in the message around it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UpdateError {
    /// A part of the update does not have the required JSON type.
    #[error("{what} is not {wanted}")]
    Kind {
        /// The part.
        what: &'static str,
        /// The required type.
        wanted: &'static str,
    },
    /// The update names a table that is not monitored.
    #[error("update for unknown table {0}")]
    TableUnknown(String),
    /// The name of a row is not a UUID.
    #[error("row name {0} is not a UUID")]
    NotUuid(String),
    /// A row has neither `old` nor `new` ([`Encoding::Values`]).
    #[error("row update has neither old nor new contents")]
    Nothing,
    /// A row does not have exactly one member ([`Encoding::Differences`]).
    #[error("row update does not have exactly one member")]
    NotOne,
    /// A row has a member that the encoding does not define.
    #[error("row update has unknown member {0}")]
    MemberUnknown(String),
    /// The visitor refused a column, a value or a row.
    #[error("{0}")]
    Refused(#[from] WireError),
    /// The text is not valid JSON. Framing does not validate, so this is detected here.
    #[error("{0}")]
    Syntax(#[from] corvid_json::Error),
}

/// Receives the rows of an update, and decides how [`read_updates`] reads their columns.
pub trait UpdateVisitor {
    /// Whether to skip columns in `new` that `old` does not name, because they did not change.
    const CHANGED_ONLY: bool = false;

    /// A table's part of the update begins. Returns `None` if no update may name this table.
    fn table(&mut self, name: &[u8]) -> Option<TableId>;

    /// The column with this name; `None` to skip its value.
    ///
    /// # Errors
    /// The update is refused because of this column.
    fn column(&mut self, table: TableId, name: &[u8]) -> Result<Option<ColumnId>, UpdateError>;

    /// Reads the value of a column; a difference if `is_diff`. Returns `None` to omit the column.
    /// The value must be read to its end, whether it is readable or not.
    ///
    /// # Errors
    /// The update is refused because of this value.
    fn value(
        &mut self,
        table: TableId,
        column: ColumnId,
        is_diff: bool,
        reader: &mut Reader<'_>,
    ) -> Result<Option<Datum>, UpdateError>;

    /// Receives a row that has been read.
    ///
    /// # Errors
    /// The update is refused because of this row.
    fn row(&mut self, table: TableId, uuid: Uuid, change: RowChange) -> Result<(), UpdateError>;
}

/// Reads the object in a reply or a notification, and passes each row to `visitor` in the order of
/// the message. The text must be valid JSON.
///
/// # Errors
/// The object is malformed, or the visitor refuses a part of it. The preceding rows have been
/// passed on by then.
pub fn read_updates<V: UpdateVisitor>(
    reader: &mut Reader<'_>,
    encoding: Encoding,
    visitor: &mut V,
) -> Result<(), UpdateError> {
    begin(reader, "table updates")?;
    while let Some(name) = reader.next_member()? {
        let Some(table) = visitor.table(&name) else {
            return Err(UpdateError::TableUnknown(text(&name)));
        };
        begin(reader, "table update")?;
        while let Some(name) = reader.next_member()? {
            let Some(uuid) = Uuid::parse(&name) else {
                return Err(UpdateError::NotUuid(text(&name)));
            };
            begin(reader, "row update")?;
            let change = match encoding {
                Encoding::Values => values(reader, table, visitor)?,
                Encoding::Differences => differences(reader, table, visitor)?,
            };
            visitor.row(table, uuid, change)?;
        }
    }
    Ok(())
}

/// Reads a row of [`Encoding::Values`] whose object has been entered.
fn values<V: UpdateVisitor>(
    reader: &mut Reader<'_>,
    table: TableId,
    visitor: &mut V,
) -> Result<RowChange, UpdateError> {
    let (mut old, mut new, mut columns) = (None, None, None);
    while let Some(name) = reader.next_member()? {
        let start = reader.clone();
        match &*name {
            b"old" => {
                reader.skip()?;
                old = Some(start);
            }
            // Read later: the columns named by `old` must be known first.
            b"new" if V::CHANGED_ONLY => {
                reader.skip()?;
                new = Some(start);
            }
            b"new" => columns = Some(read_columns(reader, table, false, None, visitor)?),
            _ => return Err(UpdateError::MemberUnknown(text(&name))),
        }
    }
    if let Some(mut new) = new {
        let changed = match &mut old {
            Some(old) => Some(column_names(old, table, visitor)?),
            None => None,
        };
        columns = Some(read_columns(
            &mut new,
            table,
            false,
            changed.as_deref(),
            visitor,
        )?);
    }
    match (old, columns) {
        (None, Some(columns)) => Ok(RowChange::Insert(columns)),
        (Some(_), Some(columns)) => Ok(RowChange::Replace(columns)),
        (Some(_), None) => Ok(RowChange::Delete),
        (None, None) => Err(UpdateError::Nothing),
    }
}

/// Reads a row of [`Encoding::Differences`] whose object has been entered.
fn differences<V: UpdateVisitor>(
    reader: &mut Reader<'_>,
    table: TableId,
    visitor: &mut V,
) -> Result<RowChange, UpdateError> {
    let Some(name) = reader.next_member()? else {
        return Err(UpdateError::NotOne);
    };
    let change = match &*name {
        b"initial" | b"insert" => {
            RowChange::Insert(read_columns(reader, table, false, None, visitor)?)
        }
        b"modify" => RowChange::Diff(read_columns(reader, table, true, None, visitor)?),
        b"delete" => {
            if reader.skip()? != b"null" {
                return Err(UpdateError::Kind {
                    what: "delete",
                    wanted: "null",
                });
            }
            RowChange::Delete
        }
        _ => return Err(UpdateError::MemberUnknown(text(&name))),
    };
    match reader.next_member()? {
        None => Ok(change),
        Some(_) => Err(UpdateError::NotOne),
    }
}

/// The columns of a row: all, or only those in `changed`.
fn read_columns<V: UpdateVisitor>(
    reader: &mut Reader<'_>,
    table: TableId,
    is_diff: bool,
    changed: Option<&[ColumnId]>,
    visitor: &mut V,
) -> Result<Columns, UpdateError> {
    let mut columns = Columns::new();
    begin(reader, "row")?;
    while let Some(name) = reader.next_member()? {
        let id = visitor.column(table, &name)?;
        let id = id.filter(|id| changed.is_none_or(|changed| changed.contains(id)));
        let Some(id) = id else {
            reader.skip()?;
            continue;
        };
        if let Some(datum) = visitor.value(table, id, is_diff, reader)? {
            columns.push((id, datum));
        }
    }
    Ok(columns)
}

/// The columns named by a row.
fn column_names<V: UpdateVisitor>(
    reader: &mut Reader<'_>,
    table: TableId,
    visitor: &mut V,
) -> Result<Vec<ColumnId>, UpdateError> {
    let mut names = Vec::new();
    begin(reader, "row")?;
    while let Some(name) = reader.next_member()? {
        names.extend(visitor.column(table, &name)?);
        reader.skip()?;
    }
    Ok(names)
}

/// Enters an object.
fn begin(reader: &mut Reader<'_>, what: &'static str) -> Result<(), UpdateError> {
    if reader.peek()? != Kind::Object {
        return Err(UpdateError::Kind {
            what,
            wanted: "an object",
        });
    }
    Ok(reader.begin_object()?)
}

fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}
