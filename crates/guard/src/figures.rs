//! The checked-in figures: a text with one line for each path, and a comment with the versions of
//! the programs with which the instructions were counted.
//!
//! ```text
//! # rustc 1.95.0, valgrind-3.19.0
//! frame                 1234
//! ```

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::error::Error;

/// The number of instructions of each path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    /// The versions of the programs with which the instructions were counted.
    pub(crate) tools: String,
    /// The name and the number of instructions of each path, in the order of the paths.
    pub(crate) counts: Vec<(String, u64)>,
}

/// The beginning of a comment.
const COMMENT: &str = "# ";

impl Figures {
    /// Returns the figure of a path.
    pub(crate) fn of(&self, name: &str) -> Option<u64> {
        let found = self.counts.iter().find(|(path, _)| path == name);
        found.map(|(_, count)| *count)
    }

    pub(crate) fn read(file: &Path) -> Result<Figures, Error> {
        let text = fs::read_to_string(file)?;
        Figures::parse(&text).map_err(|line| Error::Figures {
            file: file.to_owned(),
            line,
        })
    }

    pub(crate) fn write(&self, file: &Path) -> Result<(), Error> {
        Ok(fs::write(file, self.text())?)
    }

    /// Parses a file. The error is the number of the wrong line.
    fn parse(text: &str) -> Result<Figures, usize> {
        let mut figures = Figures::default();
        for (number, line) in text.lines().enumerate() {
            if let Some(comment) = line.strip_prefix(COMMENT) {
                figures.tools = comment.to_owned();
                continue;
            }
            let (name, count) = line.split_once(' ').ok_or(number + 1)?;
            let count = count.trim().parse().map_err(|_| number + 1)?;
            figures.counts.push((name.to_owned(), count));
        }
        Ok(figures)
    }

    pub(crate) fn text(&self) -> String {
        let mut text = format!("{COMMENT}{}\n", self.tools);
        for (name, count) in &self.counts {
            let _ = writeln!(text, "{name:16} {count:>10}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_figures_can_be_read() {
        let figures = Figures {
            tools: "a 1, b 2".into(),
            counts: vec![("one".into(), 1), ("another-path-long".into(), 12_345)],
        };
        assert_eq!(Figures::parse(&figures.text()), Ok(figures));
        assert_eq!(Figures::parse("# x\none 1\ntwo\n"), Err(3));
    }
}
