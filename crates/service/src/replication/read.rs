//! Reads what a source tells: contents, and updates of both encodings (docs/spec/protocol.md 4.6, 4.7), guided by our own schema, with no
//! tree.
//!
//! Texts are known to be valid JSON. Whether a row is here is asked, not known: an update becomes a [`Recorded`] transaction that fits
//! what is here, or an error.

use corvid_data::wire::{self, StringCache};
use corvid_data::{
    ColumnId, Datum, Recorded, RecordedRow, Schema, TableId, TableSchema, Tag, Uuid, WireError,
};
use corvid_json::{Kind, Reader};

use super::Encoding;

/// Columns with values or differences.
pub(super) type Columns = Vec<(ColumnId, Datum)>;

/// Reads an update; `updates` is the text of its `<table-updates>` or `<table-updates2>`.
///
/// # Errors
/// It is malformed, or, with differences, about rows that are not what it takes them for.
pub fn read_update(
    updates: &[u8],
    schema: &Schema,
    encoding: Encoding,
    repeats: &mut StringCache,
    exists: &dyn Fn(TableId, Uuid) -> bool,
) -> Result<Recorded, WireError> {
    let mut recorded = Recorded {
        is_diff: encoding == Encoding::Differences,
        ..Recorded::default()
    };
    for_each_row(updates, schema, &mut |table, uuid, members| {
        let described = schema.table(table);
        let is_here = exists(table, uuid);
        let columns = match encoding {
            Encoding::Values => match (members.old, members.new) {
                // It went here before: only rows of tables that are left out referred to it.
                (Some(_), _) if !is_here => return Ok(()),
                (Some(_), None) => None,
                (Some(old), Some(new)) => {
                    let changed = names(old, described)?;
                    Some(read_columns(
                        new,
                        described,
                        Some(&changed),
                        false,
                        repeats,
                    )?)
                }
                (None, Some(new)) => Some(read_columns(new, described, None, false, repeats)?),
                (None, None) => return Err(malformed("row update")),
            },
            Encoding::Differences => {
                let (kind, value) = members.kind.ok_or_else(|| malformed("row update"))?;
                if is_here == (kind == RowKind::Insert) {
                    return Err(surprise(uuid, is_here));
                }
                match kind {
                    RowKind::Insert => Some(read_columns(value, described, None, false, repeats)?),
                    RowKind::Modify => Some(read_columns(value, described, None, true, repeats)?),
                    RowKind::Delete => None,
                }
            }
        };
        recorded.rows.push(RecordedRow {
            table,
            uuid,
            columns,
        });
        Ok(())
    })?;
    Ok(recorded)
}

/// Reads contents, each row once; columns that are not told have their defaults.
///
/// # Errors
/// They are malformed, or do not fit the schema.
pub(super) fn read_contents(
    contents: &[u8],
    schema: &Schema,
    each: &mut dyn FnMut(TableId, Uuid, Columns),
) -> Result<(), WireError> {
    let mut repeats = StringCache::default();
    for_each_row(contents, schema, &mut |table, uuid, members| {
        let row = match (members.new, members.kind) {
            (Some(row), _) | (None, Some((RowKind::Insert, row))) => row,
            _ => return Err(malformed("row of initial contents")),
        };
        let columns = read_columns(row, schema.table(table), None, false, &mut repeats)?;
        each(table, uuid, columns);
        Ok(())
    })
}

/// What an update says of a row.
#[derive(Default)]
struct Members<'t> {
    old: Option<Reader<'t>>,
    new: Option<Reader<'t>>,
    kind: Option<(RowKind, Reader<'t>)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RowKind {
    /// `insert`, and `initial`
    Insert,
    Modify,
    Delete,
}

