//! Reading again what the server was started with: the configuration file by command, and everything that lies in files by SIGHUP. Part of the
//! main thread.

use corvid_net::errno;
use corvid_shell::service_manager;
use corvid_shell::vlog::{self, Module};

use corvid_service::message::Control;

use super::Server;
use super::reconfiguration::Reconfiguration;
use crate::config::applied::{AppliedConfig, ConfigError};

impl Server {
    /// Begins to serve what a file asks for, as the first thing that this server does, and again at every reload.
    pub(crate) fn configure(&mut self, mut file: AppliedConfig) {
        let rollout = file.rollout(self);
        self.applied_config = Some(file);
        // An empty one that has failed ends at once.
        self.begin(rollout.unwrap_or_else(|ConfigError| Reconfiguration::failed()));
    }

    /// The file that says what is served, if there is one.
    pub(crate) fn config_file(&self) -> Option<&str> {
        self.applied_config.as_ref().map(AppliedConfig::path)
    }

    /// What the file says of transaction histories; `None`: nothing, so the command line counts. What changes begins anew.
    pub(crate) fn set_history(&mut self, is_kept: Option<bool>) {
        let is_kept = is_kept.unwrap_or(!self.config.no_history);
        if is_kept != self.keeps_history {
            self.keeps_history = is_kept;
            self.control_databases(|| Control::SetHistory(is_kept));
        }
    }

    /// SIGHUP: opens logs again by name, and reads certificates and the configuration file again. What goes wrong is logged.
    pub(crate) fn hang_up(&mut self) {
        let what = "received SIGHUP, reading configuration, certificates and names of logs again";
        vlog::info(Module::OvsdbServer, format_args!("{what}"));
        // A failure is logged; there need not be a file.
        let _ = vlog::reopen_file();
        if let Some(audit) = &self.config.audit {
            audit.reopen(|outcome| {
                if let Err(error) = outcome {
                    let text = errno::text(&error);
                    vlog::warn(
                        Module::OvsdbServer,
                        format_args!("failed to open the audit log again: {text}"),
                    );
                }
            });
        }
        self.refresh_tls();
        if self.applied_config.is_some() {
            // What fails is logged.
            self.reload(None);
        } else {
            service_manager::reloading();
            service_manager::reloaded(&self.summary());
        }
    }
}
