//! From the body of a transaction record to [`Recorded`], with the exact errors of
//! docs/spec/storage.md 4.1.
//!
//! One pass over the bytes, guided by the schema, builds no tree. If that pass fails (on an error,
//! or on a repeated member name, where the last one must win), a second pass reads the canonical
//! form of the body: sorted, without repetitions. So the common case is fast, and errors do not
//! depend on the order of members.
//!
//! `_is_diff` may come after the rows to which it applies, so rows are read without size limits,
//! and a plain record's rows are checked afterwards. Standard columns inside a row are ignored: the
//! reference honours a `_uuid` there, which would let one row replace another. [`crate::Load`]
//! calls this module, which knows nothing about files or existing rows.

use corvid_data::wire::StringCache;
use corvid_data::{
    ColumnId, Datum, Recorded, RecordedRow, Schema, TableId, TableSchema, Tag, Uuid, WireError,
    wire,
};
use corvid_json::{Kind, Number, Reader, Value};

use crate::reader::{BodyError, parse_object};

/// Smaller dates are in seconds: the first releases wrote such files.
const DATE_MS_MIN: i64 = i32::MAX as i64;

/// Why a body is not a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DecodeError {
    /// It is not a JSON object.
    Body(BodyError),
    /// It does not match the schema.
    Content(WireError),
}

/// Why one pass failed.
enum Failure {
    /// The text is malformed, or has repeated members or too many elements. The canonical pass
    /// decides.
    Irregular,
    /// The content does not match the schema.
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

/// The order of members and columns, and the strings, of earlier records. The next record probably
/// repeats both, so a guess speeds up reading without changing its result. Used by one thread: see
/// [`StringCache`].
#[derive(Debug, Default)]
pub(crate) struct FieldOrderCache {
    strings: StringCache,
    /// The columns of the previous row, in that row's order.
    columns: Vec<ColumnId>,
    /// Tables of the present record, to detect a repeated one.
    tables: Vec<TableId>,
    /// The members of the previous record, in that record's order.
    members: Vec<Member>,
}

/// A member of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Member {
    Date,
    IsDiff,
    Comment,
    Table(TableId),
}

impl Member {
    fn name(self, schema: &Schema) -> &[u8] {
        match self {
            Member::Date => b"_date",
            Member::IsDiff => b"_is_diff",
            Member::Comment => b"_comment",
            Member::Table(id) => schema.table(id).name.as_bytes(),
        }
    }
}

impl FieldOrderCache {
    /// Consumes the name of a record's member number `before` (from 0) if the previous record had
    /// the same name in that place.
    fn expected_member(
        &self,
        reader: &mut Reader<'_>,
        schema: &Schema,
        before: usize,
    ) -> Option<Member> {
        let usual = *self.members.get(before)?;
        reader.try_member(usual.name(schema)).then_some(usual)
    }

    /// Looks up member number `before` (from 0) of a record by name, and remembers it in that
    /// place.
    fn member(&mut self, schema: &Schema, before: usize, name: &[u8]) -> Option<Member> {
        let member = match name {
            b"_date" => Member::Date,
            b"_is_diff" => Member::IsDiff,
            b"_comment" => Member::Comment,
            _ => Member::Table(schema.table_named(name)?),
        };
        self.members.truncate(before);
        self.members.push(member);
        Some(member)
    }

    /// Consumes the name of a row's column number `before` (from 0) if the previous row had the
    /// same name in that place.
    fn expected_column(
        &self,
        reader: &mut Reader<'_>,
        table: &TableSchema,
        before: usize,
    ) -> Option<ColumnId> {
        let usual = *self.columns.get(before)?;
        let column = table.columns().get(usize::from(usual.0))?;
        let is_it = reader.try_member(column.name.as_bytes());
        is_it.then_some(usual)
    }

    /// Looks up column number `before` (from 0) of a row by name, and remembers it in that place.
    fn column(&mut self, table: &TableSchema, before: usize, name: &[u8]) -> Option<ColumnId> {
        let id = table.column_named(name)?;
        if !id.is_standard() {
            self.columns.truncate(before);
            self.columns.push(id);
        }
        Some(id)
    }
}

