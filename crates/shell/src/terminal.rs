//! Text for a terminal: how wide it is, and parts of it in colour.
//!
//! Invariant: of the control characters, only those of [`Painted`] itself reach a terminal. Text
//! that comes from elsewhere is escaped as it is added. Elsewhere than on a terminal the text is
//! exact and has no colours. `output` prints it.

use std::env;

use corvid_json::shown;

use crate::output;

/// The colour of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// The usual one.
    Plain,
    /// Bold: headings.
    Bold,
    /// New values.
    Green,
    /// Values that are gone.
    Red,
    /// Changed rows.
    Yellow,
}

impl Colour {
    /// The sequence that begins the colour.
    fn begin(self) -> &'static str {
        match self {
            Colour::Plain => "",
            Colour::Bold => "\x1b[1m",
            Colour::Green => "\x1b[32m",
            Colour::Red => "\x1b[31m",
            Colour::Yellow => "\x1b[33m",
        }
    }
}

const END: &str = "\x1b[0m";

/// Lines with parts in colour.
#[derive(Debug)]
pub struct Painted {
    text: String,
    is_terminal: bool,
    is_coloured: bool,
    /// The number of columns in each line, for [`Painted::height`].
    widths: Vec<usize>,
    /// The columns of the line that has not ended yet.
    width: usize,
}

impl Painted {
    /// No text yet, for standard output: in colour on a terminal, unless `NO_COLOR` is set or the
    /// terminal is a dumb one.
    #[must_use]
    pub fn for_output() -> Painted {
        let is_terminal = output::is_terminal();
        let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        Painted::new(is_terminal, is_terminal && !is_set("NO_COLOR") && !is_dumb)
    }

    /// No text yet, for a terminal or for another kind of output.
    #[must_use]
    pub fn new(is_terminal: bool, is_coloured: bool) -> Painted {
        Painted {
            text: String::new(),
            is_terminal,
            is_coloured,
            widths: Vec::new(),
            width: 0,
        }
    }

    /// Adds a part of a line. On a terminal its newlines are escaped.
    pub fn part(&mut self, colour: Colour, text: &str) {
        if !self.is_terminal {
            self.text.push_str(text);
            return;
        }
        let text = shown::line(text);
        self.width += width(&text);
        let is_coloured = self.is_coloured && colour != Colour::Plain && !text.is_empty();
        if is_coloured {
            self.text.push_str(colour.begin());
        }
        self.text.push_str(&text);
        if is_coloured {
            self.text.push_str(END);
        }
    }

    /// Ends a line.
    pub fn end_line(&mut self) {
        self.text.push('\n');
        self.widths.push(std::mem::take(&mut self.width));
    }

    /// Adds text with its own newlines.
    pub fn lines(&mut self, text: &str) {
        for line in text.split_inclusive('\n') {
            self.part(Colour::Plain, line.strip_suffix('\n').unwrap_or(line));
            if line.ends_with('\n') {
                self.end_line();
            }
        }
    }

    /// The number of lines on a terminal with this many columns.
    #[must_use]
    pub fn height(&self, columns: usize) -> usize {
        let columns = columns.max(1);
        self.widths
            .iter()
            .map(|width| width.div_ceil(columns).max(1))
            .sum()
    }

    /// The text, as it is to be written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// The columns that a text takes on a terminal: none for marks that combine with the letter before
/// them, two for wide letters of East Asian scripts and for most pictures.
#[must_use]
pub fn width(text: &str) -> usize {
    text.chars().map(letter_width).sum()
}

/// The beginning of a text that takes at most `columns`.
#[must_use]
pub fn cut(text: &str, columns: usize) -> &str {
    let mut width = 0;
    for (position, letter) in text.char_indices() {
        width += letter_width(letter);
        if width > columns {
            return &text[..position];
        }
    }
    text
}

fn letter_width(letter: char) -> usize {
    match letter {
        '\u{300}'..='\u{36f}'
        | '\u{200b}'..='\u{200d}'
        | '\u{20d0}'..='\u{20ff}'
        | '\u{fe00}'..='\u{fe0f}' => 0,
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{303e}'
        | '\u{3041}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f300}'..='\u{1f64f}'
        | '\u{1f900}'..='\u{1f9ff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_control_characters_reach_a_terminal() {
        for (is_terminal, is_coloured, expected) in [
            (true, true, "\x1b[31ma\\u001b[2J\\nb\x1b[0m c\n"),
            (true, false, "a\\u001b[2J\\nb c\n"),
            (false, false, "a\x1b[2J\nb c\n"),
        ] {
            let mut painted = Painted::new(is_terminal, is_coloured);
            painted.part(Colour::Red, "a\x1b[2J\nb");
            painted.part(Colour::Plain, " c");
            painted.end_line();
            assert_eq!(painted.as_str(), expected);
        }
    }

    #[test]
    fn the_height_counts_lines_that_wrap() {
        let mut painted = Painted::new(true, true);
        painted.lines("\n1234567890\n12345678901\n");
        assert_eq!(painted.height(10), 4);
    }

    #[test]
    fn letters_have_the_width_that_they_take() {
        assert_eq!(width("aé"), 2);
        assert_eq!(width("e\u{301}"), 1);
        assert_eq!(width("日本"), 4);
        assert_eq!(cut("日本", 3), "日");
        assert_eq!(cut("abc", 3), "abc");
    }
}
