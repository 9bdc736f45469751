//! The subset of DER that X.509 certificates consist of (X.690 10): values with one-byte tags and
//! definite, shortest lengths.
//!
//! Invariant: a reader never yields a byte from outside its value. Anything that is not DER is an
//! error without a text: the caller knows which file or peer the bytes come from.

use std::fmt::Write;

/// Tags of the universal class, and the context-specific tags of RFC 5280.
pub(crate) mod tag {
    pub(crate) const BOOLEAN: u8 = 0x01;
    pub(crate) const INTEGER: u8 = 0x02;
    pub(crate) const BIT_STRING: u8 = 0x03;
    pub(crate) const OCTET_STRING: u8 = 0x04;
    pub(crate) const OID: u8 = 0x06;
    pub(crate) const UTC_TIME: u8 = 0x17;
    pub(crate) const GENERALIZED_TIME: u8 = 0x18;
    pub(crate) const SEQUENCE: u8 = 0x30;
    pub(crate) const SET: u8 = 0x31;

    /// `[number] IMPLICIT` of a primitive type.
    pub(crate) const fn implicit(number: u8) -> u8 {
        0x80 | number
    }

    /// `[number] EXPLICIT`
    pub(crate) const fn explicit(number: u8) -> u8 {
        0xa0 | number
    }
}

/// The bytes are not the expected DER.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadDer;

/// One value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Value<'a> {
    pub(crate) tag: u8,
    /// The content, without tag and length.
    pub(crate) content: &'a [u8],
    /// The whole value, with tag and length.
    pub(crate) raw: &'a [u8],
}

/// Reads the values of a text one after another.
#[derive(Debug, Clone)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Reader<'a> {
        Reader { rest: text }
    }

    /// The next value, with any tag.
    pub(crate) fn value(&mut self) -> Result<Value<'a>, BadDer> {
        let text = self.rest;
        let (&tag, rest) = text.split_first().ok_or(BadDer)?;
        // Five one bits announce a multi-byte tag, which no part of a certificate has.
        if tag & 0x1f == 0x1f {
            return Err(BadDer);
        }
        let (length, rest) = length(rest)?;
        let (content, rest) = rest.split_at_checked(length).ok_or(BadDer)?;
        self.rest = rest;
        Ok(Value {
            tag,
            content,
            raw: &text[..text.len() - rest.len()],
        })
    }

    /// The next value, which must have this tag.
    pub(crate) fn expect(&mut self, tag: u8) -> Result<Value<'a>, BadDer> {
        let value = self.value()?;
        if value.tag == tag {
            Ok(value)
        } else {
            Err(BadDer)
        }
    }

    /// The next value, if it has this tag.
    pub(crate) fn optional(&mut self, tag: u8) -> Result<Option<Value<'a>>, BadDer> {
        if self.rest.first() == Some(&tag) {
            self.value().map(Some)
        } else {
            Ok(None)
        }
    }

    /// The content of the next value, which must be an OBJECT IDENTIFIER.
    pub(crate) fn oid(&mut self) -> Result<&'a [u8], BadDer> {
        let oid = self.expect(tag::OID)?.content;
        // The high bit means that the number continues.
        match oid.last() {
            Some(last) if *last < 0x80 => Ok(oid),
            _ => Err(BadDer),
        }
    }

    /// The values within the next value, which must have this tag.
    pub(crate) fn enter(&mut self, tag: u8) -> Result<Reader<'a>, BadDer> {
        self.expect(tag).map(|value| Reader::new(value.content))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Checks that nothing of the text is left.
    pub(crate) fn end(&self) -> Result<(), BadDer> {
        if self.is_empty() { Ok(()) } else { Err(BadDer) }
    }
}

