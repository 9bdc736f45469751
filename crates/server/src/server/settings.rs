//! Settings that can be changed while the server runs (`ovsdb-server/list-settings`,
//! `ovsdb-server/set-setting`). Each has the name of the option that sets it at the start. A change
//! is logged, and lasts until the server ends. Part of the main thread.

use std::path::Path;

use corvid_json::{Object, Value};
use corvid_net::errno;
use corvid_service::message::Control;
use corvid_service::server_db;
use corvid_shell::unixctl::Replier;
use corvid_shell::vlog::{self, Module};

use super::Server;
use crate::limits::LimitOption;
use crate::options::{exclusions, slow_ms};

const AUDIT_EXCLUDE: &str = "audit-exclude";
const AUDIT_LOG: &str = "audit-log";
const METRICS_LISTEN: &str = "metrics-listen";
/// The answer to a setting of an audit log that does not exist.
const NO_AUDIT: &str = "there is no audit log: set audit-log to an absolute file name first";
const SLOW_TRANSACTION: &str = "slow-transaction";
const TRUSTED_RELAYS: &str = "trusted-relays";

impl Server {
    /// Lists all settings with their values.
    pub(crate) fn list_settings(&self, replier: Replier) {
        let settings = self.settings();
        let lines = || {
            let line = |(name, value): &(&str, String)| format!("{name}={value}\n");
            settings.iter().map(line).collect()
        };
        let json = || {
            let members = settings.iter();
            let members: Object = members
                .map(|(name, value)| ((*name).into(), Value::string(value)))
                .collect();
            Value::Object(members)
        };
        replier.reply_in_format(lines, json);
    }

    /// All settings, sorted by name.
    fn settings(&self) -> Vec<(&'static str, String)> {
        let config = &self.config;
        let audit = match (config.audit.get(), config.is_audited) {
            (None, _) => "none",
            (Some(_), true) => "on",
            (Some(_), false) => "off",
        };
        let mut settings = vec![
            (AUDIT_EXCLUDE, config.audit_exclude.clone()),
            (AUDIT_LOG, audit.to_owned()),
        ];
        settings.extend(LimitOption::ALL.map(|option| {
            let limit = option.of(&config.limits, &config.limit_settings);
            (option.name(), limit.to_string())
        }));
        settings.push((METRICS_LISTEN, self.pages.setting().to_owned()));
        let slow_ms = match config.slow_ms {
            u64::MAX => 0,
            ms => ms,
        };
        settings.push((SLOW_TRANSACTION, slow_ms.to_string()));
        settings.push((TRUSTED_RELAYS, config.trusted_relays.text()));
        settings
    }

    /// Changes a setting.
    ///
    /// # Errors
    /// The setting does not exist, or the value is invalid for it. Nothing has changed.
    pub(crate) fn set_setting(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            AUDIT_EXCLUDE => self.set_audit_exclude(value)?,
            AUDIT_LOG => self.set_audited(value)?,
            METRICS_LISTEN => self.set_metrics_listen(value)?,
            SLOW_TRANSACTION => {
                self.config.slow_ms = slow_ms(value)?;
                let slow_ms = self.config.slow_ms;
                self.control_databases(|| Control::SetSlow(slow_ms));
            }
            // Existing sessions keep their trust as of their start.
            TRUSTED_RELAYS => self.config.trusted_relays.set(value),
            _ => self.set_limit(name, value)?,
        }
        vlog::info(
            Module::OvsdbServer,
            format_args!("{name} set to \"{value}\" by user request"),
        );
        Ok(())
    }

    fn set_limit(&mut self, name: &str, value: &str) -> Result<(), String> {
        let mut options = LimitOption::ALL.into_iter();
        let option = options
            .find(|option| option.name() == name)
            .ok_or_else(|| format!("no setting named {name}"))?;
        let mut settings = self.config.limit_settings;
        settings
            .set(option, value)
            .map_err(|expected| format!("{value}: {expected}"))?;
        self.config.limit_settings = settings;
        // `resolve` logs a warning if the limit of open files is too low.
        self.config.limits = settings.resolve();
        self.shards.change_limits(&self.config.limits);
        settings.limit(&self.config.client_memory);
        Ok(())
    }

    fn set_metrics_listen(&mut self, value: &str) -> Result<(), String> {
        let names = self
            .database_names()
            .filter(|name| *name != server_db::NAME);
        let names: Vec<String> = names.map(str::to_owned).collect();
        self.pages.set(&self.config.metrics, value, &names)
    }

    fn set_audited(&mut self, value: &str) -> Result<(), String> {
        let is_audited = match value {
            "on" => true,
            "off" => false,
            file => self.begin_audit(Path::new(file))?,
        };
        let audit = self.config.audit.get().ok_or(NO_AUDIT)?;
        if is_audited != self.config.is_audited {
            audit.turned(is_audited);
        }
        self.config.is_audited = is_audited;
        self.control_databases(|| Control::SetAudited(is_audited));
        Ok(())
    }

    /// Begins an audit log in this file, unless it is already open. Returns true: the log is to be
    /// on.
    fn begin_audit(&mut self, file: &Path) -> Result<bool, String> {
        if !file.is_absolute() {
            let file = file.display();
            return Err(format!(
                "{file}: neither on nor off nor an absolute file name"
            ));
        }
        match self.config.audit.get() {
            Some(audit) if audit.path() == file => {}
            Some(audit) => {
                let present = audit.path().display();
                return Err(format!(
                    "the audit log is {present}; move that file and run vlog/reopen to begin another"
                ));
            }
            None => {
                let exclusions = exclusions(&self.config.audit_exclude)?;
                let begun = self.config.audit.begin(file, exclusions);
                begun.map_err(|error| {
                    let (file, reason) = (file.display(), errno::text(&error));
                    format!("{file}: cannot open audit log ({reason})")
                })?;
            }
        }
        Ok(true)
    }

    fn set_audit_exclude(&mut self, list: &str) -> Result<(), String> {
        let excluded = exclusions(list)?;
        let audit = self.config.audit.get().ok_or(NO_AUDIT)?;
        audit.exclude(excluded);
        list.clone_into(&mut self.config.audit_exclude);
        Ok(())
    }

    /// Sends a request to every database except `_Server`.
    pub(super) fn control_databases(&self, control: impl Fn() -> Control) {
        for name in self.databases.keys() {
            if name != server_db::NAME {
                self.control_database(name, control());
            }
        }
    }
}
