//! Schemas in separate files.

use std::path::Path;

use corvid_data::Schema;
use corvid_shell::json_file;

use crate::failure::{Failure, shown};

/// Reads and validates a schema.
///
/// # Errors
/// `failed to read schema: ...` if the file is unreadable or is not JSON, `failed to parse ...` if
/// it does not hold a schema.
pub(crate) fn read(path: &Path) -> Result<Schema, Failure> {
    let json = json_file::read(path)
        .map_err(|reason| Failure::new(format!("failed to read schema: {reason}")))?;
    Ok(Schema::from_json_of(&shown(path), &json)?)
}
