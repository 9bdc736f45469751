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
    fn long_texts_are_cut() {
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äöüß", 3), "äö…");
    }
}
