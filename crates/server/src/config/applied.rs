//! A configuration file, and the databases that it has added (`--config-file`,
//! `ovsdb-server/reload`; docs/spec/cli.md 1.4).
//!
//! An invalid file changes nothing. A valid file becomes a [`Reconfiguration`], which applies as
//! much of it as possible and logs each failure. This file compares the configuration with the
//! databases that earlier versions of the file have added.

use std::collections::BTreeMap;
use std::path::PathBuf;

use corvid_log::Magic;
use corvid_net::{dirs, errno, os_name};
use corvid_shell::vlog::{self, Module};

use crate::config::file::{ConfigFile, DatabaseConfig, ServiceModel};
use crate::config::relay::RelaySettings;
use crate::config::replication::ActiveBackup;
use crate::database::open;
use crate::server::Server;
use crate::server::reconfiguration::{Reconfiguration, WantedDatabase};

/// A configuration file and the databases that it has added.
#[derive(Debug)]
pub(crate) struct AppliedConfig {
    /// The absolute name.
    path: String,
    /// The directory in which the server was started and which a daemon leaves; relative names of
    /// databases refer to it.
    directory: PathBuf,
    /// The names of the databases added so far, by their entries in the file.
    databases: BTreeMap<String, String>,
}

/// A configuration could not be read or applied; the reason has been logged.
#[derive(Debug)]
pub(crate) struct ConfigError;

impl AppliedConfig {
    /// A configuration file with this name; a relative name refers to the directory of databases.
    /// Nothing is read yet. Must be called before the process becomes a daemon.
    #[must_use]
    pub(crate) fn new(file: &str) -> AppliedConfig {
        let path = dirs::db().join(os_name::path(file));
        let path = std::path::absolute(&path).unwrap_or(path);
        AppliedConfig {
            path: os_name::text(path.as_os_str()),
            directory: std::env::current_dir().unwrap_or_default(),
            databases: BTreeMap::new(),
        }
    }

    /// The absolute name of the file.
    #[must_use]
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Reads the file, begins to remove databases that it no longer lists, and returns the rest as
    /// a configuration to apply.
    ///
    /// # Errors
    /// The file is invalid. Nothing has changed.
    pub(crate) fn reconfiguration(
        &mut self,
        server: &mut Server,
    ) -> Result<Reconfiguration, ConfigError> {
        let config = read(&self.path)?;
        server.configure_history(&config);
        self.remove_databases(server, &config);
        let wanted = config
            .databases
            .into_iter()
            .map(|(entry, config)| WantedDatabase {
                file: self.file_of(&entry, &config),
                entry,
                config: Some(config),
            });
        Ok(Reconfiguration::new(wanted, config.remotes))
    }

    /// The files and relays that the file lists, as command-line arguments. Logs nothing.
    ///
    /// # Errors
    /// The file cannot be read or is invalid.
    pub(crate) fn files(&self) -> Result<Vec<String>, ConfigError> {
        let text = std::fs::read(&self.path).map_err(|_| ConfigError)?;
        let (config, _) = ConfigFile::parse(&text);
        let databases = config.ok_or(ConfigError)?.databases;
        let file = |(entry, config): (&String, &DatabaseConfig)| self.file_of(entry, config);
        Ok(databases.iter().map(file).collect())
    }

    /// The name of the database that an entry has added.
    #[must_use]
    pub(crate) fn database_of(&self, entry: &str) -> Option<&str> {
        self.databases.get(entry).map(String::as_str)
    }

    /// Records that an entry has added the database of this name.
    pub(crate) fn served(&mut self, entry: String, name: String) {
        self.databases.insert(entry, name);
    }

    fn remove_databases(&mut self, server: &mut Server, config: &ConfigFile) {
        let removed = |entry: &String, _: &mut String| !config.databases.contains_key(entry);
        for (entry, name) in self.databases.extract_if(.., removed) {
            let reason = format!("database {entry} removed from configuration");
            server.remove_database(&name, &reason, None);
        }
        let other_model = |entry: &String, name: &mut String| {
            let wanted = config.databases.get(entry);
            wanted.is_some_and(|wanted| !fits(wanted, server.databases().file_kind(name)))
        };
        let others: Vec<(String, String)> = self.databases.extract_if(.., other_model).collect();
        for (entry, name) in others {
            let reason = format!("service model changed for database {entry}");
            server.remove_database(&name, &reason, None);
        }
    }

