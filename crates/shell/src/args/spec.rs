//! The table of options: spelling, argument and description of each.
//!
//! One table serves the reader of command lines, `--help`, the manual pages and the completions of shells, so all of them have
//! the same options. [`crate::manual::Manual::complaints`] finds options without a description; each program tests that there is none. To add one:
//!
//! ```
//! use corvid_shell::args::{Arg, Spec};
//! # #[derive(Clone, Copy)] enum Id { Remote, Pidfile }
//! let specs = [
//!     // Without a group: listed among "Other options".
//!     Spec::long("remote", Arg::Required, Id::Remote).means("REMOTE", "connect or listen to REMOTE"),
//!     // A group of options, and a paragraph that only the manual page prints.
//!     Spec::long("pidfile", Arg::Optional, Id::Pidfile)
//!         .means("FILE", "create a pidfile (default: {rundir}/{program}.pid)")
//!         .within("Daemon options")
//!         .more("The file is locked for as long as the process lives."),
//! ];
//! ```
//!
//! Texts may name `{program}` and the directories `{rundir}`, `{logdir}`, `{dbdir}`, `{pkgdatadir}`; words between backquotes are
//! shown as typed text. Programs and their groups are not known here.

use super::Arg;

/// The group of options without one.
pub const OTHER: &str = "Other options";

/// The description of an option.
#[derive(Debug, Clone, Copy)]
pub struct OptionEntry {
    /// Without the dashes.
    pub long: Option<&'static str>,
    /// Its letter.
    pub short: Option<char>,
    /// Whether it takes an argument.
    pub arg: Arg,
    /// The name of the argument, in capitals; empty without one.
    pub value: &'static str,
    /// One line, without a full stop.
    pub meaning: &'static str,
    /// Further paragraphs of the manual page, or nothing.
    pub detail: &'static str,
    /// Its heading.
    pub group: &'static str,
}

/// One option of a program, recognised as `I`.
#[derive(Debug, Clone, Copy)]
pub struct Spec<I> {
    pub(super) entry: OptionEntry,
    /// Its name must be spelled in full.
    pub(super) in_full: bool,
    pub(super) id: I,
}

impl<I: Copy> Spec<I> {
    /// `--long`
    #[must_use]
    pub const fn long(long: &'static str, arg: Arg, id: I) -> Spec<I> {
        Spec::new(Some(long), None, arg, id)
    }

    /// `--long` and `-s`
    #[must_use]
    pub const fn both(long: &'static str, short: char, arg: Arg, id: I) -> Spec<I> {
        Spec::new(Some(long), Some(short), arg, id)
    }

    /// `-s`
    #[must_use]
    pub const fn short(short: char, arg: Arg, id: I) -> Spec<I> {
        Spec::new(None, Some(short), arg, id)
    }

    const fn new(long: Option<&'static str>, short: Option<char>, arg: Arg, id: I) -> Spec<I> {
        let entry = OptionEntry {
            long,
            short,
            arg,
            value: "",
            meaning: "",
            detail: "",
            group: OTHER,
        };
        Spec {
            entry,
            in_full: false,
            id,
        }
    }

    /// The same option, without abbreviations: an option that the reference lacks must not make an abbreviation in a script ambiguous.
    #[must_use]
    pub const fn in_full(mut self) -> Spec<I> {
        self.in_full = true;
        self
    }

    /// Sets the name of its argument (empty without one) and its description of one line.
    #[must_use]
    pub const fn means(mut self, value: &'static str, meaning: &'static str) -> Spec<I> {
        self.entry.value = value;
        self.entry.meaning = meaning;
        self
    }

    /// Sets further paragraphs of the manual page, with empty lines between them.
    #[must_use]
    pub const fn more(mut self, detail: &'static str) -> Spec<I> {
        self.entry.detail = detail;
        self
    }

    /// Puts it under a heading, which the program's manual must list.
    #[must_use]
    pub const fn within(mut self, group: &'static str) -> Spec<I> {
        self.entry.group = group;
        self
    }

    /// Its description.
    #[must_use]
    pub const fn entry(&self) -> OptionEntry {
        self.entry
    }
}

impl OptionEntry {
    /// Each spelling, with its argument: `-f FORMAT`, `--format=FORMAT`.
    #[must_use]
    pub fn spellings(&self) -> Vec<String> {
        let (after_letter, after_name) = match self.arg {
            Arg::None => (String::new(), String::new()),
            Arg::Required => (format!(" {}", self.value), format!("={}", self.value)),
            Arg::Optional => (format!("[{}]", self.value), format!("[={}]", self.value)),
        };
        let letter = self.short.map(|letter| format!("-{letter}{after_letter}"));
        let name = self.long.map(|name| format!("--{name}{after_name}"));
        letter.into_iter().chain(name).collect()
    }

    /// The spellings in a line, with the argument once where possible: `-f, --format=FORMAT`.
    #[must_use]
    pub fn heading(&self) -> String {
        match (self.spellings().as_slice(), self.short, self.arg) {
            ([_, name], Some(letter), Arg::Required) => format!("-{letter}, {name}"),
            (spellings, ..) => spellings.join(", "),
        }
    }
}
