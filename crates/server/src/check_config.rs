//! `--check-config`: checks whether a server could start with these options, without starting it.
//!
//! Invariant: nothing is served, locked, bound or written. The check continues after a fault, so
//! that one run reports all faults, in the words of a start. Called instead of
//! [`crate::main_loop`].

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::path::Path;

use corvid_engine::Database;
use corvid_net::target::Target;
use corvid_net::{errno, os_name};
use corvid_rpc::remote::{ColumnRemote, RemoteList};
use corvid_service::remote_rows::{RemoteColumn, RemoteRows};
use corvid_service::server_db;
use corvid_shell::{output, program};

use crate::config::applied::{self, AppliedConfig, ConfigError};
use crate::config::file::DatabaseConfig;
use crate::config::relay::RelaySettings;
use crate::database::open::{self, RandomUuids};
use crate::main_loop::databases;
use crate::metrics::listen::ListenAt;
use crate::options::CommandLine;
use crate::server::databases::{check_name, same_file};
use crate::tls_settings::TlsSettings;

/// The state of the check.
#[derive(Default)]
struct Check {
    has_failed: bool,
    /// The names of the databases.
    names: Vec<String>,
    /// The databases by name, except those whose server is still joining a cluster.
    databases: BTreeMap<String, Database>,
    /// The databases' files.
    files: Vec<String>,
    /// A remote or a source uses TLS.
    needs_tls: bool,
}

/// Checks everything and ends the process: with status 0 if a server could start, else 1.
pub fn run(line: &CommandLine) {
    let mut check = Check::default();
    // `resolve` logs a warning if the limit of open files is too low.
    let _ = line.limits.resolve();
    match &line.config_file {
        Some(file) => check.config_file(&AppliedConfig::new(file)),
        None => check.command_line(line),
    }
    check.tls(line);
    check.rest(line);
    if check.has_failed {
        program::fatal("the configuration check failed");
    }
    output::line("the configuration is good");
    program::exit(0);
}

impl Check {
    fn fault(&mut self, what: impl Display) {
        self.has_failed = true;
        output::error_line(format_args!("ovsdb-server: {what}"));
    }

    fn command_line(&mut self, line: &CommandLine) {
        for file in databases(line) {
            match RelaySettings::of_argument(&file) {
                Some(relay) => self.relay(&file, &relay),
                None => self.database(&file, &file, &DatabaseConfig::default()),
            }
        }
        for remote in &line.remotes {
            self.remote(remote);
        }
        if let Some(source) = &line.sync_from {
            self.source(source);
        }
    }

    fn config_file(&mut self, file: &AppliedConfig) {
        let path = file.path();
        let config = match applied::read(path) {
            Ok(config) => config,
            Err(ConfigError) => return self.fault(format_args!("{path}: the file cannot be used")),
        };
        for (entry, wanted) in &config.databases {
            let file = file.file_of(entry, wanted);
            if let Some(relay) = RelaySettings::of_entry(entry, wanted) {
                self.relay(entry, &relay);
                continue;
            }
            self.database(entry, &file, wanted);
            if let Some(source) = &wanted.source {
                self.source(&source.remote);
            }
        }
        for remote in config.remotes.keys() {
            self.remote(remote);
        }
    }

    fn database(&mut self, shown: &str, file: &str, wanted: &DatabaseConfig) {
        match self.open(shown, file, wanted) {
            Ok((name, database)) => {
                output::line(format_args!("database {name}: {file}"));
                self.files.push(file.to_owned());
                self.names.push(name.clone());
                if let Some(database) = database {
                    self.databases.insert(name, database);
                }
            }
            Err(error) => self.fault(format_args!("failed to open database '{shown}': {error}")),
        }
    }

    /// Checks a relay's settings. Its source need not be reachable: a server starts without it.
    fn relay(&mut self, shown: &str, relay: &RelaySettings) {
        match check_name(&relay.name, self.names.contains(&relay.name)) {
            Ok(()) => {
                output::line(format_args!(
                    "database {}: {}",
                    relay.name,
                    relay.argument()
                ));
                self.names.push(relay.name.clone());
            }
            Err(error) => self.fault(format_args!("failed to open database '{shown}': {error}")),
        }
        self.source(&relay.source.remotes);
    }