/// A length, and the text after it.
fn length(text: &[u8]) -> Result<(usize, &[u8]), BadDer> {
    let (&first, rest) = text.split_first().ok_or(BadDer)?;
    if first < 0x80 {
        return Ok((usize::from(first), rest));
    }
    let (bytes, rest) = rest
        .split_at_checked(usize::from(first & 0x7f))
        .ok_or(BadDer)?;
    // Shortest form: no leading zeros, and no long form for a length that fits the short one.
    if bytes.is_empty() || bytes.len() > 4 || bytes[0] == 0 {
        return Err(BadDer);
    }
    let length = bytes
        .iter()
        .fold(0u64, |length, byte| length << 8 | u64::from(*byte));
    if length < 0x80 {
        return Err(BadDer);
    }
    Ok((usize::try_from(length).map_err(|_| BadDer)?, rest))
}

impl<'a> Value<'a> {
    /// The value of a BOOLEAN.
    pub(crate) fn boolean(self) -> Result<bool, BadDer> {
        match (self.tag, self.content) {
            (tag::BOOLEAN, [0]) => Ok(false),
            (tag::BOOLEAN, [0xff]) => Ok(true),
            _ => Err(BadDer),
        }
    }

    /// The value of an INTEGER from 0 to 2^32 - 1.
    pub(crate) fn small(self) -> Result<u32, BadDer> {
        let bytes = match (self.tag, self.content) {
            (tag::INTEGER, [0, rest @ ..]) => rest,
            (tag::INTEGER, [first, ..]) if *first < 0x80 => self.content,
            _ => return Err(BadDer),
        };
        if bytes.len() > 4 {
            return Err(BadDer);
        }
        Ok(bytes
            .iter()
            .fold(0, |number, byte| number << 8 | u32::from(*byte)))
    }

    /// The value of a BIT STRING: the number of unused bits in the last byte, and the bytes.
    pub(crate) fn bits(self) -> Result<(u8, &'a [u8]), BadDer> {
        match (self.tag, self.content) {
            (tag::BIT_STRING, [0, bytes @ ..]) => Ok((0, bytes)),
            // Unused bits are zeros.
            (tag::BIT_STRING, [unused @ 1..=7, .., last]) if last & ((1 << unused) - 1) == 0 => {
                Ok((*unused, &self.content[1..]))
            }
            _ => Err(BadDer),
        }
    }

    /// The bytes of a BIT STRING whose bits fill whole bytes.
    pub(crate) fn bytes_of_bits(self) -> Result<&'a [u8], BadDer> {
        match self.bits()? {
            (0, bytes) => Ok(bytes),
            _ => Err(BadDer),
        }
    }

    /// The value of a UTCTime or a GeneralizedTime in the form of RFC 5280 4.1.2.5 (whole seconds,
    /// `Z`), in seconds since 1970.
    pub(crate) fn time_s(self) -> Result<i64, BadDer> {
        let (year, rest) = match self.tag {
            tag::UTC_TIME => {
                let (year, rest) = number(self.content, 2)?;
                (if year < 50 { 2000 + year } else { 1900 + year }, rest)
            }
            tag::GENERALIZED_TIME => number(self.content, 4)?,
            _ => return Err(BadDer),
        };
        let (month, rest) = number(rest, 2)?;
        let (day, rest) = number(rest, 2)?;
        let (hour, rest) = number(rest, 2)?;
        let (minute, rest) = number(rest, 2)?;
        let (second, rest) = number(rest, 2)?;
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let month_days = match month {
            2 => 28 + i64::from(is_leap),
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => return Err(BadDer),
        };
        let is_valid = rest == b"Z"
            && (1..=month_days).contains(&day)
            && hour < 24
            && minute < 60
            && second < 60;
        if !is_valid {
            return Err(BadDer);
        }
        Ok(((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second)
    }
}

/// A number of this many decimal digits, and the text after it.
fn number(text: &[u8], digits: usize) -> Result<(i64, &[u8]), BadDer> {
    let (digits, rest) = text.split_at_checked(digits).ok_or(BadDer)?;
    let mut number = 0;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return Err(BadDer);
        }
        number = number * 10 + i64::from(digit - b'0');
    }
    Ok((number, rest))
}

