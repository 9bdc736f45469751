//! The command line: options, which take effect from left to right, then the command and its
//! arguments.

use corvid_data::Uuid;
use corvid_history::{Filter, RowPrefix};
use corvid_log::cluster::{ELECTION_TIMER_MAX_MS, ELECTION_TIMER_MIN_MS};
use corvid_shell::args::{self, Arg, Args, Item, OptionEntry, Spec};
use corvid_shell::manual::Manual;
use corvid_shell::{program, vlog};

use crate::failure::Failure;
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
    /// `--at`, as it was given.
    pub(crate) at: Option<String>,
    /// `--since`, as it was given.
    pub(crate) since: Option<String>,
    /// `--until`, as it was given.
    pub(crate) until: Option<String>,
    /// `--table`, `--row`, `--column` and `--client`.
    pub(crate) filter: Filter,
    /// `--json`
    pub(crate) json: bool,
    /// `-n`
    pub(crate) count: Option<usize>,
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
    At,
    Since,
    Until,
    Table,
    Row,
    Column,
    Client,
    Json,
    Count,
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
    Spec::long("at", Arg::Required, Id::At)
        .means(
            "MOMENT",
            "query, dump, restore: the contents as they were at MOMENT",
        )
        .more(MOMENTS)
        .in_full(),
    Spec::long("since", Arg::Required, Id::Since)
        .means("MOMENT", "log: changes after MOMENT only")
        .in_full(),
    Spec::long("until", Arg::Required, Id::Until)
        .means("MOMENT", "log: changes up to MOMENT only")
        .in_full(),
    Spec::long("table", Arg::Required, Id::Table)
        .means("TABLE", "log, diff: rows of TABLE only")
        .in_full(),
    Spec::long("row", Arg::Required, Id::Row)
        .means("UUID", "log, diff: rows whose UUID begins with UUID only")
        .in_full(),
    Spec::long("column", Arg::Required, Id::Column)
        .means("COLUMN", "log, diff: rows whose COLUMN has changed only")
        .in_full(),
    Spec::long("client", Arg::Required, Id::Client)
        .means(
            "TEXT",
            "log: commits with TEXT in their client or comment only",
        )
        .in_full(),
    Spec::long("json", Arg::None, Id::Json)
        .means("", "history, log, diff: print JSON, one object on a line")
        .in_full(),
    Spec::short('n', Arg::Required, Id::Count).means("N", "log: the last N commits only"),
    vlog::verbose_spec(Id::Verbose),
    standard_options::help(Id::Help),
    standard_options::listing(Id::Options),
    standard_options::version(Id::Version),
];

const MOMENTS: &str = "\
A moment is `HEAD` or `now` (after the last commit), `HEAD~3` (before the last three commits), an age (`-90s`, `-15min`, `-2h`, `-3d`, `-1w`), \
a local date and time (`2026-11-28`, `2026-11-28T10:00`, `2026-11-28T10:00:00.123`; with `Z` or `+02:00` at the end, of that zone), \
milliseconds since the Unix epoch (`@1700000000000`), or the id of a commit as `log` prints it, of which the first 8 digits suffice if \
no other one begins with them. At a moment the contents are those after the last commit that was not later.";

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
                Item::Positional(word) => options.words.push(word),
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
            Id::At => self.at = value,
            Id::Since => self.since = value,
            Id::Until => self.until = value,
            Id::Table => self.filter.table = value,
            Id::Row => self.filter.row = value.map(|text| or_die(parse_row(&text))),
            Id::Column => self.filter.column = value,
            Id::Client => self.filter.client = value,
            Id::Json => self.json = true,
            Id::Count => self.count = value.map(|text| or_die(parse_count(&text))),
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

/// Parses the argument of `--row`.
fn parse_row(text: &str) -> Result<RowPrefix, Failure> {
    RowPrefix::parse(text).map_err(|error| Failure::new(error.to_string()))
}

/// Parses the argument of `-n`.
fn parse_count(text: &str) -> Result<usize, Failure> {
    let count = text.parse().ok().filter(|count| *count > 0);
    count.ok_or_else(|| Failure::new(format!("{text}: not a number of commits")))
}

fn set_verbosity(spec: &str) {
    if let Err(error) = vlog::set(spec) {
        program::fatal(format_args!("processing \"{spec}\": {error}"));
    }
}
