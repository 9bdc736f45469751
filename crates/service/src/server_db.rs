//! The `_Server` database: its schema, and the transactions that keep one row per served database
//! (docs/spec/protocol.md 6).

use std::collections::BTreeMap;

use bstr::BString;
use corvid_data::{Schema, WireError};
use corvid_json::Value;

/// The database's name.
pub const NAME: &str = "_Server";

const SCHEMA: &str = r#"{"cksum":"3009684573 744","name":"_Server","tables":{"Database":{"columns":{
"cid":{"type":{"key":"uuid","min":0}},"connected":{"type":"boolean"},"index":{"type":{"key":"integer","min":0}},
"leader":{"type":"boolean"},"model":{"type":{"key":{"enum":["set",["clustered","relay","standalone"]],"type":"string"}}},
"name":{"type":"string"},"schema":{"type":{"key":"string","min":0}},"sid":{"type":{"key":"uuid","min":0}}}}},
"version":"1.2.0"}"#;

/// The database's schema.
///
/// # Errors
/// None in practice: the text is a constant.
pub fn schema() -> Result<Schema, WireError> {
    let json = Value::parse(SCHEMA.as_bytes())
        .map_err(|error| WireError::new(corvid_data::Tag::InternalError, error.to_string()))?;
    Schema::from_json(&json)
}

/// The columns of a row, except its name and its schema (docs/spec/protocol.md 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerRow {
    /// `standalone`, `clustered` or `relay`.
    pub model: &'static str,
    /// `connected`: the contents are those that the other servers have.
    pub is_connected: bool,
    /// `leader`: clients that must not miss a commit may read here.
    pub is_leader: bool,
}

/// `params` of the transaction that inserts a database's row.
#[must_use]
pub fn insert(schema: &Schema, row: ServerRow) -> Vec<u8> {
    let row = object([
        ("name", Value::string(&*schema.name)),
        ("model", Value::string(row.model)),
        ("connected", Value::Bool(row.is_connected)),
        ("leader", Value::Bool(row.is_leader)),
        ("schema", schema_text(schema)),
    ]);
    params(object([
        ("op", Value::string("insert")),
        ("table", Value::string("Database")),
        ("row", row),
    ]))
}

/// `params` of the transaction that inserts the row of a database without contents.
#[must_use]
pub fn insert_without_schema(name: &str, row: ServerRow) -> Vec<u8> {
    let row = object([
        ("name", Value::string(name)),
        ("model", Value::string(row.model)),
        ("connected", Value::Bool(row.is_connected)),
        ("leader", Value::Bool(row.is_leader)),
    ]);
    params(object([
        ("op", Value::string("insert")),
        ("table", Value::string("Database")),
        ("row", row),
    ]))
}

/// `params` of the transaction that updates a database's state; the row keeps its UUID and schema.
#[must_use]
pub fn update_row(name: &str, row: ServerRow) -> Vec<u8> {
    let row = object([
        ("connected", Value::Bool(row.is_connected)),
        ("leader", Value::Bool(row.is_leader)),
    ]);
    params(object([
        ("op", Value::string("update")),
        ("table", Value::string("Database")),
        ("where", where_name(name)),
        ("row", row),
    ]))
}

/// `params` of the transaction that updates a database's schema; the row keeps its UUID.
#[must_use]
pub fn update_schema(schema: &Schema) -> Vec<u8> {
    params(object([
        ("op", Value::string("update")),
        ("table", Value::string("Database")),
        ("where", where_name(&schema.name)),
        ("row", object([("schema", schema_text(schema))])),
    ]))
}

/// `params` of the transaction that deletes a database's row.
#[must_use]
pub fn delete(name: &str) -> Vec<u8> {
    params(object([
        ("op", Value::string("delete")),
        ("table", Value::string("Database")),
        ("where", where_name(name)),
    ]))
}

fn params(operation: Value) -> Vec<u8> {
    Value::Array(vec![Value::string(NAME), operation]).to_bytes()
}

fn where_name(name: &str) -> Value {
    Value::Array(vec![Value::Array(vec![
        Value::string("name"),
        Value::string("=="),
        Value::string(name),
    ])])
}

fn schema_text(schema: &Schema) -> Value {
    Value::String(BString::from(schema.to_json().to_bytes()))
}

fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::Object(
        members
            .into_iter()
            .map(|(name, value)| (BString::from(name), value))
            .collect::<BTreeMap<_, _>>(),
    )
}
