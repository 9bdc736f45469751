//! The schema and rows that this crate's tests share.

use corvid_data::{Arc, Datum, Delta, Row, RowChange, Schema, TableId, TableSchema, Uuid, wire};
use corvid_json::{Reader, Value};

use crate::{Magic, Record};

/// Tables `t` (one column of each kind, one of them ephemeral) and `u`.
const SCHEMA: &str = r#"{"name":"Demo","version":"1.0.0","tables":{
    "t":{"columns":{
        "i":{"type":"integer"},
        "eph":{"type":"integer","ephemeral":true},
        "map":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}},
        "tags":{"type":{"key":"string","min":0,"max":"unlimited"}},
        "two":{"type":{"key":"integer","max":2}}}},
    "u":{"columns":{"s":{"type":"string"}}}}}"#;

pub(crate) fn schema() -> Arc<Schema> {
    let json = Value::parse(SCHEMA.as_bytes()).expect("well-formed");
    Arc::new(Schema::from_json(&json).expect("valid"))
}

pub(crate) fn uuid(last: u8) -> Uuid {
    let mut bytes = [0; 16];
    bytes[6] = 0x40;
    bytes[8] = 0x80;
    bytes[15] = last;
    Uuid(bytes)
}

pub(crate) fn table_id(schema: &Schema, name: &str) -> TableId {
    schema.table_id(name).expect("a table of the schema")
}

/// A row whose given columns come from an object in wire notation; the others have defaults.
pub(crate) fn row(table: &TableSchema, last: u8, columns: &str) -> Arc<Row> {
    let mut data: Vec<Datum> = table
        .columns()
        .iter()
        .map(|column| Datum::default_for(&column.column_type))
        .collect();
    let mut reader = Reader::new(columns.as_bytes());
    reader.begin_object().expect("an object");
    while let Some(name) = reader.next_member().expect("well-formed") {
        let id = table
            .column_id(std::str::from_utf8(&name).expect("ASCII"))
            .expect("a column");
        let column_type = &table.column(id).column_type;
        data[usize::from(id.0)] = wire::read_datum(&mut reader, column_type, None).expect("valid");
    }
    Arc::new(Row {
        uuid: uuid(last),
        version: uuid(200),
        columns: data.into(),
    })
}

/// The change from `old` to `new`, differences included.
pub(crate) fn change(
    schema: &Schema,
    table: &str,
    old: Option<&Arc<Row>>,
    new: Option<&Arc<Row>>,
) -> RowChange {
    let id = table_id(schema, table);
    let mut diffs = Vec::new();
    if let (Some(old), Some(new)) = (old, new) {
        for (column, described) in schema.table(id).iter() {
            let at = usize::from(column.0);
            if let Some(diff) =
                Datum::diff(&old.columns[at], &new.columns[at], &described.column_type)
            {
                diffs.push(corvid_data::ColumnDiff { column, diff });
            }
        }
    }
    RowChange {
        table: id,
        uuid: old.or(new).expect("a row").uuid,
        old: old.cloned(),
        new: new.cloned(),
        diffs: diffs.into(),
    }
}

pub(crate) fn delta(changes: Vec<RowChange>, comment: &str) -> Delta {
    Delta {
        changes,
        comment: comment.to_owned(),
        durable: false,
    }
}

/// Appends a record with this body.
pub(crate) fn append(file: &mut Vec<u8>, body: &str) {
    let mut record = Record::begin(file, Magic::Standalone);
    record.body().extend_from_slice(body.as_bytes());
    record.finish();
}
