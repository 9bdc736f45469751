//! The command line: options that precede the commands, the server, and the words of the commands.
//!
//! `main` parses it once, before it connects.

use std::sync::Arc;

use corvid_net::tls::{self, Credentials};
use corvid_rpc::remote::Scheme;
use corvid_shell::args::{Arg, Args, Item, OptionEntry, Spec};
use corvid_shell::manual::Manual;
use corvid_shell::tls_options::{self, TlsOption};
use corvid_shell::vlog::{self, LogOption};
use corvid_shell::{output, program, timeout};
use corvid_tools::standard_options;
use corvid_tools::table::{CellStyle, Format, Style};

use crate::commands::COMMANDS;
use crate::failure::Failure;
use crate::manual;
use crate::server;
use crate::servers_file::Servers;

/// The values of the options.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The address of the server that the command line or the file of servers names.
    pub server: Option<String>,
    /// The server's name in the file of servers.
    pub server_name: Option<String>,
    /// `--database`
    pub database: Option<String>,
    /// With several servers, use only one that leads its cluster.
    pub leader_only: bool,
    /// The TLS options of the command line.
    pub tls: tls::Settings,
    /// Keys and certificates for `ssl:` and `pssl:`, of the command line and the file of servers.
    pub credentials: Arc<Credentials>,
    /// The style of printed tables; [`Settings::format`] has the layout.
    pub style: Style,
    /// `--format`
    pub format: Option<Format>,
    /// Prints records as plain JSON objects.
    pub objects: Option<Objects>,
    /// `--oneline`
    pub oneline: bool,
    /// `--dry-run`
    pub dry_run: bool,
    /// `--at`
    pub at: Option<String>,
    /// `--quiet`
    pub quiet: bool,
    /// `--no-pager`
    pub no_pager: bool,
    /// The pages of the server that the file of servers names (`metrics`).
    pub metrics: Vec<String>,
}

