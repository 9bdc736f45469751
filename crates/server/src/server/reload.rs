//! Reload: a command reloads the configuration file; SIGHUP reloads the configuration file,
//! certificates and log files. Part of the main thread.

use corvid_history::Policy;
use corvid_net::errno;
use corvid_shell::service_manager;
use corvid_shell::vlog::{self, Module};

use corvid_service::message::Control;

use super::Server;
use super::reconfiguration::Reconfiguration;
use crate::config::applied::{AppliedConfig, ConfigError};

impl Server {
    /// Begins to apply a configuration file at the start. [`Server::reload`] applies it again.
    pub(crate) fn configure(&mut self, mut file: AppliedConfig) {
        let reconfiguration = file.reconfiguration(self);
        self.applied_config = Some(file);
        // A file that cannot be used counts as a failed configuration.
        self.begin(reconfiguration.unwrap_or_else(|ConfigError| Reconfiguration::failed()));
    }

    /// The name of the configuration file, if there is one.
    pub(crate) fn config_file(&self) -> Option<&str> {
        self.applied_config.as_ref().map(AppliedConfig::path)
    }

    /// Applies the file's setting for transaction histories; `None`: the command line's setting
    /// applies. A database whose setting changes begins with an empty history.
    pub(crate) fn set_history(&mut self, is_kept: Option<bool>) {
        let is_kept = is_kept.unwrap_or(!self.config.no_history);
        if is_kept != self.keeps_history {
            self.keeps_history = is_kept;
            self.control_databases(|| Control::SetHistory(is_kept));
        }
    }

    /// Applies the file's policy for the history on disk; `None`: the command line's applies. A
    /// file that is read again without a change keeps the policy that `set-setting` has set.
    pub(crate) fn configure_history(&mut self, policy: Option<Policy>) {
        if policy != self.configured_history {
            self.configured_history = policy;
            let policy = policy.unwrap_or(self.config.keep_history);
            self.config.histories.set_policy(policy);
        }
    }

    /// Applies the file's setting for the clients in records, as [`Server::configure_history`] does
    /// for the policy.
    pub(crate) fn configure_clients(&mut self, are_recorded: Option<bool>) {
        if are_recorded != self.configured_clients {
            self.configured_clients = are_recorded;
            self.record_clients(are_recorded.unwrap_or(self.config.record_clients));
        }
    }

    /// Has records name the clients of later commits, or not.
    pub(super) fn record_clients(&mut self, are_recorded: bool) {
        if are_recorded != self.config.records_clients {
            self.config.records_clients = are_recorded;
            self.control_databases(|| Control::SetRecordClients(are_recorded));
        }
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
        if self.applied_config.is_some() {
            // Failures are logged.
            self.reload(None);
        } else {
            service_manager::reloading();
            service_manager::reloaded(&self.summary());
        }
    }
}
