//! Splits input into words, by the rules of `sh` without expansions.
//!
//! Blanks and newlines separate words. Between `'` everything is literal; between `"`, a backslash
//! escapes `"` and `\`; outside of quotes it escapes any letter, and a newline after it is ignored.
//! A word that begins with `#` begins a comment. So a line of the documentation means the same here
//! and on a command line. Everything here is a function of texts.

/// A word, and its place in the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    /// The word without quotes.
    pub text: String,
    /// The offset of its first byte in the input, an opening quote included.
    pub start: usize,
    /// The offset after its last byte.
    pub end: usize,
}

/// The state at the end of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Nothing: the input ends after a word, or after a blank.
    Whole,
    /// A quoted text: more lines follow.
    InQuotes,
    /// An escape: the next line continues this one.
    AfterBackslash,
    /// A comment.
    InComment,
}

/// Input as words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Split {
    /// The words.
    pub words: Vec<Word>,
    /// The state at the end of the input.
    pub ending: Ending,
}

impl Split {
    /// The texts of the words.
    #[must_use]
    pub(crate) fn texts(self) -> Vec<String> {
        self.words.into_iter().map(|word| word.text).collect()
    }

    /// Whether the input needs another line.
    #[must_use]
    pub(crate) fn is_continued(&self) -> bool {
        matches!(self.ending, Ending::InQuotes | Ending::AfterBackslash)
    }
}

/// Splits input into words. An open quote counts as closed at the end.
#[must_use]
pub(crate) fn split(input: &str) -> Split {
    let mut words = Vec::new();
    let mut ending = Ending::Whole;
    let mut word: Option<Word> = None;
    let mut letters = input.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let is_start = word.is_none();
        let open = |word: Option<Word>| {
            word.unwrap_or(Word {
                text: String::new(),
                start: at,
                end: at,
            })
        };
        match letter {
            ' ' | '\t' | '\n' | '\r' => words.extend(word.take()),
            '#' if is_start => {
                ending = Ending::InComment;
                for (_, letter) in letters.by_ref() {
                    if letter == '\n' {
                        ending = Ending::Whole;
                        break;
                    }
                }
            }
            '\\' => match letters.next() {
                None => ending = Ending::AfterBackslash,
                // The line goes on.
                Some((_, '\n')) => {}
                Some((next, escaped)) => {
                    let mut opened = open(word);
                    opened.text.push(escaped);
                    opened.end = next + escaped.len_utf8();
                    word = Some(opened);
                }
            },
            '\'' | '"' => {
                let mut opened = open(word);
                ending = Ending::InQuotes;
                opened.end = input.len();
                while let Some((next, inner)) = letters.next() {
                    if inner == letter {
                        ending = Ending::Whole;
                        opened.end = next + 1;
                        break;
                    }
                    let escaped = match (letter, inner, letters.peek()) {
                        ('"', '\\', Some((_, escaped @ ('"' | '\\')))) => Some(*escaped),
                        _ => None,
                    };
                    if escaped.is_some() {
                        letters.next();
                    }
                    opened.text.push(escaped.unwrap_or(inner));
                }
                word = Some(opened);
            }
            other => {
                let mut opened = open(word);
                opened.text.push(other);
                opened.end = at + other.len_utf8();
                word = Some(opened);
            }
        }
    }
    words.extend(word);
    Split { words, ending }
}

/// A word as it is typed: in quotes if it needs them.
#[must_use]
pub(crate) fn quoted(word: &str) -> String {
    let is_plain =
        |letter: char| letter.is_alphanumeric() || "_-.:/=@,+%{}<>[]()!~^*|&;?$`#".contains(letter);
    if !word.is_empty() && !word.starts_with('#') && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(input: &str) -> Vec<String> {
        split(input).texts()
    }

    #[test]
    fn words_are_those_of_sh() {
        for (input, words) in [
            ("", &[][..]),
            ("  list\tBridge \n", &["list", "Bridge"]),
            ("set T 'a b' c=\"d e\"f", &["set", "T", "a b", "c=d ef"]),
            (r#"x='"b c"'"#, &[r#"x="b c""#]),
            (r#"a\ b "\"\\\n" '\'"#, &["a b", r#""\\n"#, r"\"]),
            ("'' \"\"", &["", ""]),
            ("a # b 'c", &["a"]),
            ("a#b", &["a#b"]),
            ("# only\nlist T", &["list", "T"]),
            ("list \\\n T", &["list", "T"]),
            ("é 'ü", &["é", "ü"]),
        ] {
            assert_eq!(texts(input), words, "{input}");
        }
    }

    #[test]
    fn an_open_quote_or_a_last_backslash_asks_for_more() {
        for (input, ending) in [
            ("a", Ending::Whole),
            ("a 'b", Ending::InQuotes),
            ("a \"b'", Ending::InQuotes),
            ("a \"b\\\"", Ending::InQuotes),
            ("a \\", Ending::AfterBackslash),
            ("a \\\n", Ending::Whole),
            ("a \\\\", Ending::Whole),
            ("# 'a", Ending::InComment),
        ] {
            assert_eq!(split(input).ending, ending, "{input}");
        }
    }

    #[test]
    fn places_include_quotes() {
        let places: Vec<(usize, usize)> = split("ab 'c d' e\\ f 'g")
            .words
            .iter()
            .map(|word| (word.start, word.end))
            .collect();
        assert_eq!(places, [(0, 2), (3, 8), (9, 13), (14, 16)]);
    }

    #[test]
    fn a_quoted_word_is_the_word() {
        for word in [
            "", "a", "a b", "it's", "\"x\"", "#a", "a#", "\\", "a\nb", "{>=}", "*",
        ] {
            assert_eq!(texts(&quoted(word)), [word], "{word}");
        }
        assert_eq!(quoted("up=true"), "up=true");
    }
}
