//! The command line of `ovsdb-server` (cli.md 1.1).

use corvid_os::args::{Arg, Args, Item, Spec};
use corvid_os::daemon::{self, DaemonOption};
use corvid_os::program;
use corvid_os::tls;
use corvid_os::tls::options::TlsOption;
use corvid_os::vlog::options::{self as log_options, LogOption};

/// What the command line asks for. Logging options have taken effect already.
#[derive(Debug, Default)]
pub struct CommandLine {
    /// `--remote`, duplicates dropped.
    pub remotes: Vec<String>,
    /// Database files.
    pub databases: Vec<String>,
    /// `--no-dbs`
    pub no_default_database: bool,
    /// `--config-file`
    pub config_file: Option<String>,
    /// One of `--sync-from`, `--sync-exclude-tables` and `--active` was given.
    pub is_about_backups: bool,
    /// `--unixctl`
    pub unixctl: Option<String>,
    /// `--run`
    pub run: Option<String>,
    /// `--disable-file-column-diff`
    pub disable_column_diff: bool,
    /// Key, certificate and the like, as files or as `db:` columns.
    pub tls: tls::Settings,
    /// How to become a daemon.
    pub daemon: daemon::Options,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Id {
    Remote,
    Unixctl,
    Run,
    NoDbs,
    ConfigFile,
    /// Accepted; backups are not built yet.
    Backup,
    DisableColumnDiff,
    /// Accepted; takes effect with the features it belongs to.
    Accepted,
    Help,
    Version,
    Log(LogOption),
    Daemon(DaemonOption),
    Tls(TlsOption),
}

fn specs() -> Vec<Spec<Id>> {
    let mut specs = vec![
        Spec::long("remote", Arg::Required, Id::Remote),
        Spec::long("unixctl", Arg::Required, Id::Unixctl),
        Spec::long("run", Arg::Required, Id::Run),
        Spec::long("no-dbs", Arg::None, Id::NoDbs),
        Spec::long("disable-file-column-diff", Arg::None, Id::DisableColumnDiff),
        Spec::both("help", 'h', Arg::None, Id::Help),
        Spec::both("version", 'V', Arg::None, Id::Version),
        Spec::long("disable-file-no-data-conversion", Arg::None, Id::Accepted),
        Spec::long("active", Arg::None, Id::Backup),
        Spec::long("sync-from", Arg::Required, Id::Backup),
        Spec::long("sync-exclude-tables", Arg::Required, Id::Backup),
        Spec::long("config-file", Arg::Required, Id::ConfigFile),
    ];
    specs.extend(tls::options::specs(Id::Tls));
    specs.push(tls::options::peer_spec(Id::Tls));
    specs.extend(["record", "replay"].map(|name| Spec::long(name, Arg::Optional, Id::Accepted)));
    specs.extend(log_options::specs(Id::Log));
    specs.extend(daemon::specs(Id::Daemon));
    specs
}

impl CommandLine {
    /// Reads the command line from left to right; a bad one, `--help` and `--version` end the process.
    #[must_use]
    pub fn parse(line: &[String]) -> CommandLine {
        let specs = specs();
        let mut parsed = CommandLine::default();
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

    /// What cannot go together, in the reference's words and order.
    fn conflict(&self) -> Option<&'static str> {
        self.config_file.as_ref()?;
        if self.is_about_backups {
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
            Id::Run => self.run = value,
            Id::NoDbs => self.no_default_database = true,
            Id::ConfigFile => self.config_file = value,
            Id::Backup => self.is_about_backups = true,
            Id::DisableColumnDiff => self.disable_column_diff = true,
            Id::Accepted => {}
            Id::Help => program::answer(help()),
            Id::Version => program::answer_version(),
            Id::Log(option) => log_options::apply(option, value.as_deref()),
            Id::Tls(option) => self.tls.apply(option, value.as_deref()),
            Id::Daemon(option) => self.daemon.apply(option, value.as_deref()),
        }
    }
}

fn help() -> String {
    format!(
        "{prog}: Open vSwitch database server\n\
         usage: {prog} [OPTIONS] [DATABASE...]\n\
         where each DATABASE is a database file in ovsdb format\n\
         (default: {dbdir}/conf.db, if none is given).\n\
         \n\
         JSON-RPC options (may be specified any number of times):\n\
         \x20 --remote=REMOTE         connect or listen to REMOTE\n\
         Active OVSDB connection methods:\n\
         \x20 tcp:HOST:PORT           PORT at remote HOST\n\
         \x20 ssl:HOST:PORT           SSL/TLS PORT at remote HOST\n\
         \x20 unix:FILE               Unix domain socket named FILE\n\
         Passive OVSDB connection methods:\n\
         \x20 ptcp:[PORT][:IP]        listen to TCP PORT on IP\n\
         \x20 pssl:[PORT][:IP]        listen for SSL/TLS on PORT on IP\n\
         \x20 punix:FILE              listen on Unix domain socket FILE\n\
         {tls}\
         \x20 --peer-ca-cert=FILE     extra certificates to send to peers\n\
         {daemon}{logging}\
         \n\
         Other options:\n\
         \x20 --config-file=FILE      take remotes and databases from FILE (JSON)\n\
         \x20 --no-dbs                serve no database unless one is named\n\
         \x20 --run COMMAND           run COMMAND as subprocess then exit\n\
         \x20 --unixctl=SOCKET        override default control socket name\n\
         \x20 --disable-file-column-diff\n\
         \x20                         write whole columns, not differences, to database files\n\
         \x20 -h, --help              display this help message\n\
         \x20 -V, --version           display version information\n",
        prog = program::name(),
        dbdir = corvid_os::dirs::db().display(),
        tls = tls::options::HELP,
        daemon = daemon::HELP,
        logging = log_options::HELP,
    )
}
