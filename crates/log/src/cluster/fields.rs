//! Members of records and of messages between peers, by kind: how ids, numbers and texts are read
//! and written.

use corvid_data::{Kinds, Members, Uuid, WireError, members};
use corvid_json::{ObjectWriter, write};

/// The members of a record as raw JSON.
pub type Fields<'a> = Members<'a, &'a [u8]>;

/// Reads a 64-bit number; numbers above 2^63 - 1 are stored as negative integers. Returns `None` if
/// it is absent *or zero*: the reference does not distinguish the two.
///
/// # Errors
/// It is not an integer.
pub fn take_number(from: &mut Fields<'_>, name: &str) -> Result<Option<u64>, WireError> {
    let raw = from.optional(name, Kinds::INTEGER)?;
    Ok(raw.and_then(number).filter(|number| *number != 0))
}

/// Reads a required number, which may be zero.
///
/// # Errors
/// It is missing, or not an integer.
pub fn take_required_number(from: &mut Fields<'_>, name: &str) -> Result<u64, WireError> {
    let raw = from.required(name, Kinds::INTEGER)?;
    Ok(number(raw).unwrap_or_default())
}

/// Reads an optional UUID.
///
/// # Errors
/// It is not a string, or not a UUID.
pub fn take_uuid(from: &mut Fields<'_>, name: &str) -> Result<Option<Uuid>, WireError> {
    let raw = from.optional(name, Kinds::STRING)?;
    raw.map(|raw| uuid(from, name, raw)).transpose()
}

/// Reads a required UUID.
///
/// # Errors
/// It is missing, not a string, or not a UUID.
pub fn take_required_uuid(from: &mut Fields<'_>, name: &str) -> Result<Uuid, WireError> {
    let raw = from.required(name, Kinds::STRING)?;
    uuid(from, name, raw)
}

/// Reads an optional text.
///
/// # Errors
/// It is not a string.
pub fn take_text(from: &mut Fields<'_>, name: &str) -> Result<Option<String>, WireError> {
    let raw = from.optional(name, Kinds::STRING)?;
    Ok(raw.map(text))
}

/// Reads a required text.
///
/// # Errors
/// It is missing, or not a string.
pub fn take_required_text(from: &mut Fields<'_>, name: &str) -> Result<String, WireError> {
    from.required(name, Kinds::STRING).map(text)
}

/// Writes a UUID.
pub fn write_uuid(to: &mut ObjectWriter<'_>, name: &str, uuid: Uuid) {
    write::string(to.member(name), &uuid.to_text());
}

/// Writes a 64-bit number, as [`take_number`] reads it.
pub fn write_number(to: &mut ObjectWriter<'_>, name: &str, number: u64) {
    write::integer(to.member(name), number.cast_signed());
}

/// Writes a text.
pub fn write_text(to: &mut ObjectWriter<'_>, name: &str, text: &str) {
    write::string(to.member(name), text.as_bytes());
}

fn number(raw: &[u8]) -> Option<u64> {
    members::integer(raw).map(i64::cast_unsigned)
}

/// Only people read names and comments, so bytes that are not UTF-8 are replaced.
fn text(raw: &[u8]) -> String {
    let bytes = members::string(raw).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn uuid(from: &Fields<'_>, name: &str, raw: &[u8]) -> Result<Uuid, WireError> {
    let text = members::string(raw).unwrap_or_default();
    Uuid::parse(&text).ok_or_else(|| from.error(&format!("{name} is not a valid UUID")))
}
