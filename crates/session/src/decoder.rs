//! The updates of one monitor, as a client's session reads them.
//!
//! Invariant: a message is read completely before any part of it reaches the user, so a malformed
//! message changes nothing. Values are read by the server's types without their constraints: the
//! server enforces those, and its schema may be older than its data for a moment. An unknown table
//! or a malformed row is an error; an unknown column or an unreadable value is reported and
//! skipped. A strict decoder reads by the constraints and treats both of these as errors too: its
//! user must hold everything that the server holds.

use corvid_data::types::Bounds;
use corvid_data::wire::{StringCache, read_datum, read_diff};
use corvid_data::{Arc, BaseType, ColumnId, ColumnType, Datum, TableId, Tag, Uuid, WireError};
use corvid_json::Reader;

use crate::log_message::LogMessage;
use crate::plan::Plan;
use crate::update::{
    Encoding, RowChange, RowUpdate, TableUpdate, TableUpdates, UpdateError, UpdateVisitor,
    read_updates,
};

/// Reads the updates of one monitor.
#[derive(Debug)]
pub(crate) struct Decoder {
    plan: Arc<Plan>,
    /// The types of each table's columns, without constraints unless the decoder is strict.
    types: Vec<Box<[ColumnType]>>,
    is_strict: bool,
    strings: StringCache,
}

impl Decoder {
    pub(crate) fn new(plan: Arc<Plan>, is_strict: bool) -> Decoder {
        let tables = plan.schema().tables().iter();
        let types = tables
            .map(|table| {
                let columns = table.columns().iter();
                let types = columns.map(|column| match is_strict {
                    true => column.column_type.clone(),
                    false => unconstrained(&column.column_type),
                });
                types.collect()
            })
            .collect();
        Decoder {
            plan,
            types,
            is_strict,
            strings: StringCache::default(),
        }
    }

    pub(crate) fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Reads the object in a reply or a notification; the text is known to be JSON.
    pub(crate) fn read(
        &mut self,
        reader: &mut Reader<'_>,
        encoding: Encoding,
        log: &mut Vec<LogMessage>,
    ) -> Result<TableUpdates, UpdateError> {
        let mut collector = Collector {
            decoder: self,
            log,
            updates: TableUpdates::default(),
        };
        read_updates(reader, encoding, &mut collector)?;
        Ok(collector.updates)
    }
}

/// The part of one message that has been read so far.
struct Collector<'d> {
    decoder: &'d mut Decoder,
    log: &'d mut Vec<LogMessage>,
    updates: TableUpdates,
}

impl UpdateVisitor for Collector<'_> {
    fn table(&mut self, name: &[u8]) -> Option<TableId> {
        let plan = &self.decoder.plan;
        let table =
            (plan.schema().table_named(name)).filter(|&table| plan.columns(table).is_some())?;
        let rows = Vec::new();
        self.updates.tables.push(TableUpdate { table, rows });
        Some(table)
    }

    fn column(&mut self, table: TableId, name: &[u8]) -> Result<Option<ColumnId>, UpdateError> {
        let schema = self.decoder.plan.schema().table(table);
        let id = schema.column_named(name).filter(|id| !id.is_standard());
        if id.is_none() {
            if self.decoder.is_strict {
                let details = format!(
                    "No column {} in table {}.",
                    String::from_utf8_lossy(name),
                    schema.name
                );
                return Err(WireError::new(Tag::UnknownColumn, details).into());
            }
            self.log.push(LogMessage::ColumnUnknown {
                table: schema.name.to_string(),
                column: String::from_utf8_lossy(name).into_owned(),
            });
        }
        Ok(id)
    }

    fn value(
        &mut self,
        table: TableId,
        column: ColumnId,
        is_diff: bool,
        reader: &mut Reader<'_>,
    ) -> Result<Option<Datum>, UpdateError> {
        let Decoder {
            plan,
            types,
            is_strict,
            strings,
        } = &mut *self.decoder;
        let column_type = &types[usize::from(table.0)][usize::from(column.0)];
        if *is_strict {
            let datum = match is_diff {
                true => read_diff(reader, column_type, Some(strings))?,
                false => read_datum(reader, column_type, Some(strings))?,
            };
            return Ok(Some(datum));
        }
        match read_diff(reader, column_type, Some(strings)) {
            Ok(datum) => Ok(Some(datum)),
            Err(error) => {
                let schema = plan.schema().table(table);
                self.log.push(LogMessage::ValueUnreadable {
                    table: schema.name.to_string(),
                    column: schema.column(column).name.to_string(),
                    reason: error.to_string(),
                });
                Ok(None)
            }
        }
    }

    fn row(&mut self, _table: TableId, uuid: Uuid, change: RowChange) -> Result<(), UpdateError> {
        if let Some(table) = self.updates.tables.last_mut() {
            table.rows.push(RowUpdate { uuid, change });
        }
        Ok(())
    }
}

