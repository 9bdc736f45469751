//! The command line of `ovsdb-idlc`: a command and its arguments, with options anywhere.

use corvid_shell::args::{Arg, Args, Item, OptionEntry, Spec};
use corvid_shell::manual::{Manual, Placeholders, help};
use corvid_shell::program;

use crate::manual;

/// The parsed command line.
#[derive(Debug)]
pub struct Options {
    /// The directory that relative file names start from.
    pub directory: Option<String>,
    /// The command and its arguments.
    pub words: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Id {
    Directory,
    Help,
    Version,
}

fn specs() -> [Spec<Id>; 3] {
    [
        Spec::both("directory", 'C', Arg::Required, Id::Directory)
            .means("DIR", "look for files whose names are relative in DIR"),
        Spec::both("help", 'h', Arg::None, Id::Help).means("", "print this and exit"),
        Spec::both("version", 'V', Arg::None, Id::Version).means("", "print the version and exit"),
    ]
}

/// Returns the options with their descriptions, for the manual.
pub(crate) fn entries() -> Vec<OptionEntry> {
    Manual::entries(&specs())
}

impl Options {
    /// Parses a command line, `argv[0]` included. Ends the process after `--help` and `--version`,
    /// and on errors.
    #[must_use]
    pub fn parse(line: &[String]) -> Options {
        let specs = specs();
        let mut args = Args::new(&specs, line);
        let mut options = Options {
            directory: None,
            words: Vec::new(),
        };
        while let Some(item) = args.or_die() {
            match item {
                Item::Positional(word) => options.words.push(word),
                Item::Option(Id::Directory, value) => options.directory = value,
                Item::Option(Id::Help, _) => {
                    program::answer(help::text(&manual::manual(), &Placeholders::of_process()))
                }
                Item::Option(Id::Version, _) => program::answer_version(),
            }
        }
        options
    }
}