    /// The file that an entry names: as written, or absolute if the process has left its start
    /// directory. For a relay: its argument.
    pub(crate) fn file_of(&self, entry: &str, config: &DatabaseConfig) -> String {
        if let Some(relay) = RelaySettings::of_entry(entry, config) {
            return relay.argument();
        }
        let is_still_there = std::env::current_dir().is_ok_and(|now| now == self.directory);
        if is_still_there {
            entry.to_owned()
        } else {
            let file = self.directory.join(os_name::path(entry));
            os_name::text(file.as_os_str())
        }
    }
}

/// Reads and parses a configuration file.
///
/// # Errors
/// The file cannot be opened, or is invalid; the reason has been logged.
pub(crate) fn read(path: &str) -> Result<ConfigFile, ConfigError> {
    let text = std::fs::read(os_name::path(path)).map_err(|error| {
        let reason = errno::text(&error);
        vlog::err(
            Module::OvsdbServer,
            format_args!("failed to open configuration file '{path}': {reason}"),
        );
        ConfigError
    })?;
    vlog::info(
        Module::OvsdbServer,
        format_args!("loading configuration from '{path}'"),
    );
    let (config, warnings) = ConfigFile::parse(&text);
    for warning in warnings {
        let module = if warning.is_about_options {
            Module::OvsdbJsonrpcServer
        } else {
            Module::OvsdbServer
        };
        vlog::warn(module, format_args!("{}", warning.text));
    }
    config.ok_or_else(|| {
        warn(format_args!("failed to load configuration from {path}"));
        ConfigError
    })
}

/// Checks that the file of an entry is of the kind that the entry says. Other faults are found when
/// the file is opened.
///
/// # Errors
/// The file is of another kind.
pub(crate) fn check_kind(entry: &str, file: &str, wanted: &DatabaseConfig) -> Result<(), String> {
    let (is, is_not) = match (wanted.model, open::kind(file)) {
        (Some(ServiceModel::Clustered), Ok(Magic::Standalone)) => ("standalone", "clustered"),
        (Some(ServiceModel::Standalone), Ok(Magic::Clustered)) => ("clustered", "standalone"),
        (Some(ServiceModel::ActiveBackup), Ok(Magic::Clustered)) => ("clustered", "active-backup"),
        _ => return Ok(()),
    };
    Err(format!(
        "ovsdb error: {entry}: database is {is} and not {is_not}"
    ))
}

/// Whether a served database can stay under an entry's service model. `kind`: the kind of its file;
/// `None`: it is a relay.
fn fits(wanted: &DatabaseConfig, kind: Option<Magic>) -> bool {
    match wanted.model {
        None => kind.is_some(),
        Some(ServiceModel::Relay) => kind.is_none(),
        Some(ServiceModel::Clustered) => kind == Some(Magic::Clustered),
        Some(ServiceModel::Standalone | ServiceModel::ActiveBackup) => {
            kind == Some(Magic::Standalone)
        }
    }
}

/// An entry's settings for active-backup replication; `None`: the entry has another service model.
pub(crate) fn replication_of(wanted: &DatabaseConfig) -> Option<ActiveBackup> {
    if wanted.model != Some(ServiceModel::ActiveBackup) {
        return None;
    }
    let source = wanted.source.as_ref();
    Some(ActiveBackup {
        is_backup: wanted.is_backup,
        source: source
            .map(|source| source.remote.clone())
            .unwrap_or_default(),
        options: source
            .map(|source| source.options.clone())
            .unwrap_or_default(),
        excluded: wanted.exclude_tables.join(","),
    })
}

fn warn(text: std::fmt::Arguments<'_>) {
    vlog::warn(Module::OvsdbServer, text);
}
