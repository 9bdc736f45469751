//! Serving what a configuration asks for, at the start and at each reload, while the main thread goes on: databases that go, databases that
//! come, roles, settings of TLS, remotes, in this order. Part of the main thread.
//!
//! Each step waits for the one before it without holding up anything else: `Server::advance` is called after all events and takes the
//! next step when it can be taken. What a configuration is, and how its parts differ from what is served, is told by `config::applied`.
//!
//! Invariant: one rollout at a time. A reload that is asked for meanwhile begins when the present one has ended, and reads the file then.
//! One that nobody waits for (SIGHUP) is not asked for twice.

use std::collections::VecDeque;

use corvid_shell::service_manager;
use corvid_shell::unixctl::Replier;
use corvid_shell::vlog::{self, Module};

use super::Server;
use super::opening::{Request, Requester};
use crate::config::applied::{ConfigError, model_of};
use crate::config::file::DatabaseConfig;
use crate::remotes::options::RemoteOptions;

/// A configuration on its way.
pub(crate) struct Reconfiguration {
    step: Step,
    /// Yet to be served, the next one first.
    databases: VecDeque<WantedDatabase>,
    remotes: Vec<(String, RemoteOptions)>,
    /// The first failure ends it; otherwise as much as possible is done.
    stops_at_failure: bool,
    has_failed: bool,
}

/// A database that is asked for.
#[derive(Clone, Debug)]
pub(crate) struct WantedDatabase {
    /// The entry of the configuration file, or the name of the file as given.
    pub(crate) entry: String,
    /// The file.
    pub(crate) file: String,
    /// What the entry asks for; `None`: what is set for all.
    pub(crate) config: Option<DatabaseConfig>,
}

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// When the files of databases that went are closed: what one entry named another may name now.
    Removals,
    Databases,
    /// When the first of the databases is served, or has failed.
    Opening,
    /// When every database has taken its role.
    Roles,
    Tls,
    /// When the columns that name settings of TLS have been read.
    TlsRead,
    Remotes,
    /// When the columns that name remotes have been read.
    RemotesRead,
    Done,
}

impl Reconfiguration {
    /// Of these databases and remotes, in these orders.
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

    /// Nothing is tried any more after the first failure.
    #[must_use]
    pub(crate) fn stopping_at_failure(mut self) -> Reconfiguration {
        self.stops_at_failure = true;
        self
    }

    /// One that has failed before it began, which has been logged.
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

    /// Goes on to `step`, unless it is over.
    fn go_on(&mut self, step: Step) {
        let is_over = self.has_failed && self.stops_at_failure;
        self.step = if is_over { Step::Done } else { step };
    }
}

/// The one under way, those that are to follow, and what came of the first.
#[derive(Default)]
pub(super) struct Reconfigurations {
    present: Option<Reconfiguration>,
    /// Is answered at the end of the present one; `None`: it is the start, or was asked for by a signal.
    replier: Option<Replier>,
    /// Reloads that are to follow, with where their answers go: at most one for each control connection, and one for all signals.
    reloads: VecDeque<Option<Replier>>,
    started: Option<Result<(), ConfigError>>,
}

impl Server {
    /// Begins to serve what a configuration asks for, as the first thing that this server does.
    pub(crate) fn begin(&mut self, rollout: Reconfiguration) {
        self.reconfigurations.present = Some(rollout);
        self.advance();
    }

    /// What came of the first rollout, once.
    pub(crate) fn take_started(&mut self) -> Option<Result<(), ConfigError>> {
        self.reconfigurations.started.take()
    }

    /// Whether a rollout is under way that gets on.
    #[must_use]
    pub(crate) fn is_reconfiguring(&self, now_ms: u64) -> bool {
        self.reconfigurations.present.is_some() && self.openings.make_progress(now_ms)
    }

    /// Reads the configuration file again; `replier` is answered when everything is as it says, or what could be done is done.
    pub(crate) fn reload(&mut self, replier: Option<Replier>) {
        if self.applied_config.is_none() {
            let error = "Configuration file was not specified on command line";
            return super::answer(replier, Err(error.to_owned()));
        }
        let reloads = &mut self.reconfigurations.reloads;
        if replier.is_some() || !reloads.iter().any(Option::is_none) {
            reloads.push_back(replier);
        }
        self.advance();
    }