    fn open(
        &self,
        shown: &str,
        file: &str,
        wanted: &DatabaseConfig,
    ) -> Result<(String, Option<Database>), String> {
        applied::check_kind(shown, file, wanted)?;
        if self.files.iter().any(|other| same_file(other, file)) {
            return Err(format!("ovsdb error: {file}: already open"));
        }
        let mut uuids = RandomUuids::new().map_err(|error| errno::text(&error))?;
        let seed = open::hash_seed().map_err(|error| errno::text(&error))?;
        let found = open::inspect(file, seed, &mut uuids);
        let found = found.map_err(|error| error.to_string())?;
        if let Some(damage) = found.damage {
            // A server ignores everything after the damage.
            output::error_line(format_args!("ovsdb-server: warning: {damage}"));
        }
        check_name(&found.name, self.names.contains(&found.name))?;
        Ok((found.name, found.database))
    }

    /// Checks a remote.
    fn remote(&mut self, remote: &str) {
        if ColumnRemote::matches(remote) {
            match self.column(remote, false) {
                Err(error) => self.fault(format_args!("failed to configure remotes: {error}")),
                Ok(targets) => {
                    for target in targets.keys() {
                        self.target(target);
                    }
                }
            }
        } else {
            self.target(remote);
        }
        output::line(format_args!("remote {remote}"));
    }

    fn target(&mut self, target: &str) {
        self.needs_tls |= target.starts_with("ssl:") || target.starts_with("pssl:");
        if let Err(error) = Target::parse(target) {
            self.fault(format_args!("remote '{target}' cannot be used: {error}"));
        }
    }

    /// Checks a source.
    fn source(&mut self, source: &str) {
        let remotes = RemoteList::parse(source).remotes;
        if remotes.is_empty() {
            self.fault(format_args!("source '{source}' names no server"));
        }
        for remote in remotes {
            self.target(&remote);
        }
    }

    /// Checks the column that a remote or a TLS setting names; a setting needs a column of strings.
    fn column(&self, column: &str, texts_only: bool) -> Result<RemoteRows, String> {
        let source =
            ColumnRemote::parse(column).ok_or_else(|| format!("\"{column}\": invalid syntax"))?;
        if source.database == server_db::NAME {
            return Ok(RemoteRows::new());
        }
        let database = self.databases.get(source.database);
        let database = database
            .ok_or_else(|| format!("\"{column}\": no database named {}", source.database))?;
        let found = RemoteColumn::find(database, column, source.table, source.column)?;
        if texts_only && !found.holds_texts() {
            return Err(format!(
                "\"{column}\": table \"{}\" column \"{}\" is not string or set of strings",
                source.table, source.column
            ));
        }
        Ok(found.read(database))
    }

    /// Checks the TLS settings, if any are given or a remote needs them.
    fn tls(&mut self, line: &CommandLine) {
        if !self.needs_tls && line.tls == corvid_net::tls::Settings::default() {
            return;
        }
        let mut settings = TlsSettings::new(line.tls.clone());
        let columns: BTreeSet<String> = settings.columns().map(str::to_owned).collect();
        for column in columns {
            match self.column(&column, true) {
                Ok(texts) => settings.set(&column, &texts),
                Err(error) => self.fault(format_args!("failed to configure SSL/TLS: {error}")),
            }
        }
        if settings.credentials().are_sound() {
            output::line("SSL/TLS: key and certificate");
        } else {
            self.fault("SSL/TLS cannot be used; see the stream_ssl log messages");
        }
    }

    /// Checks options that a start uses only later.
    fn rest(&mut self, line: &CommandLine) {
        if let Some(address) = &line.metrics_listen
            && let Err(error) = ListenAt::parse(address).and_then(|listen| listen.check())
        {
            self.fault(format_args!("--metrics-listen={address}: {error}"));
        }
        if let Some(file) = &line.audit_log {
            let outcome = appendable(&os_name::path(file));
            if let Err(error) = outcome {
                let reason = errno::text(&error);
                self.fault(format_args!("{file}: cannot open audit log ({reason})"));
            }
        }
    }
}

/// Whether a file can be appended to or created.
fn appendable(file: &Path) -> std::io::Result<()> {
    match std::fs::OpenOptions::new().append(true).open(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let directory = std::path::absolute(file)?;
            let directory = directory.parent().unwrap_or(Path::new("/")).to_owned();
            std::fs::metadata(directory).map(drop)
        }
        outcome => outcome.map(drop),
    }
}
