//! The fast path of validation: skips a valid array or object in one tight loop that makes no error
//! messages.
//!
//! It gives up at the first token that is wrong or rare (deep nesting). The reader then validates
//! token by token and reports the error, if there is one. So this validator may reject a valid
//! text, but never accepts an invalid one. Only [`crate::Reader`] calls it.

use crate::lex::{self, skip_space};
use crate::{escape, number, scan};

/// Limit on open brackets that are tracked, one bit each.
pub(crate) const LEVELS_MAX: usize = 64;

/// The offset after the array or object whose opening bracket is at `start`; `None` if the reader
/// must validate it token by token.
pub(crate) fn container_end(text: &[u8], start: usize) -> Option<usize> {
    let mut open = Levels::default();
    let mut at = start;
    loop {
        at = match *text.get(at)? {
            b'"' => string_end(text, at)?,
            bracket @ (b'[' | b'{') => {
                let is_object = bracket == b'{';
                open.push(is_object)?;
                at = skip_space(text, at + 1);
                // The code of each closing bracket is two above that of its opening bracket.
                if *text.get(at)? == bracket + 2 {
                    open.pop();
                    at + 1
                } else {
                    if is_object {
                        at = name_end(text, at)?;
                    }
                    continue;
                }
            }
            b'-' | b'0'..=b'9' => number_end(text, at)?,
            _ => keyword_end(text, at)?,
        };
        // A value has ended, and perhaps the containers around it too.
        loop {
            if open.depth == 0 {
                return Some(at);
            }
            at = skip_space(text, at);
            match *text.get(at)? {
                b',' => break,
                b']' if !open.is_object() => open.pop(),
                b'}' if open.is_object() => open.pop(),
                _ => return None,
            }
            at += 1;
        }
        at = skip_space(text, at + 1);
        if open.is_object() {
            at = name_end(text, at)?;
        }
    }
}

/// The kinds of the open brackets, the innermost in the lowest bit.
#[derive(Default)]
struct Levels {
    objects: u64,
    depth: usize,
}

impl Levels {
    fn push(&mut self, is_object: bool) -> Option<()> {
        self.objects = self.objects << 1 | u64::from(is_object);
        self.depth += 1;
        (self.depth <= LEVELS_MAX).then_some(())
    }

    fn pop(&mut self) {
        self.objects >>= 1;
        self.depth -= 1;
    }

    fn is_object(&self) -> bool {
        self.objects & 1 == 1
    }
}

/// The offset of the value of the member whose name is at `at`.
#[inline]
fn name_end(text: &[u8], at: usize) -> Option<usize> {
    if *text.get(at)? != b'"' {
        return None;
    }
    let colon = skip_space(text, string_end(text, at)?);
    (*text.get(colon)? == b':').then(|| skip_space(text, colon + 1))
}

/// The offset after the string whose opening quote is at `quote`.
#[inline]
fn string_end(text: &[u8], quote: usize) -> Option<usize> {
    let start = quote + 1;
    if let Some(end) = scan::short_string_end(text, start) {
        return Some(end);
    }
    let end = start + scan::special(text.get(start..)?);
    if *text.get(end)? == b'"' {
        return Some(end + 1);
    }
    escaped_string_end(text, start, end)
}

/// The offset after a string whose contents begin at `start` and whose first special byte, at
/// `end`, is not a quote.
#[inline(never)]
fn escaped_string_end(text: &[u8], start: usize, mut end: usize) -> Option<usize> {
    loop {
        match *text.get(end)? {
            b'"' => break,
            b'\\' => end += 2,
            _ => return None,
        }
        end += scan::special(text.get(end..)?);
    }
    escape::check(&text[start..end]).ok()?;
    Some(end + 1)
}

#[inline]
fn number_end(text: &[u8], at: usize) -> Option<usize> {
    let end = lex::number_end(text, at);
    number::classify(&text[at..end]).ok()?;
    Some(end)
}

