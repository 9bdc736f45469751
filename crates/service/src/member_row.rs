//! The row of a clustered database in `_Server` (docs/spec/distribution.md 1.8), as `params` of
//! transactions that the main thread executes.

use std::collections::BTreeMap;

use bstr::BString;
use corvid_consensus::member::ServerRow;
use corvid_data::{Schema, Uuid};
use corvid_json::Value;
use corvid_log::cluster::{Cid, Index};

use crate::server_db;

/// `params` that insert the row, without `index`. `schema`: `None` while the server is joining.
#[must_use]
pub fn insert(name: &str, schema: Option<&Schema>, row: &ServerRow) -> Vec<u8> {
    let mut columns = columns(row);
    columns.insert("name".into(), Value::string(name));
    columns.insert("model".into(), Value::string("clustered"));
    columns.insert("schema".into(), schema_column(schema));
    params([
        ("op", Value::string("insert")),
        ("table", Value::string("Database")),
        ("row", Value::Object(columns)),
    ])
}

/// `params` that update the columns which the member decides.
#[must_use]
pub fn update(name: &str, row: &ServerRow) -> Vec<u8> {
    update_columns(name, columns(row))
}

/// `params` that update `index`, which the database decides ([`crate::applied_index`]).
pub(crate) fn update_index(name: &str, index: Index) -> Vec<u8> {
    let value = match index {
        Index(0) => empty(),
        Index(index) => Value::Integer(i64::try_from(index).unwrap_or(i64::MAX)),
    };
    update_columns(name, BTreeMap::from([("index".into(), value)]))
}

fn update_columns(name: &str, columns: BTreeMap<BString, Value>) -> Vec<u8> {
    let is_named = [
        Value::string("name"),
        Value::string("=="),
        Value::string(name),
    ];
    params([
        ("op", Value::string("update")),
        ("table", Value::string("Database")),
        ("where", Value::Array(vec![Value::Array(is_named.into())])),
        ("row", Value::Object(columns)),
    ])
}

fn columns(row: &ServerRow) -> BTreeMap<BString, Value> {
    // A server that has not joined yet shows a cluster id of zeros, not an empty set.
    let cid = row.cid.map_or(Uuid::ZERO, Cid::uuid);
    BTreeMap::from([
        ("connected".into(), Value::Bool(row.is_connected)),
        ("leader".into(), Value::Bool(row.is_leader)),
        ("cid".into(), uuid(cid)),
        ("sid".into(), uuid(row.sid.0)),
    ])
}

fn schema_column(schema: Option<&Schema>) -> Value {
    schema.map_or_else(empty, |schema| {
        Value::String(BString::from(schema.to_json().to_bytes()))
    })
}

fn empty() -> Value {
    Value::Array(vec![Value::string("set"), Value::Array(Vec::new())])
}

fn uuid(uuid: Uuid) -> Value {
    Value::Array(vec![Value::string("uuid"), Value::string(uuid.to_string())])
}

fn params<const N: usize>(operation: [(&str, Value); N]) -> Vec<u8> {
    let operation = operation
        .into_iter()
        .map(|(name, value)| (name.into(), value));
    let operation = Value::Object(operation.collect());
    Value::Array(vec![Value::string(server_db::NAME), operation]).to_bytes()
}
