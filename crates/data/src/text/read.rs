//! Atoms and data from text, as tools get them on their command lines.

use std::fmt::Write as _;

use corvid_json::escape;

use super::token::{DELIMITERS, read_word, skip_blanks};
use crate::{Atom, AtomType, BaseType, ColumnType, Datum, DatumBuilder, Real, Str, Uuid};

/// Limit on the elements of one range.
const RANGE_MAX: i128 = 4096;

/// The meaning of one word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AtomOrRange {
    /// One atom.
    Atom(Atom),
    /// The integers from the first to the second, both included.
    Range(i64, i64),
}

/// Resolves `@name`, the row that another part of the same command creates.
type Names<'n> = &'n mut dyn FnMut(&str) -> Option<Uuid>;

/// Parses an atom. `names` resolves `@name`.
///
/// # Errors
/// The messages of docs/spec/protocol.md 2.7.
///
/// ```
/// use corvid_data::{Atom, AtomType, BaseType, text};
///
/// let integer = BaseType::plain(AtomType::Integer);
/// assert_eq!(text::read_atom("5", &integer, &mut |_| None), Ok(Atom::Integer(5)));
/// assert!(text::read_atom("five", &integer, &mut |_| None).is_err());
/// ```
pub fn read_atom(text: &str, base: &BaseType, names: Names<'_>) -> Result<Atom, String> {
    match read_atom_or_range(text, base, names)? {
        AtomOrRange::Atom(atom) => Ok(atom),
        AtomOrRange::Range(..) => Err(not_an_integer(text)),
    }
}

/// Parses an atom or, if the type is integer, an inclusive range `A-B`.
///
/// # Errors
/// The messages of docs/spec/protocol.md 2.7.
pub fn read_atom_or_range(
    text: &str,
    base: &BaseType,
    names: Names<'_>,
) -> Result<AtomOrRange, String> {
    let atom = match base.atom {
        AtomType::Integer => match integer(text).ok_or_else(|| not_an_integer(text))? {
            AtomOrRange::Range(first, last) => return check_range(text, first, last, base),
            AtomOrRange::Atom(atom) => atom,
        },
        AtomType::Real => {
            Atom::Real(real(text).ok_or_else(|| format!("\"{text}\" is not a valid real number"))?)
        }
        AtomType::Boolean => Atom::Boolean(boolean(text).ok_or_else(|| {
            format!("\"{text}\" is not a valid boolean (use \"true\" or \"false\")")
        })?),
        AtomType::String => Atom::String(string(text)?),
        AtomType::Uuid => {
            let uuid = match text.strip_prefix('@') {
                Some(name) => names(name),
                None => Uuid::parse(text.as_bytes()),
            };
            Atom::Uuid(uuid.ok_or_else(|| format!("\"{text}\" is not a valid UUID"))?)
        }
    };
    base.check(atom.as_ref())
        .map_err(|error| error.to_string())?;
    Ok(AtomOrRange::Atom(atom))
}

/// Parses a datum. `names` resolves `@name`.
///
/// # Errors
/// The messages of docs/spec/protocol.md 2.7.
///
/// ```
/// use corvid_data::{AtomType, ColumnType, text};
///
/// let vlans = ColumnType {
///     max: 4096,
///     ..ColumnType::scalar(AtomType::Integer)
/// };
/// let datum = text::read_datum("7, 1-3", &vlans, &mut |_| None)?;
/// let mut shown = String::new();
/// text::write_datum(&mut shown, &datum, &vlans);
/// assert_eq!(shown, "[1, 2, 3, 7]");
/// # Ok::<(), String>(())
/// ```
pub fn read_datum(text: &str, column_type: &ColumnType, names: Names<'_>) -> Result<Datum, String> {
    let (open, close) = if column_type.is_map() {
        ('{', '}')
    } else {
        ('[', ']')
    };
    let mut rest = text;
    skip_blanks(&mut rest);
    if rest.is_empty() {
        let class = column_type.class();
        return Err(format!(
            "use \"{open}{close}\" to specify the empty {class}"
        ));
    }
    let is_bracketed = match rest.strip_prefix(open) {
        Some(inside) => {
            rest = inside;
            true
        }
        None => false,
    };
    let mut elements = Elements {
        text,
        column_type,
        builder: DatumBuilder::new(),
    };
    loop {
        skip_blanks(&mut rest);
        if rest.is_empty() || is_bracketed && rest.starts_with(close) {
            break;
        }
        elements.read(&mut rest, names)?;
        skip_blanks(&mut rest);
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
    if is_bracketed {
        let Some(after) = rest.strip_prefix(close) else {
            return Err(format!("{text}: missing \"{close}\" at end of data"));
        };
        rest = after;
        skip_blanks(&mut rest);
        if !rest.is_empty() {
            return Err(format!("{text}: trailing garbage after \"{close}\""));
        }
    }
    elements.finish()
}

/// The elements of a datum being read.
struct Elements<'t> {
    /// The whole text, for messages.
    text: &'t str,
    column_type: &'t ColumnType,
    builder: DatumBuilder,
}

