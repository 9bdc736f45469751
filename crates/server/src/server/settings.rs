//! Settings that can be changed while the server runs (`ovsdb-server/list-settings`,
//! `ovsdb-server/set-setting`). Each has the name of the option that sets it at the start. A change
//! is logged, and lasts until the server ends. Part of the main thread.

use std::path::Path;

use corvid_history::{Policy, PolicyError};
use corvid_json::{Object, Value};
use corvid_net::errno;
use corvid_service::message::Control;
use corvid_shell::unixctl::Replier;
use corvid_shell::vlog::{self, Module};

use super::{Config, Server};
use crate::limits::LimitOption;
use crate::manual::reference::Setting;
use crate::options::{exclusions, slow_ms};

const AUDIT_EXCLUDE: &str = "audit-exclude";
const AUDIT_LOG: &str = "audit-log";
const KEEP_HISTORY: &str = "keep-history";
const METRICS_LISTEN: &str = "metrics-listen";
/// The answer to a setting of an audit log that does not exist.
const NO_AUDIT: &str = "no audit log: first set audit-log to an absolute file name";
const RECORD_CLIENTS: &str = "record-clients";
const SLOW_TRANSACTION: &str = "slow-transaction-ms";
const TRUSTED_RELAYS: &str = "trusted-relays";

