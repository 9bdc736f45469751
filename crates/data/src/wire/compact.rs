//! Data in the spelling that programs send: no blanks, no escapes, nothing but ASCII. The fast path
//! of parsing: one pass over the bytes, many times faster than the general reader.
//!
//! Invariant: for every datum that this file reads, the general reader gives the same result. A
//! datum in another spelling, or one that breaks a rule, yields `None`. Then [`super::read`] reads
//! it from its beginning and makes the error, so this file makes none.

use super::Content;
use super::atom::{COMPACT_LEN, Names, compact_uuid};
use crate::datum::SmallStrings;
use crate::{Atom, AtomRef, AtomType, BaseType, ColumnType, Datum, DatumBuilder, Str};

/// The longest run of digits that always fits an integer.
const DIGITS_MAX: usize = 18;

const LOW_BITS: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// Reads the datum at the start of `text`. Returns it and its length in bytes. With `is_unlimited`
/// any number of elements passes.
pub(super) fn datum(
    text: &[u8],
    column_type: &ColumnType,
    is_unlimited: bool,
    names: &mut Names<'_>,
) -> Option<(Datum, usize)> {
    let mut cursor = Cursor { text, at: 0 };
    let is_string = |base: &BaseType| base.atom == AtomType::String;
    let is_of_strings =
        is_string(&column_type.key) && column_type.value.as_ref().is_none_or(is_string);
    let class: &[u8] = match &column_type.value {
        Some(_) => b"[\"map\",[",
        None => b"[\"set\",[",
    };
    let datum = match cursor.consume(class) {
        Some(()) if is_of_strings => cursor.strings(column_type, is_unlimited, names)?,
        Some(()) => {
            let builder = DatumBuilder::new();
            cursor.elements(builder, column_type, is_unlimited, names)?
        }
        None if column_type.is_map() => return None,
        None => Datum::one(cursor.atom(&column_type.key, Some(Content::Element), names)?),
    };
    Some((datum, cursor.at))
}

struct Cursor<'a> {
    text: &'a [u8],
    /// The bytes before this offset have been read.
    at: usize,
}

impl<'a> Cursor<'a> {
    /// Consumes these bytes if they come next.
    #[inline]
    fn consume(&mut self, expected: &[u8]) -> Option<()> {
        let is_there = self.text[self.at..].starts_with(expected);
        is_there.then(|| self.at += expected.len())
    }

    /// Reads elements up to the end of their container and adds them to the builder.
    fn elements(
        &mut self,
        mut builder: DatumBuilder,
        column_type: &ColumnType,
        is_unlimited: bool,
        names: &mut Names<'_>,
    ) -> Option<Datum> {
        if !builder.is_empty() || self.consume(b"]]").is_none() {
            loop {
                let (key, value) = match &column_type.value {
                    None => (
                        self.atom(&column_type.key, Some(Content::Element), names)?,
                        None,
                    ),
                    Some(value) => {
                        self.consume(b"[")?;
                        let key = self.atom(&column_type.key, None, names)?;
                        self.consume(b",")?;
                        let value = self.atom(value, Some(Content::Value), names)?;
                        self.consume(b"]")?;
                        (key, Some(value))
                    }
                };
                builder.push(key, value);
                if self.consume(b",").is_none() {
                    break;
                }
            }
            self.consume(b"]]")?;
        }
        if !is_unlimited && !column_type.admits(builder.len()) {
            return None;
        }
        builder.finish().ok()
    }

