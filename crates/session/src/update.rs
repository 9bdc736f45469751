//! Changes of rows as a client learns them: the three notations of the wire (docs/spec/protocol.md 4.6, 4.7) read into one.
//!
//! Invariant: a message is read as a whole before anything is made of it, so whoever applies what comes out never stops half-way.
//! Values are read by the server's types without their constraints: those are the server's to enforce, and its schema may be older than
//! its data for a moment. A table or row that makes no sense is an error; a column or value that makes none is passed over.

use corvid_data::types::Bounds;
use corvid_data::wire::{StringCache, read_diff};
use corvid_data::{Arc, BaseType, ColumnId, ColumnType, Datum, TableId, Uuid};
use corvid_json::{Kind, Reader};
use thiserror::Error;

use crate::note::Note;
use crate::plan::Plan;

/// The changes of one message, by tables of the server's schema ([`Plan::schema`]).
#[derive(Debug, Default, Clone, PartialEq)]
pub struct TableUpdates {
    /// In the order of the message.
    pub tables: Vec<TableUpdate>,
}

/// The changes of one table.
#[derive(Debug, Clone, PartialEq)]
pub struct TableUpdate {
    /// Its place in the server's schema.
    pub table: TableId,
    /// In the order of the message.
    pub rows: Vec<RowUpdate>,
}

/// The change of one row.
#[derive(Debug, Clone, PartialEq)]
pub struct RowUpdate {
    /// Which row.
    pub uuid: Uuid,
    /// What became of it.
    pub change: RowChange,
}

/// Columns of the server's schema with a datum each, in the order of the message.
pub type Columns = Box<[(ColumnId, Datum)]>;

/// What became of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum RowChange {
    /// It came into sight. Columns that are not listed have their defaults.
    Insert(Columns),
    /// Listed columns have these values now (`update`).
    Replace(Columns),
    /// Listed columns changed by these differences (`update2`, `update3`): apply with [`Datum::apply_diff`].
    Diff(Columns),
    /// It went out of sight.
    Delete,
}

/// What is wrong with an update, or with the message around it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UpdateError {
    /// Something is of another kind.
    #[error("{what} is not {wanted}")]
    Kind {
        /// What.
        what: &'static str,
        /// What it should be.
        wanted: &'static str,
    },
    /// A table that is not monitored.
    #[error("update for unknown table {0}")]
    TableUnknown(String),
    /// The name of a row is no UUID.
    #[error("row name {0} is not a UUID")]
    NotUuid(String),
    /// A row of `update` has neither `old` nor `new`.
    #[error("row update has neither old nor new contents")]
    Nothing,
    /// A row of `update2` has none or several members.
    #[error("row update does not have exactly one member")]
    NotOne,
    /// A member that means nothing.
    #[error("row update has unknown member {0}")]
    MemberUnknown(String),
    /// The text is no JSON, which whoever framed it should have seen.
    #[error("{0}")]
    Syntax(#[from] corvid_json::Error),
}

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// `old` and `new`
    Whole,
    /// `initial`, `insert`, `modify`, `delete`
    Diff,
}

/// Reads the updates of one monitor.
#[derive(Debug)]
pub(crate) struct Decoder {
    plan: Arc<Plan>,
    /// For each table of the schema the types of its columns without constraints.
    types: Vec<Box<[ColumnType]>>,
    strings: StringCache,
}

impl Decoder {
    pub(crate) fn new(plan: Arc<Plan>) -> Decoder {
        let tables = plan.schema().tables().iter();
        let types = tables
            .map(|table| {
                let columns = table.columns().iter();
                columns.map(|column| bare(&column.column_type)).collect()
            })
            .collect();
        Decoder {
            plan,
            types,
            strings: StringCache::default(),
        }
    }

