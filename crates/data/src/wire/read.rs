//! Data from JSON.
//!
//! Invariant: a pair or datum is consumed whether or not it is valid, so that its container can
//! continue to count elements and find errors that have precedence.

use corvid_json::{Kind, Reader};

use super::Symbols;
use super::atom::{Fault, Names, atom, broken};
use super::compact;
use crate::{Atom, BaseType, ColumnType, Datum, DatumBuilder, WireError};

/// Reads one atom and checks its constraints. `symbols` is `None` if named UUIDs are not allowed.
/// The value must come next in the reader, and its text must be valid JSON.
///
/// # Errors
/// Those of docs/spec/protocol.md 2.1 to 2.3.
pub fn read_atom(
    reader: &mut Reader<'_>,
    base: &BaseType,
    symbols: Option<&mut dyn Symbols>,
) -> Result<Atom, WireError> {
    let mut names = symbols;
    atom(reader, base, true, &mut names).map_err(|fault| *fault)
}

/// Reads a datum of a column type. Checks shape, count, elements and duplicates, in that order.
///
/// # Errors
/// Those of docs/spec/protocol.md 2.1 to 2.4.
pub fn read_datum(
    reader: &mut Reader<'_>,
    column_type: &ColumnType,
    symbols: Option<&mut dyn Symbols>,
) -> Result<Datum, WireError> {
    Rules::of(column_type).read(reader, symbols)
}

/// Reads a datum, as [`read_datum`] does, without the constraints of its base types (UTF-8 is still
/// checked). Arguments of arithmetic mutators are read like this (docs/spec/protocol.md 5.5). The
/// number of elements is checked.
///
/// # Errors
/// Those of docs/spec/protocol.md 2.1, 2.3 and 2.4.
pub fn read_datum_unconstrained(
    reader: &mut Reader<'_>,
    column_type: &ColumnType,
    symbols: Option<&mut dyn Symbols>,
) -> Result<Datum, WireError> {
    Rules {
        is_checked: false,
        ..Rules::of(column_type)
    }
    .read(reader, symbols)
}

/// Reads a difference of a column type: constraints hold, but any number of elements passes
/// (docs/spec/storage.md 4.4). Also reads the argument of a `delete` mutator.
///
/// # Errors
/// Those of docs/spec/protocol.md 2.1 to 2.4.
pub fn read_diff(
    reader: &mut Reader<'_>,
    column_type: &ColumnType,
    symbols: Option<&mut dyn Symbols>,
) -> Result<Datum, WireError> {
    Rules {
        is_unlimited: true,
        ..Rules::of(column_type)
    }
    .read(reader, symbols)
}

/// The rules that a datum must obey.
#[derive(Clone, Copy)]
struct Rules<'t> {
    column_type: &'t ColumnType,
    /// Any number of elements passes.
    is_unlimited: bool,
    /// The constraints of the base types are checked.
    is_checked: bool,
}

/// The elements of a container.
struct Elements {
    count: usize,
    /// A builder with all elements, or the first error among them.
    outcome: Result<DatumBuilder, Fault>,
}

impl<'t> Rules<'t> {
    fn of(column_type: &'t ColumnType) -> Rules<'t> {
        Rules {
            column_type,
            is_unlimited: false,
            is_checked: true,
        }
    }

    fn read(
        self,
        reader: &mut Reader<'_>,
        symbols: Option<&mut dyn Symbols>,
    ) -> Result<Datum, WireError> {
        let mut names = symbols;
        self.datum(reader, &mut names).map_err(|fault| *fault)
    }

    fn datum(self, reader: &mut Reader<'_>, names: &mut Names<'_>) -> Result<Datum, Fault> {
        if self.is_checked {
            let compact = reader
                .try_read(|text| compact::datum(text, self.column_type, self.is_unlimited, names));
            if let Some(datum) = compact {
                return Ok(datum);
            }
        }
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
            return Err(misfit(&mut whole, self.column_type.count_problem(count)));
        }
        outcome?.finish().map_err(Fault::new)
    }

    /// Enters an array whose first element is the name of the class. If there is none, the reader's
    /// position is unspecified.
    fn enter(self, reader: &mut Reader<'_>) -> Result<bool, corvid_json::Error> {
        if reader.peek()? != Kind::Array {
            return Ok(false);
        }
        reader.begin_array()?;
        Ok(reader.next_element()?
            && reader.peek()? == Kind::String
            && *reader.string()? == *self.column_type.class().as_bytes())
    }

    /// Reads the array of elements and the end of its container. `None` if the container continues.
    fn elements(
        self,
        reader: &mut Reader<'_>,
        names: &mut Names<'_>,
    ) -> Result<Option<Elements>, Fault> {
        let mut builder = DatumBuilder::new();
        let mut failure = None;
        reader.begin_array().map_err(broken)?;
        while failure.is_none() && reader.next_element().map_err(broken)? {
            let element = match &self.column_type.value {
                None => self.key(reader, names).map(|key| (key, None)),
                Some(value) => self
                    .pair(reader, value, names)
                    .map(|(key, value)| (key, Some(value))),
            };
            match element {
                Ok((key, value)) => builder.push(key, value),
                Err(fault) => failure = Some(fault),
            }
        }
        let mut count = builder.len();
        if failure.is_some() {
            count += 1;
            while reader.next_element().map_err(broken)? {
                reader.skip().map_err(broken)?;
                count += 1;
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

    /// Reads a pair of a map.
    fn pair(
        self,
        reader: &mut Reader<'_>,
        value_type: &BaseType,
        names: &mut Names<'_>,
    ) -> Result<(Atom, Atom), Fault> {
        let mut whole = reader.clone();
        if reader.peek().map_err(broken)? != Kind::Array {
            return Err(misfit(reader, "expected 2-element array"));
        }
        reader.begin_array().map_err(broken)?;
        let mut count = 0;
        let mut next = |reader: &mut Reader<'_>| -> Result<bool, Fault> {
            let is_there = reader.next_element().map_err(broken)?;
            count += usize::from(is_there);
            Ok(is_there)
        };
        let (mut key, mut value) = (None, None);
        if next(reader)? {
            key = Some(self.key(reader, names));
            if next(reader)? {
                value = Some(atom(reader, value_type, self.is_checked, names));
                while next(reader)? {
                    reader.skip().map_err(broken)?;
                }
            }
        }
        match (key, value) {
            (Some(key), Some(value)) if count == 2 => Ok((key?, value?)),
            _ => Err(misfit(&mut whole, "expected 2-element array")),
        }
    }

    fn key(self, reader: &mut Reader<'_>, names: &mut Names<'_>) -> Result<Atom, Fault> {
        atom(reader, &self.column_type.key, self.is_checked, names)
    }

    /// The error about a container of the wrong shape, which is consumed.
    fn malformed(self, reader: &mut Reader<'_>) -> Fault {
        let class = self.column_type.class();
        misfit(reader, format!("expected [\"{class}\", <array>]"))
    }
}

/// A `syntax error` about the next value, which is consumed.
#[cold]
fn misfit(reader: &mut Reader<'_>, details: impl Into<String>) -> Fault {
    match reader.skip() {
        Ok(fragment) => Fault::new(WireError::syntax(fragment, details)),
        Err(error) => broken(error),
    }
}
