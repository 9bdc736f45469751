//! Command lines, parsed like GNU `getopt_long` does (docs/spec/cli.md 0.1): abbreviations,
//! clusters, permutation, the same error texts.
//!
//! The reader delivers options and positionals from left to right, and the program acts on each at
//! once. In `--log-file -vconsole:off`, for example, the first option's line is still shown,
//! although the second would have hidden it. No general library is used: it would have its own
//! error texts, and scripts compare them. [`spec`] holds the table of options, and explains how to
//! add one.
//!
//! ```
//! use corvid_shell::args::{Arg, Args, Item, Spec};
//! #[derive(Clone, Copy, PartialEq, Debug)]
//! enum Id { Remote, Verbose }
//! let specs = [Spec::long("remote", Arg::Required, Id::Remote), Spec::both("verbose", 'v', Arg::Optional, Id::Verbose)];
//! let line = ["prog", "--rem=ptcp:", "db", "-vraft"].map(String::from);
//! let items: Vec<_> = Args::new(&specs, &line).collect::<Result<_, _>>().unwrap();
//! assert_eq!(items, [
//!     Item::Option(Id::Remote, Some("ptcp:".into())),
//!     Item::Positional("db".into()),
//!     Item::Option(Id::Verbose, Some("raft".into())),
//! ]);
//! ```

pub mod spec;

use std::collections::VecDeque;

use corvid_net::os_name;

pub use spec::{OptionEntry, Spec};

/// Whether an option takes an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arg {
    /// Never.
    None,
    /// Always: attached (`--x=V`, `-xV`) or the next word.
    Required,
    /// Only when attached.
    Optional,
}

/// An item of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item<I> {
    /// An option with its argument.
    Option(I, Option<String>),
    /// Anything else.
    Positional(String),
}

/// A fault of a command line. The text lacks the program's name: print it as `argv[0]: TEXT` and
/// exit with status 1, as [`Args::or_die`] does.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each variant is its message")]
pub enum ArgError {
    #[error("unrecognized option '{0}'")]
    Unrecognized(String),
    #[error("option '{option}' is ambiguous; possibilities:{}", possibilities.iter().map(|name| format!(" '--{name}'")).collect::<String>())]
    Ambiguous {
        option: String,
        possibilities: Vec<&'static str>,
    },
    #[error("option '--{0}' doesn't allow an argument")]
    NoArgument(&'static str),
    #[error("option '--{0}' requires an argument")]
    LongRequires(&'static str),
    #[error("option '--{option}' has an empty argument: expected {expected}")]
    Empty {
        option: &'static str,
        expected: &'static str,
    },
    #[error("invalid option -- '{0}'")]
    Invalid(char),
    #[error("option requires an argument -- '{0}'")]
    ShortRequires(char),
}

/// The items of a command line, from left to right. After an error, iteration continues with the
/// rest of the line; programs stop there.
#[derive(Debug)]
pub struct Args<'a, I> {
    specs: &'a [Spec<I>],
    program: &'a str,
    words: VecDeque<&'a str>,
    /// The unread letters of a cluster of short options.
    cluster: &'a str,
    permutes: bool,
    only_positionals: bool,
    takes_ages: bool,
}

impl<'a, I: Copy + PartialEq> Args<'a, I> {
    /// Parses a command line, `argv[0]` included. Options may follow positionals unless
    /// `POSIXLY_CORRECT` is set.
    #[must_use]
    pub fn new(specs: &'a [Spec<I>], line: &'a [String]) -> Args<'a, I> {
        let (program, words) = line
            .split_first()
            .map_or(("", line), |(program, words)| (program.as_str(), words));
        Args {
            specs,
            program,
            words: words.iter().map(String::as_str).collect(),
            cluster: "",
            permutes: std::env::var_os("POSIXLY_CORRECT").is_none(),
            only_positionals: false,
            takes_ages: false,
        }
    }