/// The type without the constraints that a server enforces.
fn unconstrained(column_type: &ColumnType) -> ColumnType {
    let unconstrained = |base: &BaseType| BaseType {
        enumeration: None,
        bounds: Bounds::None,
        ..base.clone()
    };
    ColumnType {
        key: unconstrained(&column_type.key),
        value: column_type.value.as_ref().map(unconstrained),
        min: 0,
        max: column_type.max,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Interest;
    use crate::update::Columns;
    use corvid_data::{Atom, Schema};
    use corvid_json::Value;

    const SCHEMA: &str = r#"{"name":"D","version":"1.0.0","tables":{"T":{"columns":{
        "n":{"type":{"key":{"type":"integer","maxInteger":9}}},
        "s":{"type":{"key":"string","max":2}}}}}}"#;

    fn read(text: &str, encoding: Encoding) -> (Result<TableUpdates, UpdateError>, Vec<String>) {
        let schema = Schema::from_json(&Value::parse(SCHEMA.as_bytes()).unwrap()).unwrap();
        let plan = Plan::new(&Interest::All, Arc::new(schema), &mut Vec::new());
        let mut log = Vec::new();
        let updates = Decoder::new(Arc::new(plan), false).read(
            &mut Reader::new(text.as_bytes()),
            encoding,
            &mut log,
        );
        (updates, log.iter().map(ToString::to_string).collect())
    }

    /// The change of row 1 of table T.
    fn row(text: &str, encoding: Encoding) -> Result<RowChange, UpdateError> {
        let uuid = "00000000-0000-0000-0000-000000000001";
        let (updates, log) = read(&format!(r#"{{"T":{{"{uuid}":{text}}}}}"#), encoding);
        assert!(log.is_empty(), "{log:?}");
        let mut updates = updates?;
        assert_eq!((updates.tables.len(), updates.tables[0].rows.len()), (1, 1));
        Ok(updates.tables.remove(0).rows.remove(0).change)
    }

    fn number(value: i64) -> Columns {
        vec![(ColumnId(0), Datum::one(Atom::Integer(value)))]
    }

    #[test]
    fn both_encodings_give_the_same_changes() {
        for (text, encoding, change) in [
            (
                r#"{"new":{"n":1}}"#,
                Encoding::Values,
                RowChange::Insert(number(1)),
            ),
            (
                r#"{"initial":{"n":1}}"#,
                Encoding::Differences,
                RowChange::Insert(number(1)),
            ),
            (
                r#"{"insert":{"n":1}}"#,
                Encoding::Differences,
                RowChange::Insert(number(1)),
            ),
            (
                r#"{"old":{"n":0},"new":{"n":1}}"#,
                Encoding::Values,
                RowChange::Replace(number(1)),
            ),
            (
                r#"{"modify":{"n":1}}"#,
                Encoding::Differences,
                RowChange::Diff(number(1)),
            ),
            (r#"{"old":{"n":0}}"#, Encoding::Values, RowChange::Delete),
            (
                r#"{"delete":null}"#,
                Encoding::Differences,
                RowChange::Delete,
            ),
        ] {
            assert_eq!(row(text, encoding), Ok(change), "{text}");
        }
    }

    #[test]
    fn differences_may_be_longer_than_the_column_and_beyond_its_bounds() {
        let change = row(
            r#"{"modify":{"n":99,"s":["set",["a","b","c"]]}}"#,
            Encoding::Differences,
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
        let (updates, log) = read(&text, Encoding::Differences);
        let RowChange::Insert(columns) = &updates.unwrap().tables[0].rows[0].change else {
            panic!();
        };
        assert_eq!(columns.len(), 1);
        assert_eq!(log.len(), 2);
        assert!(log[0].contains("unknown column x") && log[1].contains("column n"));
    }

    #[test]
    fn a_strict_decoder_refuses_what_others_leave_out() {
        let schema = Schema::from_json(&Value::parse(SCHEMA.as_bytes()).unwrap()).unwrap();
        let plan = Arc::new(Plan::new(&Interest::All, Arc::new(schema), &mut Vec::new()));
        let uuid = "00000000-0000-0000-0000-000000000001";
        for (row, is_fine) in [
            (r#"{"insert":{"n":9,"s":"a"}}"#, true),
            (r#"{"modify":{"s":["set",["a","b","c"]]}}"#, true),
            (r#"{"insert":{"s":["set",["a","b","c"]]}}"#, false),
            (r#"{"insert":{"n":10}}"#, false),
            (r#"{"modify":{"n":"1"}}"#, false),
            (r#"{"insert":{"x":1}}"#, false),
        ] {
            let text = format!(r#"{{"T":{{"{uuid}":{row}}}}}"#);
            let mut log = Vec::new();
            let read = Decoder::new(plan.clone(), true).read(
                &mut Reader::new(text.as_bytes()),
                Encoding::Differences,
                &mut log,
            );
            assert_eq!((read.is_ok(), log.len()), (is_fine, 0), "{row}: {read:?}");
        }
    }

    #[test]
    fn rows_that_make_no_sense_are_errors() {
        for (text, encoding, reason) in [
            (
                "{}",
                Encoding::Differences,
                "row update does not have exactly one member",
            ),
            (
                "{}",
                Encoding::Values,
                "row update has neither old nor new contents",
            ),
            (
                r#"{"delete":1}"#,
                Encoding::Differences,
                "delete is not null",
            ),
            (
                r#"{"insert":{},"modify":{}}"#,
                Encoding::Differences,
                "row update does not have exactly one member",
            ),
            (
                r#"{"new":{}}"#,
                Encoding::Differences,
                "row update has unknown member new",
            ),
            (
                r#"{"insert":[]}"#,
                Encoding::Differences,
                "row is not an object",
            ),
            ("[]", Encoding::Differences, "row update is not an object"),
        ] {
            assert_eq!(
                row(text, encoding).unwrap_err().to_string(),
                reason,
                "{text}"
            );
        }
        let (error, _) = read(r#"{"U":{}}"#, Encoding::Differences);
        assert_eq!(error, Err(UpdateError::TableUnknown("U".to_owned())));
        let (error, _) = read(r#"{"T":{"1":{}}}"#, Encoding::Differences);
        assert_eq!(error, Err(UpdateError::NotUuid("1".to_owned())));
    }
}
