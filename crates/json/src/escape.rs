//! Escapes in JSON strings: checks and decodes the bytes between the quotes.
//!
//! A lone low surrogate becomes its three-byte generalized UTF-8 form, and bytes that are not UTF-8
//! pass through (docs/spec/protocol.md 1.2). A string is a byte string until a column's type says
//! otherwise.

use thiserror::Error;

/// A fault in an escape. Displays with the reference's text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Fault {
    /// A backslash before a byte with which it forms no escape. The byte is shown as it is.
    #[error("bad escape \\{}", char::from(*.0))]
    Unknown(u8),
    /// A backslash as the last byte.
    #[error("quoted string may not end with backslash")]
    Backslash,
    /// `\u` before fewer than four bytes.
    #[error("quoted string ends within \\u escape")]
    Truncated,
    /// `\u` before anything but four hexadecimal digits.
    #[error("malformed \\u escape")]
    Hexadecimal,
    /// `\u0000`.
    #[error("null bytes not supported in quoted strings")]
    Null,
    /// A leading surrogate without a following `\u`.
    #[error("malformed escaped surrogate pair")]
    Unpaired,
    /// A leading surrogate before a `\u` that is not a trailing surrogate.
    #[error("second half of escaped surrogate pair is not trailing surrogate")]
    Pair,
}

/// Resolves the escapes of `raw`, the bytes between the quotes.
///
/// # Errors
/// The first bad escape.
pub fn unescape(raw: &[u8]) -> Result<Vec<u8>, Fault> {
    let mut out = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(run) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..run]);
        let (code, length) = escape(&rest[run..])?;
        push_code(&mut out, code);
        rest = &rest[run + length..];
    }
    out.extend_from_slice(rest);
    Ok(out)
}

/// Checks the escapes of `raw` without building the string.
///
/// # Errors
/// Those of [`unescape`].
pub fn check(raw: &[u8]) -> Result<(), Fault> {
    let mut rest = raw;
    while let Some(run) = memchr::memchr(b'\\', rest) {
        let (_, length) = escape(&rest[run..])?;
        rest = &rest[run + length..];
    }
    Ok(())
}

/// Decodes the escape at the start of `text`: its code point (surrogates included) and its length
/// in bytes.
#[inline]
fn escape(text: &[u8]) -> Result<(u32, usize), Fault> {
    let simple = |code: u8| Ok((u32::from(code), 2));
    match text.get(1) {
        Some(&code @ (b'"' | b'\\' | b'/')) => simple(code),
        Some(b'b') => simple(0x08),
        Some(b'f') => simple(0x0c),
        Some(b'n') => simple(b'\n'),
        Some(b'r') => simple(b'\r'),
        Some(b't') => simple(b'\t'),
        Some(b'u') => unicode(text),
        Some(&other) => Err(Fault::Unknown(other)),
        None => Err(Fault::Backslash),
    }
}

/// Decodes `\uXXXX`, including the second half if it is a leading surrogate.
fn unicode(text: &[u8]) -> Result<(u32, usize), Fault> {
    let first = hexadecimal(&text[2..])?;
    if !(0xd800..0xdc00).contains(&first) {
        return Ok((first, 6));
    }
    let second = match &text[6..] {
        [b'\\', b'u', digits @ ..] => hexadecimal(digits)?,
        _ => return Err(Fault::Unpaired),
    };
    if !(0xdc00..0xe000).contains(&second) {
        return Err(Fault::Pair);
    }
    Ok((0x1_0000 + ((first & 0x3ff) << 10) + (second & 0x3ff), 12))
}

fn hexadecimal(text: &[u8]) -> Result<u32, Fault> {
    let digits = text.get(..4).ok_or(Fault::Truncated)?;
    let mut code = 0;
    for &digit in digits {
        code = code << 4 | char::from(digit).to_digit(16).ok_or(Fault::Hexadecimal)?;
    }
    if code == 0 {
        Err(Fault::Null)
    } else {
        Ok(code)
    }
}

/// Appends the UTF-8 form of a code point, even of a surrogate, which `char` would reject.
fn push_code(out: &mut Vec<u8>, code: u32) {
    let continuation = |shift: u32| 0x80 | (code >> shift & 0x3f) as u8;
    match code {
        0..0x80 => out.push(code as u8),
        0x80..0x800 => out.extend([0xc0 | (code >> 6) as u8, continuation(0)]),
        0x800..0x1_0000 => {
            out.extend([0xe0 | (code >> 12) as u8, continuation(6), continuation(0)]);
        }
        _ => out.extend([
            0xf0 | (code >> 18) as u8,
            continuation(12),
            continuation(6),
            continuation(0),
        ]),
    }
}

#[cfg(test)]
mod tests {
    use super::{Fault, check, unescape};

    #[test]
    fn escapes_resolve() {
        for (raw, text) in [
            (r#"\"\\\/\b\f\n\r\t"#, b"\"\\/\x08\x0c\n\r\t".as_slice()),
            (r"a\u0041\u00e9\u20AC", "aA\u{e9}\u{20ac}".as_bytes()),
            (r"\ud83d\ude00", "\u{1f600}".as_bytes()),
            (r"\uDBFF\uDFFF", "\u{10ffff}".as_bytes()),
            (r"\udc00x", b"\xed\xb0\x80x"),
            ("plain", b"plain"),
        ] {
            assert_eq!(unescape(raw.as_bytes()).unwrap(), text, "{raw}");
        }
    }

    #[test]
    fn bad_escapes_are_named() {
        for (raw, fault) in [
            (r"\q", Fault::Unknown(b'q')),
            (r"\", Fault::Backslash),
            (r"\u12", Fault::Truncated),
            (r"\u+123", Fault::Hexadecimal),
            (r"\u0000", Fault::Null),
            (r"\ud800", Fault::Unpaired),
            (r"\ud800x", Fault::Unpaired),
            (r"\ud800\n", Fault::Unpaired),
            (r"\ud800\u12", Fault::Truncated),
            (r"\ud800\u0041", Fault::Pair),
            (r"\ud800\ud800", Fault::Pair),
        ] {
            assert_eq!(unescape(raw.as_bytes()), Err(fault.clone()), "{raw}");
            assert_eq!(check(raw.as_bytes()), Err(fault), "{raw}");
        }
    }
}