/// The offset after a keyword. The caller, which is inside a container, checks the byte after it.
#[inline]
fn keyword_end(text: &[u8], at: usize) -> Option<usize> {
    let keywords: [&[u8]; 3] = [b"true", b"false", b"null"];
    let keyword = keywords
        .into_iter()
        .find(|keyword| text[at..].starts_with(keyword))?;
    Some(at + keyword.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reader;
    use proptest::prelude::*;

    /// Tokens that follow one another in valid and in nearly valid texts.
    fn token() -> impl Strategy<Value = &'static str> {
        prop::sample::select(vec![
            "[",
            "]",
            "{",
            "}",
            ",",
            ":",
            " ",
            "\n",
            "\"\"",
            "\"name\":",
            "\"a b\"",
            "\"\\n\"",
            "\"\\",
            "\"\\u00e9\"",
            "\"\\ud800\"",
            "\"\x01\"",
            "\"long enough for two vectors\"",
            "0",
            "01",
            "-1",
            "1.5e3",
            "1e",
            "-",
            "true",
            "false",
            "null",
            "nul",
            "truefalse",
            "é",
        ])
    }

    /// Valid texts of those tokens, by the grammar.
    fn value() -> impl Strategy<Value = String> {
        let leaf = prop::sample::select(vec![
            "\"\"",
            "\"\\\\\"",
            "\"x\\ty\"",
            "\"a string of some length, past sixteen\"",
            "0",
            "-17",
            "2.50",
            "true",
            "null",
        ])
        .prop_map(str::to_owned);
        leaf.prop_recursive(4, 40, 5, |inner| {
            let list = prop::collection::vec((" ?", inner), 0..5);
            (list, any::<bool>()).prop_map(|(values, is_object)| {
                let texts = values.iter().map(|(space, value)| match is_object {
                    true => format!("{space}\"n{space}\"{space}:{value}{space}"),
                    false => format!("{space}{value}{space}"),
                });
                let texts = texts.collect::<Vec<_>>().join(",");
                if is_object {
                    format!("{{{texts}}}")
                } else {
                    format!("[{texts}]")
                }
            })
        })
    }

    /// Generated cases of each property. miri is a thousand times slower.
    const CASES: u32 = if cfg!(miri) { 8 } else { 4096 };

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(CASES))]

        #[test]
        fn texts_accepted_by_the_fast_path_are_valid(tokens in prop::collection::vec(token(), 0..12)) {
            let text = format!("[{}", tokens.concat()).replace('{', "{\"a\":");
            if let Some(end) = container_end(text.as_bytes(), 0) {
                let mut reader = Reader::new(text.as_bytes());
                prop_assert!(reader.validate_slowly().is_ok(), "{}", text);
                prop_assert_eq!(reader.offset(), end);
            }
        }

        #[test]
        fn valid_texts_are_accepted_by_the_fast_path(text in value(), tail in "[ \\],}x]{0,3}") {
            let text = format!("[{text}]{tail}");
            let mut reader = Reader::new(text.as_bytes());
            prop_assert!(reader.validate_slowly().is_ok(), "{}", text);
            prop_assert_eq!(container_end(text.as_bytes(), 0), Some(reader.offset()));
        }
    }

    #[test]
    fn truncated_texts_are_refused() {
        let text = br#"{"a":[1,true,"x\n",{}],"b":-0.5e1,"c":null}"#;
        assert_eq!(container_end(text, 0), Some(text.len()));
        for end in 1..text.len() {
            assert_eq!(container_end(&text[..end], 0), None, "cut at {end}");
        }
    }

    #[test]
    fn deep_nesting_is_left_to_the_slow_path() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert_eq!(
            container_end(nested(LEVELS_MAX).as_bytes(), 0),
            Some(2 * LEVELS_MAX)
        );
        let deep = nested(LEVELS_MAX + 1);
        assert_eq!(container_end(deep.as_bytes(), 0), None);
        assert!(Reader::new(deep.as_bytes()).skip().is_ok());
    }
}
