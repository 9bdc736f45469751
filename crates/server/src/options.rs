//! The command line of `ovsdb-server` (docs/spec/cli.md 1.1): the table of its options, and the
//! parser. [`corvid_shell::args::spec`] explains how to add an option.

use std::path::PathBuf;

use corvid_history::{Policy, PolicyError};
use corvid_net::tls;
use corvid_net::{dirs, os_name};
use corvid_service::audit::Exclusions;
use corvid_shell::args::{Arg, Args, Item, OptionEntry, Spec};
use corvid_shell::daemon::{self, DaemonOption};
use corvid_shell::manual::{Manual, Placeholders, help};
use corvid_shell::program;
use corvid_shell::size;
use corvid_shell::tls_options::{self, TlsOption};
use corvid_shell::vlog::options::{self as log_options, LogOption};

use crate::limits::{self, LimitOption};
use crate::manual;

/// The parsed command line. Logging options have already taken effect.
#[derive(Debug, Default)]
pub struct CommandLine {
    /// `--remote`, without duplicates.
    pub(crate) remotes: Vec<String>,
    /// Database files.
    pub(crate) databases: Vec<String>,
    /// `--no-dbs`
    pub(crate) no_default_database: bool,
    /// `--config-file`
    pub(crate) config_file: Option<String>,
    /// `--sync-from`
    pub(crate) sync_from: Option<String>,
    /// `--sync-exclude-tables`
    pub(crate) sync_exclude_tables: Option<String>,
    /// `--active`
    pub(crate) is_active: bool,
    /// `--unixctl`
    pub(crate) unixctl: Option<String>,
    /// `--metrics-listen`
    pub(crate) metrics_listen: Option<String>,
    /// `--check-config`
    pub is_check: bool,
    /// `--run`
    pub(crate) run: Option<String>,
    /// `--no-standalone-history`
    pub(crate) no_standalone_history: bool,
    /// `--keep-history`
    pub(crate) keep_history: Policy,
    /// `--record-clients`
    pub(crate) record_clients: bool,
    /// `--disable-file-column-diff`
    pub(crate) disable_column_diff: bool,
    /// `--disable-file-no-data-conversion`; affects clustered databases only.
    pub(crate) disable_no_data_conversion: bool,
    /// `--slow-transaction-ms`, ms; `u64::MAX`: off.
    pub(crate) slow_ms: u64,
    /// `--audit-log`
    pub(crate) audit_log: Option<String>,
    /// `--record`
    pub(crate) record: Option<PathBuf>,
    /// `--max-recording-size`, bytes
    pub(crate) recording_bytes_max: Option<u64>,
    /// `--replay`
    pub replay: Option<PathBuf>,
    /// The lists of all `--audit-exclude` options, as given by the user.
    pub(crate) audit_exclude: String,
    /// The lists of all `--trusted-relays` options, as given by the user.
    pub(crate) trusted_relays: String,
    /// TLS settings, as files or as `db:` columns.
    pub(crate) tls: tls::Settings,
    /// The limits of connections and replies.
    pub(crate) limits: limits::Settings,
    /// The options for running as a daemon.
    pub(crate) daemon: daemon::Options,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Id {
    Remote,
    Unixctl,
    MetricsListen,
    CheckConfig,
    Run,
    NoDbs,
    ConfigFile,
    SyncFrom,
    SyncExcludeTables,
    Active,
    DisableColumnDiff,
    NoStandaloneHistory,
    KeepHistory,
    RecordClients,
    SlowTransaction,
    AuditLog,
    AuditExclude,
    TrustedRelays,
    DisableNoDataConversion,
    Record,
    RecordSize,
    Replay,
    Help,
    Version,
    Log(LogOption),
    Daemon(DaemonOption),
    Tls(TlsOption),
    Limit(LimitOption),
}

const CONNECTIONS: &str = "JSON-RPC options (may be specified any number of times)";
const DATABASES: &str = "Database options";
const SYNCING: &str = "Syncing options";

/// The options, in the order in which the error about an ambiguous abbreviation lists them.
fn specs() -> Vec<Spec<Id>> {
    let mut specs = vec![
        Spec::long("remote", Arg::Required, Id::Remote)
            .means("REMOTE", "connect or listen to REMOTE")
            .within(CONNECTIONS)
            .more(
                "REMOTE is a connection method, or `db:DB,TABLE,COLUMN`: the methods in that column, or in the rows that it refers to. \
                 Such rows also set probes, backoff, permissions and roles, and the server writes connection status into them.",
            ),
        Spec::long("unixctl", Arg::Required, Id::Unixctl)
            .means("SOCKET", "control socket, or \"none\" (default: {rundir}/{program}.PID.ctl)"),
        Spec::long("run", Arg::Required, Id::Run)
            .means("COMMAND", "serve while the shell runs COMMAND, then exit"),
        Spec::long("check-config", Arg::None, Id::CheckConfig)
            .in_full()
            .means("", "check options, configuration and files, and exit")
            .more(
                "Checks options, the configuration file, database files and their schemas, remotes and certificates as a start would. \
                 Nothing is served, locked or changed, so the check is safe while a server runs. Each problem is a line on standard error; \
                 the exit status is 0 if there is none and 1 otherwise.",
            ),
        Spec::both("help", 'h', Arg::None, Id::Help).means("", "print this and exit"),
        Spec::both("version", 'V', Arg::None, Id::Version).means("", "print the version and exit"),
    ];
    specs.extend(daemon::specs(Id::Daemon));
    specs.extend(log_options::specs(Id::Log));
    specs.push(tls_options::peer_spec(Id::Tls));
    specs.extend(tls_options::specs(Id::Tls));
    specs.extend([
        Spec::long("record", Arg::Optional, Id::Record)
            .means("DIR", "record all inputs of every standalone database in DIR (default: {rundir})")
            .within(log_options::GROUP)
            .more(
                "Each database is recorded in `NAME.recording`; the recording of the previous run is kept as `NAME.recording.old`. A recording \
                 holds the complete database and every request, so protect it like the database. Members of clusters and relays are not recorded.",
            ),
        Spec::long("max-recording-size", Arg::Required, Id::RecordSize)
            .in_full()
            .means("SIZE", "end a recording at this size (default: 256M)")
            .within(log_options::GROUP),
        Spec::long("replay", Arg::Optional, Id::Replay)
            .means("DIR", "replay the recordings in DIR, and exit (default: {rundir})")
            .within(log_options::GROUP)
            .more(
                "Prints a line for each recording: whether every session is sent the same bytes again. The exit status is 0 if all recordings \
                 replay identically and 1 otherwise. Nothing is served or changed.",
            ),
    ]);
    specs.extend([
        Spec::long("sync-from", Arg::Required, Id::SyncFrom)
            .means("SERVER", "be a backup of the active SERVER")
            .within(SYNCING),
        Spec::long("sync-exclude-tables", Arg::Required, Id::SyncExcludeTables)
            .means("DB:TABLE,...", "do not copy these tables")
            .within(SYNCING),
        Spec::long("active", Arg::None, Id::Active)
            .means("", "with --sync-from, start as the active server")
            .within(SYNCING),
        Spec::long("trusted-relays", Arg::Required, Id::TrustedRelays)
            .in_full()
            .means("NAME,...", "certificate names of relays that may act for their clients")
            .within(CONNECTIONS)
            .more(
                "A transaction that such a relay forwards runs with the client's role instead of the role of the relay's own connection, and the audit \
                 log names the client. A role that any other relay reports for its client only restricts the transaction further.",
            ),
        Spec::long("no-dbs", Arg::None, Id::NoDbs)
            .means("", "do not serve the default database if none is named")
            .within(DATABASES),
        Spec::long("disable-file-column-diff", Arg::None, Id::DisableColumnDiff)
            .means("", "write whole columns, not differences, to database files")
            .within(DATABASES)
            .more(
                "Needed while servers before 2.15 must read the files. `ovsdb/file/column-diff-enable` on the control socket reverts it.",
            ),
        Spec::long("no-standalone-history", Arg::None, Id::NoStandaloneHistory)
            .in_full()
            .means("", "keep no transaction history: reconnecting clients download everything")
            .within(DATABASES)
            .more(
                "Needed by programs that detect a reconnection by the insertion of rows. `\"standalone-history\": false` in the configuration \
                 file has the same effect.",
            ),
        Spec::long("keep-history", Arg::Required, Id::KeepHistory)
            .in_full()
            .means("POLICY", "keep what compactions drop from files: 7d, 2G, 10000, ... (default: off)")
            .within(DATABASES)
            .more(
                "POLICY is an age (`7d`, `36h`), a size (`2G`, `500M`), a number of transactions (`10000`), or several of them with commas. A compaction                  then keeps the file that it replaces, compressed, in `FILE.history`, and removes the oldest files until the policy holds. `ovsdb-tool`                  reads them. Records have priority on a full disk: history is removed before a write is refused. `\"keep-history\": \"POLICY\"` in the                  configuration file has the same effect, and `ovsdb-server/set-setting keep-history` changes the policy at run time.",
            ),
        Spec::long("record-clients", Arg::None, Id::RecordClients)
            .in_full()
            .means("", "name the client of each commit in its record in the database file")
            .within(DATABASES)
            .more(
                "The line `corvid: client=NAME peer=ADDRESS role=ROLE via=...` of the record's comment has the certificate's name, the address, the role, \
                 and the relay or cluster member that passed the transaction on. `ovsdb-tool log` shows it. Set it on all members of a cluster, once all \
                 of them know the option. `\"record-clients\": true` in the configuration file has the same effect, and \
                 `ovsdb-server/set-setting record-clients` changes it at run time.",
            ),
        Spec::long("slow-transaction-ms", Arg::Required, Id::SlowTransaction)
            .in_full()
            .means("MS", "log transactions that take at least MS (default: 1000; 0: none)")
            .within(log_options::GROUP),
        Spec::long("audit-log", Arg::Required, Id::AuditLog)
            .in_full()
            .means("FILE", "append every change and its author to FILE (JSON lines)")
            .within(log_options::GROUP)
            .more(
                "To rotate the file, rename it, then run `ovsdb-server/reopen-audit-log` or `vlog/reopen` on the control socket. \
                 A slow or full disk never delays transactions: records that cannot be written are dropped, and the log says how many.",
            ),
        Spec::long("audit-exclude", Arg::Required, Id::AuditExclude)
            .in_full()
            .means("LIST", "omit these DB:TABLE[:COLUMN],... from the audit log")
            .within(log_options::GROUP),
        Spec::long(
            "disable-file-no-data-conversion",
            Arg::None,
            Id::DisableNoDataConversion,
        )
        .means("", "write data with conversions to clustered databases")
        .within(DATABASES),
        Spec::long("config-file", Arg::Required, Id::ConfigFile)
            .means("FILE", "take remotes and databases from FILE (JSON)")
            .within(DATABASES)
            .more(
                "Replaces `--remote`, database arguments and the syncing options. `ovsdb-server/reload` on the control socket applies changes.",
            ),
        Spec::long("metrics-listen", Arg::Required, Id::MetricsListen)
            .in_full()
            .means(
                "ADDRESS",
                "serve /metrics, /livez, /readyz and /status.json over HTTP (also DB=ADDRESS,...)",
            )
            .more(
                "ADDRESS is `HOST:PORT`, `[IPV6]:PORT`, `:PORT` for all addresses, or `unix:FILE`; with port 0 the server picks a free port and logs it. \
                 Scripts that start several servers with the same options give each database its own address: \
                 `OVN_Northbound=127.0.0.1:9641,OVN_Southbound=127.0.0.1:9642`; a server takes the first entry that names one of its databases. \
                 `unix:DIRECTORY/` is the socket `DATABASE.metrics.sock` in that directory. `ovsdb-server/set-setting metrics-listen` changes the address at run time. \
                 The pages have no authentication: choose an address that only permitted clients can reach. Without this option nothing is measured.",
            ),
    ]);
    specs.extend(limits::specs(Id::Limit));
    specs
}

/// The options, for the manual.
pub(crate) fn entries() -> Vec<OptionEntry> {
    Manual::entries(&specs())
}

/// The groups of options, in the order of the manual.
pub(crate) const GROUPS: [&str; 7] = [
    CONNECTIONS,
    DATABASES,
    tls_options::GROUP,
    daemon::GROUP,
    log_options::GROUP,
    limits::GROUP,
    SYNCING,
];

impl CommandLine {
    /// Parses the command line from left to right. An invalid command line, `--help` and
    /// `--version` end the process.
    #[must_use]
    pub fn parse(line: &[String]) -> CommandLine {
        let specs = specs();
        let mut parsed = CommandLine {
            slow_ms: SLOW_MS_DEFAULT,
            ..CommandLine::default()
        };
        let mut args = Args::new(&specs, line);
        while let Some(item) = args.or_die() {
            match item {
                Item::Positional(database) => parsed.databases.push(database),
                Item::Option(id, value) => parsed.apply(id, value),
            }
        }
        if let Some(conflict) = parsed.conflict() {
            program::fatal(conflict);
        }
        parsed
    }

