//! The words of an expression: names, values, operators and parentheses.

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// A word without quotes.
    Word(String),
    /// A string in quotes, without them.
    Quoted(String),
    /// An operator, a parenthesis, a comma or a colon.
    Sign(&'static str),
}

/// The signs; longer ones come before their beginnings.
const SIGNS: [&str; 15] = [
    "==", "!=", "<=", ">=", "!~", "[]", "{}", "=", "<", ">", "~", "(", ")", ",", "!",
];

/// Splits an expression into tokens.
///
/// # Errors
/// A quote is not closed.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            tokens.push(Token::Sign(sign));
            rest = &rest[sign.len()..];
        } else if matches!(first, '"' | '\'') {
            let (string, after) = quoted(&rest[1..], first)
                .ok_or_else(|| format!("{rest}: the quote is not closed"))?;
            tokens.push(Token::Quoted(string));
            rest = after;
        } else {
            let end = rest
                .find(|letter: char| letter.is_whitespace() || "=!<>~(),\"'".contains(letter))
                .unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            tokens.push(Token::Word(word.to_owned()));
            rest = after;
        }
        rest = rest.trim_start();
    }
    Ok(tokens)
}

/// The string up to a quote, and the text after it. A backslash makes the next letter one of the
/// string if that is a quote or a backslash, so that patterns need no doubled backslashes.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut string = String::new();
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => match letters.peek() {
                Some((_, next)) if *next == quote || *next == '\\' => {
                    string.push(*next);
                    letters.next();
                }
                _ => string.push('\\'),
            },
            end if end == quote => return Some((string, &text[at + end.len_utf8()..])),
            other => string.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_need_no_blanks() {
        let word = |text: &str| Token::Word(text.to_owned());
        let quoted = |text: &str| Token::Quoted(text.to_owned());
        let read = tokens(r#"name~"^web\d" and(a:k-1!=2)"#).unwrap();
        let wanted = [
            word("name"),
            Token::Sign("~"),
            quoted(r"^web\d"),
            word("and"),
            Token::Sign("("),
            word("a:k-1"),
            Token::Sign("!="),
            word("2"),
            Token::Sign(")"),
        ];
        assert_eq!(read, wanted);
        assert_eq!(
            tokens(r#"'it"s' "a\"b""#).unwrap(),
            [quoted("it\"s"), quoted("a\"b")]
        );
        assert!(tokens("a == \"b").is_err());
    }
}