fn for_each_row<'t>(
    updates: &'t [u8],
    schema: &Schema,
    each: &mut dyn FnMut(TableId, Uuid, Members<'t>) -> Result<(), WireError>,
) -> Result<(), WireError> {
    let mut reader = Reader::trusted(updates);
    reader.begin_object().map_err(unreadable)?;
    while let Some(name) = reader.next_member().map_err(unreadable)? {
        let table = schema.table_named(&name).ok_or_else(|| {
            let name = String::from_utf8_lossy(&name);
            WireError::new(Tag::UnknownTable, format!("No table named {name}."))
        })?;
        reader.begin_object().map_err(unreadable)?;
        while let Some(name) = reader.next_member().map_err(unreadable)? {
            let uuid = Uuid::parse(&name).ok_or_else(|| malformed("row identity"))?;
            each(table, uuid, members(&mut reader)?)?;
        }
    }
    Ok(())
}

fn members<'t>(reader: &mut Reader<'t>) -> Result<Members<'t>, WireError> {
    let mut members = Members::default();
    reader.begin_object().map_err(unreadable)?;
    while let Some(name) = reader.next_member().map_err(unreadable)? {
        let value = reader.clone();
        reader.skip().map_err(unreadable)?;
        match &*name {
            b"old" => members.old = Some(value),
            b"new" => members.new = Some(value),
            b"initial" | b"insert" => members.kind = Some((RowKind::Insert, value)),
            b"modify" => members.kind = Some((RowKind::Modify, value)),
            b"delete" => members.kind = Some((RowKind::Delete, value)),
            _ => return Err(malformed("row update")),
        }
    }
    Ok(members)
}

/// The columns that a row names.
fn names(mut row: Reader<'_>, table: &TableSchema) -> Result<Vec<ColumnId>, WireError> {
    let mut names = Vec::new();
    row.begin_object().map_err(unreadable)?;
    while let Some(name) = row.next_member().map_err(unreadable)? {
        names.push(column(&name, table)?);
        row.skip().map_err(unreadable)?;
    }
    Ok(names)
}

/// The columns of a row, all or those `wanted`.
fn read_columns(
    mut row: Reader<'_>,
    table: &TableSchema,
    wanted: Option<&[ColumnId]>,
    is_diff: bool,
    repeats: &mut StringCache,
) -> Result<Columns, WireError> {
    let mut columns = Columns::new();
    if row.peek().map_err(unreadable)? != Kind::Object {
        return Err(malformed("row"));
    }
    row.begin_object().map_err(unreadable)?;
    while let Some(name) = row.next_member().map_err(unreadable)? {
        let id = column(&name, table)?;
        if id.is_standard() || wanted.is_some_and(|wanted| !wanted.contains(&id)) {
            row.skip().map_err(unreadable)?;
            continue;
        }
        let column_type = &table.column(id).column_type;
        let datum = if is_diff {
            wire::read_diff(&mut row, column_type, Some(repeats))?
        } else {
            wire::read_datum(&mut row, column_type, Some(repeats))?
        };
        columns.push((id, datum));
    }
    Ok(columns)
}

fn column(name: &[u8], table: &TableSchema) -> Result<ColumnId, WireError> {
    table.column_named(name).ok_or_else(|| {
        let name = String::from_utf8_lossy(name);
        let details = format!("No column {name} in table {}.", table.name);
        WireError::new(Tag::UnknownColumn, details)
    })
}

fn malformed(what: &str) -> WireError {
    WireError::new(Tag::SyntaxError, format!("malformed {what}"))
}

#[allow(clippy::needless_pass_by_value)] // It is handed to `map_err`.
fn unreadable(error: corvid_json::Error) -> WireError {
    WireError::new(Tag::SyntaxError, error.to_string())
}

fn surprise(uuid: Uuid, is_here: bool) -> WireError {
    let details = if is_here {
        format!("row {uuid} is inserted and exists")
    } else {
        format!("row {uuid} is changed and does not exist")
    };
    WireError::new(Tag::ConsistencyViolation, details)
}

#[cfg(test)]
mod tests {
    use super::*;
    use corvid_json::Value;

    const HERE: &str = "00000000-0000-4000-8000-000000000001";
    const AWAY: &str = "00000000-0000-4000-8000-000000000002";

