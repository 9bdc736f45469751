//! The command line: options up to the first word that is not an option, then the daemon's command
//! and its arguments.

use corvid_shell::args::{self, Arg, Args, Item, OptionEntry, Spec};
use corvid_shell::manual::{Manual, Placeholders, help};
use corvid_shell::unixctl::Format;
use corvid_shell::vlog::{self, LogOption};
use corvid_shell::{program, timeout};

use crate::appctl::manual;
use crate::standard_options;

/// The daemon, if the command line names none.
const TARGET_DEFAULT: &str = "ovs-vswitchd";

/// The values of the command line.
#[derive(Debug)]
pub(crate) struct Options {
    /// A pidfile's base name, or the absolute path of a socket.
    pub(crate) target: String,
    /// The format of the reply.
    pub(crate) format: Format,
    /// Indent JSON.
    pub(crate) is_pretty: bool,
    /// The daemon's command.
    pub(crate) command: String,
    /// Its arguments.
    pub(crate) args: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Id {
    Target,
    Execute,
    Timeout,
    Format,
    Pretty,
    Help,
    Option,
    Version,
    Log(LogOption),
}

const TARGET: &str = "Target";
const OUTPUT: &str = "Output";

fn specs() -> Vec<Spec<Id>> {
    let mut specs = vec![
        Spec::both("target", 't', Arg::Required, Id::Target)
            .within(TARGET)
            .means(
                "TARGET",
                "base name of a pidfile, or absolute path of a socket (default: ovs-vswitchd)",
            ),
        Spec::both("execute", 'e', Arg::None, Id::Execute)
            .means("", "accepted for compatibility, without effect"),
        standard_options::help(Id::Help),
        Spec::both("format", 'f', Arg::Required, Id::Format)
            .within(OUTPUT)
            .means("FORMAT", "\"text\" (default) or \"json\""),
        Spec::long("pretty", Arg::None, Id::Pretty)
            .within(OUTPUT)
            .means("", "indent JSON"),
        standard_options::listing(Id::Option),
        standard_options::version(Id::Version),
        standard_options::timeout('T', Id::Timeout),
    ];
    specs.extend(vlog::specs(Id::Log));
    specs
}

/// The options for the manual.
pub(crate) fn entries() -> Vec<OptionEntry> {
    Manual::entries(&specs())
}

/// Headings of the options, in order.
pub(crate) const GROUPS: [&str; 3] = [TARGET, OUTPUT, vlog::GROUP];

/// The options parsed so far.
#[derive(Default)]
struct Parsed {
    target: Option<String>,
    execute: bool,
    format: Format,
    is_pretty: bool,
    timeout_s: Option<u32>,
}

impl Options {
    /// Parses a command line, `argv[0]` included, and starts the timer of `--timeout`. Ends the
    /// process on errors, and after `--help` and similar options.
    pub(crate) fn parse(line: &[String]) -> Options {
        let specs = specs();
        let mut args = Args::new(&specs, line).without_permutation();
        let mut parsed = Parsed::default();
        let mut words = Vec::new();
        while let Some(item) = args.or_die() {
            match item {
                Item::Positional(word) => words.push(word),
                Item::Option(id, value) => parsed.apply(id, value, &specs),
            }
        }
        if words.is_empty() {
            program::fatal("at least one non-option argument is required (use --help for help)");
        }
        if parsed.is_pretty && parsed.format != Format::Json {
            program::fatal("--pretty is supported with --format json only");
        }
        timeout::arm(parsed.timeout_s);
        Options {
            target: parsed.target.unwrap_or_else(|| TARGET_DEFAULT.to_owned()),
            format: parsed.format,
            is_pretty: parsed.is_pretty,
            command: words.remove(0),
            args: words,
        }
    }
}

impl Parsed {
    fn apply(&mut self, id: Id, value: Option<String>, specs: &[Spec<Id>]) {
        match id {
            Id::Target if self.target.is_some() => {
                program::fatal("-t or --target may be specified only once")
            }
            Id::Target => self.target = value,
            // The reference misspells this word, and scripts may compare the message.
            Id::Execute if self.execute => {
                program::fatal("-e or --execute may be speciifed only once")
            }
            Id::Execute => self.execute = true,
            Id::Format => {
                let name = value.unwrap_or_default();
                match Format::parse(&name) {
                    Some(format) => self.format = format,
                    None => {
                        program::fatal(format_args!("value {name} on -f or --format is invalid"))
                    }
                }
            }
            Id::Pretty => self.is_pretty = true,
            Id::Timeout => match timeout::parse(&value.unwrap_or_default(), 'T') {
                Ok(seconds) => self.timeout_s = Some(seconds),
                Err(error) => program::fatal(error),
            },
            Id::Help => program::answer(help::text(&manual::manual(), &Placeholders::of_process())),
            Id::Option => program::answer(args::listing(specs)),
            Id::Version => program::answer_version(),
            Id::Log(option) => vlog::apply(option, value.as_deref()),
        }
    }
}
