//! Applies a configuration, at the start and at each reload, in this order: removed databases, new
//! databases, roles, TLS settings, remotes. Part of the main thread.
//!
//! Each step waits for the previous one without blocking the main thread: [`Server::advance`] runs
//! after each batch of events and takes the next step when its condition holds.
//! [`crate::config::applied`] reads the file and computes how it differs from the current
//! configuration. A command reloads it; SIGHUP also reloads certificates and reopens log files.
//!
//! Invariant: one configuration at a time is applied. A reload that is requested in the meantime
//! begins when the current one has ended, and reads the file then. Pending reloads by SIGHUP are
//! merged.

use std::collections::VecDeque;

use corvid_net::errno;
use corvid_service::message::Control;
use corvid_shell::service_manager;
use corvid_shell::unixctl::Replier;
use corvid_shell::vlog::{self, Module};

use super::Server;
use super::opening::{Request, Requester};
use crate::config::applied::{AppliedConfig, ConfigError, replication_of};
use crate::config::file::{ConfigFile, DatabaseConfig};
use crate::config::relay::RelaySettings;
use crate::config::saved_config::{SavedConfig, SavedConfigFile};
use crate::remotes::options::RemoteOptions;

/// A configuration that is being applied.
pub(crate) struct Reconfiguration {
    step: Step,
    /// Databases still to be served, the next one first.
    databases: VecDeque<WantedDatabase>,
    remotes: Vec<(String, RemoteOptions)>,
    /// Whether the first failure ends the configuration. Otherwise as much as possible is applied.
    stops_at_failure: bool,
    has_failed: bool,
}

/// A database of a configuration.
#[derive(Clone, Debug)]
pub(crate) struct WantedDatabase {
    /// The configuration file's entry, or the file name as given on the command line.
    pub(crate) entry: String,
    /// The name of the file.
    pub(crate) file: String,
    /// The entry's settings; `None`: those of the command line.
    pub(crate) config: Option<DatabaseConfig>,
}

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Waits until the files of removed databases are closed, because another entry may now name
    /// the same file.
    Removals,
    Databases,
    /// Waits until the first of the databases is served, or has failed.
    Opening,
    /// Waits until every database has its role.
    Roles,
    Tls,
    /// Waits until the columns that hold TLS settings have been read.
    TlsRead,
    Remotes,
    /// Waits until the columns that name remotes have been read.
    RemotesRead,
    Done,
}

impl Reconfiguration {
    /// A configuration of these databases and remotes, in these orders.
    #[must_use]
    pub(crate) fn new(
        databases: impl IntoIterator<Item = WantedDatabase>,
        remotes: impl IntoIterator<Item = (String, RemoteOptions)>,
    ) -> Reconfiguration {
        Reconfiguration {
            step: Step::Removals,
            databases: databases.into_iter().collect(),
            remotes: remotes.into_iter().collect(),
            stops_at_failure: false,
            has_failed: false,
        }
    }

    /// Makes the first failure end the configuration.
    #[must_use]
    pub(crate) fn stopping_at_failure(mut self) -> Reconfiguration {
        self.stops_at_failure = true;
        self
    }

    /// A configuration that failed before it began. The failure has been logged.
    #[must_use]
    pub(crate) fn failed() -> Reconfiguration {
        Reconfiguration {
            step: Step::Done,
            has_failed: true,
            ..Reconfiguration::new([], [])
        }
    }

    fn fail(&mut self, what: std::fmt::Arguments<'_>) {
        warn(what);
        self.has_failed = true;
    }

    /// Continues with `step`, unless a failure ends the configuration.
    fn advance_to(&mut self, step: Step) {
        let is_over = self.has_failed && self.stops_at_failure;
        self.step = if is_over { Step::Done } else { step };
    }
}

/// The configuration file that is applied, the configuration that is being applied, the pending
/// reloads, and where the present configuration is saved.
#[derive(Default)]
pub(super) struct Configuration {
    /// The configuration file, if there is one.
    file: Option<AppliedConfig>,
    present: Option<Reconfiguration>,
    /// Answered when the current configuration has ended; `None`: it is the first one, or a signal
    /// requested it.
    replier: Option<Replier>,
    /// Pending reloads, with their repliers: at most one for each control connection, and one for
    /// all signals.
    reloads: VecDeque<Option<Replier>>,
    /// The outcome of the first configuration, until it is taken.
    outcome: Option<Result<(), ConfigError>>,
    is_started: bool,
    /// The configuration for a restarted server; `None`: a restarted server reads the configuration
    /// file.
    saved: Option<SavedConfigFile>,
}

impl Configuration {
    /// Whether the first configuration has been applied.
    pub(super) fn is_started(&self) -> bool {
        self.is_started
    }

    /// The first configuration has been applied. From now on it is saved here.
    pub(super) fn started(&mut self, saved: Option<SavedConfigFile>) {
        self.is_started = true;
        self.saved = saved;
    }