    /// Reads strings, or pairs of them, up to the end of their container.
    fn strings(
        &mut self,
        column_type: &ColumnType,
        is_unlimited: bool,
        names: &mut Names<'_>,
    ) -> Option<Datum> {
        let mut small = SmallStrings::default();
        if self.consume(b"]]").is_none() {
            loop {
                let (key, value) = match &column_type.value {
                    None => (
                        self.text(&column_type.key, Some(Content::Element), names)?,
                        None,
                    ),
                    Some(value) => {
                        self.consume(b"[")?;
                        let key = self.text(&column_type.key, None, names)?;
                        self.consume(b",")?;
                        let value = self.text(value, Some(Content::Value), names)?;
                        self.consume(b"]")?;
                        (key, Some(value))
                    }
                };
                small.push(key, value);
                if self.consume(b",").is_none() {
                    break;
                }
                if small.is_full() {
                    return self.elements(small.into_builder(), column_type, is_unlimited, names);
                }
            }
            self.consume(b"]]")?;
        }
        if !is_unlimited && !column_type.admits(small.len()) {
            return None;
        }
        small.finish()
    }

    /// Reads an atom. `role` is its role, unless it is a key of a map.
    #[inline]
    fn atom(
        &mut self,
        base: &BaseType,
        role: Option<Content>,
        names: &mut Names<'_>,
    ) -> Option<Atom> {
        let atom = match base.atom {
            AtomType::String => return self.text(base, role, names).map(Atom::String),
            AtomType::Uuid => {
                let text = self.text.get(self.at..self.at + COMPACT_LEN)?;
                self.at += COMPACT_LEN;
                Atom::Uuid(compact_uuid(text)?)
            }
            AtomType::Integer => Atom::Integer(self.integer()?),
            AtomType::Boolean => Atom::Boolean(match self.consume(b"true") {
                Some(()) => true,
                None => self.consume(b"false").map(|()| false)?,
            }),
            AtomType::Real => return None,
        };
        base.check(atom.as_ref()).ok()?;
        Some(atom)
    }

    /// Reads a string.
    #[inline]
    fn text(
        &mut self,
        base: &BaseType,
        role: Option<Content>,
        names: &mut Names<'_>,
    ) -> Option<Str> {
        let text = self.string()?;
        let text = match (names, role) {
            (Some(names), Some(role)) => names.content(text, role),
            (Some(names), None) => names.string(text),
            (None, _) => Str::from_utf8(text),
        };
        let text = text.ok()?;
        base.check(AtomRef::String(&text)).ok()?;
        Some(text)
    }

    /// Reads a string. Returns the bytes between its quotes.
    #[inline]
    fn string(&mut self) -> Option<&'a [u8]> {
        self.consume(b"\"")?;
        let rest = &self.text[self.at..];
        let length = plain(rest);
        if rest.get(length) != Some(&b'"') {
            return None;
        }
        self.at += length + 1;
        Some(&rest[..length])
    }

    /// Reads an integer. The byte after it, if any, must end it.
    fn integer(&mut self) -> Option<i64> {
        let is_negative = self.consume(b"-").is_some();
        let rest = &self.text[self.at..];
        let length = rest.iter().position(|byte| !byte.is_ascii_digit());
        let (digits, end) = rest.split_at(length.unwrap_or(rest.len()));
        let is_plain = matches!(digits, [b'1'..=b'9', ..] | [b'0']) && digits.len() <= DIGITS_MAX;
        if !is_plain || !matches!(end, [] | [b',' | b']' | b'}', ..]) {
            return None;
        }
        self.at += digits.len();
        let value = digits
            .iter()
            .fold(0, |value, digit| 10 * value + i64::from(digit - b'0'));
        Some(if is_negative { -value } else { value })
    }
}

/// The number of bytes before the first special one: a quote, a backslash, a control byte, or a
/// byte that is not ASCII.
#[inline]
fn plain(text: &[u8]) -> usize {
    let (words, tail) = text.as_chunks::<8>();
    for (number, word) in words.iter().enumerate() {
        let found = special(u64::from_le_bytes(*word));
        if found != 0 {
            return 8 * number + found.trailing_zeros() as usize / 8;
        }
    }
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | ..0x20 | 0x80..);
    let in_tail = tail.iter().position(is_special).unwrap_or(tail.len());
    8 * words.len() + in_tail
}