    /// Stops parsing options at the first positional: the words after it belong to another program.
    #[must_use]
    pub fn without_permutation(mut self) -> Args<'a, I> {
        self.permutes = false;
        self
    }

    /// From here on a dash and a digit begin a positional, such as the age `-2h`, unless the digit
    /// is an option. Without this such a word is an invalid option, as with the reference.
    pub fn take_ages(&mut self) {
        self.takes_ages = true;
    }

    fn is_age(&self, word: &str) -> bool {
        let first = word.strip_prefix('-').and_then(|age| age.chars().next());
        self.takes_ages
            && first.is_some_and(|digit| {
                let is_option = |spec: &Spec<I>| spec.entry.short == Some(digit);
                digit.is_ascii_digit() && !self.specs.iter().any(is_option)
            })
    }

    /// The next item. A bad command line ends the process with a message and status 1.
    pub fn or_die(&mut self) -> Option<Item<I>> {
        self.next()?.map_or_else(
            |error| {
                crate::output::error_line(format_args!("{}: {error}", self.program));
                crate::program::exit(1)
            },
            Some,
        )
    }

    fn read_long(&mut self, text: &'a str) -> Result<Item<I>, ArgError> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let (long, spec) = self.find_long(name, text)?;
        let value = match (spec.entry.arg, value) {
            (Arg::None, Some(_)) => return Err(ArgError::NoArgument(long)),
            (Arg::Required, None) => {
                Some(self.words.pop_front().ok_or(ArgError::LongRequires(long))?)
            }
            (_, value) => value,
        };
        item(&spec, value)
    }

    /// The option with this name, else the only option that begins with it.
    fn find_long(&self, name: &str, text: &str) -> Result<(&'static str, Spec<I>), ArgError> {
        let named = || {
            self.specs
                .iter()
                .filter_map(|spec| spec.entry.long.map(|long| (long, *spec)))
        };
        if let Some(exact) = named().find(|(long, _)| *long == name) {
            return Ok(exact);
        }
        let candidates: Vec<(&'static str, Spec<I>)> = named()
            .filter(|(long, spec)| !spec.in_full && long.starts_with(name))
            .collect();
        match candidates.first() {
            None => Err(ArgError::Unrecognized(format!("--{text}"))),
            // Several names of one option are not ambiguous.
            Some(&(long, first))
                if candidates
                    .iter()
                    .all(|(_, spec)| spec.id == first.id && spec.entry.arg == first.entry.arg) =>
            {
                Ok((long, first))
            }
            Some(_) => Err(ArgError::Ambiguous {
                option: format!("--{text}"),
                possibilities: candidates.into_iter().map(|(long, _)| long).collect(),
            }),
        }
    }

    fn read_short(&mut self) -> Result<Item<I>, ArgError> {
        let mut letters = self.cluster.chars();
        let Some(letter) = letters.next() else {
            return Err(ArgError::Invalid('-'));
        };
        let rest = letters.as_str();
        self.cluster = rest;
        let spec = *self
            .specs
            .iter()
            .find(|spec| spec.entry.short == Some(letter))
            .ok_or(ArgError::Invalid(letter))?;
        let value = match spec.entry.arg {
            Arg::None => None,
            Arg::Optional | Arg::Required if !rest.is_empty() => {
                self.cluster = "";
                Some(rest)
            }
            Arg::Optional => None,
            Arg::Required => Some(
                self.words
                    .pop_front()
                    .ok_or(ArgError::ShortRequires(letter))?,
            ),
        };
        item(&spec, value)
    }
}

/// An option with its argument, unless that is empty and must not be.
fn item<I: Copy>(spec: &Spec<I>, value: Option<&str>) -> Result<Item<I>, ArgError> {
    let is_empty = value.is_some_and(|value| value.trim().is_empty());
    if is_empty && spec.not_empty {
        return Err(ArgError::Empty {
            option: spec.entry.long.unwrap_or_default(),
            expected: spec.entry.value,
        });
    }
    Ok(Item::Option(spec.id, value.map(str::to_owned)))
}

impl<I: Copy + PartialEq> Iterator for Args<'_, I> {
    type Item = Result<Item<I>, ArgError>;

    fn next(&mut self) -> Option<Self::Item> {
        if !self.cluster.is_empty() {
            return Some(self.read_short());
        }
        let mut word = self.words.pop_front()?;
        if !self.only_positionals && word == "--" {
            self.only_positionals = true;
            word = self.words.pop_front()?;
        }
        let is_positional = !word.starts_with('-') || word == "-" || self.is_age(word);
        if self.only_positionals || is_positional {
            self.only_positionals |= !self.permutes;
            return Some(Ok(Item::Positional(word.to_owned())));
        }
        if let Some(text) = word.strip_prefix("--") {
            return Some(self.read_long(text));
        }
        self.cluster = &word[1..];
        Some(self.read_short())
    }
}

/// One line per spelling of each option, as `--option` prints them for completion scripts.
#[must_use]
pub fn listing<I>(specs: &[Spec<I>]) -> String {
    let mut out = String::new();
    for OptionEntry {
        long, short, arg, ..
    } in specs.iter().map(|spec| spec.entry)
    {
        let (attached, separate) = match arg {
            Arg::None => ("", ""),
            Arg::Required => ("=ARG", "ARG"),
            Arg::Optional => ("=[ARG]", "[ARG]"),
        };
        if let Some(long) = long {
            out.push_str(&format!("--{long}{attached}\n"));
        }
        if let Some(letter) = short {
            out.push_str(&format!("-{letter} {separate}\n"));
        }
    }
    out
}