/// Decodes a body. Columns keep the order of the record; of repeated members only the last counts.
pub(crate) fn decode(
    body: &[u8],
    schema: &Schema,
    order: &mut FieldOrderCache,
) -> Result<Recorded, DecodeError> {
    if let Ok(recorded) = Pass::new(schema, body, None, order).run() {
        return Ok(recorded);
    }
    let value = parse_object(body).map_err(DecodeError::Body)?;
    let is_diff = value.get("_is_diff").and_then(Value::as_bool) == Some(true);
    let canonical = value.to_bytes();
    match Pass::new(schema, &canonical, Some(is_diff), order).run() {
        Ok(recorded) => Ok(recorded),
        Err(Failure::Content(error)) => Err(DecodeError::Content(error)),
        Err(Failure::Irregular) => Err(DecodeError::Content(WireError::new(
            Tag::InternalError,
            "canonical form of a record is not readable",
        ))),
    }
}

/// Decodes the text of one object as new rows of one table, whose columns hold values. Returns
/// `None` on any irregularity. The caller, which inserts the rows, detects repeated ones.
pub(crate) fn decode_new_rows(
    text: &[u8],
    table: TableId,
    schema: &Schema,
) -> Option<Vec<RecordedRow>> {
    let mut order = FieldOrderCache::default();
    let mut pass = Pass::new(schema, text, Some(false), &mut order);
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

/// Converts a `_date` to ms since the Unix epoch; old files have seconds.
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
    /// `_is_diff`, once known. In the canonical form it is known from the start and member names
    /// are distinct.
    is_diff: Option<bool>,
    canonical: bool,
    recorded: Recorded,
    order: &'h mut FieldOrderCache,
}

impl<'a, 'h> Pass<'a, 'h> {
    fn new(
        schema: &'a Schema,
        body: &'a [u8],
        is_diff: Option<bool>,
        order: &'h mut FieldOrderCache,
    ) -> Pass<'a, 'h> {
        order.tables.clear();
        Pass {
            schema,
            body,
            is_diff,
            canonical: is_diff.is_some(),
            recorded: Recorded::default(),
            order,
        }
    }

    fn run(mut self) -> Result<Recorded, Failure> {
        let mut reader = Reader::new(self.body);
        let mut members = 0;
        reader.begin_object()?;
        while let Some(member) = self.member(&mut reader, members)? {
            members += 1;
            let kind = reader.peek()?;
            match (member, kind) {
                (Member::Date, Kind::Number) => match reader.number()? {
                    Number::Integer(date) => self.recorded.date_ms = Some(date_to_ms(date)),
                    Number::Real(_) => return Err(self.unknown_table(b"_date")),
                },
                (Member::IsDiff, Kind::Bool) => self.is_diff = Some(reader.boolean()?),
                (Member::Comment, Kind::String) => {
                    let comment = reader.string()?;
                    self.recorded.comment = Some(String::from_utf8_lossy(&comment).into_owned());
                }
                (Member::Comment, _) => {
                    reader.skip()?;
                    self.recorded.comment = None;
                }
                (Member::Table(id), _) => self.table(&mut reader, id)?,
                (Member::Date | Member::IsDiff, _) => {
                    return Err(self.unknown_table(member.name(self.schema)));
                }
            }
        }
        reader.end()?;
        self.recorded.is_diff = self.is_diff == Some(true);
        if !self.recorded.is_diff && !self.canonical {
            self.check_sizes()?;
        }
        Ok(self.recorded)
    }

    /// Consumes the name of the next member, which follows `before` others; `None` at the end of
    /// the object.
    fn member(
        &mut self,
        reader: &mut Reader<'a>,
        before: usize,
    ) -> Result<Option<Member>, Failure> {
        if let Some(member) = self.order.expected_member(reader, self.schema, before) {
            return Ok(Some(member));
        }
        if reader.try_end_object() {
            return Ok(None);
        }
        let Some(name) = reader.next_member()? else {
            return Ok(None);
        };
        match self.order.member(self.schema, before, &name) {
            Some(member) => Ok(Some(member)),
            None => Err(self.unknown_table(&name)),
        }
    }