    /// Takes the steps that can be taken.
    pub(super) fn advance(&mut self) {
        loop {
            if self.reconfigurations.present.is_none() {
                let Some(replier) = self.reconfigurations.reloads.pop_front() else {
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
        self.reconfigurations.replier = replier;
        let Some(mut file) = self.applied_config.take() else {
            return;
        };
        let rollout = file.rollout(self);
        self.applied_config = Some(file);
        match rollout {
            Ok(rollout) => self.reconfigurations.present = Some(rollout),
            Err(ConfigError) => self.end_reconfiguration(Err(ConfigError)),
        }
    }

    /// Takes one step. False: something has to happen first.
    fn step(&mut self) -> bool {
        let step = self
            .reconfigurations
            .present
            .as_ref()
            .map(|rollout| rollout.step);
        let must_wait = match step {
            Some(Step::Removals) => !self.pending.removals.is_empty(),
            Some(Step::Opening) | None => true,
            Some(Step::Roles) => self.pending.awaits_roles(),
            Some(Step::TlsRead) => self.tls_is_awaited(),
            Some(Step::RemotesRead) => !self.pending.follows.is_empty(),
            Some(_) => false,
        };
        let Some(rollout) = self
            .reconfigurations
            .present
            .as_mut()
            .filter(|_| !must_wait)
        else {
            return false;
        };
        match rollout.step {
            Step::Removals => rollout.step = Step::Databases,
            Step::Databases => match rollout.databases.front().cloned() {
                Some(wanted) => {
                    rollout.step = Step::Opening;
                    self.serve_wanted(wanted);
                }
                None => rollout.step = Step::Roles,
            },
            Step::Roles => {
                if rollout.has_failed {
                    rollout.fail(format_args!("failed to configure databases"));
                }
                rollout.go_on(Step::Tls);
            }
            Step::Tls => {
                let asked = self.ask_tls();
                self.go_on(asked, "SSL/TLS", Step::TlsRead);
            }
            Step::TlsRead => {
                let read = self.tls_outcome();
                self.go_on(read, "SSL/TLS", Step::Remotes);
            }
            Step::Remotes => {
                rollout.step = Step::RemotesRead;
                let remotes = std::mem::take(&mut rollout.remotes);
                self.serve_remotes(remotes);
            }
            Step::RemotesRead => {
                let read = self.remotes_outcome();
                self.go_on(read, "remotes", Step::Done);
            }
            // Left when there is an outcome, so not met here.
            Step::Opening => return false,
            Step::Done => {
                let has_failed = rollout.has_failed;
                self.reconfigurations.present = None;
                self.end_reconfiguration(if has_failed { Err(ConfigError) } else { Ok(()) });
            }
        }
        true
    }

    fn go_on(&mut self, outcome: Result<(), String>, what: &str, step: Step) {
        if let Some(rollout) = &mut self.reconfigurations.present {
            if let Err(error) = outcome {
                rollout.fail(format_args!("failed to configure {what}: {error}"));
            }
            rollout.go_on(step);
        }
    }

    /// Serves what is wanted next, or changes how it is served; [`Server::reconfiguration_opened`] tells.
    fn serve_wanted(&mut self, wanted: WantedDatabase) {
        let served = self.applied_config.as_ref();
        let served = served.and_then(|file| file.database_of(&wanted.entry).map(str::to_owned));
        match (served, wanted.config) {
            (Some(name), Some(config)) => {
                self.set_model(&name, model_of(&config));
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

    /// What was wanted next is served by this name, or cannot be.
    pub(super) fn reconfiguration_opened(&mut self, outcome: Result<String, String>) {
        let Some(rollout) = &mut self.reconfigurations.present else {
            return;
        };
        let Some(wanted) = rollout.databases.pop_front() else {
            return;
        };
        let entry = &wanted.entry;
        match outcome {
            Ok(name) => {
                if let (Some(file), Some(_)) = (&mut self.applied_config, wanted.config) {
                    file.served(wanted.entry, name);
                }
            }
            Err(error) => rollout.fail(format_args!("failed to open database '{entry}': {error}")),
        }
        let is_over = rollout.has_failed && rollout.stops_at_failure;
        rollout.step = if is_over {
            Step::Roles
        } else {
            Step::Databases
        };
    }

    fn serve_remotes(&mut self, remotes: Vec<(String, RemoteOptions)>) {
        let given: Vec<String> = self.remote_names().map(str::to_owned).collect();
        for remote in given {
            if !remotes.iter().any(|(wanted, _)| *wanted == remote) {
                // It was given, so it can be taken back.
                let _ = self.remove_remote(&remote);
            }
        }
        for (remote, options) in remotes {
            self.configure_remote(&remote, options);
        }
    }

    fn end_reconfiguration(&mut self, outcome: Result<(), ConfigError>) {
        if !self.is_started {
            self.reconfigurations.started = Some(outcome);
            return;
        }
        service_manager::reloaded(&self.summary());
        let failed = "Configuration failed.  See the log file for details.";
        let outcome = outcome.map(|()| String::new());
        let replier = self.reconfigurations.replier.take();
        super::answer(replier, outcome.map_err(|ConfigError| failed.to_owned()));
    }
}

fn warn(text: std::fmt::Arguments<'_>) {
    vlog::warn(Module::OvsdbServer, text);
}