    pub(crate) fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Reads the object that a reply or a notification carries; the text is known to be JSON.
    pub(crate) fn read(
        &mut self,
        reader: &mut Reader<'_>,
        form: Form,
        notes: &mut Vec<Note>,
    ) -> Result<TableUpdates, UpdateError> {
        let mut updates = TableUpdates::default();
        begin(reader, "table updates")?;
        while let Some(name) = reader.next_member()? {
            let table = (self.plan.schema().table_named(&name))
                .filter(|&table| self.plan.columns(table).is_some());
            let Some(table) = table else {
                return Err(UpdateError::TableUnknown(text(&name)));
            };
            let mut rows = Vec::new();
            begin(reader, "table update")?;
            while let Some(name) = reader.next_member()? {
                let Some(uuid) = Uuid::parse(&name) else {
                    return Err(UpdateError::NotUuid(text(&name)));
                };
                begin(reader, "row update")?;
                let change = match form {
                    Form::Whole => self.whole(reader, table, notes)?,
                    Form::Diff => self.diff(reader, table, notes)?,
                };
                rows.push(RowUpdate { uuid, change });
            }
            updates.tables.push(TableUpdate { table, rows });
        }
        Ok(updates)
    }

    fn whole(
        &mut self,
        reader: &mut Reader<'_>,
        table: TableId,
        notes: &mut Vec<Note>,
    ) -> Result<RowChange, UpdateError> {
        let (mut is_old, mut new) = (false, None);
        while let Some(name) = reader.next_member()? {
            match &*name {
                b"old" => {
                    reader.skip()?;
                    is_old = true;
                }
                b"new" => new = Some(self.row(reader, table, notes)?),
                _ => return Err(UpdateError::MemberUnknown(text(&name))),
            }
        }
        match (is_old, new) {
            (false, Some(new)) => Ok(RowChange::Insert(new)),
            (true, Some(new)) => Ok(RowChange::Replace(new)),
            (true, None) => Ok(RowChange::Delete),
            (false, None) => Err(UpdateError::Nothing),
        }
    }

    fn diff(
        &mut self,
        reader: &mut Reader<'_>,
        table: TableId,
        notes: &mut Vec<Note>,
    ) -> Result<RowChange, UpdateError> {
        let Some(name) = reader.next_member()? else {
            return Err(UpdateError::NotOne);
        };
        let change = match &*name {
            b"initial" | b"insert" => RowChange::Insert(self.row(reader, table, notes)?),
            b"modify" => RowChange::Diff(self.row(reader, table, notes)?),
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

    fn row(
        &mut self,
        reader: &mut Reader<'_>,
        table: TableId,
        notes: &mut Vec<Note>,
    ) -> Result<Columns, UpdateError> {
        let table_schema = self.plan.schema().table(table);
        let types = &self.types[usize::from(table.0)];
        let mut columns = Vec::new();
        begin(reader, "row")?;
        while let Some(name) = reader.next_member()? {
            let id = table_schema
                .column_named(&name)
                .filter(|id| !id.is_standard());
            let Some(id) = id else {
                reader.skip()?;
                notes.push(Note::ColumnUnknown {
                    table: table_schema.name.to_string(),
                    column: text(&name),
                });
                continue;
            };
            match read_diff(reader, &types[usize::from(id.0)], Some(&mut self.strings)) {
                Ok(datum) => columns.push((id, datum)),
                Err(error) => notes.push(Note::ValueUnreadable {
                    table: table_schema.name.to_string(),
                    column: text(&name),
                    reason: error.to_string(),
                }),
            }
        }
        Ok(columns.into())
    }
}

/// Enters an object.
pub(crate) fn begin(reader: &mut Reader<'_>, what: &'static str) -> Result<(), UpdateError> {
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

/// The type without what a server enforces.
fn bare(column_type: &ColumnType) -> ColumnType {
    let bare = |base: &BaseType| BaseType {
        enumeration: None,
        bounds: Bounds::None,
        ..base.clone()
    };
    ColumnType {
        key: bare(&column_type.key),
        value: column_type.value.as_ref().map(bare),
        min: 0,
        max: column_type.max,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Interest;
    use corvid_data::{Atom, Schema};
    use corvid_json::Value;

    const SCHEMA: &str = r#"{"name":"D","version":"1.0.0","tables":{"T":{"columns":{
        "n":{"type":{"key":{"type":"integer","maxInteger":9}}},
        "s":{"type":{"key":"string","max":2}}}}}}"#;

    fn read(text: &str, form: Form) -> (Result<TableUpdates, UpdateError>, Vec<String>) {
        let schema = Schema::from_json(&Value::parse(SCHEMA.as_bytes()).unwrap()).unwrap();
        let plan = Plan::new(&Interest::All, Arc::new(schema), &mut Vec::new());
        let mut notes = Vec::new();
        let updates =
            Decoder::new(Arc::new(plan)).read(&mut Reader::new(text.as_bytes()), form, &mut notes);
        (updates, notes.iter().map(ToString::to_string).collect())
    }

