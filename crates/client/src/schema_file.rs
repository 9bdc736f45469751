//! Schemas in files of their own.

use std::path::Path;

use corvid_data::Schema;
use corvid_os::json_file;

use crate::failure::Failure;

/// Reads and validates a schema.
///
/// # Errors
/// `failed to read schema: ...` when the file is unreadable or no JSON, `failed to parse ...` when it is no schema.
pub(crate) fn read(file: &str) -> Result<Schema, Failure> {
    let json = json_file::read(Path::new(file))
        .map_err(|reason| Failure::new(format!("failed to read schema: {reason}")))?;
    Ok(Schema::from_json_of(file, &json)?)
}
