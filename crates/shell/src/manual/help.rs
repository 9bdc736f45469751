//! `--help`: a manual's head, commands, notes and options as lines for a terminal.
//!
//! Terms are on the left, meanings wrapped in a column of their own. Scripts search the text for
//! option names (docs/spec/cli.md 1.1), which are never broken.

use super::prose::{Block, blocks};
use super::{Manual, Placeholders};

/// The column where meanings begin.
const COLUMN: usize = 26;
/// The maximum width of a line, unless a single word is longer.
const WIDTH: usize = 80;

/// The whole text of `--help`.
#[must_use]
pub fn text(manual: &Manual, placeholders: &Placeholders) -> String {
    let program = &placeholders.program;
    let mut page = Page {
        out: format!("{program}: {}\n", manual.purpose),
        placeholders,
    };
    for (place, usage) in manual.usage.iter().enumerate() {
        let label = if place == 0 { "usage:" } else { "      " };
        page.out.push_str(&format!("{label} {program} {usage}\n"));
    }
    page.prose(manual.introduction);
    for chapter in manual.commands.iter().chain(&manual.notes) {
        page.heading(chapter.title);
        for entry in &chapter.entries {
            page.item(&entry.term, entry.meaning);
        }
        page.prose(chapter.text);
    }
    for (title, options) in manual.option_groups() {
        page.heading(title);
        for option in options {
            page.item(&option.heading(), option.meaning);
        }
    }
    page.out
}

/// The text written so far.
struct Page<'a> {
    out: String,
    placeholders: &'a Placeholders,
}

impl Page<'_> {
    fn heading(&mut self, title: &str) {
        self.out.push_str(&format!("\n{title}:\n"));
    }

    fn prose(&mut self, text: &str) {
        for block in blocks(&self.placeholders.fill(text)) {
            match block {
                Block::Paragraph(words) => self.wrap(&words, 0),
                Block::Verbatim(lines) => {
                    for line in lines.lines() {
                        self.out.push_str(&format!("    {line}\n"));
                    }
                }
            }
        }
    }

    /// Writes `  TERM    MEANING`, or the meaning on its own lines if the term is long.
    fn item(&mut self, term: &str, meaning: &str) {
        let head = format!("  {term}");
        if head.len() + 2 <= COLUMN {
            self.out.push_str(&format!("{head:COLUMN$}"));
        } else {
            self.out.push_str(&format!("{head}\n{:COLUMN$}", ""));
        }
        let meaning = self.placeholders.fill(meaning);
        self.wrap(&meaning, COLUMN);
    }

    /// Writes the words of one paragraph. The cursor is at `column`, where further lines begin too.
    fn wrap(&mut self, text: &str, column: usize) {
        let mut used = column;
        for word in text.split_whitespace() {
            let word = word.replace('`', "");
            if used > column {
                if used + 1 + word.len() >= WIDTH {
                    self.out.push_str(&format!("\n{:column$}", ""));
                    used = column;
                } else {
                    self.out.push(' ');
                    used += 1;
                }
            }
            used += word.len();
            self.out.push_str(&word);
        }
        self.out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Arg, Spec};
    use crate::manual::Chapter;

    #[test]
    fn a_manual_becomes_columns() {
        let specs = [
            Spec::both("format", 'f', Arg::Required, ())
                .means(
                    "FORMAT",
                    "how to print, in so many words that they take two lines",
                )
                .within("Output"),
            Spec::long("pidfile", Arg::Optional, ())
                .means("FILE", "default: {rundir}/{program}.pid"),
            Spec::both("help", 'h', Arg::None, ()).means("", "print this"),
        ];
        let manual = Manual {
            purpose: "does it",
            usage: &["[OPTIONS] COMMAND", "--help"],
            introduction: "Goes on\nand on.",
            groups: vec!["Output"],
            options: Manual::entries(&specs),
            commands: vec![Chapter::list(
                "Commands",
                &[("a-command-that-is-long ARG", "runs `it`")],
            )],
            ..Manual::default()
        };
        assert_eq!(manual.complaints(), [""; 0]);
        let placeholders = Placeholders {
            program: "prog".into(),
            run: "/run".into(),
            log: String::new(),
            db: String::new(),
            pkgdata: String::new(),
        };
        let expected = "\
prog: does it
usage: prog [OPTIONS] COMMAND
       prog --help
Goes on and on.

Commands:
  a-command-that-is-long ARG
                          runs it

Output:
  -f, --format=FORMAT     how to print, in so many words that they take two
                          lines

Other options:
  --pidfile[=FILE]        default: /run/prog.pid
  -h, --help              print this
";
        assert_eq!(text(&manual, &placeholders), expected);
    }
}
