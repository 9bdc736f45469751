//! Atoms and data from JSON.
//!
//! Invariant: an atom, pair or datum is consumed whether it is good or not, so that the container around it can go on to
//! count its elements and find errors that are reported first.

use std::borrow::Cow;

use corvid_json::{Kind, Number, Reader, Value};

use super::Symbols;
use crate::members::is_id;
use crate::{
    Atom, AtomType, BaseType, ColumnType, Datum, DatumBuilder, Real, Str, Tag, Uuid, WireError,
};

/// Where named UUIDs are bound, if they are allowed.
type Names<'s> = Option<&'s mut dyn Symbols>;

/// Reads one atom and checks its constraints. `symbols: None` where named UUIDs are not allowed.
/// The reader must stand before the value, and its text must be valid JSON.
///
/// # Errors
/// The texts of protocol.md 2.1 to 2.3.
pub fn read_atom(
    reader: &mut Reader<'_>,
    base: &BaseType,
    symbols: Option<&mut dyn Symbols>,
) -> Result<Atom, WireError> {
    let mut names = symbols;
    atom(reader, base, true, &mut names)
}

/// Reads a datum of a column type: shape, count, elements, duplicates, in that order.
///
/// # Errors
/// The texts of protocol.md 2.1 to 2.4.
pub fn read_datum(
    reader: &mut Reader<'_>,
    column_type: &ColumnType,
    symbols: Option<&mut dyn Symbols>,
) -> Result<Datum, WireError> {
    let mut names = symbols;
    Rules::of(column_type).datum(reader, &mut names)
}

/// Like [`read_datum`] without the constraints of its base types (UTF-8 is still checked), as arguments of arithmetic
/// mutators are read (protocol.md 5.5). The number of elements is checked.
///
/// # Errors
/// The texts of protocol.md 2.1, 2.3 and 2.4.
pub fn read_datum_unconstrained(
    reader: &mut Reader<'_>,
    column_type: &ColumnType,
    symbols: Option<&mut dyn Symbols>,
) -> Result<Datum, WireError> {
    let mut names = symbols;
    Rules {
        is_checked: false,
        ..Rules::of(column_type)
    }
    .datum(reader, &mut names)
}

/// Reads a difference of a column type: constraints hold, but any number of elements passes (storage.md 4.4). Also the
/// argument of a `delete` mutator.
///
/// # Errors
/// The texts of protocol.md 2.1 to 2.4.
pub fn read_diff(
    reader: &mut Reader<'_>,
    column_type: &ColumnType,
    symbols: Option<&mut dyn Symbols>,
) -> Result<Datum, WireError> {
    let mut names = symbols;
    Rules {
        is_unlimited: true,
        ..Rules::of(column_type)
    }
    .datum(reader, &mut names)
}

/// What is accepted.
#[derive(Clone, Copy)]
struct Rules<'t> {
    column_type: &'t ColumnType,
    /// Any number of elements passes.
    is_unlimited: bool,
    /// Constraints of the base types hold.
    is_checked: bool,
}

/// The elements of a container: how many there are, and what they make or the first error among them.
struct Elements {
    count: usize,
    outcome: Result<DatumBuilder, WireError>,
}