    fn schema() -> Schema {
        let text = r#"{"name":"D","tables":{"T":{"columns":{"n":{"type":"integer"},
            "s":{"type":{"key":"integer","min":0,"max":"unlimited"}}}}}}"#;
        Schema::from_json(&Value::parse(text.as_bytes()).unwrap()).unwrap()
    }

    fn read(encoding: Encoding, rows: &str) -> Result<Vec<String>, String> {
        let text = format!(r#"{{"T":{rows}}}"#);
        let here = Uuid::parse(HERE.as_bytes()).unwrap();
        let mut repeats = StringCache::default();
        let exists = |_, uuid| uuid == here;
        let recorded = read_update(text.as_bytes(), &schema(), encoding, &mut repeats, &exists)
            .map_err(|error| error.to_string())?;
        assert_eq!(recorded.is_diff, encoding == Encoding::Differences);
        let row = |row: &RecordedRow| match &row.columns {
            None => format!("{} gone", row.uuid.0[15]),
            Some(columns) => {
                let columns = columns.iter().map(|(id, datum)| {
                    let values: Vec<i64> = datum
                        .keys()
                        .filter_map(corvid_data::AtomRef::as_integer)
                        .collect();
                    format!(" {}={values:?}", id.0)
                });
                format!("{}{}", row.uuid.0[15], columns.collect::<String>())
            }
        };
        Ok(recorded.rows.iter().map(row).collect())
    }

    #[test]
    fn values_of_changed_columns_are_read_and_no_others() {
        let rows = format!(
            r#"{{"{HERE}":{{"new":{{"n":5,"s":["set",[1,2]]}},"old":{{"n":4}}}},
                "{AWAY}":{{"new":{{"n":6,"s":7}}}}}}"#
        );
        let found = read(Encoding::Values, &rows).unwrap();
        assert_eq!(found, ["1 0=[5]", "2 0=[6] 1=[7]"]);
        // Rows that went here already are passed over.
        let rows = format!(
            r#"{{"{AWAY}":{{"old":{{"n":4}},"new":{{"n":5,"s":1}}}},"{HERE}":{{"old":{{"n":4,"s":1}}}}}}"#
        );
        assert_eq!(read(Encoding::Values, &rows).unwrap(), ["1 gone"]);
    }

    #[test]
    fn differences_must_fit_what_is_here() {
        let rows = format!(
            r#"{{"{HERE}":{{"modify":{{"s":["set",[3,9]]}}}},"{AWAY}":{{"insert":{{"n":1}}}}}}"#
        );
        assert_eq!(
            read(Encoding::Differences, &rows).unwrap(),
            ["1 1=[3, 9]", "2 0=[1]"]
        );
        let gone = format!(r#"{{"{HERE}":{{"delete":null}}}}"#);
        assert_eq!(read(Encoding::Differences, &gone).unwrap(), ["1 gone"]);
        for (uuid, row, problem) in [
            (HERE, r#"{"insert":{}}"#, "is inserted and exists"),
            (
                AWAY,
                r#"{"modify":{"n":1}}"#,
                "is changed and does not exist",
            ),
            (AWAY, r#"{"delete":null}"#, "is changed and does not exist"),
        ] {
            let error = read(Encoding::Differences, &format!(r#"{{"{uuid}":{row}}}"#)).unwrap_err();
            assert_eq!(
                error,
                format!("consistency violation: row {uuid} {problem}")
            );
        }
    }

    #[test]
    fn what_does_not_fit_the_schema_is_an_error() {
        for rows in [
            r#"{"x":{"new":{}}}"#.to_owned(),
            format!(r#"{{"{AWAY}":{{}}}}"#),
            format!(r#"{{"{AWAY}":{{"new":[]}}}}"#),
            format!(r#"{{"{AWAY}":{{"new":{{"m":1}}}}}}"#),
            format!(r#"{{"{AWAY}":{{"new":{{"n":"1"}}}}}}"#),
            format!(r#"{{"{AWAY}":{{"renew":{{}}}}}}"#),
            "[]".to_owned(),
        ] {
            assert!(read(Encoding::Values, &rows).is_err(), "{rows}");
        }
    }
}
