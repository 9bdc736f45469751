//! The manual of a program: one value, from which `--help`, the manual page and the completions are
//! generated.
//!
//! The options come from the table that parses command lines, the commands from the table that
//! dispatches them; the rest is prose. This is data only: [`help`] renders it for terminals, and
//! the packages' generator renders the other forms. Texts are written as in [`crate::args::spec`];
//! a line that begins with four spaces is shown unchanged.

pub mod help;
pub mod placeholders;
pub mod prose;
pub mod shared;

use crate::args::spec::OTHER;
use crate::args::{Arg, OptionEntry, Spec};

pub use placeholders::Placeholders;

/// The description of a program for its users.
#[derive(Debug, Clone, Default)]
pub struct Manual {
    /// The program's name.
    pub name: &'static str,
    /// The section of the manual: 1 for tools, 8 for daemons.
    pub section: u8,
    /// The program's purpose, in a short phrase.
    pub purpose: &'static str,
    /// The forms of the command line, without the name.
    pub usage: &'static [&'static str],
    /// The description for `--help` and the manual page.
    pub introduction: &'static str,
    /// Further description for the manual page only.
    pub description: &'static str,
    /// The headings of option groups, in order. [`OTHER`] follows automatically.
    pub groups: Vec<&'static str>,
    /// The options, in the order of their table.
    pub options: Vec<OptionEntry>,
    /// The commands, by topic.
    pub commands: Vec<Chapter>,
    /// Arguments that several options or commands share; part of `--help`.
    pub notes: Vec<Chapter>,
    /// The rest of the manual page.
    pub chapters: Vec<Chapter>,
}

/// Prose, followed by a list of terms with explanations.
#[derive(Debug, Clone, Default)]
pub struct Chapter {
    /// The heading.
    pub title: &'static str,
    /// Paragraphs.
    pub text: &'static str,
    /// The list.
    pub entries: Vec<Entry>,
}

/// A term and its meaning.
#[derive(Debug, Clone, Default)]
pub struct Entry {
    /// A command with its arguments, a file, a variable, ...
    pub term: String,
    /// One line or a paragraph, without a full stop if it is a phrase.
    pub meaning: &'static str,
    /// Further text for the manual page.
    pub detail: &'static str,
}

impl Chapter {
    /// A chapter of prose only.
    #[must_use]
    pub const fn prose(title: &'static str, text: &'static str) -> Chapter {
        Chapter {
            title,
            text,
            entries: Vec::new(),
        }
    }

    /// A chapter that lists terms and meanings.
    #[must_use]
    pub fn list(title: &'static str, entries: &[(&str, &'static str)]) -> Chapter {
        let entry = |&(term, meaning): &(&str, &'static str)| Entry {
            term: term.to_owned(),
            meaning,
            detail: "",
        };
        Chapter {
            title,
            text: "",
            entries: entries.iter().map(entry).collect(),
        }
    }

    /// The same chapter with paragraphs before the list.
    #[must_use]
    pub fn with_text(mut self, text: &'static str) -> Chapter {
        self.text = text;
        self
    }
}

impl Manual {
    /// The entries of a table of options.
    #[must_use]
    pub fn entries<I: Copy>(specs: &[Spec<I>]) -> Vec<OptionEntry> {
        specs.iter().map(Spec::entry).collect()
    }

    /// The headings of option groups with their options, in order, without empty groups.
    pub fn option_groups(&self) -> impl Iterator<Item = (&'static str, Vec<&OptionEntry>)> {
        let titles = self.groups.iter().copied().chain([OTHER]);
        titles
            .map(|title| {
                let options = self.options.iter().filter(|option| option.group == title);
                (title, options.collect::<Vec<_>>())
            })
            .filter(|(_, options)| !options.is_empty())
    }

    /// Faults: missing meanings, argument names or headings. Tests of the programs expect none.
    #[must_use]
    pub fn complaints(&self) -> Vec<String> {
        let mut complaints = Vec::new();
        for option in &self.options {
            let spelled = option.spellings().join(", ");
            if option.meaning.is_empty() {
                complaints.push(format!("{spelled}: say what it means"));
            }
            if (option.arg == Arg::None) != option.value.is_empty() {
                complaints.push(format!("{spelled}: name its argument, if it takes one"));
            }
            if option.group != OTHER && !self.groups.contains(&option.group) {
                complaints.push(format!("{spelled}: no heading \"{}\"", option.group));
            }
        }
        let chapters = self.commands.iter().chain(&self.notes);
        for entry in chapters.flat_map(|chapter| &chapter.entries) {
            if entry.meaning.is_empty() {
                complaints.push(format!("{}: say what it means", entry.term));
            }
        }
        complaints
    }
}