    /// Continues with `step` after this outcome of the present one.
    fn advance_to(&mut self, outcome: Result<(), String>, what: &str, step: Step) {
        if let Some(reconfiguration) = &mut self.present {
            if let Err(error) = outcome {
                reconfiguration.fail(format_args!("failed to configure {what}: {error}"));
            }
            reconfiguration.advance_to(step);
        }
    }

    /// Saves the present configuration for a restarted server, if it is to be saved.
    pub(super) fn save(&self, present: impl FnOnce() -> SavedConfig) {
        if let Some(saved) = &self.saved {
            saved.write(&present());
        }
    }
}

impl Server {
    /// Begins to apply a configuration file at the start. [`Server::reload`] applies it again.
    pub(crate) fn configure(&mut self, mut file: AppliedConfig) {
        let reconfiguration = file.reconfiguration(self);
        self.configuration.file = Some(file);
        // A file that cannot be used counts as a failed configuration.
        self.begin(reconfiguration.unwrap_or_else(|ConfigError| Reconfiguration::failed()));
    }

    /// The name of the configuration file, if there is one.
    pub(crate) fn config_file(&self) -> Option<&str> {
        self.configuration.file.as_ref().map(AppliedConfig::path)
    }

    /// Applies what the file says about histories and about clients in records.
    pub(crate) fn configure_history(&mut self, file: &ConfigFile) {
        if let Some(is_kept) = self.history.apply_kept(file.standalone_history) {
            let message = || Control::SetHistory(is_kept);
            self.databases.control_all(message);
        }
        if let Some(policy) = self.history.apply_policy(file.keep_history) {
            self.config.histories.set_policy(policy);
        }
        if let Some(names_clients) = self.history.apply_clients(file.record_clients) {
            let message = || Control::SetRecordClients(names_clients);
            self.databases.control_all(message);
        }
    }

    /// Begins to apply the first configuration.
    pub(crate) fn begin(&mut self, reconfiguration: Reconfiguration) {
        self.configuration.present = Some(reconfiguration);
        self.advance();
    }

    /// Takes the outcome of the first configuration, once it is known.
    pub(crate) fn take_started(&mut self) -> Option<Result<(), ConfigError>> {
        self.configuration.outcome.take()
    }

    /// Whether a configuration is being applied and makes progress.
    #[must_use]
    pub(crate) fn is_reconfiguring(&self, now_ms: u64) -> bool {
        self.configuration.present.is_some() && self.openings.make_progress(now_ms)
    }

    /// Applies the configuration file again; `replier` is answered when as much as possible is
    /// applied.
    pub(crate) fn reload(&mut self, replier: Option<Replier>) {
        if self.configuration.file.is_none() {
            let error = "Configuration file was not specified on command line";
            return super::answer(replier, Err(error.to_owned()));
        }
        let reloads = &mut self.configuration.reloads;
        if replier.is_some() || !reloads.iter().any(Option::is_none) {
            reloads.push_back(replier);
        }
        self.advance();
    }

    /// Handles SIGHUP: reopens log files by name, and rereads certificates and the configuration
    /// file. Failures are logged.
    pub(crate) fn hang_up(&mut self) {
        let what = "received SIGHUP, reloading configuration and certificates and reopening logs";
        vlog::info(Module::OvsdbServer, format_args!("{what}"));
        // `reopen_file` logs a failure; without a log file there is nothing to do.
        let _ = vlog::reopen_file();
        if let Some(audit) = self.config.audit.get() {
            audit.reopen(|outcome| {
                if let Err(error) = outcome {
                    let text = errno::text(&error);
                    vlog::warn(
                        Module::OvsdbServer,
                        format_args!("failed to reopen the audit log: {text}"),
                    );
                }
            });
        }
        self.refresh_tls();
        if self.configuration.file.is_some() {
            // Failures are logged.
            self.reload(None);
        } else {
            service_manager::reloading();
            service_manager::reloaded(&self.summary());
        }
    }

    /// Takes the steps that are possible now.
    pub(super) fn advance(&mut self) {
        loop {
            if self.configuration.present.is_none() {
                let Some(replier) = self.configuration.reloads.pop_front() else {
                    return;
                };
                self.begin_reload(replier);
            } else if !self.step() {
                return;
            }
        }
    }

    fn begin_reload(&mut self, replier: Option<Replier>) {
        service_manager::reloading();
        self.configuration.replier = replier;
        let Some(mut file) = self.configuration.file.take() else {
            return;
        };
        let reconfiguration = file.reconfiguration(self);
        self.configuration.file = Some(file);
        match reconfiguration {
            Ok(reconfiguration) => self.configuration.present = Some(reconfiguration),
            Err(ConfigError) => self.end_reconfiguration(Err(ConfigError)),
        }
    }

