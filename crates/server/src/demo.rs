//! The default database of `make run`: a small network inventory, and beside it the databases of whatever schemas the system has
//! installed, so that their command-line tools can be tried at once.

use std::path::{Path, PathBuf};

use corvid_data::{Arc, Schema};
use corvid_engine::{Context, Database, LockOwner, Outcome};
use corvid_json::Value;
use corvid_log::{write_schema, write_transaction};
use corvid_os::clock;

use crate::open::RandomUuids;

const SCHEMA: &str = include_str!("demo/inventory.ovsschema");
const ROWS: &str = include_str!("demo/rows.json");

/// Schemas of packages, served empty when they are there.
const INSTALLED: [&str; 3] = [
    "/usr/share/openvswitch/vswitch.ovsschema",
    "/usr/share/ovn/ovn-nb.ovsschema",
    "/usr/share/ovn/ovn-sb.ovsschema",
];

struct NoLocks;

impl LockOwner for NoLocks {
    fn owns(&self, _lock: &str) -> bool {
        false
    }
}

/// Makes the database files that are missing in `directory` and returns all of them with their databases' names.
///
/// # Errors
/// A file cannot be written, in words for the user.
pub fn prepare(directory: &Path) -> Result<Vec<(String, PathBuf)>, String> {
    let mut files = vec![make(directory, SCHEMA.as_bytes(), Some(ROWS))?];
    for schema in INSTALLED {
        if let Ok(text) = std::fs::read(schema) {
            files.push(make(directory, &text, None)?);
        }
    }
    Ok(files)
}

fn make(directory: &Path, schema: &[u8], rows: Option<&str>) -> Result<(String, PathBuf), String> {
    let json = Value::parse(schema).map_err(|error| error.to_string())?;
    let schema = Arc::new(Schema::from_json(&json).map_err(|error| error.to_string())?);
    let path = directory.join(format!("{}.db", schema.name));
    if !path.exists() {
        let mut bytes = Vec::new();
        write_schema(&mut bytes, &schema);
        if let Some(rows) = rows {
            write_rows(&mut bytes, &schema, rows)?;
        }
        std::fs::write(&path, bytes).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok((schema.name.to_string(), path))
}

fn write_rows(bytes: &mut Vec<u8>, schema: &Arc<Schema>, rows: &str) -> Result<(), String> {
    let mut uuids = RandomUuids::new().map_err(|error| error.to_string())?;
    let mut database = Database::new(schema.clone());
    let mut context = Context {
        elapsed_ms: 0,
        read_only: false,
        role: None,
        client_id: None,
        can_wait: false,
        uuids: &mut uuids,
        locks: &NoLocks,
    };
    match database.execute(rows.as_bytes(), &mut context) {
        Outcome::Done {
            delta: Some(delta), ..
        } => {
            write_transaction(bytes, schema, &delta, clock::wall_ms(), true);
            Ok(())
        }
        outcome => Err(format!(
            "the default rows do not fit their schema: {outcome:?}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_rows_fit_their_schema() {
        let json = Value::parse(SCHEMA.as_bytes()).unwrap();
        let schema = Arc::new(Schema::from_json(&json).unwrap());
        let mut bytes = Vec::new();
        write_rows(&mut bytes, &schema, ROWS).unwrap();
        assert!(bytes.starts_with(b"OVSDB JSON "));
    }
}
