//! Words of the textual notation: where a word ends, and the meaning of escapes.
//!
//! A word ends before one of `:=, []{}!<>` or at the end of the text. Outside double quotes a
//! backslash is dropped and makes the next character part of the word. Inside double quotes nothing
//! delimits, and quotes and backslashes are kept for the reader of the word.

/// Characters that end a word.
pub(super) const DELIMITERS: &str = ":=, []{}!<>";

/// Reads the word at the start of `rest` and moves `rest` past it. Skips blanks before the word,
/// which may be empty.
///
/// # Errors
/// `S: backslash at end of argument`, `S: quoted string extends past end of argument`, where S is
/// the remaining text.
pub fn read_word(rest: &mut &str) -> Result<String, String> {
    skip_blanks(rest);
    let start = *rest;
    let mut word = String::new();
    let mut is_quoted = false;
    let mut characters = start.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => {
                let Some((_, escaped)) = characters.next() else {
                    return Err(format!("{start}: backslash at end of argument"));
                };
                if is_quoted {
                    word.push('\\');
                }
                word.push(escaped);
            }
            delimiter if !is_quoted && DELIMITERS.contains(delimiter) => {
                *rest = &start[at..];
                return Ok(word);
            }
            other => {
                is_quoted ^= other == '"';
                word.push(other);
            }
        }
    }
    if is_quoted {
        return Err(format!(
            "{start}: quoted string extends past end of argument"
        ));
    }
    *rest = "";
    Ok(word)
}

/// Skips spaces. Other white space is part of words.
pub(super) fn skip_blanks(rest: &mut &str) {
    *rest = rest.trim_start_matches(' ');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_end_at_delimiters_outside_quotes() {
        for (text, word, remains) in [
            ("a b", "a", " b"),
            ("  a=b", "a", "=b"),
            ("=b", "", "=b"),
            ("", "", ""),
            (r#""a, b"=c"#, r#""a, b""#, "=c"),
            (r#""a\" b"]"#, r#""a\" b""#, "]"),
            (r"a\ b\\c d", r"a b\c", " d"),
            ("a\tb;(c)", "a\tb;(c)", ""),
        ] {
            let mut rest = text;
            assert_eq!(read_word(&mut rest).as_deref(), Ok(word), "{text}");
            assert_eq!(rest, remains, "{text}");
        }
    }

    #[test]
    fn unfinished_words_are_errors() {
        for (text, error) in [
            ("a\\", "a\\: backslash at end of argument"),
            ("\"a\\", "\"a\\: backslash at end of argument"),
            (
                "x\"a b",
                "x\"a b: quoted string extends past end of argument",
            ),
        ] {
            let mut rest = text;
            assert_eq!(read_word(&mut rest), Err(error.to_owned()));
        }
    }
}