    /// The error if options exclude each other, in the reference's words and order.
    fn conflict(&self) -> Option<&'static str> {
        self.config_file.as_ref()?;
        if self.sync_from.is_some() || self.sync_exclude_tables.is_some() || self.is_active {
            Some(
                "--config-file is mutually exclusive with --sync-from, --sync-exclude and --active",
            )
        } else if !self.remotes.is_empty() {
            Some("--config-file is mutually exclusive with --remote")
        } else if !self.databases.is_empty() {
            Some("Databases should be specified in a config file")
        } else {
            None
        }
    }

    fn apply(&mut self, id: Id, value: Option<String>) {
        match id {
            Id::Remote => {
                let remote = value.unwrap_or_default();
                if !self.remotes.contains(&remote) {
                    self.remotes.push(remote);
                }
            }
            Id::Unixctl => self.unixctl = value,
            Id::MetricsListen => self.metrics_listen = value,
            Id::CheckConfig => self.is_check = true,
            Id::Run => self.run = value,
            Id::NoDbs => self.no_default_database = true,
            Id::ConfigFile => self.config_file = value,
            Id::SyncFrom => self.sync_from = value,
            Id::SyncExcludeTables => self.sync_exclude_tables = value,
            Id::Active => self.is_active = true,
            Id::NoStandaloneHistory => self.no_standalone_history = true,
            Id::KeepHistory => {
                let text = value.unwrap_or_default();
                self.keep_history = text.parse().unwrap_or_else(|problem: PolicyError| {
                    program::fatal(format_args!("--keep-history: {problem}"))
                });
            }
            Id::RecordClients => self.record_clients = true,
            Id::DisableColumnDiff => self.disable_column_diff = true,
            Id::SlowTransaction => {
                let slow = slow_ms(&value.unwrap_or_default());
                self.slow_ms = slow.unwrap_or_else(|problem| {
                    program::fatal(format_args!("--slow-transaction-ms: {problem}"))
                });
            }
            Id::AuditLog => self.audit_log = value,
            Id::AuditExclude => {
                let list = value.unwrap_or_default();
                if let Err(problem) = exclusions(&list) {
                    program::fatal(format_args!("--audit-exclude: {problem}"));
                }
                if !self.audit_exclude.is_empty() {
                    self.audit_exclude.push(',');
                }
                self.audit_exclude.push_str(&list);
            }
            Id::TrustedRelays => {
                if !self.trusted_relays.is_empty() {
                    self.trusted_relays.push(',');
                }
                self.trusted_relays.push_str(&value.unwrap_or_default());
            }
            Id::DisableNoDataConversion => self.disable_no_data_conversion = true,
            Id::Record => self.record = Some(recordings(value)),
            Id::RecordSize => {
                let text = value.unwrap_or_default();
                let bytes = size::parse(&text).filter(|bytes| *bytes >= 1024);
                self.recording_bytes_max = bytes.or_else(|| {
                    program::fatal(format_args!(
                        "--max-recording-size={text}: expected a size of 1K or more"
                    ))
                });
            }
            Id::Replay => self.replay = Some(recordings(value)),
            Id::Help => program::answer(help::text(&manual::manual(), &Placeholders::of_process())),
            Id::Version => program::answer_version(),
            Id::Log(option) => log_options::apply(option, value.as_deref()),
            Id::Tls(option) => option.apply(&mut self.tls, value.as_deref()),
            Id::Limit(option) => self.limits.apply(option, value.as_deref()),
            Id::Daemon(option) => self.daemon.apply(option, value.as_deref()),
        }
    }
}

/// The directory for `--record` or `--replay`; a relative name refers to the run directory.
fn recordings(named: Option<String>) -> PathBuf {
    dirs::run().join(os_name::path(&named.unwrap_or_default()))
}

/// The default of `--slow-transaction-ms`: the duration at which the reference warns about a pass
/// of its main loop.
const SLOW_MS_DEFAULT: u64 = 1000;

/// Parses a threshold, ms. 0 turns the threshold off, which is represented as `u64::MAX`.
///
/// # Errors
/// The text is not a number.
pub(crate) fn slow_ms(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) => Ok(u64::MAX),
        Ok(ms) => Ok(ms),
        Err(_) => Err(format!("expected a number of milliseconds, not \"{text}\"")),
    }
}

/// Parses the tables that the audit log leaves out.
///
/// # Errors
/// An element is neither `DB:TABLE` nor `DB:TABLE:COLUMN`.
pub(crate) fn exclusions(list: &str) -> Result<Exclusions, String> {
    let mut exclusions = Exclusions::default();
    let outcome = exclusions.add(list);
    outcome
        .map_err(|element| format!("expected DB:TABLE or DB:TABLE:COLUMN, not \"{element}\""))?;
    Ok(exclusions)
}