    /// The change of row 1 of table T.
    fn row(text: &str, form: Form) -> Result<RowChange, UpdateError> {
        let uuid = "00000000-0000-0000-0000-000000000001";
        let (updates, notes) = read(&format!(r#"{{"T":{{"{uuid}":{text}}}}}"#), form);
        assert!(notes.is_empty(), "{notes:?}");
        let mut updates = updates?;
        assert_eq!((updates.tables.len(), updates.tables[0].rows.len()), (1, 1));
        Ok(updates.tables.remove(0).rows.remove(0).change)
    }

    fn number(value: i64) -> Columns {
        Box::new([(ColumnId(0), Datum::one(Atom::Integer(value)))])
    }

    #[test]
    fn both_notations_say_the_same() {
        for (text, form, change) in [
            (
                r#"{"new":{"n":1}}"#,
                Form::Whole,
                RowChange::Insert(number(1)),
            ),
            (
                r#"{"initial":{"n":1}}"#,
                Form::Diff,
                RowChange::Insert(number(1)),
            ),
            (
                r#"{"insert":{"n":1}}"#,
                Form::Diff,
                RowChange::Insert(number(1)),
            ),
            (
                r#"{"old":{"n":0},"new":{"n":1}}"#,
                Form::Whole,
                RowChange::Replace(number(1)),
            ),
            (
                r#"{"modify":{"n":1}}"#,
                Form::Diff,
                RowChange::Diff(number(1)),
            ),
            (r#"{"old":{"n":0}}"#, Form::Whole, RowChange::Delete),
            (r#"{"delete":null}"#, Form::Diff, RowChange::Delete),
        ] {
            assert_eq!(row(text, form), Ok(change), "{text}");
        }
    }

    #[test]
    fn differences_may_be_longer_than_the_column_and_beyond_its_bounds() {
        let change = row(
            r#"{"modify":{"n":99,"s":["set",["a","b","c"]]}}"#,
            Form::Diff,
        );
        let Ok(RowChange::Diff(columns)) = change else {
            panic!("{change:?}");
        };
        assert_eq!(
            (columns[0].1.as_integer(), columns[1].1.len()),
            (Some(99), 3)
        );
    }

    #[test]
    fn columns_that_make_no_sense_are_passed_over() {
        let uuid = "00000000-0000-0000-0000-000000000001";
        let text = format!(r#"{{"T":{{"{uuid}":{{"insert":{{"x":1,"n":"one","s":"a"}}}}}}}}"#);
        let (updates, notes) = read(&text, Form::Diff);
        let RowChange::Insert(columns) = &updates.unwrap().tables[0].rows[0].change else {
            panic!();
        };
        assert_eq!(columns.len(), 1);
        assert_eq!(notes.len(), 2);
        assert!(notes[0].contains("unknown column x") && notes[1].contains("column n"));
    }

    #[test]
    fn rows_that_make_no_sense_are_errors() {
        for (text, form, reason) in [
            (
                "{}",
                Form::Diff,
                "row update does not have exactly one member",
            ),
            (
                "{}",
                Form::Whole,
                "row update has neither old nor new contents",
            ),
            (r#"{"delete":1}"#, Form::Diff, "delete is not null"),
            (
                r#"{"insert":{},"modify":{}}"#,
                Form::Diff,
                "row update does not have exactly one member",
            ),
            (
                r#"{"new":{}}"#,
                Form::Diff,
                "row update has unknown member new",
            ),
            (r#"{"insert":[]}"#, Form::Diff, "row is not an object"),
            ("[]", Form::Diff, "row update is not an object"),
        ] {
            assert_eq!(row(text, form).unwrap_err().to_string(), reason, "{text}");
        }
        let (error, _) = read(r#"{"U":{}}"#, Form::Diff);
        assert_eq!(error, Err(UpdateError::TableUnknown("U".to_owned())));
        let (error, _) = read(r#"{"T":{"1":{}}}"#, Form::Diff);
        assert_eq!(error, Err(UpdateError::NotUuid("1".to_owned())));
    }
}
