//! The command line: options, which take effect from left to right, then the command and its
//! arguments.

use corvid_data::Uuid;
use corvid_log::cluster::{ELECTION_TIMER_MAX_MS, ELECTION_TIMER_MIN_MS};
use corvid_shell::args::{self, Arg, Args, Item, OptionEntry, Spec};
use corvid_shell::manual::Manual;
use corvid_shell::{program, vlog};

use crate::failure::Failure;
use crate::history::{self, HistoryOption, HistoryOptions};
use crate::standard_options;
use crate::tool::manual;

/// The values of the command line.
#[derive(Debug, Default)]
pub(crate) struct Options {
    /// The number of `-m` options.
    pub(crate) verbosity: u32,
    /// `--rbac-role`
    pub(crate) role: Option<String>,
    /// `--fail`
    pub(crate) fail: bool,
    /// `--cid`, which is not zero.
    pub(crate) cluster_id: Option<Uuid>,
    /// `--election-timer`, ms, within its range.
    pub(crate) election_timer_ms: Option<u64>,
    /// The options about history.
    pub(crate) history: HistoryOptions,
    /// The command and its arguments.
    pub(crate) words: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Id {
    More,
    Role,
    Fail,
    Cid,
    ElectionTimer,
    History(HistoryOption),
    Verbose,
    Help,
    Options,
    Version,
}

const SPECS: [Spec<Id>; 18] = [
    Spec::both("more", 'm', Arg::None, Id::More)
        .means("", "show-log: print rows (once) and columns (twice)"),
    Spec::long("rbac-role", Arg::Required, Id::Role)
        .means("ROLE", "execute transactions with the rights of ROLE"),
    standard_options::fail(Id::Fail),
    Spec::long("cid", Arg::Required, Id::Cid).means("UUID", "join-cluster: join only this cluster"),
    Spec::long("election-timer", Arg::Required, Id::ElectionTimer)
        .means("MS", "create-cluster: election timer, 100 to 600000"),
    of_history(HistoryOption::At).means(
        "MOMENT",
        "query, dump, restore: the contents as they were at MOMENT",
    ),
    of_history(HistoryOption::Since),
    of_history(HistoryOption::Until),
    of_history(HistoryOption::Table),
    of_history(HistoryOption::Row),
    of_history(HistoryOption::Column),
    of_history(HistoryOption::Client),
    of_history(HistoryOption::Json),
    of_history(HistoryOption::Count),
    vlog::verbose_spec(Id::Verbose),
    standard_options::help(Id::Help),
    standard_options::listing(Id::Options),
    standard_options::version(Id::Version),
];

const fn of_history(option: HistoryOption) -> Spec<Id> {
    history::spec(option, Id::History(option))
}

/// The options for the manual.
pub(crate) fn entries() -> Vec<OptionEntry> {
    Manual::entries(&SPECS)
}

impl Options {
    /// Parses a command line, `argv[0]` included. Ends the process on errors, and after `--help`
    /// and similar options.
    pub(crate) fn parse(line: &[String]) -> Options {
        let mut options = Options::default();
        let mut args = Args::new(&SPECS, line);
        while let Some(item) = args.or_die() {
            match item {
                Item::Positional(word) => {
                    if options.words.is_empty() && history::takes_moments(&word) {
                        args.take_ages();
                    }
                    options.words.push(word);
                }
                Item::Option(id, value) => options.apply(id, value),
            }
        }
        options
    }

    fn apply(&mut self, id: Id, value: Option<String>) {
        match id {
            Id::More => self.verbosity += 1,
            Id::Role => self.role = value,
            Id::Fail => self.fail = true,
            Id::Cid => self.cluster_id = value.map(|text| or_die(parse_cluster_id(&text))),
            Id::ElectionTimer => {
                self.election_timer_ms = value.map(|text| or_die(parse_election_timer(&text)));
            }
            Id::History(option) => self.history.apply(option, value),
            Id::Verbose => set_verbosity(value.as_deref().unwrap_or_default()),
            Id::Help => program::answer(manual::help()),
            Id::Options => program::answer(args::listing(&SPECS)),
            Id::Version => program::answer_version(),
        }
    }
}

/// Ends the process on an invalid argument of an option, even if the command does not use the
/// option.
fn or_die<T>(parsed: Result<T, Failure>) -> T {
    parsed.unwrap_or_else(|failure| program::fatal(failure))
}

/// Parses the argument of `--cid`: a UUID that is not all zeros.
fn parse_cluster_id(text: &str) -> Result<Uuid, Failure> {
    Uuid::parse(text.as_bytes())
        .filter(|uuid| *uuid != Uuid::ZERO)
        .ok_or_else(|| Failure::new(format!("{text}: not a valid UUID")))
}

/// Parses the argument of `--election-timer`, ms.
fn parse_election_timer(text: &str) -> Result<u64, Failure> {
    let range = ELECTION_TIMER_MIN_MS..=ELECTION_TIMER_MAX_MS;
    text.parse()
        .ok()
        .filter(|timer| range.contains(timer))
        .ok_or_else(|| {
            Failure::new(format!(
                "ovsdb error: election timer must be between {} and {}, in msec.",
                range.start(),
                range.end()
            ))
        })
}

fn set_verbosity(spec: &str) {
    if let Err(error) = vlog::set(spec) {
        program::fatal(format_args!("processing \"{spec}\": {error}"));
    }
}
