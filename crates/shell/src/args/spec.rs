//! The table of options: spelling, argument and description of each.
//!
//! One table serves the parser of command lines, `--help`, the manual pages and the shell
//! completions, so all of them have the same options. [`crate::manual::Manual::complaints`] finds
//! options without a description; each program tests that there are none. To add an option:
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
//! Texts may name `{program}` and the directories `{rundir}`, `{logdir}`, `{dbdir}`,
//! `{pkgdatadir}`; words between backquotes are shown as typed text. This file knows neither
//! programs nor their groups.

use super::Arg;

/// The group of options that name no group.
pub const OTHER: &str = "Other options";

/// The description of an option.
#[derive(Debug, Clone, Copy)]
pub struct OptionEntry {
    /// The long name, without the dashes.
    pub long: Option<&'static str>,
    /// The letter of the short form.
    pub short: Option<char>,
    /// Whether the option takes an argument.
    pub arg: Arg,
    /// The name of the argument, in capitals; empty if there is none.
    pub value: &'static str,
    /// The description in one line, without a full stop.
    pub meaning: &'static str,
    /// Further paragraphs for the manual page; may be empty.
    pub detail: &'static str,
    /// The heading of the option's group.
    pub group: &'static str,
}

/// One option of a program, identified by an `I`.
#[derive(Debug, Clone, Copy)]
pub struct Spec<I> {
    pub(super) entry: OptionEntry,
    /// The name must be spelled in full.
    pub(super) in_full: bool,
    /// An empty argument is an error.
    pub(super) not_empty: bool,
    pub(super) id: I,
}

impl<I: Copy> Spec<I> {
    /// An option `--long`.
    #[must_use]
    pub const fn long(long: &'static str, arg: Arg, id: I) -> Spec<I> {
        Spec::new(Some(long), None, arg, id)
    }

    /// An option `--long` or `-s`.
    #[must_use]
    pub const fn both(long: &'static str, short: char, arg: Arg, id: I) -> Spec<I> {
        Spec::new(Some(long), Some(short), arg, id)
    }

    /// An option `-s`.
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
            not_empty: false,
            id,
        }
    }

    /// The same option, without abbreviations: an option that the reference lacks must not make an
    /// abbreviation in a script ambiguous.
    #[must_use]
    pub const fn in_full(mut self) -> Spec<I> {
        self.in_full = true;
        self
    }

    /// The same option, whose argument must not be empty or blank. Programs of the reference take
    /// such an argument for a name that does not exist, or as if it were absent.
    #[must_use]
    pub const fn not_empty(mut self) -> Spec<I> {
        self.not_empty = true;
        self
    }

    /// Sets the name of the argument (empty if there is none) and the description in one line.
    #[must_use]
    pub const fn means(mut self, value: &'static str, meaning: &'static str) -> Spec<I> {
        self.entry.value = value;
        self.entry.meaning = meaning;
        self
    }

    /// Sets further paragraphs for the manual page, separated by empty lines.
    #[must_use]
    pub const fn more(mut self, detail: &'static str) -> Spec<I> {
        self.entry.detail = detail;
        self
    }

    /// Puts the option under a heading, which the program's manual must list.
    #[must_use]
    pub const fn within(mut self, group: &'static str) -> Spec<I> {
        self.entry.group = group;
        self
    }

    /// The option's description.
    #[must_use]
    pub const fn entry(&self) -> OptionEntry {
        self.entry
    }
}

impl OptionEntry {
    /// Each spelling with its argument: `-f FORMAT`, `--format=FORMAT`.
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

    /// The spellings on one line, with the argument once where possible: `-f, --format=FORMAT`.
    #[must_use]
    pub fn heading(&self) -> String {
        match (self.spellings().as_slice(), self.short, self.arg) {
            ([_, name], Some(letter), Arg::Required) => format!("-{letter}, {name}"),
            (spellings, ..) => spellings.join(", "),
        }
    }
}
