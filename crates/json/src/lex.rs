//! The cold half of the reader: given the offset of an unexpected token, it makes the error that
//! the reference reports.
//!
//! The reference checks single tokens before their order, and reports an error where it detected
//! it: at the closing quote of a string, after a number or keyword, at any other byte itself. These
//! rules are here so that the hot reader is free of them. The reader and the framer call this file
//! once they have failed.

use crate::Error;
use crate::escape;
use crate::number;
use crate::scan;

/// White space between tokens. Nothing else counts, not even form feed and byte-order mark.
#[inline]
pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Offset of the first byte at or after `at` that is not white space.
#[inline]
pub(crate) fn skip_space(text: &[u8], mut at: usize) -> usize {
    while at < text.len() && is_space(text[at]) {
        at += 1;
    }
    at
}

/// Offset after the run of bytes from `at` that the reference reads as one number.
#[inline]
pub(crate) fn number_end(text: &[u8], at: usize) -> usize {
    let run = text[at..]
        .iter()
        .position(|byte| !matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
    run.map_or(text.len(), |length| at + length)
}

/// Offset after the run of letters from `at`.
#[inline]
pub(crate) fn keyword_end(text: &[u8], at: usize) -> usize {
    let run = text[at..]
        .iter()
        .position(|byte| !byte.is_ascii_alphabetic());
    run.map_or(text.len(), |length| at + length)
}

/// The error for the token at `at`, after white space: the token's own fault if it has one, else
/// `expected`.
#[cold]
pub(crate) fn unexpected(text: &[u8], at: usize, expected: &str) -> Error {
    let at = skip_space(text, at);
    let Some(&first) = text.get(at) else {
        return end_of_input(text);
    };
    let position = match first {
        b'"' => match string_end(text, at) {
            Ok(quote) => quote,
            Err(error) => return error,
        },
        b'-' | b'0'..=b'9' => {
            let end = number_end(text, at);
            match number::classify(&text[at..end]) {
                Ok(_) => end,
                Err(fault) => return Error::at(text, end, fault.to_string()),
            }
        }
        b'a'..=b'z' => {
            let end = keyword_end(text, at);
            match &text[at..end] {
                b"true" | b"false" | b"null" => end,
                word => return bad_keyword(text, end, word),
            }
        }
        b'[' | b']' | b'{' | b'}' | b',' | b':' => at,
        b' '..=b'~' => {
            return Error::at(
                text,
                at,
                format!("invalid character '{}'", char::from(first)),
            );
        }
        _ => return Error::at(text, at, format!("invalid character U+{first:04x}")),
    };
    Error::at(text, position, expected)
}

/// The error for the letter run `word`, which ends at `end` and is not a keyword.
#[cold]
fn bad_keyword(text: &[u8], end: usize, word: &[u8]) -> Error {
    Error::at(
        text,
        end,
        format!("invalid keyword '{}'", String::from_utf8_lossy(word)),
    )
}

/// The text ends too early. After a number or keyword the reference reports that one byte later
/// than elsewhere, because it appends a blank to finish the token.
#[cold]
fn end_of_input(text: &[u8]) -> Error {
    if text.iter().all(|&byte| is_space(byte)) {
        return Error::at(text, text.len(), "empty input stream");
    }
    let open_token = text.last().is_some_and(u8::is_ascii_alphanumeric);
    Error::at(
        text,
        text.len() + usize::from(open_token),
        "unexpected end of input",
    )
}

/// Offset of the quote that closes the string whose opening quote is at `at`, or the string's
/// fault.
#[cold]
fn string_end(text: &[u8], at: usize) -> Result<usize, Error> {
    let mut end = at + 1;
    loop {
        end += scan::special(&text[end..]);
        match text.get(end) {
            Some(b'"') => break,
            Some(b'\\') if end + 1 < text.len() => end += 2,
            Some(&control) if control < 0x20 => return Err(control_byte(text, end, control)),
            _ => {
                return Err(Error::at(
                    text,
                    text.len(),
                    "unexpected end of input in quoted string",
                ));
            }
        }
    }
    match escape::check(&text[at + 1..end]) {
        Ok(()) => Ok(end),
        Err(fault) => Err(Error::at(text, end, fault.to_string())),
    }
}

#[cold]
fn control_byte(text: &[u8], at: usize, byte: u8) -> Error {
    Error::at(
        text,
        at,
        format!("U+{byte:04X} must be escaped in quoted string"),
    )
}

/// The error for a text of a stream that does not begin with a bracket.
pub(crate) const BEGINNING: &str = "syntax error at beginning of input";

/// The error for the bracket at `at`, which is one too many.
#[cold]
pub(crate) fn too_deep(text: &[u8], at: usize, depth_max: usize) -> Error {
    Error::at(
        text,
        at,
        format!("input exceeds maximum nesting depth {depth_max}"),
    )
}
