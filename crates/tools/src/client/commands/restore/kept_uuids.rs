//! `restore --keep-uuids`: the operations that give a database the rows of a backup under the
//! backup's UUIDs.
//!
//! The protocol rejects the insertion of a UUID that the same transaction deletes. Therefore a row
//! in both the database and the backup is updated, a row only in the database is deleted, and a row
//! only in the backup is inserted. The transaction begins with `wait` operations, which make it
//! fail if rows have been inserted or deleted since they were read.

use std::collections::{HashMap, HashSet};

use corvid_data::{Arc, ColumnSchema, Datum, Row, Schema, TableSchema, Uuid, wire};
use corvid_engine::Database;
use corvid_json::{Reader, Value};

use super::{content, object};
use crate::failure::Failure;
use crate::session::Session;

/// The rows of a table in the database: the values of each row's immutable columns, in the table's
/// order.
pub(super) type Present = HashMap<Uuid, Vec<Datum>>;

/// The operations; `present` are the rows in the database, by table of the backup. `schema` is the
/// server's schema.
///
/// # Errors
/// A row would need another value in an immutable column.
pub(super) fn operations(
    schema: &Schema,
    backup: &Database,
    present: &[Present],
) -> Result<Vec<Value>, Failure> {
    let tables = || backup.schema().iter().zip(present);
    let mut operations: Vec<Value> = tables()
        .map(|((_, table), rows)| guard(table, rows))
        .collect();
    for ((id, table), present) in tables() {
        // The order is deterministic, so that equal files yield equal requests.
        let mut rows: Vec<&Arc<Row>> = backup.rows(id).collect();
        rows.sort_by_key(|row| row.uuid);
        let kept: HashSet<Uuid> = rows.iter().map(|row| row.uuid).collect();
        let mut gone: Vec<Uuid> = present.keys().copied().collect();
        gone.retain(|uuid| !kept.contains(uuid));
        gone.sort();
        operations.extend(gone.into_iter().map(|uuid| delete(table, uuid)));
        for row in rows {
            operations.push(match present.get(&row.uuid) {
                Some(fixed) => update(schema, table, row, fixed)?,
                None => insert(table, row),
            });
        }
    }
    Ok(operations)
}

/// Whether the transaction failed because rows were inserted or deleted since they were read.
pub(super) fn has_changed(error: &Value) -> bool {
    error.get("error").and_then(Value::as_str) == Some("timed out")
}

/// Whether the server does not support `uuid` in `insert`.
pub(super) fn is_unsupported(error: &Value) -> bool {
    let details = error.get("details").and_then(Value::as_str);
    error.get("error").and_then(Value::as_str) == Some("syntax error")
        && details.is_some_and(|details| details.to_string().contains("uuid"))
}

/// Reads the rows in the database, by table of the backup.
///
/// # Errors
/// The server does not have such a table, or the connection broke.
pub(super) fn read(
    session: &mut Session,
    schema: &Schema,
    backup: &Schema,
) -> Result<Vec<Present>, Failure> {
    let mut params = vec![Value::string(&*schema.name)];
    for (_, table) in backup.iter() {
        let fixed = fixed_columns(schema, table).map(|column| Value::string(&*column.name));
        let columns = std::iter::once(Value::string("_uuid")).chain(fixed);
        params.push(object([
            ("op", Value::string("select")),
            ("table", Value::string(&*table.name)),
            ("where", Value::Array(Vec::new())),
            ("columns", Value::Array(columns.collect())),
        ]));
    }
    let result = session.call("transact", &Value::Array(params))?;
    let results = result.as_array().unwrap_or_default();
    let tables = backup.iter().enumerate().map(|(place, (_, table))| {
        let rows = results.get(place).and_then(|result| result.get("rows"));
        let rows = rows.and_then(Value::as_array).ok_or_else(|| {
            let found = results.get(place).unwrap_or(&Value::Null);
            Failure::new(format!("server returned error reply: {found}"))
        })?;
        rows.iter()
            .map(|row| present_row(schema, table, row))
            .collect()
    });
    tables.collect()
}

/// The columns of a backup's table that are immutable on the server.
fn fixed_columns<'a>(
    schema: &'a Schema,
    table: &'a TableSchema,
) -> impl Iterator<Item = &'a ColumnSchema> {
    table
        .columns()
        .iter()
        .filter(move |column| is_fixed(schema, table, column))
}

