//! The databases of the plays: their schema, the row that plays insert, and their contents as text.

use corvid_data::Schema;
use corvid_engine::Database;
use corvid_json::Value;

/// A table with an index, and tables that configure remotes.
const TABLES: &str = r#"{"T":{"isRoot":true,"indexes":[["k"]],"columns":{
    "k":{"type":"string"},"n":{"type":"integer"}}},
 "Other":{"isRoot":true,"columns":{"n":{"type":"integer"}}},
 "Remote":{"isRoot":true,"columns":{"target":{"type":"string"}}},
 "Global":{"isRoot":true,"columns":{
    "connections":{"type":{"key":{"type":"uuid","refTable":"Connection"},"min":0,"max":"unlimited"}}}},
 "Connection":{"columns":{"target":{"type":"string"},"is_connected":{"type":"boolean"},
    "status":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}}}}}"#;

/// All rows of a database, sorted.
pub(crate) fn contents(database: &Database) -> Vec<String> {
    let schema = database.schema().clone();
    let mut rows = Vec::new();
    for (id, table) in schema.iter() {
        for row in database.rows(id) {
            let columns: Vec<String> = table
                .columns()
                .iter()
                .zip(row.columns.iter())
                .map(|(column, datum)| format!("{}={datum:?}", column.name))
                .collect();
            rows.push(format!("{} {} {}", table.name, row.uuid, columns.join(" ")));
        }
    }
    rows.sort();
    rows
}

/// The operation that inserts a row with this key.
pub(crate) fn insert(key: &str) -> String {
    format!(r#"{{"op":"insert","table":"T","row":{{"k":"{key}"}}}}"#)
}

/// The schema of a test database.
pub(crate) fn schema(name: &str) -> Schema {
    let text = format!(r#"{{"name":"{name}","version":"1.0.0","tables":{TABLES}}}"#);
    Schema::from_json(&Value::parse(text.as_bytes()).expect("JSON")).expect("a schema")
}

/// The schema of a test database with one more column, as JSON.
pub(crate) fn wider_schema(name: &str) -> String {
    let tables = TABLES.replace(
        r#""n":{"type":"integer"}}},
 "Other""#,
        r#""n":{"type":"integer"},"extra":{"type":"integer"}}},
 "Other""#,
    );
    assert_ne!(tables, TABLES);
    format!(r#"{{"name":"{name}","version":"2.0.0","tables":{tables}}}"#)
}
