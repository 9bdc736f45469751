//! Text shown to a person: control characters appear as JSON escapes.
//!
//! Clients choose names, values and error texts. Printed raw, a newline forges a log line, and an
//! escape sequence controls the terminal of the operator who reads it. Programs show such text
//! through this module; formats that programs read stay exact. The escapes are those of JSON, so a
//! protocol message keeps its value when its control characters are escaped. Backslashes stay as
//! they are, so text without control characters is unchanged, and escaping twice equals escaping
//! once.

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter, Write};

/// A value whose text is shown on one line: no control character, not even a newline, reaches the
/// reader.
///
/// ```
/// use corvid_json::shown::Shown;
/// assert_eq!(Shown("lock \"a\nb\"").to_string(), r#"lock "a\nb""#);
/// assert_eq!(Shown("\u{1b}[2J\u{9b}31m").to_string(), r"\u001b[2J\u009b31m");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Shown<T>(pub T);

impl<T: Display> Display for Shown<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(Escaper(f, Lines::Escaped), "{}", self.0)
    }
}

/// Like [`Shown`], for text of several lines: newlines and tabs stay.
#[derive(Debug, Clone, Copy)]
pub struct ShownLines<T>(pub T);

impl<T: Display> Display for ShownLines<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(Escaper(f, Lines::Kept), "{}", self.0)
    }
}

/// The text as [`Shown`] shows it; borrowed if it has no control character.
#[must_use]
pub fn line(text: &str) -> Cow<'_, str> {
    match text.chars().any(is_control) {
        true => Cow::Owned(Shown(text).to_string()),
        false => Cow::Borrowed(text),
    }
}

/// Appends `bytes` as a terminal may show them: as [`ShownLines`] does, with U+FFFD in place of
/// invalid UTF-8. Returns the start of an incomplete character, at most three bytes: call again
/// with these and the bytes that follow.
pub fn append_lines<'a>(mut bytes: &'a [u8], out: &mut String) -> &'a [u8] {
    loop {
        let error = match std::str::from_utf8(bytes) {
            Ok(text) => {
                append(text, out);
                return &[];
            }
            Err(error) => error,
        };
        let (text, rest) = bytes.split_at(error.valid_up_to());
        // Valid, according to the error.
        append(std::str::from_utf8(text).unwrap_or_default(), out);
        let Some(invalid) = error.error_len() else {
            return rest;
        };
        out.push(char::REPLACEMENT_CHARACTER);
        bytes = &rest[invalid..];
    }
}

fn append(text: &str, out: &mut String) {
    // Writing to a string cannot fail.
    let _ = Escaper(out, Lines::Kept).write_str(text);
}

/// Whether a character must not reach a terminal or a line of a log: controls of ASCII and of ISO
/// 6429 (C0, DEL, C1), separators of lines and paragraphs, and controls of writing direction, which
/// show a text in another order than it has.
#[must_use]
pub fn is_control(letter: char) -> bool {
    matches!(
        letter,
        '\0'..='\x1f'
            | '\x7f'..='\u{9f}'
            | '\u{61c}'
            | '\u{200e}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
    )
}

/// Whether newlines and tabs are escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lines {
    Escaped,
    Kept,
}

/// Escapes everything that is written to it.
struct Escaper<'a, W>(&'a mut W, Lines);

impl<W: Write> Write for Escaper<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        let lines = self.1;
        let is_escaped = |letter: char| {
            is_control(letter) && (lines == Lines::Escaped || !matches!(letter, '\n' | '\t'))
        };
        while let Some((position, letter)) =
            rest.char_indices().find(|(_, letter)| is_escaped(*letter))
        {
            self.0.write_str(&rest[..position])?;
            write_escape(letter, self.0)?;
            rest = &rest[position + letter.len_utf8()..];
        }
        self.0.write_str(rest)
    }
}

/// Every control is below U+10000, so one escape suffices.
fn write_escape(letter: char, out: &mut impl Write) -> fmt::Result {
    let short = match letter {
        '\n' => "\\n",
        '\r' => "\\r",
        '\t' => "\\t",
        '\x08' => "\\b",
        '\x0c' => "\\f",
        other => return write!(out, "\\u{:04x}", u32::from(other)),
    };
    out.write_str(short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_as_in_json() {
        for (text, expected) in [
            (
                "plain \"text\" \\n é 中 \u{200d}",
                "plain \"text\" \\n é 中 \u{200d}",
            ),
            ("a\nb\r\tc\x08\x0c", "a\\nb\\r\\tc\\b\\f"),
            ("\0\x1b[31m\x7f", "\\u0000\\u001b[31m\\u007f"),
            (
                "\u{80}\u{9b}2J\u{9f}\u{a0}",
                "\\u0080\\u009b2J\\u009f\u{a0}",
            ),
            ("\u{2028}\u{2029}", "\\u2028\\u2029"),
            (
                "\u{202a}\u{202e}\u{2066}\u{2069}",
                "\\u202a\\u202e\\u2066\\u2069",
            ),
            ("\u{61c}\u{200e}\u{200f}", "\\u061c\\u200e\\u200f"),
        ] {
            let once = Shown(text).to_string();
            assert_eq!(once, expected);
            assert_eq!(line(text), expected);
            assert_eq!(Shown(&once).to_string(), once, "escaped twice");
        }
        assert!(matches!(line("borrowed"), Cow::Borrowed(_)));
    }

    #[test]
    fn no_control_character_is_left() {
        for letter in '\0'..=char::MAX {
            let text = Shown(letter).to_string();
            assert!(!text.chars().any(is_control), "{text:?}");
            // The standard library's definition of control characters.
            assert!(!text.chars().any(char::is_control), "{text:?}");
        }
    }

    #[test]
    fn a_message_keeps_its_value() {
        let message = "{\"a\u{9b}\":\"b\u{202e}\u{7f}\"}";
        let shown = Shown(message).to_string();
        assert!(!shown.chars().any(is_control));
        let values = [message, &shown].map(|text| crate::Value::parse(text.as_bytes()).unwrap());
        assert_eq!(values[0], values[1]);
    }

    #[test]
    fn lines_stay_lines_on_a_terminal() {
        let text = "a\tb\nc\u{1b}[H\rd\n";
        assert_eq!(ShownLines(text).to_string(), "a\tb\nc\\u001b[H\\rd\n");
        let bytes = b"a\n\x9b\x1bb\xe2\x80\xae\xff\xc3".as_slice();
        let mut out = String::new();
        assert_eq!(append_lines(bytes, &mut out), b"\xc3");
        assert_eq!(out, "a\n\u{fffd}\\u001bb\\u202e\u{fffd}");
        // A character that arrives in two pieces is whole.
        let mut out = String::new();
        assert!(append_lines("\u{e9}".as_bytes(), &mut out).is_empty());
        assert_eq!(out, "é");
    }
}
