//! Schemas in files of their own, as they are shipped and written by hand.

use std::path::Path;

use corvid_data::Schema;
use corvid_os::json_file;

use crate::failure::{Failure, shown};

/// Reads and validates a schema.
///
/// # Errors
/// In the reference's words: unreadable, no JSON, or no schema.
pub(crate) fn read(path: &Path) -> Result<Schema, Failure> {
    let json = json_file::read(path)
        .map_err(|reason| Failure::new(format!("failed to read schema: {reason}")))?;
    Ok(Schema::from_json_of(&shown(path), &json)?)
}