impl Elements<'_> {
    /// Parses one element, range or pair.
    fn read(&mut self, rest: &mut &str, names: Names<'_>) -> Result<(), String> {
        let start = *rest;
        if let Some(delimiter) = start.chars().next().filter(|&c| DELIMITERS.contains(c)) {
            return Err(format!(
                "{}: unexpected \"{delimiter}\" parsing {}",
                self.text,
                self.column_type.english()
            ));
        }
        let word = read_word(rest)?;
        let Some(value_type) = &self.column_type.value else {
            match read_atom_or_range(&word, &self.column_type.key, names)? {
                AtomOrRange::Atom(atom) => self.builder.push(atom, None),
                AtomOrRange::Range(first, last) => {
                    (first..=last).for_each(|value| self.builder.push(Atom::Integer(value), None));
                }
            }
            return Ok(());
        };
        let key = read_atom(&word, &self.column_type.key, names)?;
        skip_blanks(rest);
        let Some(after) = rest.strip_prefix('=') else {
            let mut error = format!("{start}: syntax error at \"");
            error.extend(rest.chars().next());
            error.push_str("\" expecting \"=\"");
            return Err(error);
        };
        *rest = after;
        let word = read_word(rest)?;
        let value = read_atom(&word, value_type, names)?;
        self.builder.push(key, Some(value));
        Ok(())
    }

    fn finish(self) -> Result<Datum, String> {
        let (text, count) = (self.text, self.builder.len());
        let ColumnType { min, max, .. } = *self.column_type;
        if !self.column_type.admits(count) {
            let (bound, limit) = if count < min as usize {
                ("minimum", min)
            } else {
                ("maximum", max)
            };
            let noun = if self.column_type.is_map() {
                "pair(s)"
            } else {
                "value(s)"
            };
            return Err(format!(
                "{text}: {count} {noun} specified but the {bound} number is {limit}"
            ));
        }
        self.builder.finish().map_err(|_| {
            let mut error = format!("{text}: {}", self.column_type.class());
            // Writing to a string cannot fail.
            let _ = match self.column_type.value {
                Some(_) => write!(error, " contains duplicate key"),
                None => write!(error, " contains duplicate value"),
            };
            error
        })
    }
}

fn not_an_integer(text: &str) -> String {
    format!("\"{text}\" is not a valid integer or range")
}

/// Checks the ends of a range, then its length.
fn check_range(text: &str, first: i64, last: i64, base: &BaseType) -> Result<AtomOrRange, String> {
    if last < first {
        return Err(format!(
            "\"{text}\" is not a valid range. Range end cannot be before start."
        ));
    }
    for end in [first, last] {
        base.check(Atom::Integer(end).as_ref())
            .map_err(|error| error.to_string())?;
    }
    if i128::from(last) - i128::from(first) >= RANGE_MAX {
        return Err(format!(
            "constraint violation: Range \"{text}\" is too big. Maximum allowed size is {RANGE_MAX}."
        ));
    }
    // Between valid ends, only an enum can reject.
    for middle in first..=last {
        base.check(Atom::Integer(middle).as_ref())
            .map_err(|error| error.to_string())?;
    }
    Ok(AtomOrRange::Range(first, last))
}

/// A decimal integer with an optional sign, or two of them with a hyphen in between.
fn integer(text: &str) -> Option<AtomOrRange> {
    let (first, rest) = split_integer(text)?;
    if rest.is_empty() {
        return Some(AtomOrRange::Atom(Atom::Integer(first)));
    }
    let (last, rest) = split_integer(rest.strip_prefix('-')?)?;
    rest.is_empty().then_some(AtomOrRange::Range(first, last))
}

/// The integer at the start, after white space, and the rest of the text.
fn split_integer(text: &str) -> Option<(i64, &str)> {
    let text = text.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
    let sign = usize::from(text.starts_with(['+', '-']));
    let digits = text[sign..].bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(sign + digits);
    // A text without digits is not a number.
    Some((number.parse().ok()?, rest))
}

/// A floating-point number in C's spelling. Infinities and NaN are not atoms.
fn real(text: &str) -> Option<Real> {
    let text = text.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
    Real::new(text.parse().ok()?)
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

/// A JSON string literal, or the text itself.
fn string(text: &str) -> Result<Str, String> {
    if text.is_empty() {
        return Err(
            "An empty string is not valid as input; use \"\" to represent the empty string"
                .to_owned(),
        );
    }
    let Some(inside) = text.strip_prefix('"') else {
        return Ok(Str::new(text));
    };
    let Some(inside) = inside.strip_suffix('"') else {
        return Err(format!("{text}: missing quote at end of quoted string"));
    };
    let mut is_escaped = false;
    for byte in inside.bytes() {
        if byte == b'"' && !is_escaped {
            return Err(format!(
                "{text}: quoted string may not include unescaped \""
            ));
        }
        is_escaped = byte == b'\\' && !is_escaped;
    }
    let bytes = escape::unescape(inside.as_bytes()).map_err(|fault| format!("{text}: {fault}"))?;
    Str::from_utf8(&bytes).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
