//! Members of records and of messages between members, by kind: ids, numbers and texts as all of them spell these.

use corvid_data::{Kinds, Members, Uuid, WireError, members};
use corvid_json::{ObjectWriter, write};

/// The members of a record as raw JSON.
pub type Fields<'a> = Members<'a, &'a [u8]>;

/// A 64-bit number; those above 2^63 - 1 are stored as negative integers. `None` when it is absent *or zero*: the reference
/// does not tell these apart.
///
/// # Errors
/// It is no integer.
pub fn take_number(from: &mut Fields<'_>, name: &str) -> Result<Option<u64>, WireError> {
    let raw = from.optional(name, Kinds::INTEGER)?;
    Ok(raw.and_then(number).filter(|number| *number != 0))
}

/// A number that must be there; may be zero.
///
/// # Errors
/// It is missing, or no integer.
pub fn take_required_number(from: &mut Fields<'_>, name: &str) -> Result<u64, WireError> {
    let raw = from.required(name, Kinds::INTEGER)?;
    Ok(number(raw).unwrap_or_default())
}

/// A UUID that may be absent.
///
/// # Errors
/// It is no string, or no UUID.
pub fn take_uuid(from: &mut Fields<'_>, name: &str) -> Result<Option<Uuid>, WireError> {
    let raw = from.optional(name, Kinds::STRING)?;
    raw.map(|raw| uuid(from, name, raw)).transpose()
}

/// A UUID that must be there.
///
/// # Errors
/// It is missing, no string, or no UUID.
pub fn take_required_uuid(from: &mut Fields<'_>, name: &str) -> Result<Uuid, WireError> {
    let raw = from.required(name, Kinds::STRING)?;
    uuid(from, name, raw)
}

/// A text that may be absent.
///
/// # Errors
/// It is no string.
pub fn take_text(from: &mut Fields<'_>, name: &str) -> Result<Option<String>, WireError> {
    let raw = from.optional(name, Kinds::STRING)?;
    Ok(raw.map(text))
}

/// A text that must be there.
///
/// # Errors
/// It is missing, or no string.
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

/// Names and comments are shown to people only; bytes that are not UTF-8 are replaced.
fn text(raw: &[u8]) -> String {
    let bytes = members::string(raw).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn uuid(from: &Fields<'_>, name: &str, raw: &[u8]) -> Result<Uuid, WireError> {
    let text = members::string(raw).unwrap_or_default();
    Uuid::parse(&text).ok_or_else(|| from.error(&format!("{name} is not a valid UUID")))
}