/// How records are printed as plain JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Objects {
    /// `--json`: as one array.
    Array,
    /// `--jsonl`: one object on a line.
    Lines,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Id {
    Objects(Objects),
    Csv,
    Db,
    Database,
    LeaderOnly(bool),
    Format,
    Data,
    NoHeadings,
    Pretty,
    Bare,
    Oneline,
    At,
    Quiet,
    NoPager,
    DryRun,
    NoWait,
    Timeout,
    /// An option of the first command.
    OfCommand(&'static str),
    Help,
    Version,
    Log(LogOption),
    Tls(TlsOption),
}

const OUTPUT: &str = "Output options";
const CONNECTION: &str = "Connection options";
const OF_COMMANDS: &str = "Options of commands, which may also follow a \"--\"";

/// All options.
fn specs() -> Vec<Spec<Id>> {
    let output = |name, id| Spec::long(name, Arg::None, id).within(OUTPUT);
    let connection = |name, arg, id| Spec::long(name, arg, id).within(CONNECTION);
    let of_command =
        |name, arg, option| Spec::long(name, arg, Id::OfCommand(option)).within(OF_COMMANDS);
    let mut specs = vec![
        standard_options::help(Id::Help),
        standard_options::version(Id::Version),
        connection("db", Arg::Required, Id::Db)
            .means(
                "SERVER",
                "connect to SERVER (default: unix:{rundir}/db.sock)",
            )
            .more("The first word may name the server instead."),
        connection("database", Arg::Required, Id::Database).means(
            "DATABASE",
            "use DATABASE (default: the only one that the server serves)",
        ),
        connection("leader-only", Arg::None, Id::LeaderOnly(true)).means(
            "",
            "with several servers, use only a cluster leader (default)",
        ),
        connection("no-leader-only", Arg::None, Id::LeaderOnly(false))
            .means("", "use any server that is connected to its cluster"),
        standard_options::timeout('t', Id::Timeout).within(CONNECTION),
        Spec::long("dry-run", Arg::None, Id::DryRun)
            .means("", "run the commands, but do not commit the transaction"),
        Spec::long("at", Arg::Required, Id::At)
            .means("MOMENT", "read the rows as they were at MOMENT")
            .more(
                "A moment is `HEAD~1` (before the last commit), an age (`-15min`, `-2h`), a date and time, or the id of a commit that `log` prints.",
            ),
        Spec::long("no-wait", Arg::None, Id::NoWait)
            .means("", "accepted for scripts of `ovs-vsctl`, without effect"),
        of_command("if-exists", Arg::None, "--if-exists")
            .means("", "a record that does not exist is not an error"),
        of_command("columns", Arg::Required, "--columns").means(
            "COLUMN[,COLUMN]...",
            "print only these columns, in this order",
        ),
        of_command("where", Arg::Required, "--where")
            .means("EXPRESSION", "only the records for which EXPRESSION holds"),
        of_command("id", Arg::Required, "--id")
            .means("@NAME", "name a record for other commands of the chain"),
        of_command("all", Arg::None, "--all").means("", "all records of the table"),
    ];
    specs.extend([
        Spec::both("format", 'f', Arg::Required, Id::Format)
            .within(OUTPUT)
            .means(
                "FORMAT",
                "\"list\" (default), \"table\", \"html\", \"csv\" or \"json\"",
            )
            .more(
                "On a terminal, records that fit its width are a table by default, and \"table\" cuts the longest values to fit.",
            ),
        Spec::both("data", 'd', Arg::Required, Id::Data)
            .within(OUTPUT)
            .means(
                "FORMAT",
                "cells as \"string\" (default), \"bare\" or \"json\"",
            ),
        output("no-headings", Id::NoHeadings).means("", "no heading rows"),
        output("pretty", Id::Pretty).means("", "indent JSON"),
        output("bare", Id::Bare).means("", "the same as --format=list --data=bare --no-headings"),
        output("json", Id::Objects(Objects::Array))
            .means("", "records as a JSON array of plain objects"),
        output("jsonl", Id::Objects(Objects::Lines))
            .means("", "records as plain JSON objects, one on a line"),
        output("csv", Id::Csv).means("", "the same as --format=csv --data=bare"),
        output("oneline", Id::Oneline).means(
            "",
            "print the text of each command on one line, with \\n for newlines",
        ),
        Spec::both("quiet", 'q', Arg::None, Id::Quiet)
            .within(OUTPUT)
            .means("", "print nothing; the exit status is 1 if no record matched"),
        output("no-pager", Id::NoPager)
            .means("", "do not pass long output on a terminal through `$PAGER`"),
    ]);
    specs.extend(tls_options::specs(Id::Tls));
    specs.extend(vlog::specs(Id::Log));
    specs.into_iter().map(with_argument).collect()
}

/// The same option, whose argument is not empty if it names something to connect with. Options of
/// commands are those of `ovs-vsctl`.
fn with_argument(spec: Spec<Id>) -> Spec<Id> {
    let group = spec.entry().group;
    match [CONNECTION, tls_options::GROUP].contains(&group) || spec.entry().long == Some("at") {
        true => spec.not_empty(),
        false => spec,
    }
}

/// The options for the manual.
pub(crate) fn entries() -> Vec<OptionEntry> {
    Manual::entries(&specs())
}

/// Headings of the options, in order.
pub(crate) const GROUPS: [&str; 5] = [
    OF_COMMANDS,
    OUTPUT,
    CONNECTION,
    tls_options::GROUP,
    vlog::GROUP,
];

impl Settings {
    /// Parses a command line, `argv[0]` included. Returns the options, and the words of the
    /// commands, which begin with the options of the first one. Ends the process after `--help` and
    /// `--version`. Starts the timer of `--timeout`.
    ///
    /// # Errors
    /// An option is wrong.
    pub(crate) fn parse(line: &[String]) -> Result<(Settings, Vec<String>), Failure> {
        let mut parser = Parser::new();
        let specs = specs();
        let mut words = parser.options(&specs, line)?;
        if parser.settings.server.is_none()
            && let Some(word) = words.first()
            && is_server(word)?
        {
            parser.settings.server = Some(words.remove(0));
            // Options may follow the server.
            let program = line.first().cloned().unwrap_or_default();
            words.insert(0, program);
            words = parser.options(&specs, &words)?;
        }
        parser.first_options.append(&mut words);
        timeout::arm(parser.timeout_s);
        let Parser {
            mut settings,
            tls,
            first_options,
            ..
        } = parser;
        settings.credentials = Credentials::new(&tls);
        settings.tls = tls;
        let settings = match &settings.server {
            // An address needs no file.
            Some(server) if server.contains(':') => settings,
            Some(server) => settings.with_server(server, &Servers::load()?)?,
            None if settings.has_variable() => settings,
            None => {
                let servers = Servers::load()?;
                match &servers.default {
                    Some(default) => settings.with_server(default, &servers)?,
                    None => settings,
                }
            }
        };
        Ok((settings, first_options))
    }
}

impl Settings {
    /// The same settings for a server: an address, or a name of the file of servers.
    ///
    /// # Errors
    /// There is no such name.
    pub(crate) fn with_server(&self, word: &str, servers: &Servers) -> Result<Settings, Failure> {
        let Some(named) = servers.get(word) else {
            if !word.contains(':') {
                let failure = Failure::usage(format!(
                    "\"{word}\" is neither an address nor a name in servers.toml"
                ));
                return Err(failure.suggesting(word, servers.names()));
            }
            return Ok(Settings {
                server: Some(word.to_owned()),
                server_name: None,
                credentials: Credentials::new(&self.tls),
                metrics: Vec::new(),
                ..self.clone()
            });
        };
        let mut tls = self.tls.clone();
        named.fill(&mut tls);
        Ok(Settings {
            server: Some(named.address.clone()),
            server_name: Some(word.to_owned()),
            database: self.database.clone().or_else(|| named.database.clone()),
            leader_only: named.leader_only.unwrap_or(self.leader_only),
            metrics: named.metrics.clone(),
            credentials: Credentials::new(&tls),
            ..self.clone()
        })
    }

    /// Whether an environment variable names the servers of the database.
    fn has_variable(&self) -> bool {
        server::variable(self).is_some()
    }

    /// The settings of a line of the shell, which may begin with options of the output and of the
    /// first command; and the words of its commands.
    ///
    /// # Errors
    /// An option is wrong.
    pub(crate) fn of_line(&self, words: &[String]) -> Result<(Settings, Vec<String>), Failure> {
        let mut specs = specs();
        specs.retain(|spec| {
            let entry = spec.entry();
            [OUTPUT, OF_COMMANDS].contains(&entry.group)
                || matches!(entry.long, Some("dry-run" | "no-wait"))
        });
        let mut parser = Parser {
            settings: self.clone(),
            ..Parser::new()
        };
        let line: Vec<String> = std::iter::once(String::new())
            .chain(words.iter().cloned())
            .collect();
        let mut words = parser.options(&specs, &line)?;
        parser.first_options.append(&mut words);
        Ok((parser.settings, parser.first_options))
    }
}

/// Whether a word names a server, or a list of servers, rather than a command.
fn is_server(word: &str) -> Result<bool, Failure> {
    let is_command = COMMANDS.iter().any(|command| command.name == word) || word == "help";
    if is_command || word.starts_with('-') {
        return Ok(false);
    }
    Ok(Scheme::split(word).is_some() || Servers::load()?.get(word).is_some())
}

struct Parser {
    settings: Settings,
    tls: tls::Settings,
    timeout_s: Option<u32>,
    /// The options of the first command.
    first_options: Vec<String>,
}

impl Parser {
    fn new() -> Parser {
        Parser {
            settings: Settings {
                server: None,
                server_name: None,
                tls: tls::Settings::default(),
                database: None,
                leader_only: true,
                credentials: Arc::default(),
                style: Style {
                    is_shown: output::is_terminal(),
                    ..Style::default()
                },
                format: None,
                objects: None,
                oneline: false,
                dry_run: false,
                at: None,
                quiet: false,
                no_pager: false,
                metrics: Vec::new(),
            },
            tls: tls::Settings::default(),
            timeout_s: None,
            first_options: Vec::new(),
        }
    }

    /// Applies the options at the beginning of a line, and returns the words after them.
    fn options(&mut self, specs: &[Spec<Id>], line: &[String]) -> Result<Vec<String>, Failure> {
        let mut words = Vec::new();
        for item in Args::new(specs, line).without_permutation() {
            match item.map_err(|error| Failure::usage(error.to_string()))? {
                Item::Positional(word) => words.push(word),
                Item::Option(id, value) => self.apply(id, value.as_deref())?,
            }
        }
        Ok(words)
    }

    fn apply(&mut self, id: Id, value: Option<&str>) -> Result<(), Failure> {
        let text = value.unwrap_or_default();
        let settings = &mut self.settings;
        match id {
            Id::Db => settings.server = Some(text.to_owned()),
            Id::Database => settings.database = Some(text.to_owned()),
            Id::LeaderOnly(only) => settings.leader_only = only,
            Id::Format => {
                let format = Format::parse(text)
                    .ok_or_else(|| Failure::usage(format!("unknown output format \"{text}\"")))?;
                settings.format = Some(format);
            }
            Id::Data => {
                settings.style.cells = CellStyle::parse(text)
                    .ok_or_else(|| Failure::usage(format!("unknown data format \"{text}\"")))?;
            }
            Id::NoHeadings => settings.style.headings = false,
            Id::Pretty => settings.style.pretty = true,
            Id::Bare => {
                settings.format = Some(Format::List);
                settings.style.cells = CellStyle::Bare;
                settings.style.headings = false;
            }
            Id::Objects(objects) => settings.objects = Some(objects),
            Id::Csv => {
                settings.format = Some(Format::Csv);
                settings.style.cells = CellStyle::Bare;
            }
            Id::Oneline => settings.oneline = true,
            Id::At => settings.at = Some(text.to_owned()),
            Id::Quiet => settings.quiet = true,
            Id::NoPager => settings.no_pager = true,
            Id::DryRun => settings.dry_run = true,
            Id::NoWait => {}
            Id::Timeout => {
                self.timeout_s = Some(timeout::parse(text, 't').map_err(Failure::usage)?);
            }
            Id::OfCommand(option) => self.first_options.push(match value {
                Some(value) => format!("{option}={value}"),
                None => option.to_owned(),
            }),
            Id::Help => program::answer(manual::help()),
            Id::Version => program::answer_version(),
            Id::Log(option) => vlog::apply(option, value),
            Id::Tls(option) => option.apply(&mut self.tls, value),
        }
        Ok(())
    }
}
