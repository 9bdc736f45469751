//! The command line: options, which take effect from left to right, and the remaining words.
//!
//! `main` parses it once, before it connects. Invalid options end the process here.

use std::cell::RefCell;
use std::sync::Arc;

use corvid_net::clock;
use corvid_net::tls::{self, Credentials};
use corvid_shell::args::{Arg, Args, Item, OptionEntry, Spec};
use corvid_shell::daemon::{self, DaemonOption, Startup};
use corvid_shell::manual::Manual;
use corvid_shell::tls_options::{self, TlsOption};
use corvid_shell::vlog::{self, LogOption};
use corvid_shell::{date, output, program, timeout};

use crate::client::manual;
use crate::history::{self, HistoryOption, HistoryOptions};
use crate::standard_options;
use crate::table::{CellStyle, Format, Style};

/// The values of the options.
#[derive(Debug)]
pub(crate) struct Settings {
    /// The style of printed tables.
    pub style: Style,
    /// `--timestamp`
    pub is_timestamped: bool,
    /// `--force`
    pub force: bool,
    /// `--fail`
    pub fail: bool,
    /// `--keep-uuids`
    pub keep_uuids: bool,
    /// `--dry-run`
    pub dry_run: bool,
    /// The options about history.
    pub history: HistoryOptions,
    /// With several servers, use only one that leads its cluster.
    pub leader_only: bool,
    /// Whether to send `set_db_change_aware`; `None` sends it and accepts a refusal.
    pub aware: Option<bool>,
    /// Keys and certificates for `ssl:` and `pssl:`.
    pub credentials: Arc<Credentials>,
    /// `--timeout` or its environment variable limits the running time of the program.
    pub has_timeout: bool,
    daemon: RefCell<daemon::Options>,
    is_detached: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Id {
    Format,
    Data,
    NoHeadings,
    Pretty,
    Bare,
    ColumnWidthMax,
    Timestamp,
    Force,
    Fail,
    KeepUuids,
    DryRun,
    History(HistoryOption),
    LeaderOnly(bool),
    Aware(bool),
    Timeout,
    /// An option of the reference that is not supported. It is rejected rather than ignored.
    Refused(&'static str),
    Help,
    Version,
    Log(LogOption),
    Daemon(DaemonOption),
    Tls(TlsOption),
}

const OUTPUT: &str = "Output options";
const CONNECTION: &str = "Connection options";
const HISTORY: &str = "History options";

/// All options, in the order in which the error about an ambiguous abbreviation lists them.
fn specs() -> Vec<Spec<Id>> {
    let output = |name, arg, id| Spec::long(name, arg, id).within(OUTPUT);
    let connection = |name, id| Spec::long(name, Arg::None, id).within(CONNECTION);
    let mut specs = vec![
        standard_options::help(Id::Help),
        standard_options::version(Id::Version),
        output("timestamp", Arg::None, Id::Timestamp)
            .means("", "print the time above each table of a monitor"),
        Spec::long("force", Arg::None, Id::Force)
            .means("", "restore: ignore differences between schemas"),
        standard_options::fail(Id::Fail),
        Spec::long("keep-uuids", Arg::None, Id::KeepUuids)
            .means("", "restore: keep the UUIDs of the backup")
            .more(
                "Without this option every row gets a new UUID. References between rows are adjusted, but UUIDs stored by clients, in other \
databases or in text columns are not. With it, rows that exist both in the database and in the backup are updated, so monitoring clients see \
only the changes; immutable columns of such a row cannot change. The server must accept `uuid` in `insert`; an older server refuses the \
transaction, and nothing changes.",
            )
            .in_full(),
        Spec::long("dry-run", Arg::None, Id::DryRun)
            .means("", "revert: print what it would change, and change nothing")
            .in_full(),
        standard_options::timeout('t', Id::Timeout).within(CONNECTION),
        connection("db-change-aware", Id::Aware(true)).means(
            "",
            "require that the server reports added and removed databases",
        ),
        connection("no-db-change-aware", Id::Aware(false)).means(
            "",
            "do not ask the server to report added and removed databases",
        ),
        connection("leader-only", Id::LeaderOnly(true))
            .means("", "with several servers, use only a cluster leader (default)"),
        connection("no-leader-only", Id::LeaderOnly(false))
            .means("", "use any server that is connected to its cluster"),
    ];
    specs.extend(vlog::specs(Id::Log));
    specs.extend(daemon::specs(Id::Daemon));
    specs.extend(tls_options::specs(Id::Tls));
    specs.extend([
        Spec::both("format", 'f', Arg::Required, Id::Format)
            .within(OUTPUT)
            .means(
                "FORMAT",
                "\"table\" (default), \"list\", \"html\", \"csv\" or \"json\"",
            ),
        Spec::both("data", 'd', Arg::Required, Id::Data)
            .within(OUTPUT)
            .means(
                "FORMAT",
                "cells as \"string\" (default), \"bare\" or \"json\"",
            ),
        output("no-headings", Arg::None, Id::NoHeadings).means("", "no heading rows"),
        output("pretty", Arg::None, Id::Pretty).means("", "indent JSON"),
        output("bare", Arg::None, Id::Bare)
            .means("", "the same as --format=list --data=bare --no-headings"),
        output("max-column-width", Arg::Required, Id::ColumnWidthMax).means(
            "N",
            "truncate columns to N bytes, but not below the width of their headings",
        ),
    ]);
    specs.extend(history_specs());
    specs.extend(["record", "replay"].map(|name| {
        Spec::long(name, Arg::Optional, Id::Refused(name)).means("DIR", "not supported")
    }));
    specs
}

/// The options about history, which have the names that they have in `ovsdb-tool`.
fn history_specs() -> [Spec<Id>; 9] {
    use HistoryOption::{At, Client, Column, Count, Json, Row, Since, Table, Until};
    [At, Since, Until, Table, Row, Column, Client, Json, Count].map(|option| {
        let spec = history::spec(option, Id::History(option)).within(HISTORY);
        match option {
            At => spec.means(
                "MOMENT",
                "query, dump, backup: the contents as they were at MOMENT",
            ),
            Json => spec.means(
                "",
                "history, log, diff, revert: print JSON, one object on a line; others: --format=json",
            ),
            Table => spec.means("TABLE", "log, diff, revert: rows of TABLE only"),
            Row => spec.means(
                "UUID",
                "log, diff, revert: rows whose UUID begins with UUID only",
            ),
            _ => spec,
        }
    })
}

/// The options for the manual.
pub(crate) fn entries() -> Vec<OptionEntry> {
    Manual::entries(&specs())
}

/// Headings of the options, in order.
pub(crate) const GROUPS: [&str; 6] = [
    OUTPUT,
    HISTORY,
    CONNECTION,
    tls_options::GROUP,
    daemon::GROUP,
    vlog::GROUP,
];

impl Settings {
    /// The settings without any option.
    pub(crate) fn new() -> Settings {
        Settings {
            style: Style {
                is_shown: output::is_terminal(),
                ..Style::default()
            },
            is_timestamped: false,
            force: false,
            fail: false,
            keep_uuids: false,
            dry_run: false,
            history: HistoryOptions::default(),
            leader_only: true,
            aware: None,
            credentials: Arc::default(),
            has_timeout: false,
            daemon: RefCell::default(),
            is_detached: false,
        }
    }

    /// Parses a command line, `argv[0]` included. Returns the options, and the words that are not
    /// options. Ends the process on errors, and after `--help` and similar options. Starts the
    /// timer of `--timeout`.
    #[must_use]
    pub(crate) fn parse(line: &[String]) -> (Settings, Vec<String>) {
        let mut parser = Parser {
            settings: Settings::new(),
            daemon: daemon::Options::default(),
            tls: tls::Settings::default(),
            timeout_s: None,
        };
        let specs = specs();
        let mut words = Vec::new();
        let mut args = Args::new(&specs, line);
        while let Some(item) = args.or_die() {
            match item {
                Item::Positional(word) => {
                    if words.is_empty() && history::takes_moments(&word) {
                        args.take_ages();
                    }
                    words.push(word);
                }
                Item::Option(id, value) => parser.apply(id, value.as_deref()),
            }
        }
        parser.settings.has_timeout = timeout::arm(parser.timeout_s);
        let Parser {
            mut settings,
            daemon,
            tls,
            ..
        } = parser;
        settings.credentials = Credentials::new(&tls);
        settings.is_detached = daemon.is_detached();
        settings.daemon.replace(daemon);
        (settings, words)
    }

    /// The time to print above a table, if requested.
    #[must_use]
    pub(crate) fn timestamp(&self) -> Option<String> {
        self.is_timestamped
            .then(|| date::utc_text(clock::wall_ms()))
    }

    /// Whether the program is to run in the background.
    #[must_use]
    pub(crate) fn is_detached(&self) -> bool {
        self.is_detached
    }

    /// Becomes a daemon if the options say so, and keeps the standard descriptors `kept` open. The
    /// program that started it waits until the result is completed. A second call does nothing.
    pub(crate) fn start_daemon(&self, kept: &[i32]) -> Startup {
        let mut options = self.daemon.take();
        kept.iter()
            .for_each(|&descriptor| options.keep_open(descriptor));
        options.start()
    }

    /// As [`Settings::start_daemon`], but completed at once; standard output and error stay open.
    pub(crate) fn detach_now(&self) {
        self.start_daemon(&[1, 2]).complete();
    }
}

struct Parser {
    settings: Settings,
    daemon: daemon::Options,
    tls: tls::Settings,
    timeout_s: Option<u32>,
}

impl Parser {
    fn apply(&mut self, id: Id, value: Option<&str>) {
        let text = value.unwrap_or_default();
        let settings = &mut self.settings;
        match id {
            Id::Format => match Format::parse(text) {
                Some(format) => settings.style.format = format,
                None => program::fatal(format_args!("unknown output format \"{text}\"")),
            },
            Id::Data => match CellStyle::parse(text) {
                Some(cells) => settings.style.cells = cells,
                None => program::fatal(format_args!("unknown data format \"{text}\"")),
            },
            Id::NoHeadings => settings.style.headings = false,
            Id::Pretty => settings.style.pretty = true,
            Id::Bare => {
                settings.style.format = Format::List;
                settings.style.cells = CellStyle::Bare;
                settings.style.headings = false;
            }
            Id::ColumnWidthMax => settings.style.column_width_max = column_width(text),
            Id::Timestamp => settings.is_timestamped = true,
            Id::Force => settings.force = true,
            Id::Fail => settings.fail = true,
            Id::KeepUuids => settings.keep_uuids = true,
            Id::DryRun => settings.dry_run = true,
            Id::History(option) => {
                // Tables as JSON, too.
                if option == HistoryOption::Json {
                    settings.style.format = Format::Json;
                }
                settings.history.apply(option, value.map(str::to_owned));
            }
            Id::LeaderOnly(only) => settings.leader_only = only,
            Id::Aware(aware) => settings.aware = Some(aware),
            Id::Timeout => match timeout::parse(text, 't') {
                Ok(seconds) => self.timeout_s = Some(seconds),
                Err(error) => program::fatal(error),
            },
            Id::Refused(name) => program::fatal(format_args!("--{name} is not supported")),
            Id::Help => program::answer(manual::help()),
            Id::Version => program::answer_version(),
            Id::Log(option) => vlog::apply(option, value),
            Id::Tls(option) => option.apply(&mut self.tls, value),
            Id::Daemon(option) => self.daemon.apply(option, value),
        }
    }
}

/// Parses a width as the reference does, by the rules of the C library's `atoi`: the leading
/// digits, truncated to 32 bits. Zero, a negative number and a word mean unlimited.
fn column_width(text: &str) -> usize {
    let text = text.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let number = digits
        .bytes()
        .map_while(|byte| byte.is_ascii_digit().then(|| i64::from(byte - b'0')))
        .map(|digit| if is_negative { -digit } else { digit })
        .fold(0_i64, |value, digit| {
            value.saturating_mul(10).saturating_add(digit)
        });
    // The low 32 bits, as a signed number.
    let bytes = number.to_le_bytes();
    let low = i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    usize::try_from(low).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::column_width;

    #[test]
    fn widths_are_read_as_the_c_library_reads_integers() {
        let widths = [
            "5",
            " +5",
            "5x",
            "4294967301",
            "0",
            "",
            "x",
            "-5",
            "0x5",
            "4294967296",
        ];
        let read = [5, 5, 5, 5, 0, 0, 0, 0, 0, 0];
        assert_eq!(widths.map(column_width), read);
        for huge in ["99999999999999999999", "-99999999999999999999"] {
            assert_eq!(column_width(huge), 0);
        }
    }
}