/// The high bit of each special byte of a word. Exact up to the first one; above it a borrow may
/// mark a byte that is not special.
#[inline]
fn special(word: u64) -> u64 {
    let below = |word: u64, limit: u64| word.wrapping_sub(LOW_BITS * limit) & !word;
    let equal = |byte: u8| below(word ^ (LOW_BITS * u64::from(byte)), 1);
    (word | below(word, 0x20) | equal(b'"') | equal(b'\\')) & HIGH_BITS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::read_datum;
    use corvid_json::Reader;

    fn types() -> Vec<ColumnType> {
        let string = ColumnType::scalar(AtomType::String);
        let many = |column_type: &ColumnType| ColumnType {
            min: 0,
            max: 3,
            ..column_type.clone()
        };
        let map = ColumnType {
            value: Some(ColumnType::scalar(AtomType::Integer).key),
            ..many(&string)
        };
        let others = [
            AtomType::Integer,
            AtomType::Boolean,
            AtomType::Uuid,
            AtomType::Real,
        ];
        let others = others.map(ColumnType::scalar);
        let sets = others.clone();
        [many(&string), string, map]
            .into_iter()
            .chain(others)
            .chain(sets.iter().map(many))
            .collect()
    }

    #[test]
    fn compact_data_read_equally_by_both_readers() {
        let uuid = r#"["uuid","01234567-89ab-cdef-0123-456789abcdef"]"#;
        let texts = [
            "0",
            "-0",
            "-1",
            "00",
            "01",
            "17",
            "1.0",
            "1e3",
            "-",
            "999999999999999999",
            "9223372036854775807",
            "9223372036854775808",
            "true",
            "false",
            "tru",
            "null",
            r#""""#,
            r#""a""#,
            r#""12345678""#,
            r#""123456789 and more than that""#,
            r#""a\nb""#,
            "\"\u{e9}\"",
            "\"12345678\u{e9}\"",
            "\"a\tb\"",
            r#""open"#,
            r#"["set",[]]"#,
            r#"["set",["b","a"]]"#,
            r#"["set",["a","a"]]"#,
            r#"["set",["a","b","c","d"]]"#,
            r#"["set", ["a"]]"#,
            r#"["set",["a",]]"#,
            r#"["set",["a"],1]"#,
            r#"["set",[3,1,2]]"#,
            r#"["set",[true,false]]"#,
            r#"["map",[["b",2],["a",1]]]"#,
            r#"["map",[["a",1],["a",2]]]"#,
            r#"["map",[]]"#,
            r#"["map",[["a",1,2]]]"#,
            r#"["map",[["a"]]]"#,
            r#"["named-uuid","x"]"#,
            uuid,
        ];
        let several =
            format!(r#"["set",[{uuid},["uuid","11234567-89ab-cdef-0123-456789abcdef"]]]"#);
        let mut read = 0;
        for column_type in types() {
            for text in texts.iter().copied().chain([several.as_str()]) {
                for end in ["", ",1", "]", "}"] {
                    let text = format!("{text}{end}");
                    let Some((found, length)) =
                        datum(text.as_bytes(), &column_type, false, &mut None)
                    else {
                        continue;
                    };
                    let mut reader = Reader::new(&text.as_bytes()[..length]);
                    // A blank makes this file decline the text.
                    let spaced = text[..length].replacen('[', "[ ", 1);
                    let other = read_datum(&mut Reader::new(spaced.as_bytes()), &column_type, None);
                    assert_eq!(other.expect("good"), found, "{text}");
                    reader.skip().expect("a value");
                    reader.end().expect("nothing but the value");
                    read += 1;
                }
            }
        }
        assert!(read > 100, "{read}");
    }

    #[test]
    fn special_bytes_are_found_wherever_they_are() {
        for byte in 0..=u8::MAX {
            for at in 0..20 {
                let mut text = [b'x'; 20];
                text[at] = byte;
                let is_special = matches!(byte, b'"' | b'\\' | ..0x20 | 0x80..);
                assert_eq!(plain(&text), if is_special { at } else { 20 }, "{byte:#x}");
            }
        }
    }
}