impl<'t> Rules<'t> {
    fn of(column_type: &'t ColumnType) -> Rules<'t> {
        Rules {
            column_type,
            is_unlimited: false,
            is_checked: true,
        }
    }

    fn datum(self, reader: &mut Reader<'_>, names: &mut Names<'_>) -> Result<Datum, WireError> {
        if !self.column_type.is_map() && reader.peek().map_err(broken)? != Kind::Array {
            return self.key(reader, names).map(Datum::one);
        }
        let start = reader.clone();
        if !self.enter(reader).map_err(broken)? {
            *reader = start;
            return match &self.column_type.value {
                None => self.key(reader, names).map(Datum::one),
                Some(_) => Err(self.malformed(reader)),
            };
        }
        let elements = match reader.next_element() {
            Ok(true) if reader.peek() == Ok(Kind::Array) => self.elements(reader, names)?,
            _ => None,
        };
        let Some(Elements { count, outcome }) = elements else {
            *reader = start;
            return Err(self.malformed(reader));
        };
        if !self.is_unlimited && !self.column_type.admits(count) {
            let mut whole = start;
            return Err(WireError::syntax(
                skip(&mut whole),
                self.column_type.count_problem(count),
            ));
        }
        outcome?.finish()
    }

    /// Enters an array whose first element is the name of the class; leaves the reader anywhere when it is not one.
    fn enter(self, reader: &mut Reader<'_>) -> Result<bool, corvid_json::Error> {
        if reader.peek()? != Kind::Array {
            return Ok(false);
        }
        reader.begin_array()?;
        Ok(reader.next_element()?
            && reader.peek()? == Kind::String
            && *reader.string()? == *self.column_type.class().as_bytes())
    }

    /// Reads the array of elements and the end of the container around it. `None` when the container goes on.
    fn elements(
        self,
        reader: &mut Reader<'_>,
        names: &mut Names<'_>,
    ) -> Result<Option<Elements>, WireError> {
        let mut builder = DatumBuilder::new();
        let mut failure = None;
        let mut count = 0;
        reader.begin_array().map_err(broken)?;
        while reader.next_element().map_err(broken)? {
            count += 1;
            if failure.is_some() {
                reader.skip().map_err(broken)?;
                continue;
            }
            let element = match &self.column_type.value {
                None => self.key(reader, names).map(|key| (key, None)),
                Some(value) => self
                    .pair(reader, value, names)
                    .map(|(key, value)| (key, Some(value))),
            };
            match element {
                Ok((key, value)) => builder.push(key, value),
                Err(error) => failure = Some(error),
            }
        }
        if reader.next_element().map_err(broken)? {
            return Ok(None);
        }
        Ok(Some(Elements {
            count,
            outcome: failure.map_or(Ok(builder), Err),
        }))
    }

    fn pair(
        self,
        reader: &mut Reader<'_>,
        base: &BaseType,
        names: &mut Names<'_>,
    ) -> Result<(Atom, Atom), WireError> {
        let mut whole = reader.clone();
        if reader.peek().map_err(broken)? == Kind::Array {
            reader.begin_array().map_err(broken)?;
            let (mut key, mut value) = (None, None);
            let mut is_longer = false;
            while reader.next_element().map_err(broken)? {
                if key.is_none() {
                    key = Some(self.key(reader, names));
                } else if value.is_none() {
                    value = Some(atom(reader, base, self.is_checked, names));
                } else {
                    is_longer = true;
                    reader.skip().map_err(broken)?;
                }
            }
            if let (Some(key), Some(value), false) = (key, value, is_longer) {
                return Ok((key?, value?));
            }
        } else {
            reader.skip().map_err(broken)?;
        }
        Err(WireError::syntax(
            skip(&mut whole),
            "expected 2-element array",
        ))
    }

    fn key(self, reader: &mut Reader<'_>, names: &mut Names<'_>) -> Result<Atom, WireError> {
        atom(reader, &self.column_type.key, self.is_checked, names)
    }

    /// The error about a container of the wrong shape, which is consumed.
    fn malformed(self, reader: &mut Reader<'_>) -> WireError {
        let details = format!("expected [\"{}\", <array>]", self.column_type.class());
        WireError::syntax(skip(reader), details)
    }
}

fn atom(
    reader: &mut Reader<'_>,
    base: &BaseType,
    is_checked: bool,
    names: &mut Names<'_>,
) -> Result<Atom, WireError> {
    let kind = reader.peek().map_err(broken)?;
    let atom = match (base.atom, kind) {
        (AtomType::Integer, Kind::Number) => match reader.number().map_err(broken)? {
            Number::Integer(integer) => Atom::Integer(integer),
            Number::Real(real) => {
                let shown = Value::Real(real);
                return Err(WireError::syntax_value(&shown, "expected integer"));
            }
        },
        (AtomType::Real, Kind::Number) => {
            let value = match reader.number().map_err(broken)? {
                Number::Integer(integer) => integer as f64,
                Number::Real(real) => real,
            };
            // The number rule yields finite numbers only.
            Atom::Real(Real::new(value).unwrap_or_default())
        }
        (AtomType::Boolean, Kind::Bool) => Atom::Boolean(reader.boolean().map_err(broken)?),
        (AtomType::String, Kind::String) => {
            let bytes = reader.string().map_err(broken)?;
            Atom::String(Str::from_utf8(&bytes)?)
        }
        (AtomType::Uuid, _) => Atom::Uuid(uuid(reader.skip().map_err(broken)?, names)?),
        (expected, _) => {
            let details = format!("expected {}", expected.name());
            return Err(WireError::syntax(reader.skip().map_err(broken)?, details));
        }
    };
    if is_checked {
        base.check(atom.as_ref())?;
    }
    Ok(atom)
}

/// Reads `["uuid", TEXT]` or, with `names`, `["named-uuid", ID]`.
fn uuid(raw: &[u8], names: &mut Names<'_>) -> Result<Uuid, WireError> {
    // The compact spelling, which is what programs send.
    if let Some(text) = raw.strip_prefix(b"[\"uuid\",\"")
        && let Some(text) = text.strip_suffix(b"\"]")
        && let Some(uuid) = Uuid::parse(text)
    {
        return Ok(uuid);
    }
    match string_pair(raw) {
        Some((class, text)) if *class == *b"uuid" => Uuid::parse(&text).ok_or_else(|| {
            let shown = String::from_utf8_lossy(&text);
            WireError::syntax(raw, format!("\"{shown}\" is not a valid UUID"))
        }),
        Some((class, name)) if *class == *b"named-uuid" && names.is_some() => {
            match (names, std::str::from_utf8(&name)) {
                (Some(names), Ok(name)) if is_id(name.as_bytes()) => Ok(names.resolve(name)),
                _ => Err(WireError::syntax(
                    raw,
                    "named-uuid string is not a valid <id>",
                )),
            }
        }
        _ => Err(WireError::syntax(raw, "expected [\"uuid\", <string>]")),
    }
}

/// A string as the reader hands it out.
type Text<'a> = Cow<'a, [u8]>;

/// The elements of an array of two strings.
fn string_pair(raw: &[u8]) -> Option<(Text<'_>, Text<'_>)> {
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

/// The text of the next value of a reader over valid JSON.
fn skip<'a>(reader: &mut Reader<'a>) -> &'a [u8] {
    reader.skip().unwrap_or_default()
}

/// The text was validated before, so this is a bug of ours, reported as one.
#[allow(clippy::needless_pass_by_value)] // the form that `map_err` wants
fn broken(error: corvid_json::Error) -> WireError {
    WireError::new(Tag::InternalError, format!("unreadable JSON: {error}"))
}
