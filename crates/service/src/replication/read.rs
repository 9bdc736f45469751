//! Reads the contents and updates that a source sends, in both encodings, by this server's schema
//! and its constraints.
//!
//! The texts are known to be valid JSON. An update becomes a [`Recorded`] transaction that fits the
//! existing rows, or an error. [`corvid_session::update`] defines the syntax.

use corvid_data::wire::{self, StringCache};
use corvid_data::{
    ColumnId, Datum, Recorded, RecordedRow, Schema, Symbols, TableId, TableSchema, Tag, Uuid,
    WireError,
};
use corvid_json::Reader;
use corvid_session::update::{Columns, RowChange, UpdateError, UpdateVisitor, read_updates};

use super::Encoding;

/// Reads an update. `updates` is the text of its `<table-updates>` or `<table-updates2>`.
///
/// # Errors
/// The update is malformed; or its differences insert a row that exists, or change one that does
/// not.
pub fn read_update(
    updates: &[u8],
    schema: &Schema,
    encoding: Encoding,
    strings: &mut StringCache,
    exists: &dyn Fn(TableId, Uuid) -> bool,
) -> Result<Recorded, WireError> {
    let mut recorded = Recorded {
        is_diff: encoding == Encoding::Differences,
        ..Recorded::default()
    };
    let mut visitor = Strict {
        schema,
        strings,
        receive: &mut |table, uuid, change| {
            let exists = exists(table, uuid);
            let columns = match change {
                // With values, a row may have been deleted here before the source deletes it,
                // because only rows of excluded tables refer to it there.
                RowChange::Replace(_) | RowChange::Delete
                    if encoding == Encoding::Values && !exists =>
                {
                    return Ok(());
                }
                RowChange::Insert(_) if encoding == Encoding::Differences && exists => {
                    return Err(unfit(uuid, exists));
                }
                RowChange::Diff(_) | RowChange::Delete if !exists => {
                    return Err(unfit(uuid, exists));
                }
                RowChange::Insert(columns)
                | RowChange::Replace(columns)
                | RowChange::Diff(columns) => Some(columns),
                RowChange::Delete => None,
            };
            recorded.rows.push(RecordedRow {
                table,
                uuid,
                columns,
            });
            Ok(())
        },
    };
    read_updates(&mut Reader::trusted(updates), encoding, &mut visitor).map_err(wire_error)?;
    Ok(recorded)
}

/// Reads contents, each row once. Columns that the source omits have their defaults.
///
/// # Errors
/// The contents are malformed, or do not fit the schema.
pub(super) fn read_contents(
    contents: &[u8],
    schema: &Schema,
    encoding: Encoding,
    each: &mut dyn FnMut(TableId, Uuid, Columns),
) -> Result<(), WireError> {
    let mut visitor = Strict {
        schema,
        strings: &mut StringCache::default(),
        receive: &mut |table, uuid, change| match change {
            RowChange::Insert(columns) => {
                each(table, uuid, columns);
                Ok(())
            }
            _ => Err(malformed("row of initial contents")),
        },
    };
    read_updates(&mut Reader::trusted(contents), encoding, &mut visitor).map_err(wire_error)
}

/// Reads strictly by a schema: every table and column must exist in it, and every value must have
/// its column's type.
struct Strict<'a> {
    schema: &'a Schema,
    strings: &'a mut StringCache,
    receive: &'a mut dyn FnMut(TableId, Uuid, RowChange) -> Result<(), WireError>,
}

impl UpdateVisitor for Strict<'_> {
    const CHANGED_ONLY: bool = true;

    fn table(&mut self, name: &[u8]) -> Option<TableId> {
        self.schema.table_named(name)
    }

    fn column(&mut self, table: TableId, name: &[u8]) -> Result<Option<ColumnId>, UpdateError> {
        let id = column(name, self.schema.table(table))?;
        Ok((!id.is_standard()).then_some(id))
    }

    fn value(
        &mut self,
        table: TableId,
        column: ColumnId,
        is_diff: bool,
        reader: &mut Reader<'_>,
    ) -> Result<Option<Datum>, UpdateError> {
        let column_type = &self.schema.table(table).column(column).column_type;
        let symbols: Option<&mut dyn Symbols> = Some(self.strings);
        let datum = if is_diff {
            wire::read_diff(reader, column_type, symbols)?
        } else {
            wire::read_datum(reader, column_type, symbols)?
        };
        Ok(Some(datum))
    }

    fn row(&mut self, table: TableId, uuid: Uuid, change: RowChange) -> Result<(), UpdateError> {
        Ok((self.receive)(table, uuid, change)?)
    }
}

/// The error as it is logged.
fn wire_error(error: UpdateError) -> WireError {
    match error {
        UpdateError::Refused(error) => error,
        UpdateError::TableUnknown(name) => {
            WireError::new(Tag::UnknownTable, format!("No table named {name}."))
        }
        UpdateError::NotUuid(_) => malformed("row identity"),
        UpdateError::Kind { what: "row", .. } => malformed("row"),
        UpdateError::Nothing | UpdateError::NotOne | UpdateError::MemberUnknown(_) => {
            malformed("row update")
        }
        other => WireError::new(Tag::SyntaxError, other.to_string()),
    }
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

fn unfit(uuid: Uuid, exists: bool) -> WireError {
    let details = if exists {
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
        let mut strings = StringCache::default();
        let exists = |_, uuid| uuid == here;
        let recorded = read_update(text.as_bytes(), &schema(), encoding, &mut strings, &exists)
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
        // Rows that were deleted here earlier are skipped.
        let rows = format!(
            r#"{{"{AWAY}":{{"old":{{"n":4}},"new":{{"n":5,"s":1}}}},"{HERE}":{{"old":{{"n":4,"s":1}}}}}}"#
        );
        assert_eq!(read(Encoding::Values, &rows).unwrap(), ["1 gone"]);
    }

    #[test]
    fn differences_must_fit_what_exists() {
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
    fn rows_that_do_not_fit_the_schema_are_an_error() {
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
