//! The options that select a part of the history. Both programs have them, each at its own place in
//! its table.

use corvid_history::{Filter, RowPrefix};
use corvid_shell::args::{Arg, Spec};
use corvid_shell::program;

use crate::failure::Failure;

/// An option about history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HistoryOption {
    /// `--at`
    At,
    /// `--since`
    Since,
    /// `--until`
    Until,
    /// `--table`
    Table,
    /// `--row`
    Row,
    /// `--column`
    Column,
    /// `--client`
    Client,
    /// `--json`
    Json,
    /// `-n`
    Count,
}

/// The values of the options.
#[derive(Debug, Default)]
pub(crate) struct HistoryOptions {
    /// `--at`, as it was given.
    pub(crate) at: Option<String>,
    /// `--since`, as it was given.
    pub(crate) since: Option<String>,
    /// `--until`, as it was given.
    pub(crate) until: Option<String>,
    /// `--table`, `--column` and `--client`; `--row`, which is a row's UUID or its beginning.
    pub(crate) filter: Filter,
    /// `--row`, as it was given.
    pub(crate) row: Option<String>,
    /// `--json`
    pub(crate) json: bool,
    /// `-n`
    pub(crate) count: Option<usize>,
}

/// An option for a program's table, which describes `--at` itself.
pub(crate) const fn spec<I: Copy>(option: HistoryOption, id: I) -> Spec<I> {
    use HistoryOption::{At, Client, Column, Count, Json, Row, Since, Table, Until};
    match option {
        At => Spec::long("at", Arg::Required, id).more(MOMENTS),
        Since => {
            Spec::long("since", Arg::Required, id).means("MOMENT", "log: changes after MOMENT only")
        }
        Until => {
            Spec::long("until", Arg::Required, id).means("MOMENT", "log: changes up to MOMENT only")
        }
        Table => {
            Spec::long("table", Arg::Required, id).means("TABLE", "log, diff: rows of TABLE only")
        }
        Row => Spec::long("row", Arg::Required, id)
            .means("UUID", "log, diff: rows whose UUID begins with UUID only"),
        Column => Spec::long("column", Arg::Required, id)
            .means("COLUMN", "log, diff: rows whose COLUMN has changed only"),
        Client => Spec::long("client", Arg::Required, id).means(
            "TEXT",
            "log: commits with TEXT in their client or comment only",
        ),
        Json => Spec::long("json", Arg::None, id)
            .means("", "history, log, diff: print JSON, one object on a line"),
        Count => {
            return Spec::short('n', Arg::Required, id).means("N", "log: the last N commits only");
        }
    }
    .in_full()
}

/// Whether moments are among the arguments of a command, so that an age such as `-2h` is one.
pub(crate) fn takes_moments(command: &str) -> bool {
    matches!(command, "diff" | "revert")
}

const MOMENTS: &str = "\
A moment is `HEAD` or `now` (after the last commit), `HEAD~3` (before the last three commits), an age (`-90s`, `-15min`, `-2h`, `-3d`, `-1w`), \
a local date and time (`2026-11-28`, `2026-11-28T10:00`, `2026-11-28T10:00:00.123`; with `Z` or `+02:00` at the end, of that zone), \
milliseconds since the Unix epoch (`@1700000000000`), or the id of a commit as `log` prints it, of which the first 8 digits suffice if \
no other one begins with them. At a moment the contents are those after the last commit that was not later.";

impl HistoryOptions {
    /// The options that were given and select something.
    pub(crate) fn selecting(&self) -> impl Iterator<Item = &'static str> {
        let given = [
            ("--at", self.at.is_some()),
            ("--since", self.since.is_some()),
            ("--until", self.until.is_some()),
            ("--table", self.filter.table.is_some()),
            ("--row", self.row.is_some()),
            ("--column", self.filter.column.is_some()),
            ("--client", self.filter.client.is_some()),
            ("-n", self.count.is_some()),
        ];
        let given = given.into_iter().filter(|(_, is_given)| *is_given);
        given.map(|(name, _)| name)
    }

    /// Sets an option. Ends the process on an invalid argument, even if the command does not use
    /// the option.
    pub(crate) fn apply(&mut self, option: HistoryOption, value: Option<String>) {
        match option {
            HistoryOption::At => self.at = value,
            HistoryOption::Since => self.since = value,
            HistoryOption::Until => self.until = value,
            HistoryOption::Table => self.filter.table = value,
            HistoryOption::Row => {
                self.filter.row = value.as_deref().map(|text| or_die(parse_row(text)));
                self.row = value;
            }
            HistoryOption::Column => self.filter.column = value,
            HistoryOption::Client => self.filter.client = value,
            HistoryOption::Json => self.json = true,
            HistoryOption::Count => self.count = value.map(|text| or_die(parse_count(&text))),
        }
    }
}

fn or_die<T>(parsed: Result<T, Failure>) -> T {
    parsed.unwrap_or_else(|failure| program::fatal(failure))
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
