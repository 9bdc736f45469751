//! From the body of a transaction record to [`Recorded`], with the exact errors of storage.md 4.1.
//!
//! One pass over the bytes, guided by the schema, with no tree. What that pass cannot settle (an error, or a repeated member
//! name of which the last must win) is settled by a second one over the canonical form of the body: sorted, without
//! repetitions. So the good case is fast, and errors are the same whatever the order of members.
//!
//! `_is_diff` may stand behind the rows it is about, so rows are read without size limits, and those of a plain record are
//! checked afterwards. Standard columns inside a row are ignored: honouring a `_uuid` there, as the reference does, would let
//! one row stand for another. Called by [`crate::Load`]; knows nothing of files or of the rows that exist.

use corvid_data::wire::Repeats;
use corvid_data::{
    ColumnId, Datum, Recorded, RecordedRow, Schema, TableId, TableSchema, Tag, Uuid, WireError,
    wire,
};
use corvid_json::{Kind, Number, Reader, Value};

use crate::reader::{BodyError, parse_object};

/// Dates below this are seconds: files of the first releases.
const DATE_MS_MIN: i64 = i32::MAX as i64;

/// Why a body is no transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DecodeError {
    /// It is no JSON object.
    Body(BodyError),
    /// It does not fit the schema.
    Content(WireError),
}

/// Why one pass failed.
enum Failure {
    /// The text is malformed, or has repeated members or too many elements: the other pass tells.
    Irregular,
    /// It does not fit the schema.
    Content(WireError),
}

impl From<corvid_json::Error> for Failure {
    fn from(_: corvid_json::Error) -> Failure {
        Failure::Irregular
    }
}

impl From<WireError> for Failure {
    fn from(error: WireError) -> Failure {
        Failure::Content(error)
    }
}

/// What a record probably has in common with those before it: tables, columns and strings. It makes reading faster and changes nothing
/// that is read. For one thread: see [`Repeats`].
#[derive(Debug, Default)]
pub(crate) struct Habits {
    repeats: Repeats,
    /// The table of the last row.
    table: Option<TableId>,
    /// The columns of the last row, in its order.
    columns: Vec<ColumnId>,
    /// Tables of the present record.
    tables: Vec<TableId>,
}

impl Habits {
    /// The table that a name in a record means.
    fn table(&mut self, schema: &Schema, name: &[u8]) -> Option<TableId> {
        let last = self
            .table
            .and_then(|id| schema.tables().get(usize::from(id.0)));
        if last.is_none_or(|last| last.name.as_bytes() != name) {
            self.table = schema.table_named(name);
        }
        self.table
    }

    /// The column that a name in a row means, behind `before` others.
    fn column(&mut self, table: &TableSchema, before: usize, name: &[u8]) -> Option<ColumnId> {
        let usual = self.columns.get(before).copied();
        let described = usual.and_then(|id| table.columns().get(usize::from(id.0)));
        if described.is_some_and(|column| column.name.as_bytes() == name) {
            return usual;
        }
        let id = table.column_named(name)?;
        if !id.is_standard() {
            self.columns.truncate(before);
            self.columns.push(id);
        }
        Some(id)
    }
}

/// Reads a body. Columns keep the order of the record; repeated members are dropped but the last.
pub(crate) fn decode(
    body: &[u8],
    schema: &Schema,
    habits: &mut Habits,
) -> Result<Recorded, DecodeError> {
    if let Ok(recorded) = Pass::new(schema, body, None, habits).run() {
        return Ok(recorded);
    }
    let value = parse_object(body).map_err(DecodeError::Body)?;
    let is_diff = value.get("_is_diff").and_then(Value::as_bool) == Some(true);
    let canonical = value.to_bytes();
    match Pass::new(schema, &canonical, Some(is_diff), habits).run() {
        Ok(recorded) => Ok(recorded),
        Err(Failure::Content(error)) => Err(DecodeError::Content(error)),
        Err(Failure::Irregular) => Err(DecodeError::Content(WireError::new(
            Tag::InternalError,
            "canonical form of a record is not readable",
        ))),
    }
}

/// Reads rows of one table, the text of one object, that are not there yet, so that columns hold values. `None` when anything is out of the
/// ordinary. Repeated rows are left to whoever puts them in.
pub(crate) fn decode_new_rows(
    text: &[u8],
    table: TableId,
    schema: &Schema,
) -> Option<Vec<RecordedRow>> {
    let mut habits = Habits::default();
    let mut pass = Pass::new(schema, text, Some(false), &mut habits);
    let described = schema.table(table);
    let mut reader = Reader::new(text);
    let mut rows = Vec::new();
    reader.begin_object().ok()?;
    while let Some(name) = reader.next_member().ok()? {
        let uuid = Uuid::parse(&name)?;
        let columns = pass.row(&mut reader, described).ok()??;
        rows.push(RecordedRow {
            table,
            uuid,
            columns: Some(columns),
        });
    }
    reader.end().ok()?;
    Some(rows)
}

/// When a `_date` was, in ms since the Unix epoch: old files have seconds.
#[must_use]
pub fn date_to_ms(date: i64) -> i64 {
    if date < DATE_MS_MIN {
        date.saturating_mul(1000)
    } else {
        date
    }
}

/// One pass over a body.
struct Pass<'a, 'h> {
    schema: &'a Schema,
    body: &'a [u8],
    /// `_is_diff`, once known; known from the start, and member names distinct, in the canonical form.
    is_diff: Option<bool>,
    canonical: bool,
    recorded: Recorded,
    habits: &'h mut Habits,
}

