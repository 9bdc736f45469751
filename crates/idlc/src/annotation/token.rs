//! Splits annotation files into tokens, as Python does: lines, indented blocks, strings.

/// The deepest nesting of brackets.
const BRACKETS_MAX: usize = 100;

/// A token with its line number, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) line: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Name(String),
    Text(String),
    Integer(i64),
    Sign(char),
    /// The end of a statement.
    Newline,
    /// The start of an indented block.
    Indent,
    /// The end of an indented block.
    Dedent,
}

/// Splits a file into tokens. The error is the number of the line that cannot be read.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, usize> {
    let mut reader = Reader {
        rest: text,
        line: 1,
        tokens: Vec::new(),
        blocks: vec![0],
        brackets: 0,
    };
    while !reader.rest.is_empty() {
        reader.logical_line()?;
    }
    while reader.blocks.len() > 1 {
        reader.blocks.pop();
        reader.push(Kind::Dedent);
    }
    Ok(reader.tokens)
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
    tokens: Vec<Token>,
    /// The indentation of each open block, in bytes.
    blocks: Vec<usize>,
    brackets: usize,
}

impl Reader<'_> {
    fn push(&mut self, kind: Kind) {
        let line = self.line;
        self.tokens.push(Token { kind, line });
    }

    /// Skips some bytes, and counts the lines in them.
    fn skip(&mut self, n: usize) {
        self.line += self.rest[..n].matches('\n').count();
        self.rest = &self.rest[n..];
    }

    /// Reads one logical line: brackets, triple-quoted strings and backslashes join several lines
    /// of the file to one statement.
    fn logical_line(&mut self) -> Result<(), usize> {
        let spaces = self.rest.len() - self.rest.trim_start_matches([' ', '\t']).len();
        self.skip(spaces);
        if self.rest.starts_with(['\n', '\r', '#']) || self.rest.is_empty() {
            let n = self.rest.find('\n').map_or(self.rest.len(), |at| at + 1);
            self.skip(n);
            return Ok(());
        }
        self.indent(spaces)?;
        while let Some(letter) = self.rest.chars().next() {
            match letter {
                '\n' if self.brackets == 0 => {
                    self.push(Kind::Newline);
                    self.skip(1);
                    return Ok(());
                }
                '\n' | ' ' | '\t' | '\r' => self.skip(1),
                '#' => {
                    let n = self.rest.find('\n').unwrap_or(self.rest.len());
                    self.skip(n);
                }
                '\\' if self.rest.starts_with("\\\n") => self.skip(2),
                '"' | '\'' => self.string(letter, false)?,
                'r' | 'R' if self.rest[1..].starts_with(['"', '\'']) => {
                    self.skip(1);
                    let quote = self.rest.chars().next().unwrap_or('"');
                    self.string(quote, true)?;
                }
                letter if letter.is_ascii_alphabetic() || letter == '_' => {
                    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
                    let n = self.rest.find(|letter| !is_part(letter));
                    let n = n.unwrap_or(self.rest.len());
                    self.push(Kind::Name(self.rest[..n].to_owned()));
                    self.skip(n);
                }
                letter if letter.is_ascii_digit() => {
                    let n = self.rest.find(|letter: char| !letter.is_ascii_digit());
                    let n = n.unwrap_or(self.rest.len());
                    let number = self.rest[..n].parse().map_err(|_| self.line)?;
                    self.push(Kind::Integer(number));
                    self.skip(n);
                }
                letter if "[](){}=+-:,.".contains(letter) => {
                    match letter {
                        '[' | '(' | '{' => {
                            self.brackets += 1;
                            // The parser recurses once per open bracket, so the depth bounds its
                            // stack.
                            if self.brackets > BRACKETS_MAX {
                                return Err(self.line);
                            }
                        }
                        ']' | ')' | '}' => {
                            self.brackets = self.brackets.checked_sub(1).ok_or(self.line)?;
                        }
                        _ => {}
                    }
                    self.push(Kind::Sign(letter));
                    self.skip(1);
                }
                _ => return Err(self.line),
            }
        }
        if self.brackets > 0 {
            return Err(self.line);
        }
        self.push(Kind::Newline);
        Ok(())
    }

    fn indent(&mut self, spaces: usize) -> Result<(), usize> {
        let present = self.blocks.last().copied().unwrap_or_default();
        if spaces > present {
            self.blocks.push(spaces);
            self.push(Kind::Indent);
        }
        while self.blocks.last().is_some_and(|block| *block > spaces) {
            self.blocks.pop();
            self.push(Kind::Dedent);
        }
        match self.blocks.last() {
            Some(block) if *block == spaces => Ok(()),
            _ => Err(self.line),
        }
    }

    /// Reads a string literal. Triple quotes let it span several lines.
    fn string(&mut self, quote: char, is_raw: bool) -> Result<(), usize> {
        let begun = self.line;
        let triple: String = [quote; 3].iter().collect();
        let end = if self.rest.starts_with(&triple) {
            triple
        } else {
            quote.to_string()
        };
        self.skip(end.len());
        let mut text = String::new();
        loop {
            if self.rest.starts_with(&end) {
                self.skip(end.len());
                self.tokens.push(Token {
                    kind: Kind::Text(text),
                    line: begun,
                });
                return Ok(());
            }
            let letter = self.rest.chars().next().ok_or(begun)?;
            if letter == '\n' && end.len() == 1 {
                return Err(begun);
            }
            self.skip(letter.len_utf8());
            if letter != '\\' {
                text.push(letter);
                continue;
            }
            let escaped = self.rest.chars().next().ok_or(begun)?;
            self.skip(escaped.len_utf8());
            match escaped {
                escaped if is_raw => text.extend(['\\', escaped]),
                '\n' => {}
                'n' => text.push('\n'),
                't' => text.push('\t'),
                'r' => text.push('\r'),
                '\\' | '\'' | '"' => text.push(escaped),
                // In Python these escapes stand for other characters, which are not supported.
                'x' | 'u' | 'U' | 'N' | '0'..='7' | 'a' | 'b' | 'f' | 'v' => return Err(begun),
                // As in Python, the backslash of an unknown escape stays.
                other => text.extend(['\\', other]),
            }
        }
    }
}
