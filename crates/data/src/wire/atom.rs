//! Atoms from JSON, with their constraints.

use std::borrow::Cow;

use corvid_json::{Kind, Number, Reader, Value};

use super::Symbols;
use crate::members::is_id;
use crate::{Atom, AtomType, BaseType, Real, Str, Tag, Uuid, WireError};

/// The names of UUIDs, if names are allowed.
pub(super) type Names<'s> = Option<&'s mut dyn Symbols>;

/// Boxed on the way up, so that the outcome of each element stays small.
pub(super) type Fault = Box<WireError>;

/// Length of `["uuid","..."]` without blanks.
pub(super) const COMPACT_LEN: usize = Uuid::TEXT_LEN + 11;

/// Reads one atom, which is consumed whether or not it is valid.
#[inline]
pub(super) fn atom(
    reader: &mut Reader<'_>,
    base: &BaseType,
    is_checked: bool,
    names: &mut Names<'_>,
) -> Result<Atom, Fault> {
    let kind = reader.peek().map_err(broken)?;
    let atom = match (base.atom, kind) {
        (AtomType::Integer, Kind::Number) => match reader.number().map_err(broken)? {
            Number::Integer(integer) => Atom::Integer(integer),
            Number::Real(real) => {
                let shown = Value::Real(real);
                let error = WireError::syntax_value(&shown, "expected integer");
                return Err(Fault::new(error));
            }
        },
        (AtomType::Real, Kind::Number) => {
            let value = match reader.number().map_err(broken)? {
                Number::Integer(integer) => integer as f64,
                Number::Real(real) => real,
            };
            // The number rule yields only finite numbers.
            Atom::Real(Real::new(value).unwrap_or_default())
        }
        (AtomType::Boolean, Kind::Bool) => Atom::Boolean(reader.boolean().map_err(broken)?),
        (AtomType::String, Kind::String) => {
            let bytes = reader.string().map_err(broken)?;
            let text = match names {
                Some(names) => names.string(&bytes),
                None => Str::from_utf8(&bytes),
            };
            Atom::String(text.map_err(Fault::new)?)
        }
        (AtomType::Uuid, _) => Atom::Uuid(match reader.try_fixed(COMPACT_LEN, compact_uuid) {
            Some(uuid) => uuid,
            None => uuid(reader.skip().map_err(broken)?, names)?,
        }),
        (expected, _) => {
            let details = format!("expected {}", expected.name());
            let fragment = reader.skip().map_err(broken)?;
            return Err(Fault::new(WireError::syntax(fragment, details)));
        }
    };
    if is_checked {
        base.check(atom.as_ref()).map_err(Fault::new)?;
    }
    Ok(atom)
}

/// Reads the spelling of a UUID that programs send.
pub(super) fn compact_uuid(text: &[u8]) -> Option<Uuid> {
    Uuid::parse(text.strip_prefix(b"[\"uuid\",\"")?.strip_suffix(b"\"]")?)
}

/// Reads `["uuid", TEXT]` or, with `names`, `["named-uuid", ID]`.
fn uuid(raw: &[u8], names: &mut Names<'_>) -> Result<Uuid, Fault> {
    match string_pair(raw) {
        Some((class, text)) if *class == *b"uuid" => Uuid::parse(&text).ok_or_else(|| {
            let shown = String::from_utf8_lossy(&text);
            Fault::new(WireError::syntax(
                raw,
                format!("\"{shown}\" is not a valid UUID"),
            ))
        }),
        Some((class, name)) if *class == *b"named-uuid" && admits_names(names) => {
            match (names, std::str::from_utf8(&name)) {
                (Some(names), Ok(name)) if is_id(name.as_bytes()) => Ok(names.resolve(name)),
                _ => Err(Fault::new(WireError::syntax(
                    raw,
                    "named-uuid string is not a valid <id>",
                ))),
            }
        }
        _ => Err(Fault::new(WireError::syntax(
            raw,
            "expected [\"uuid\", <string>]",
        ))),
    }
}

fn admits_names(names: &Names<'_>) -> bool {
    names.as_ref().is_some_and(|names| names.admits_names())
}

/// A string as the reader returns it.
type Bytes<'a> = Cow<'a, [u8]>;

/// The elements of an array of two strings.
fn string_pair(raw: &[u8]) -> Option<(Bytes<'_>, Bytes<'_>)> {
    let mut reader = Reader::trusted(raw);
    let next = |reader: &mut Reader<'_>| reader.next_element().ok();
    if reader.peek().ok()? != Kind::Array {
        return None;
    }
    reader.begin_array().ok()?;
    if !next(&mut reader)? || reader.peek().ok()? != Kind::String {
        return None;
    }
    let first = reader.string().ok()?;
    if !next(&mut reader)? || reader.peek().ok()? != Kind::String {
        return None;
    }
    let second = reader.string().ok()?;
    (!next(&mut reader)?).then_some((first, second))
}

/// The text was validated before, so this is a bug in this program, and is reported as one.
#[cold]
#[allow(clippy::needless_pass_by_value)] // the form that `map_err` wants
pub(super) fn broken(error: corvid_json::Error) -> Fault {
    Fault::new(WireError::new(
        Tag::InternalError,
        format!("unreadable JSON: {error}"),
    ))
}