/// The command line of this process. Words need not be UTF-8; see [`os_name`].
#[must_use]
pub fn from_env() -> Vec<String> {
    std::env::args_os()
        .map(|word| os_name::text(&word))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPECS: [Spec<u8>; 9] = [
        Spec::long("remote", Arg::Required, 0),
        Spec::long("record", Arg::Optional, 1),
        Spec::long("replay", Arg::Optional, 2),
        Spec::long("pidfile", Arg::Optional, 3),
        Spec::both("verbose", 'v', Arg::Optional, 4),
        Spec::both("format", 'f', Arg::Required, 5),
        Spec::both("help", 'h', Arg::None, 6),
        Spec::long("verbosity", Arg::Optional, 4),
        Spec::long("pidfile-mode", Arg::Required, 7).in_full(),
    ];

    fn read(words: &str, permutes: bool) -> Vec<String> {
        let line: Vec<String> = std::iter::once("prog")
            .chain(words.split_whitespace())
            .map(String::from)
            .collect();
        let mut args = Args::new(&SPECS, &line);
        args.permutes = permutes;
        let show = |item: Result<Item<u8>, ArgError>| match item {
            Ok(Item::Option(id, None)) => format!("#{id}"),
            Ok(Item::Option(id, Some(value))) => format!("#{id}={value}"),
            Ok(Item::Positional(word)) => word,
            Err(error) => format!("prog: {error}"),
        };
        args.map(show).collect()
    }

    #[test]
    fn arguments_are_attached_or_follow() {
        assert_eq!(
            read("--remote=a --remote b --rem c -fx -f y", true),
            ["#0=a", "#0=b", "#0=c", "#5=x", "#5=y"]
        );
        assert_eq!(
            read("--pidfile F -vraft -v --verbose=x --verb", true),
            ["#3", "F", "#4=raft", "#4", "#4=x", "#4"]
        );
        assert_eq!(read("-hvx -hf z", true), ["#6", "#4=x", "#6", "#5=z"]);
    }

    #[test]
    fn an_option_of_our_own_has_no_abbreviation() {
        assert_eq!(
            read("--pid=F --pidfile-mode=0 --pidfile-m", true),
            ["#3=F", "#7=0", "prog: unrecognized option '--pidfile-m'"]
        );
    }

    #[test]
    fn an_argument_that_must_not_be_empty_is_named() {
        let specs = [Spec::both("host", 'H', Arg::Required, 1)
            .means("NAME", "serve NAME")
            .not_empty()];
        let first = |words: &[&str]| {
            let line: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            Args::new(&specs, &line).next().expect("an item")
        };
        for words in [
            &["prog", "--host="][..],
            &["prog", "--host", ""],
            &["prog", "--host= "],
            &["prog", "-H", ""],
        ] {
            let error = first(words).expect_err("an empty argument");
            assert_eq!(
                error.to_string(),
                "option '--host' has an empty argument: expected NAME"
            );
        }
        assert!(first(&["prog", "--host=x"]).is_ok());
    }

    #[test]
    fn positionals_mix_with_options_unless_posixly_correct() {
        assert_eq!(
            read("a -h b - -- -h --help", true),
            ["a", "#6", "b", "-", "-h", "--help"]
        );
        assert_eq!(
            read("-h a -h -- --x", false),
            ["#6", "a", "-h", "--", "--x"]
        );
        assert_eq!(read("-- -h", false), ["-h"]);
    }

    #[test]
    fn an_age_is_a_positional_where_the_program_expects_one() {
        let specs = [
            Spec::both("format", 'f', Arg::Required, 0),
            Spec::short('4', Arg::None, 1),
        ];
        let line = ["prog", "-1w", "diff", "-1w", "-4", "-f", "-2h"].map(String::from);
        let mut args = Args::new(&specs, &line);
        assert_eq!(args.next(), Some(Err(ArgError::Invalid('1'))));
        assert_eq!(args.next(), Some(Err(ArgError::Invalid('w'))));
        assert_eq!(args.next(), Some(Ok(Item::Positional("diff".to_owned()))));
        args.take_ages();
        assert_eq!(args.next(), Some(Ok(Item::Positional("-1w".to_owned()))));
        assert_eq!(args.next(), Some(Ok(Item::Option(1, None))));
        let value = Some("-2h".to_owned());
        assert_eq!(args.next(), Some(Ok(Item::Option(0, value))));
        assert_eq!(args.next(), None);
    }

    #[test]
    fn errors_are_worded_as_the_c_library_does() {
        let text = |words| read(words, true).remove(0);
        assert_eq!(
            text("--re=x"),
            "prog: option '--re=x' is ambiguous; possibilities: '--remote' '--record' '--replay'"
        );
        assert_eq!(text("--bogus=1"), "prog: unrecognized option '--bogus=1'");
        assert_eq!(
            text("--help=1"),
            "prog: option '--help' doesn't allow an argument"
        );
        assert_eq!(
            text("--remote"),
            "prog: option '--remote' requires an argument"
        );
        assert_eq!(text("-f"), "prog: option requires an argument -- 'f'");
        assert_eq!(text("-q"), "prog: invalid option -- 'q'");
    }
}
