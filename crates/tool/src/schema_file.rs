//! Schemas in files of their own, as they are shipped and written by hand.

use std::path::Path;

use corvid_data::{Schema, WireError};
use corvid_json::{Reader, Value};
use corvid_os::errno;

use crate::failure::{Failure, shown};

/// Reads and validates a schema.
///
/// # Errors
/// In the reference's words: unreadable, no JSON, or no schema.
pub(crate) fn read(path: &Path) -> Result<Schema, Failure> {
    let file = shown(path);
    let json = read_json(path).map_err(|reason| {
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

fn read_json(path: &Path) -> Result<Value, String> {
    let opened = std::fs::File::open(path);
    let mut file = opened.map_err(|error| {
        format!(
            "error opening \"{}\": {}",
            path.display(),
            errno::text(&error)
        )
    })?;
    let mut text = Vec::new();
    std::io::Read::read_to_end(&mut file, &mut text)
        .map_err(|error| format!("error reading JSON stream: {}", errno::text(&error)))?;
    parse_outermost(&text).map_err(|error| error.to_string())
}

/// Parses a text whose outermost value must be an object or array.
///
/// # Errors
/// Syntax.
pub(crate) fn parse_outermost(text: &[u8]) -> Result<Value, corvid_json::Error> {
    Reader::new(text).outermost()?;
    Value::parse(text)
}