impl<'a, 'h> Pass<'a, 'h> {
    fn new(
        schema: &'a Schema,
        body: &'a [u8],
        is_diff: Option<bool>,
        habits: &'h mut Habits,
    ) -> Pass<'a, 'h> {
        habits.tables.clear();
        Pass {
            schema,
            body,
            is_diff,
            canonical: is_diff.is_some(),
            recorded: Recorded::default(),
            habits,
        }
    }

    fn run(mut self) -> Result<Recorded, Failure> {
        let mut reader = Reader::new(self.body);
        reader.begin_object()?;
        while let Some(name) = reader.next_member()? {
            let kind = reader.peek()?;
            match (&*name, kind) {
                (b"_date", Kind::Number) => match reader.number()? {
                    Number::Integer(date) => self.recorded.date_ms = Some(date_to_ms(date)),
                    Number::Real(_) => return Err(self.unknown_table(&name)),
                },
                (b"_is_diff", Kind::Bool) => self.is_diff = Some(reader.boolean()?),
                (b"_comment", Kind::String) => {
                    let comment = reader.string()?;
                    self.recorded.comment = Some(String::from_utf8_lossy(&comment).into_owned());
                }
                (b"_comment", _) => {
                    reader.skip()?;
                    self.recorded.comment = None;
                }
                _ => self.table(&mut reader, &name)?,
            }
        }
        reader.end()?;
        self.recorded.is_diff = self.is_diff == Some(true);
        if !self.recorded.is_diff && !self.canonical {
            self.check_sizes()?;
        }
        Ok(self.recorded)
    }

    fn table(&mut self, reader: &mut Reader<'a>, name: &[u8]) -> Result<(), Failure> {
        let Some(id) = self.habits.table(self.schema, name) else {
            return Err(self.unknown_table(name));
        };
        if self.habits.tables.contains(&id) {
            return Err(Failure::Irregular);
        }
        self.habits.tables.push(id);
        let start = reader.clone();
        if reader.peek()? != Kind::Object {
            return Err(syntax(start, "object expected"));
        }
        let table = self.schema.table(id);
        let first = self.recorded.rows.len();
        reader.begin_object()?;
        while let Some(name) = reader.next_member()? {
            let Some(uuid) = Uuid::parse(&name) else {
                let name = String::from_utf8_lossy(&name);
                return Err(syntax(start, format!("\"{name}\" is not a valid UUID")));
            };
            let columns = self.row(reader, table)?;
            self.recorded.rows.push(RecordedRow {
                table: id,
                uuid,
                columns,
            });
        }
        if !self.canonical && has_repetition(&self.recorded.rows[first..]) {
            return Err(Failure::Irregular);
        }
        Ok(())
    }

    fn row(
        &mut self,
        reader: &mut Reader<'a>,
        table: &TableSchema,
    ) -> Result<Option<Vec<(ColumnId, Datum)>>, Failure> {
        let start = reader.clone();
        match reader.peek()? {
            Kind::Null => {
                reader.null()?;
                return Ok(None);
            }
            Kind::Object => {}
            _ => return Err(syntax(start, "row must be JSON object")),
        }
        let mut columns = Vec::with_capacity(self.habits.columns.len());
        reader.begin_object()?;
        while let Some(name) = reader.next_member()? {
            let Some(id) = self.habits.column(table, columns.len(), &name) else {
                let mut start = start;
                let name = String::from_utf8_lossy(&name);
                let details = format!("No column {name} in table {}.", table.name);
                let error = WireError::new(Tag::UnknownColumn, details);
                return Err(Failure::Content(error.with_fragment(start.skip()?)));
            };
            if id.is_standard() {
                reader.skip()?;
                continue;
            }
            if columns.iter().any(|(seen, _)| *seen == id) {
                return Err(Failure::Irregular);
            }
            let column_type = &table.column(id).column_type;
            let datum = if self.is_diff == Some(false) {
                wire::read_datum(reader, column_type, Some(&mut self.habits.repeats))?
            } else {
                wire::read_diff(reader, column_type, Some(&mut self.habits.repeats))?
            };
            columns.push((id, datum));
        }
        self.habits.columns.truncate(columns.len());
        Ok(Some(columns))
    }

    /// A plain record's data have the sizes that their columns allow; the canonical pass words what is wrong.
    fn check_sizes(&self) -> Result<(), Failure> {
        for row in &self.recorded.rows {
            let table = self.schema.table(row.table);
            for (id, datum) in row.columns.iter().flatten() {
                let column_type = &table.column(*id).column_type;
                if !column_type.admits(datum.len()) {
                    return Err(Failure::Irregular);
                }
            }
        }
        Ok(())
    }

    fn unknown_table(&self, name: &[u8]) -> Failure {
        let name = String::from_utf8_lossy(name);
        let error = WireError::new(Tag::UnknownTable, format!("No table named {name}."));
        Failure::Content(error.with_fragment(self.body))
    }
}

/// A syntax error about the value that `start` stands before.
fn syntax(mut start: Reader<'_>, details: impl Into<String>) -> Failure {
    match start.skip() {
        Ok(fragment) => Failure::Content(WireError::syntax(fragment, details)),
        Err(_) => Failure::Irregular,
    }
}

/// Whether two rows of one table have the same identity. Writers sort rows or not; sorted ones are settled in one walk.
fn has_repetition(rows: &[RecordedRow]) -> bool {
    if rows.windows(2).all(|pair| pair[0].uuid < pair[1].uuid) {
        return false;
    }
    let mut uuids: Vec<Uuid> = rows.iter().map(|row| row.uuid).collect();
    uuids.sort_unstable();
    uuids.windows(2).any(|pair| pair[0] == pair[1])
}

#[cfg(test)]
mod tests;