    /// Takes one step. Returns false if the step's condition does not hold yet.
    fn step(&mut self) -> bool {
        let step = self
            .configuration
            .present
            .as_ref()
            .map(|reconfiguration| reconfiguration.step);
        let must_wait = match step {
            Some(Step::Removals) => !self.pending.removals.is_empty(),
            Some(Step::Opening) | None => true,
            Some(Step::Roles) => self.pending.awaits_roles(),
            Some(Step::TlsRead) => self.pending.columns.awaits_tls(),
            Some(Step::RemotesRead) => self.pending.columns.awaits_remotes(),
            Some(_) => false,
        };
        let Some(reconfiguration) = self.configuration.present.as_mut().filter(|_| !must_wait)
        else {
            return false;
        };
        match reconfiguration.step {
            Step::Removals => reconfiguration.step = Step::Databases,
            Step::Databases => match reconfiguration.databases.front().cloned() {
                Some(wanted) => {
                    reconfiguration.step = Step::Opening;
                    self.serve_next(wanted);
                }
                None => reconfiguration.step = Step::Roles,
            },
            Step::Roles => {
                if reconfiguration.has_failed {
                    reconfiguration.fail(format_args!("failed to configure databases"));
                }
                reconfiguration.advance_to(Step::Tls);
            }
            // The settings may be in columns, so all databases are served before this step.
            Step::Tls => {
                let asked = self.read_tls_columns();
                self.configuration
                    .advance_to(asked, "SSL/TLS", Step::TlsRead);
            }
            Step::TlsRead => {
                let read = self.pending.columns.tls_outcome();
                self.configuration
                    .advance_to(read, "SSL/TLS", Step::Remotes);
            }
            // Remotes come last: the first client of a new remote finds every database in its role.
            Step::Remotes => {
                reconfiguration.step = Step::RemotesRead;
                let remotes = std::mem::take(&mut reconfiguration.remotes);
                self.serve_remotes(remotes);
            }
            Step::RemotesRead => {
                let read = self.pending.columns.remotes_outcome();
                self.configuration.advance_to(read, "remotes", Step::Done);
            }
            // `reconfiguration_opened` changes this step.
            Step::Opening => return false,
            Step::Done => {
                let has_failed = reconfiguration.has_failed;
                self.configuration.present = None;
                self.end_reconfiguration(if has_failed { Err(ConfigError) } else { Ok(()) });
            }
        }
        true
    }

    /// Opens the next database, or changes the replication of a served one.
    /// [`Server::reconfiguration_opened`] gets the outcome.
    fn serve_next(&mut self, wanted: WantedDatabase) {
        let served = self.configuration.file.as_ref();
        let served = served.and_then(|file| file.database_of(&wanted.entry).map(str::to_owned));
        match (served, wanted.config) {
            (Some(name), Some(config)) => {
                self.set_replication(&name, replication_of(&config));
                if let Some(settings) = RelaySettings::of_entry(&wanted.entry, &config) {
                    self.databases.set_relay_source(&name, settings);
                }
                self.reconfiguration_opened(Ok(name));
            }
            (_, config) => {
                let entry = config.map(|config| (wanted.entry, config));
                self.open(Request::new(
                    &wanted.file,
                    entry,
                    Requester::Reconfiguration,
                ));
            }
        }
    }

    /// Handles the outcome of the next database: served under this name, or failed.
    pub(super) fn reconfiguration_opened(&mut self, outcome: Result<String, String>) {
        let Some(reconfiguration) = &mut self.configuration.present else {
            return;
        };
        let Some(wanted) = reconfiguration.databases.pop_front() else {
            return;
        };
        let entry = &wanted.entry;
        match outcome {
            Ok(name) => {
                if let (Some(file), Some(_)) = (&mut self.configuration.file, wanted.config) {
                    file.served(wanted.entry, name);
                }
            }
            Err(error) => {
                reconfiguration.fail(format_args!("failed to open database '{entry}': {error}"));
            }
        }
        let is_over = reconfiguration.has_failed && reconfiguration.stops_at_failure;
        reconfiguration.step = if is_over {
            Step::Roles
        } else {
            Step::Databases
        };
    }

    fn serve_remotes(&mut self, remotes: Vec<(String, RemoteOptions)>) {
        let given: Vec<String> = self.remote_names().map(str::to_owned).collect();
        for remote in given {
            if !remotes.iter().any(|(wanted, _)| *wanted == remote) {
                // The remote is in the list, so this cannot fail.
                let _ = self.remove_remote(&remote);
            }
        }
        for (remote, options) in remotes {
            self.configure_remote(&remote, options);
        }
    }

    fn end_reconfiguration(&mut self, outcome: Result<(), ConfigError>) {
        if !self.configuration.is_started {
            self.configuration.outcome = Some(outcome);
            return;
        }
        service_manager::reloaded(&self.summary());
        let failed = "Configuration failed.  See the log file for details.";
        let outcome = outcome.map(|()| String::new());
        let replier = self.configuration.replier.take();
        super::answer(replier, outcome.map_err(|ConfigError| failed.to_owned()));
    }
}

fn warn(text: std::fmt::Arguments<'_>) {
    vlog::warn(Module::OvsdbServer, text);
}
