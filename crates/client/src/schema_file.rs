//! Schemas in files of their own.

use std::io::Read;

use corvid_data::{Schema, WireError};
use corvid_json::Value;
use corvid_os::errno;

use crate::failure::Failure;

/// Reads and validates a schema.
///
/// # Errors
/// `failed to read schema: ...` when the file is unreadable or no JSON, `failed to parse ...` when it is no schema.
pub(crate) fn read(file: &str) -> Result<Schema, Failure> {
    let json = read_json(file).map_err(|reason| {
        Failure::new(format!(
            "failed to read schema: \"{file}\" could not be read as JSON ({reason})"
        ))
    })?;
    Schema::from_json(&json).map_err(|error| {
        let details = format!(
            "failed to parse \"{file}\" as ovsdb schema: {}",
            error.details
        );
        Failure::from(WireError { details, ..error })
    })
}

fn read_json(file: &str) -> Result<Value, String> {
    let mut opened = std::fs::File::open(file)
        .map_err(|error| format!("error opening \"{file}\": {}", errno::text(&error)))?;
    let mut text = Vec::new();
    opened
        .read_to_end(&mut text)
        .map_err(|error| format!("error reading JSON stream: {}", errno::text(&error)))?;
    Value::parse_text(&text).map_err(|error| error.to_string())
}
