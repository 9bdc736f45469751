//! The database that every workload uses: one table of the usual kinds of columns, with an index, as an empty file in the
//! standalone format, which every server opens.

use std::path::Path;

use corvid_data::Schema;
use corvid_json::Value;

/// A port-like table: an indexed name, a number, a short map and a set.
const SCHEMA: &str = r#"{"name":"Bench","version":"1.0.0","tables":{"Item":{
  "columns":{
    "name":{"type":"string"},
    "number":{"type":"integer"},
    "up":{"type":{"key":"boolean","min":0,"max":1}},
    "addresses":{"type":{"key":"string","min":0,"max":"unlimited"}},
    "options":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}}},
  "indexes":[["name"]],"isRoot":true}}}"#;

/// Creates the file at `path`.
pub(crate) fn create(path: &Path) -> std::io::Result<()> {
    let mut file = Vec::new();
    corvid_log::write_schema(&mut file, &schema());
    std::fs::write(path, file)
}

fn schema() -> Schema {
    let json = Value::parse(SCHEMA.as_bytes()).expect("the schema is a constant");
    Schema::from_json(&json).expect("the schema is a constant")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_schema_is_valid() {
        assert_eq!(super::schema().tables().len(), 1);
    }
}
