//! Writes compact JSON, byte for byte as docs/spec/protocol.md 1.4 specifies.
//!
//! Functions append to a byte vector and never fail. They write scalars and the small tree;
//! [`crate::writer`] writes the commas and brackets around typed values.

use crate::Value;
use crate::scan;

/// Appends a string literal, escaping only `"`, `\` and bytes below 0x20.
#[inline]
pub fn string(out: &mut Vec<u8>, text: &[u8]) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    escaped(out, text);
    out.push(b'"');
}

/// Appends a string literal whose text needs no escapes, for example an identifier.
#[inline]
pub fn identifier(out: &mut Vec<u8>, text: &[u8]) {
    debug_assert_eq!(
        scan::special(text),
        text.len(),
        "an identifier needs no escapes"
    );
    out.reserve(text.len() + 2);
    out.push(b'"');
    out.extend_from_slice(text);
    out.push(b'"');
}

/// Appends the inside of a string literal, without its quotes.
pub fn escaped(out: &mut Vec<u8>, text: &[u8]) {
    let mut rest = text;
    loop {
        let run = scan::special(rest);
        out.extend_from_slice(&rest[..run]);
        let Some(&byte) = rest.get(run) else { return };
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            0x08 => out.extend_from_slice(b"\\b"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            0x0c => out.extend_from_slice(b"\\f"),
            b'\r' => out.extend_from_slice(b"\\r"),
            _ => {
                const HEXADECIMAL: &[u8; 16] = b"0123456789abcdef";
                let digit = HEXADECIMAL[usize::from(byte & 0xf)];
                out.extend([b'\\', b'u', b'0', b'0', b'0' + (byte >> 4), digit]);
            }
        }
        rest = &rest[run + 1..];
    }
}

/// Appends an integer.
pub fn integer(out: &mut Vec<u8>, value: i64) {
    /// Digits of the largest magnitude, 2^63, and one more to form pairs.
    const DIGITS_MAX: usize = 20;
    let mut digits = [0_u8; DIGITS_MAX];
    let mut start = DIGITS_MAX;
    let mut magnitude = value.unsigned_abs();
    for (index, pair) in digits.as_chunks_mut::<2>().0.iter_mut().enumerate().rev() {
        *pair = PAIRS[(magnitude % 100) as usize];
        magnitude /= 100;
        if magnitude == 0 {
            start = 2 * index + usize::from(pair[0] == b'0');
            break;
        }
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[start..]);
}

/// Converts four bytes to eight hexadecimal digits, lower case, all at once.
///
/// ```
/// assert_eq!(&corvid_json::write::hexadecimal([0x01, 0x9a, 0xbc, 0xf0]), b"019abcf0");
/// ```
#[must_use]
#[inline]
pub fn hexadecimal(bytes: [u8; 4]) -> [u8; 8] {
    const ONES: u64 = 0x0101_0101_0101_0101;
    // Each nibble in a byte of its own, the first one highest.
    let mut nibbles = u64::from(u32::from_be_bytes(bytes));
    nibbles = (nibbles | nibbles << 16) & 0x0000_ffff_0000_ffff;
    nibbles = (nibbles | nibbles << 8) & 0x00ff_00ff_00ff_00ff;
    nibbles = (nibbles | nibbles << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    let is_letter = ((nibbles + 6 * ONES) >> 4) & ONES;
    let to_letter = u64::from(b'a' - b'0' - 10);
    (nibbles + u64::from(b'0') * ONES + to_letter * is_letter).to_be_bytes()
}

/// `00` to `99`.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + number as u8 / 10, b'0' + number as u8 % 10];
        number += 1;
    }
    pairs
};

/// Appends a real, as `%.15g` prints it.
pub fn real(out: &mut Vec<u8>, value: f64) {
    crate::number::write_real(out, value);
}

/// Appends `true` or `false`.
pub fn boolean(out: &mut Vec<u8>, value: bool) {
    out.extend_from_slice(if value { b"true" } else { b"false" });
}

/// Appends `null`.
pub fn null(out: &mut Vec<u8>) {
    out.extend_from_slice(b"null");
}

/// Appends a tree, compact, with members sorted.
pub fn value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => null(out),
        Value::Bool(value) => boolean(out, *value),
        Value::Integer(value) => integer(out, *value),
        Value::Real(value) => real(out, *value),
        Value::String(text) => string(out, text),
        Value::Array(elements) => {
            out.push(b'[');
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                self::value(out, element);
            }
            out.push(b']');
        }
        Value::Object(members) => {
            out.push(b'{');
            for (index, (name, member)) in members.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                string(out, name);
                out.push(b':');
                self::value(out, member);
            }
            out.push(b'}');
        }
    }
}

/// Appends a tree indented by two spaces: each element on its own line, a closing bracket at the
/// end of the last element's line.
pub fn pretty(out: &mut Vec<u8>, value: &Value) {
    indented(out, value, 0);
}

fn indented(out: &mut Vec<u8>, value: &Value, level: usize) {
    match value {
        Value::Array(elements) if !elements.is_empty() => {
            for (index, element) in elements.iter().enumerate() {
                line(out, if index == 0 { b'[' } else { b',' }, level + 1);
                indented(out, element, level + 1);
            }
            out.push(b']');
        }
        Value::Object(members) if !members.is_empty() => {
            for (index, (name, member)) in members.iter().enumerate() {
                line(out, if index == 0 { b'{' } else { b',' }, level + 1);
                string(out, name);
                out.extend_from_slice(b": ");
                indented(out, member, level + 1);
            }
            out.push(b'}');
        }
        other => self::value(out, other),
    }
}

/// Appends `before`, a line break and the indentation of `level`.
fn line(out: &mut Vec<u8>, before: u8, level: usize) {
    out.extend([before, b'\n']);
    out.resize(out.len() + 2 * level, b' ');
}