/// All settings, sorted by name.
pub(crate) const SETTINGS: [Setting; 12] = [
    Setting {
        name: AUDIT_EXCLUDE,
        value: "`DB:TABLE[:COLUMN],...`, or empty",
        default: "empty",
        effect: "the whole list of tables and columns that the audit log omits; applies to later transactions",
    },
    Setting {
        name: AUDIT_LOG,
        value: "`on`, `off`, or an absolute file name",
        default: "`none`: there is no audit log",
        effect: "turns the audit log on or off; a file name starts one on a server that has none",
    },
    Setting {
        name: KEEP_HISTORY,
        value: "a policy as for `--keep-history`, or `off`",
        default: "`off`",
        effect: "applies to later compactions; what exceeds the policy is removed at once, `off` removes nothing",
    },
    Setting {
        name: LimitOption::Memory.name(),
        value: "bytes, or with suffix K, M or G",
        default: "4G",
        effect: "applies to later requests",
    },
    Setting {
        name: LimitOption::Message.name(),
        value: "bytes, or with suffix K, M or G",
        default: "1G",
        effect: "a client beyond the new limit is disconnected when it next sends",
    },
    Setting {
        name: LimitOption::Replies.name(),
        value: "bytes, or with suffix K, M or G",
        default: "a quarter of `max-client-memory`",
        effect: "applies to later requests",
    },
    Setting {
        name: LimitOption::Backlog.name(),
        value: "bytes, or with suffix K, M or G",
        default: "4G",
        effect: "a client beyond the new limit is disconnected when it is next sent something",
    },
    Setting {
        name: LimitOption::Sessions.name(),
        value: "a number",
        default: "the limit of open files, less 256",
        effect: "applies to later connections; open sessions are kept, even if there are more",
    },
    Setting {
        name: METRICS_LISTEN,
        value: "an address as for `--metrics-listen`, or `none`",
        default: "`none`",
        effect: "starts, moves or stops the pages; counters stand still while they are off",
    },
    Setting {
        name: RECORD_CLIENTS,
        value: "`on` or `off`",
        default: "`off`",
        effect: "records of later commits name their clients, or do not",
    },
    Setting {
        name: SLOW_TRANSACTION,
        value: "milliseconds; 0 for none",
        default: "1000",
        effect: "transactions that take at least this long are logged",
    },
    Setting {
        name: TRUSTED_RELAYS,
        value: "certificate names, separated by commas, or empty",
        default: "empty",
        effect: "applies to sessions that begin later",
    },
];

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

    /// All settings with their values, sorted by name.
    pub(super) fn settings(&self) -> Vec<(&'static str, String)> {
        let value = |setting: &Setting| (setting.name, self.setting(setting.name));
        SETTINGS.iter().map(value).collect()
    }

    /// The value of a setting of the table.
    fn setting(&self, name: &str) -> String {
        let config = &self.config;
        match name {
            AUDIT_EXCLUDE => config.audit_exclude.clone(),
            AUDIT_LOG => match (config.audit.get(), config.is_audited) {
                (None, _) => "none".to_owned(),
                (Some(_), true) => "on".to_owned(),
                (Some(_), false) => "off".to_owned(),
            },
            KEEP_HISTORY => config.histories.policy().to_string(),
            METRICS_LISTEN => self.pages.setting().to_owned(),
            RECORD_CLIENTS if self.history.names_clients() => "on".to_owned(),
            RECORD_CLIENTS => "off".to_owned(),
            // The threshold that is never reached is shown as it is set.
            SLOW_TRANSACTION if config.slow_ms == u64::MAX => "0".to_owned(),
            SLOW_TRANSACTION => config.slow_ms.to_string(),
            TRUSTED_RELAYS => config.trusted_relays.text(),
            limit => LimitOption::named(limit).map_or_else(String::new, |option| {
                let value = option.of(&config.limits, &config.limit_settings);
                value.to_string()
            }),
        }
    }

    /// Changes a setting.
    ///
    /// # Errors
    /// The setting does not exist, or the value is invalid for it. Nothing has changed.
    pub(crate) fn set_setting(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            AUDIT_EXCLUDE => self.config.set_audit_exclude(value)?,
            AUDIT_LOG => self.set_audited(value)?,
            KEEP_HISTORY => {
                let policy: Result<Policy, PolicyError> = value.parse();
                let policy = policy.map_err(|problem| problem.to_string())?;
                self.config.histories.set_policy(policy);
            }
            METRICS_LISTEN => self.set_metrics_listen(value)?,
            RECORD_CLIENTS => self.set_record_clients(value)?,
            SLOW_TRANSACTION => {
                self.config.slow_ms = slow_ms(value)?;
                let slow_ms = self.config.slow_ms;
                self.databases.control_all(|| Control::SetSlow(slow_ms));
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

    fn set_record_clients(&mut self, value: &str) -> Result<(), String> {
        let names_clients = match value {
            "on" => true,
            "off" => false,
            _ => return Err(format!("{value}: expected \"on\" or \"off\"")),
        };
        if let Some(names_clients) = self.history.set_clients(names_clients) {
            let message = || Control::SetRecordClients(names_clients);
            self.databases.control_all(message);
        }
        Ok(())
    }

    fn set_limit(&mut self, name: &str, value: &str) -> Result<(), String> {
        let option = LimitOption::named(name).ok_or_else(|| format!("no setting named {name}"))?;
        let mut settings = self.config.limit_settings;
        settings
            .set(option, value)
            .map_err(|expected| format!("{value}: {expected}"))?;
        self.config.limit_settings = settings;
        // `resolve` logs a warning if the limit of open files is too low.
        self.config.limits = settings.resolve();
        self.shared.shards.change_limits(&self.config.limits);
        settings.limit(&self.config.client_memory);
        Ok(())
    }

    fn set_metrics_listen(&mut self, value: &str) -> Result<(), String> {
        let names = self.databases.users_names();
        let names: Vec<String> = names.map(str::to_owned).collect();
        self.pages.set(&self.config.metrics, value, &names)
    }

    fn set_audited(&mut self, value: &str) -> Result<(), String> {
        let is_audited = match value {
            "on" => true,
            "off" => false,
            file => self.config.begin_audit(Path::new(file))?,
        };
        let audit = self.config.audit.get().ok_or(NO_AUDIT)?;
        if is_audited != self.config.is_audited {
            audit.turned(is_audited);
        }
        self.config.is_audited = is_audited;
        self.databases
            .control_all(|| Control::SetAudited(is_audited));
        Ok(())
    }
}

/// The audit log.
impl Config {
    /// Begins an audit log in this file, unless it is already open. Returns true: the log is to be
    /// on.
    fn begin_audit(&mut self, file: &Path) -> Result<bool, String> {
        if !file.is_absolute() {
            let file = file.display();
            return Err(format!(
                "{file}: expected \"on\", \"off\" or an absolute file name"
            ));
        }
        match self.audit.get() {
            Some(audit) if audit.path() == file => {}
            Some(audit) => {
                let present = audit.path().display();
                return Err(format!(
                    "the audit log is {present}; to start a new one, rename that file and run vlog/reopen"
                ));
            }
            None => {
                let exclusions = exclusions(&self.audit_exclude)?;
                let begun = self.audit.begin(file, exclusions);
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
        let audit = self.audit.get().ok_or(NO_AUDIT)?;
        audit.exclude(excluded);
        list.clone_into(&mut self.audit_exclude);
        Ok(())
    }
}
