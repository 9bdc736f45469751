//! What a program tells people of itself: one value, from which `--help`, the manual page and the completions are made.
//!
//! The options come from the table that command lines are read by, the commands from the table that finds them, the rest is
//! prose. It is data only; [`help`] renders it for terminals, and the generator of the packages does so for everything else. Texts are
//! written as [`crate::args::spec`] says; a line that begins with four spaces is shown as it is.

pub mod help;
pub mod places;
pub mod prose;
pub mod shared;

use crate::args::spec::OTHER;
use crate::args::{Arg, OptionEntry, Spec};

pub use places::Places;

/// A program, as its users see it.
#[derive(Debug, Clone, Default)]
pub struct Manual {
    /// What it is called.
    pub name: &'static str,
    /// Section of the manual: 1 for tools, 8 for daemons.
    pub section: u8,
    /// What it is, in some words.
    pub purpose: &'static str,
    /// What follows the name on command lines, one each.
    pub usage: &'static [&'static str],
    /// What it does, for `--help` and the manual.
    pub introduction: &'static str,
    /// What only the manual says of that.
    pub description: &'static str,
    /// Headings of options, in order. [`OTHER`] follows by itself.
    pub groups: Vec<&'static str>,
    /// Its options, in the order of their table.
    pub options: Vec<OptionEntry>,
    /// What its first word can be, by topic.
    pub commands: Vec<Chapter>,
    /// What arguments mean that several options or commands take; part of `--help`.
    pub notes: Vec<Chapter>,
    /// The rest of the manual page.
    pub chapters: Vec<Chapter>,
}

/// Prose, then a list of things that are explained.
#[derive(Debug, Clone, Default)]
pub struct Chapter {
    /// Its heading.
    pub title: &'static str,
    /// Paragraphs.
    pub text: &'static str,
    /// The list.
    pub entries: Vec<Entry>,
}

/// Something and what it means.
#[derive(Debug, Clone, Default)]
pub struct Entry {
    /// A command with its arguments, a file, a variable, ...
    pub term: String,
    /// One line or a paragraph, without a full stop if it is a phrase.
    pub meaning: &'static str,
    /// What the manual page says beyond that.
    pub detail: &'static str,
}

impl Chapter {
    /// Prose alone.
    #[must_use]
    pub const fn prose(title: &'static str, text: &'static str) -> Chapter {
        Chapter {
            title,
            text,
            entries: Vec::new(),
        }
    }

    /// A list of terms and meanings.
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

    /// The same with paragraphs before the list.
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

    /// Headings of options with what stands under them, in order, empty ones left out.
    pub fn option_groups(&self) -> impl Iterator<Item = (&'static str, Vec<&OptionEntry>)> {
        let titles = self.groups.iter().copied().chain([OTHER]);
        titles
            .map(|title| {
                let options = self.options.iter().filter(|option| option.group == title);
                (title, options.collect::<Vec<_>>())
            })
            .filter(|(_, options)| !options.is_empty())
    }

    /// What is missing: meanings, names of arguments, headings. Tests of the programs expect nothing.
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