fn is_fixed(schema: &Schema, table: &TableSchema, column: &ColumnSchema) -> bool {
    let of_server = schema.table_id(&table.name).and_then(|id| {
        let table = schema.table(id);
        Some(table.column(table.column_id(&column.name)?))
    });
    column.persistent && !of_server.unwrap_or(column).mutable
}

fn present_row(
    schema: &Schema,
    table: &TableSchema,
    json: &Value,
) -> Result<(Uuid, Vec<Datum>), Failure> {
    let uuid = json
        .get("_uuid")
        .and_then(Value::as_array)
        .and_then(|uuid| uuid.get(1))
        .and_then(Value::as_str)
        .and_then(|uuid| Uuid::parse(uuid.as_bytes()))
        .ok_or_else(|| {
            let name = &table.name;
            Failure::new(format!(
                "{name} table reply has a row without _uuid: {json}"
            ))
        })?;
    let datum = |column: &ColumnSchema| {
        let value = json.get(column.name.as_str()).unwrap_or(&Value::Null);
        let text = value.to_bytes();
        wire::read_datum_unconstrained(&mut Reader::new(&text), &column.column_type, None)
    };
    let fixed = fixed_columns(schema, table)
        .map(datum)
        .collect::<Result<_, _>>()?;
    Ok((uuid, fixed))
}

/// An operation that fails the transaction unless the table has exactly these rows.
fn guard(table: &TableSchema, rows: &Present) -> Value {
    let mut uuids: Vec<Uuid> = rows.keys().copied().collect();
    uuids.sort();
    let rows = uuids
        .into_iter()
        .map(|uuid| object([("_uuid", wire_uuid(uuid))]));
    object([
        ("op", Value::string("wait")),
        ("timeout", Value::Integer(0)),
        ("table", Value::string(&*table.name)),
        ("where", Value::Array(Vec::new())),
        ("columns", Value::Array(vec![Value::string("_uuid")])),
        ("until", Value::string("==")),
        ("rows", Value::Array(rows.collect())),
    ])
}

fn delete(table: &TableSchema, uuid: Uuid) -> Value {
    object([
        ("op", Value::string("delete")),
        ("table", Value::string(&*table.name)),
        ("where", is_row(uuid)),
    ])
}

fn insert(table: &TableSchema, row: &Row) -> Value {
    let columns = table.columns().iter().zip(&row.columns);
    let columns = columns
        .filter(|(column, datum)| column.persistent && !datum.is_default(&column.column_type));
    object([
        ("op", Value::string("insert")),
        ("table", Value::string(&*table.name)),
        ("uuid", Value::string(row.uuid.to_string())),
        ("row", values(columns)),
    ])
}

/// An operation that replaces all columns of a row, ephemeral ones with their defaults, as if the
/// row were new.
fn update(
    schema: &Schema,
    table: &TableSchema,
    row: &Row,
    fixed: &[Datum],
) -> Result<Value, Failure> {
    let columns = || table.columns().iter().zip(&row.columns);
    let kept = columns().filter(|(column, _)| is_fixed(schema, table, column));
    for ((column, wanted), found) in kept.zip(fixed) {
        if wanted != found {
            return Err(Failure::new(format!(
                "row {} of table {} has another value in column {}, which is immutable: restore without --keep-uuids, or into an empty \
                 database",
                row.uuid, table.name, column.name
            )));
        }
    }
    let columns = columns().filter(|(column, _)| !is_fixed(schema, table, column));
    Ok(object([
        ("op", Value::string("update")),
        ("table", Value::string(&*table.name)),
        ("where", is_row(row.uuid)),
        ("row", values(columns)),
    ]))
}

fn values<'a>(columns: impl Iterator<Item = (&'a ColumnSchema, &'a Datum)>) -> Value {
    let no_names = HashSet::new();
    let values = columns.map(|(column, datum)| {
        let value = match column.persistent {
            true => content(column, datum, &no_names),
            false => content(column, &Datum::default_for(&column.column_type), &no_names),
        };
        (column.name.as_str().into(), value)
    });
    Value::Object(values.collect())
}

fn is_row(uuid: Uuid) -> Value {
    let clause = vec![Value::string("_uuid"), Value::string("=="), wire_uuid(uuid)];
    Value::Array(vec![Value::Array(clause)])
}

fn wire_uuid(uuid: Uuid) -> Value {
    Value::Array(vec![Value::string("uuid"), Value::string(uuid.to_string())])
}