/// The number of days from 1970-01-01 to a day of the Gregorian calendar. Years begin in March
/// here, so that a leap day is the last day of its year.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + day_of_year - 719_468
}

/// An object identifier in dotted form.
pub(crate) fn dotted(oid: &[u8]) -> String {
    let mut text = String::new();
    let mut number: u128 = 0;
    for byte in oid {
        number = number << 7 | u128::from(byte & 0x7f);
        if byte & 0x80 != 0 {
            continue;
        }
        // The first number holds the first two parts: 40 times the first plus the second.
        let written = if text.is_empty() {
            let first = (number / 40).min(2);
            write!(text, "{first}.{}", number - 40 * first)
        } else {
            write!(text, ".{number}")
        };
        debug_assert!(written.is_ok(), "memory cannot fail");
        number = 0;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_definite_and_shortest() {
        let read = |text: &[u8]| Reader::new(text).value().map(|value| value.content.len());
        assert_eq!(read(&[0x04, 0x00]), Ok(0));
        assert_eq!(
            read(&[[0x04, 0x81, 0x80].as_slice(), &[0; 128]].concat()),
            Ok(128)
        );
        assert_eq!(
            read(&[[0x04, 0x82, 1, 0].as_slice(), &[0; 256]].concat()),
            Ok(256)
        );
        for text in [
            &[0x04][..],
            &[0x04, 0x01],
            &[0x04, 0x80, 0, 0],
            &[0x04, 0x81, 0x01, 0],
            &[0x04, 0x82, 0x00, 0x80],
            &[0x04, 0x85, 1, 0, 0, 0, 0],
            &[0x1f, 0x01, 0x00],
        ] {
            assert_eq!(read(text), Err(BadDer), "{text:?}");
        }
    }

    #[test]
    fn small_integers_are_not_negative() {
        let small = |content: &[u8]| {
            let text = [&[tag::INTEGER, content.len() as u8], content].concat();
            Reader::new(&text).value().and_then(Value::small)
        };
        assert_eq!(small(&[0]), Ok(0));
        assert_eq!(small(&[0, 0xff]), Ok(255));
        assert_eq!(small(&[0, 0xff, 0xff, 0xff, 0xff]), Ok(u32::MAX));
        for content in [&[][..], &[0x80], &[1, 0, 0, 0, 0]] {
            assert_eq!(small(content), Err(BadDer), "{content:?}");
        }
    }

    #[test]
    fn times_are_seconds_since_1970() {
        let time = |tag, text: &str| {
            let text = [&[tag, text.len() as u8], text.as_bytes()].concat();
            Reader::new(&text).value().and_then(Value::time_s)
        };
        for (tag, text, expected) in [
            (tag::UTC_TIME, "700101000000Z", 0),
            (tag::UTC_TIME, "500101000000Z", -631_152_000),
            (tag::UTC_TIME, "491231235959Z", 2_524_607_999),
            (tag::UTC_TIME, "000229120000Z", 951_825_600),
            (tag::GENERALIZED_TIME, "20500101000000Z", 2_524_608_000),
            (tag::GENERALIZED_TIME, "99991231235959Z", 253_402_300_799),
        ] {
            assert_eq!(time(tag, text), Ok(expected), "{text}");
        }
        for text in [
            "7001010000Z",
            "700101000000",
            "700101000000+0000",
            "701301000000Z",
            "700230000000Z",
            "700101240000Z",
            "7001010000 0Z",
        ] {
            assert_eq!(time(tag::UTC_TIME, text), Err(BadDer), "{text}");
        }
    }

    #[test]
    fn identifiers_are_dotted() {
        assert_eq!(dotted(&[0x55, 4, 3]), "2.5.4.3");
        assert_eq!(
            dotted(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d]),
            "1.2.840.113549"
        );
        assert_eq!(dotted(&[0x09]), "0.9");
        assert_eq!(dotted(&[0x88, 0x37]), "2.999");
    }
}