    fn table(&mut self, reader: &mut Reader<'a>, id: TableId) -> Result<(), Failure> {
        if self.order.tables.contains(&id) {
            return Err(Failure::Irregular);
        }
        self.order.tables.push(id);
        let start = reader.clone();
        if reader.peek()? != Kind::Object {
            return Err(syntax(start, "object expected"));
        }
        let table = self.schema.table(id);
        let first = self.recorded.rows.len();
        reader.begin_object()?;
        while let Some(uuid) = identity(reader, &start)? {
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
        let mut columns = Vec::with_capacity(self.order.columns.len());
        reader.begin_object()?;
        while let Some(id) = self.column(reader, &start, table, columns.len())? {
            if id.is_standard() {
                reader.skip()?;
                continue;
            }
            if columns.iter().any(|(seen, _)| *seen == id) {
                return Err(Failure::Irregular);
            }
            let column_type = &table.column(id).column_type;
            let datum = if self.is_diff == Some(false) {
                wire::read_datum(reader, column_type, Some(&mut self.order.strings))?
            } else {
                wire::read_diff(reader, column_type, Some(&mut self.order.strings))?
            };
            columns.push((id, datum));
        }
        self.order.columns.truncate(columns.len());
        Ok(Some(columns))
    }

    /// Consumes the name of a row's next column, which follows `before` others; `None` at the end
    /// of the row. The row begins at `start`.
    fn column(
        &mut self,
        reader: &mut Reader<'a>,
        start: &Reader<'a>,
        table: &TableSchema,
        before: usize,
    ) -> Result<Option<ColumnId>, Failure> {
        if let Some(id) = self.order.expected_column(reader, table, before) {
            return Ok(Some(id));
        }
        if reader.try_end_object() {
            return Ok(None);
        }
        let Some(name) = reader.next_member()? else {
            return Ok(None);
        };
        let id = self.order.column(table, before, &name);
        id.map(Some)
            .ok_or_else(|| unknown_column(start.clone(), table, &name))
    }

    /// Checks that each datum of a plain record has a size that its column allows. Gives no
    /// message: the canonical pass produces it.
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

/// Consumes the name of a table's next row; `None` at the end of the table. The table begins at
/// `start`.
fn identity<'a>(reader: &mut Reader<'a>, start: &Reader<'a>) -> Result<Option<Uuid>, Failure> {
    if let Some(uuid) = reader.try_name(Uuid::TEXT_LEN, Uuid::parse) {
        return Ok(Some(uuid));
    }
    if reader.try_end_object() {
        return Ok(None);
    }
    let Some(name) = reader.next_member()? else {
        return Ok(None);
    };
    match Uuid::parse(&name) {
        Some(uuid) => Ok(Some(uuid)),
        None => {
            let name = String::from_utf8_lossy(&name);
            let details = format!("\"{name}\" is not a valid UUID");
            Err(syntax(start.clone(), details))
        }
    }
}

/// The error about an unknown column in the row at `start`.
#[cold]
fn unknown_column(mut start: Reader<'_>, table: &TableSchema, name: &[u8]) -> Failure {
    let name = String::from_utf8_lossy(name);
    let details = format!("No column {name} in table {}.", table.name);
    let error = WireError::new(Tag::UnknownColumn, details);
    match start.skip() {
        Ok(fragment) => Failure::Content(error.with_fragment(fragment)),
        Err(_) => Failure::Irregular,
    }
}

/// A syntax error about the value at `start`.
fn syntax(mut start: Reader<'_>, details: impl Into<String>) -> Failure {
    match start.skip() {
        Ok(fragment) => Failure::Content(WireError::syntax(fragment, details)),
        Err(_) => Failure::Irregular,
    }
}

/// Whether two rows of one table have the same UUID. One walk suffices if the writer sorted the
/// rows.
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
