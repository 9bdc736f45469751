//! Text of a database as text of SVG.

use std::borrow::Cow;
use std::fmt::{self, Write};

use corvid_json::shown;

/// Displays text so that a parser of XML or HTML takes it as text, inside of elements and of
/// attributes. Control characters, also those that turn the direction of text, appear as escapes.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = shown::line(self.0);
        let mut rest = text.as_ref();
        while let Some(at) = rest.find(['&', '<', '>', '"', '\'', '\u{fffe}', '\u{ffff}']) {
            f.write_str(&rest[..at])?;
            let mut letters = rest[at..].chars();
            match letters.next() {
                Some('&') => f.write_str("&amp;")?,
                Some('<') => f.write_str("&lt;")?,
                Some('>') => f.write_str("&gt;")?,
                Some('"') => f.write_str("&quot;")?,
                Some('\'') => f.write_str("&#39;")?,
                // XML does not allow these two.
                _ => f.write_char('\u{fffd}')?,
            }
            rest = letters.as_str();
        }
        f.write_str(rest)
    }
}

/// The first letters of a text, with a mark if some are missing.
pub(super) fn cut(text: &str, letters_max: usize) -> Cow<'_, str> {
    match text.char_indices().nth(letters_max) {
        None => Cow::Borrowed(text),
        Some(_) => {
            let kept = text.chars().take(letters_max.saturating_sub(1));
            Cow::Owned(kept.chain(['…']).collect())
        }
    }
}

/// The width of a text in tenths of an ordinary letter, as fonts without serifs have it about.
/// Pictures are made where no font is.
pub(super) fn units(text: &str) -> u32 {
    text.chars().map(width).fold(0, u32::saturating_add)
}

fn width(letter: char) -> u32 {
    match letter {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' => 5,
        'f' | 'r' | 't' | ' ' | '/' | '-' | '(' | ')' | '[' | ']' => 7,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 15,
        'A'..='Z' => 12,
        // Ideographs, syllables of Korean, full-width forms, pictographs.
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ffe6}'
        | '\u{1f000}'.. => 20,
        _ => 10,
    }
}

/// The beginning of a text that has room, with a mark if some is missing.
pub(super) fn fit(text: &str, room: u32) -> Cow<'_, str> {
    let mut used = 0;
    // Where the text ends if the mark has to have room too.
    let mut end = 0;
    for (at, letter) in text.char_indices() {
        if used + 10 <= room {
            end = at;
        }
        used += width(letter);
        if used > room {
            return Cow::Owned(format!("{}…", &text[..end]));
        }
    }
    Cow::Borrowed(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_text() {
        assert_eq!(
            Escaped("<a b=\"c\" d='e'>&\u{1b}\u{202e}\u{ffff}").to_string(),
            "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;\\u001b\\u202e\u{fffd}"
        );
    }

    #[test]
    fn texts_are_cut_to_their_room() {
        assert_eq!(fit("iiii", 20), "iiii");
        assert_eq!(fit("mmmm", 60), "mmmm");
        assert_eq!(fit("mmmm", 59), "mmm…");
        assert_eq!(fit("網絡網絡", 70), "網絡網…");
        assert_eq!(fit("a", 0), "…");
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äöüß", 3), "äö…");
    }
}
