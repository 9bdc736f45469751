//! The configuration file (docs/spec/cli.md 1.4): databases, remotes and their options.
//!
//! Parsing is pure: text in, a [`ConfigFile`] and warnings out. As in the reference, an invalid
//! option of a remote is ignored with a warning; any other fault makes the whole file invalid.

use std::collections::BTreeMap;
use std::fmt::Display;

use corvid_data::{Kinds, Members, Subject, WireError};
use corvid_history::{Policy, PolicyError};
use corvid_json::Value;

use crate::remotes::options::RemoteOptions;

/// A valid configuration file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ConfigFile {
    /// The remotes by target, `db:` forms included.
    pub(crate) remotes: BTreeMap<String, RemoteOptions>,
    /// The databases by file name, or by schema name for relays.
    pub(crate) databases: BTreeMap<String, DatabaseConfig>,
    /// `standalone-history`; `None`: the command line's setting applies.
    pub(crate) standalone_history: Option<bool>,
    /// `keep-history`; `None`: the command line's setting applies.
    pub(crate) keep_history: Option<Policy>,
    /// `record-clients`; `None`: the command line's setting applies.
    pub(crate) record_clients: Option<bool>,
}

/// The settings of one database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DatabaseConfig {
    /// `service-model`; `None`: the format of the file decides, standalone or clustered.
    pub(crate) model: Option<ServiceModel>,
    /// The source of a relay or a backup.
    pub(crate) source: Option<Source>,
    /// `active-backup`: whether the database begins as a backup.
    pub(crate) is_backup: bool,
    /// Tables that are not replicated.
    pub(crate) exclude_tables: Vec<String>,
}

/// `service-model` of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum ServiceModel {
    Standalone,
    Clustered,
    ActiveBackup,
    Relay,
}

impl ServiceModel {
    fn parse(text: &str) -> Option<ServiceModel> {
        Some(match text {
            "standalone" => ServiceModel::Standalone,
            "clustered" => ServiceModel::Clustered,
            "active-backup" => ServiceModel::ActiveBackup,
            "relay" => ServiceModel::Relay,
            _ => return None,
        })
    }
}

/// The source of a relay or a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// Connection methods, separated by commas.
    pub(crate) remote: String,
    /// The options of the connection.
    pub(crate) options: RemoteOptions,
}

/// A warning for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Warning {
    /// The warning is about a remote's options, so the module of sessions logs it, not the module
    /// of the server.
    pub(crate) is_about_options: bool,
    /// The log line.
    pub(crate) text: String,
}

/// Collects warnings while a file is parsed.
#[derive(Debug, Default)]
struct Reading {
    warnings: Vec<Warning>,
}

/// The file is invalid; the last warnings say why.
#[derive(Debug)]
struct Unusable;

impl ConfigFile {
    /// Parses the text of a file. `None`: the text is invalid, and the last warnings say why.
    #[must_use]
    pub(crate) fn parse(text: &[u8]) -> (Option<ConfigFile>, Vec<Warning>) {
        let mut reading = Reading::default();
        let config = reading.file(text).ok();
        (config, reading.warnings)
    }
}

impl Reading {
    fn warn(&mut self, text: impl Display) {
        self.warnings.push(Warning {
            is_about_options: false,
            text: text.to_string(),
        });
    }

    fn warn_of_options(&mut self, text: impl Display) {
        self.warnings.push(Warning {
            is_about_options: true,
            text: text.to_string(),
        });
    }

    fn refuse(&mut self, text: impl Display) -> Unusable {
        self.warn(text);
        Unusable
    }

    fn file(&mut self, text: &[u8]) -> Result<ConfigFile, Unusable> {
        let json = Value::parse_text(text)
            .map_err(|error| self.refuse(format_args!("config: reading JSON failed ({error})")))?;
        if json.as_object().is_none() {
            return Err(self.refuse("configuration in a file must be a JSON object"));
        }
        // Other members are ignored, because later versions may define them.
        let remotes = self.remotes(json.get("remotes"));
        let remotes = remotes.map_err(|_| self.refuse("config: failed to parse 'remotes'"))?;
        let databases = self.databases(json.get("databases"));
        let databases =
            databases.map_err(|_| self.refuse("config: failed to parse 'databases'"))?;
        let standalone_history = self.flag(&json, "standalone-history")?;
        let record_clients = self.flag(&json, "record-clients")?;
        let keep_history = match json.get("keep-history") {
            None => None,
            Some(Value::String(policy)) => match policy.to_string().parse() {
                Ok(policy) => Some(policy),
                Err(error) => {
                    let error: PolicyError = error;
                    return Err(self.refuse(format_args!("config: 'keep-history': {error}")));
                }
            },
            Some(_) => return Err(self.refuse("config: 'keep-history' is not a string")),
        };
        Ok(ConfigFile {
            remotes,
            databases,
            standalone_history,
            keep_history,
            record_clients,
        })
    }

    /// A boolean member.
    fn flag(&mut self, json: &Value, name: &str) -> Result<Option<bool>, Unusable> {
        match json.get(name) {
            None => Ok(None),
            Some(Value::Bool(is_set)) => Ok(Some(*is_set)),
            Some(_) => Err(self.refuse(format_args!("config: '{name}' is not a boolean"))),
        }
    }

    fn remotes(
        &mut self,
        json: Option<&Value>,
    ) -> Result<BTreeMap<String, RemoteOptions>, Unusable> {
        let mut remotes = BTreeMap::new();
        match json {
            None => {}
            Some(Value::Object(members)) => {
                for (target, options) in members {
                    let options = self.options(&target.to_string(), options, Side::Server)?;
                    remotes.insert(target.to_string(), options);
                }
            }
            Some(_) => return Err(self.refuse("config: 'remotes' is not a JSON object")),
        }
        Ok(remotes)
    }

    /// Parses the options of a remote or a source. An invalid option is ignored with a warning.
    fn options(
        &mut self,
        target: &str,
        json: &Value,
        side: Side,
    ) -> Result<RemoteOptions, Unusable> {
        let mut options = RemoteOptions::default();
        match json {
            Value::Null => Ok(options),
            Value::Object(_) => {
                if let Err(error) = read_options(json, side, &mut options) {
                    self.warn_of_options(error);
                }
                Ok(options)
            }
            _ => Err(self.refuse(format_args!(
                "{target}: JSON-RPC options are not a JSON object or null"
            ))),
        }
    }

    fn databases(
        &mut self,
        json: Option<&Value>,
    ) -> Result<BTreeMap<String, DatabaseConfig>, Unusable> {
        let mut databases = BTreeMap::new();
        match json {
            None | Some(Value::Null) => {}
            Some(Value::Object(members)) => {
                for (name, entry) in members {
                    let name = name.to_string();
                    let config = self.database(&name, entry)?;
                    databases.insert(name, config);
                }
            }
            Some(_) => {
                return Err(self.refuse("config: 'databases' is not a JSON object or null"));
            }
        }
        Ok(databases)
    }

    fn database(&mut self, name: &str, json: &Value) -> Result<DatabaseConfig, Unusable> {
        if *json == Value::Null {
            return Ok(DatabaseConfig::default());
        }
        self.entry(name, json).map_err(|fault| match fault {
            Fault::Told(unusable) => unusable,
            Fault::Entry(error) => self.refuse(error),
        })
    }

    fn entry(&mut self, name: &str, json: &Value) -> Result<DatabaseConfig, Fault> {
        let mut members = Members::parse(Subject::Database(name), json)?;
        let mut config = DatabaseConfig::default();
        if let Some(model) = members.optional("service-model", Kinds::STRING)? {
            let text = model.as_str().unwrap_or_default();
            config.model = ServiceModel::parse(text);
            if config.model.is_none() {
                self.warn(format_args!(
                    "Unrecognized database service model: '{text}'"
                ));
                return Err(members
                    .error(&format!("'{text}' is not a valid service model"))
                    .into());
            }
        }
        if config.model == Some(ServiceModel::ActiveBackup) {
            let is_backup = members.required("backup", Kinds::BOOLEAN)?;
            config.is_backup = is_backup.as_bool().unwrap_or(false);
            let tables = members.optional("exclude-tables", Kinds::ARRAY)?;
            for table in tables.and_then(Value::as_array).unwrap_or_default() {
                let Some(table) = table.as_str() else {
                    let problem = "'exclude-tables' must contain strings";
                    return Err(members.error(problem).into());
                };
                config.exclude_tables.push(table.to_owned());
            }
        }
        let source = match config.model {
            Some(ServiceModel::Relay) => Some(members.required("source", Kinds::OBJECT)?),
            Some(ServiceModel::ActiveBackup) if config.is_backup => {
                Some(members.required("source", Kinds::OBJECT)?)
            }
            Some(ServiceModel::ActiveBackup) => members.optional("source", Kinds::OBJECT)?,
            _ => None,
        };
        if let Some(source) = source.and_then(Value::as_object) {
            let mut sources = source.iter();
            let (Some((remote, options)), None) = (sources.next(), sources.next()) else {
                let problem = "'source' should be an object with exactly one element";
                return Err(members.error(problem).into());
            };
            let remote = remote.to_string();
            let options = self
                .options(&remote, options, Side::Source)
                .map_err(Fault::Told)?;
            config.source = Some(Source { remote, options });
        }
        members.finish()?;
        Ok(config)
    }
}

/// A fault in the entry of a database.
enum Fault {
    /// The warning has already been added.
    Told(Unusable),
    /// The warning is still to be added.
    Entry(WireError),
}

impl From<WireError> for Fault {
    fn from(error: WireError) -> Fault {
        Fault::Entry(error)
    }
}

/// The kind of connection to which a set of options applies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    /// Sessions of a remote.
    Server,
    /// The connection to a source.
    Source,
}

/// Reads the members of an entry into `options`, up to the first fault.
fn read_options(json: &Value, side: Side, options: &mut RemoteOptions) -> Result<(), WireError> {
    let mut members = Members::parse(Subject::RemoteOptions, json)?;
    let integer = |value: &Value| value.as_integer().unwrap_or_default();
    if let Some(max) = members.optional("max-backoff", Kinds::INTEGER)? {
        options.set_max_backoff(integer(max));
    }
    if let Some(interval) = members.optional("inactivity-probe", Kinds::INTEGER)? {
        options.set_probe_interval(integer(interval));
    }
    if let Some(dscp) = members.optional("dscp", Kinds::INTEGER)? {
        options.set_dscp(integer(dscp));
    }
    if side == Side::Server {
        if let Some(read_only) = members.optional("read-only", Kinds::BOOLEAN)? {
            options.read_only = read_only.as_bool().unwrap_or(false);
        }
        if let Some(role) = members.optional("role", Kinds::STRING)? {
            role.as_str()
                .unwrap_or_default()
                .clone_into(&mut options.role);
        }
    }
    members.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(warnings: Vec<Warning>) -> Vec<String> {
        warnings.into_iter().map(|warning| warning.text).collect()
    }

    #[test]
    fn a_file_with_all_members_is_parsed() {
        let text = br#"{"remotes": {"punix:db.sock": null, "ptcp:6641": {"max-backoff": 500, "inactivity-probe": 10000,
            "dscp": 20, "read-only": true, "role": "ovn-controller"}},
            "databases": {"a.db": {}, "b.db": null, "c.db": {"service-model": "clustered"},
            "d.db": {"service-model": "active-backup", "backup": true, "source": {"tcp:192.0.2.1:6641": null},
                     "exclude-tables": ["T", "U"]},
            "OVN_Southbound": {"service-model": "relay", "source": {"ssl:192.0.2.2:6642": {"inactivity-probe": 0}}}},
            "more": 1}"#;
        let (config, warnings) = ConfigFile::parse(text);
        assert_eq!(warnings, []);
        let config = config.unwrap();
        let tcp = &config.remotes["ptcp:6641"];
        let found = (
            tcp.max_backoff_ms,
            tcp.probe_interval,
            tcp.dscp,
            tcp.read_only,
            &*tcp.role,
        );
        assert_eq!(found, (1000, Some(10000), 20, true, "ovn-controller"));
        assert_eq!(config.remotes["punix:db.sock"], RemoteOptions::default());
        assert_eq!(config.databases["a.db"], config.databases["b.db"]);
        let backup = &config.databases["d.db"];
        assert_eq!(backup.model, Some(ServiceModel::ActiveBackup));
        assert!(backup.is_backup && backup.exclude_tables == ["T", "U"]);
        let relay = config.databases["OVN_Southbound"].source.as_ref().unwrap();
        assert_eq!(relay.options.probe_interval, Some(0));
    }

    #[test]
    fn missing_and_null_members_are_empty() {
        for text in [
            "{}",
            r#"{"databases": null}"#,
            r#"{"remotes": {}, "databases": {}}"#,
        ] {
            let (config, warnings) = ConfigFile::parse(text.as_bytes());
            assert_eq!((config, warnings), (Some(ConfigFile::default()), vec![]));
        }
    }

    #[test]
    fn an_invalid_option_of_a_remote_is_ignored_with_a_warning() {
        for (options, fault) in [
            (r#"{"role": 1}"#, "Type mismatch for member 'role'."),
            (r#"{"x": 1}"#, "Member 'x' is present but not allowed here."),
        ] {
            let text = format!(r#"{{"remotes": {{"ptcp:1": {options}}}}}"#);
            let (config, warnings) = ConfigFile::parse(text.as_bytes());
            assert!(config.unwrap().remotes.contains_key("ptcp:1"));
            assert!(warnings[0].is_about_options && warnings.len() == 1);
            let text = &warnings[0].text;
            let parsing = format!("syntax error: Parsing JSON-RPC options failed: {fault}");
            assert!(
                text.starts_with("syntax \"{") && text.ends_with(&parsing),
                "{text}"
            );
        }
        let source = br#"{"databases": {"S": {"service-model": "relay", "source": {"tcp:h:1": {"role": "r"}}}}}"#;
        let (config, warnings) = ConfigFile::parse(source);
        assert!(config.is_some());
        assert_eq!(
            texts(warnings),
            [
                r#"syntax "{"role":"r"}": syntax error: Parsing JSON-RPC options failed: Member 'role' is present but not allowed here."#
            ]
        );
    }

    #[test]
    fn other_faults_make_the_file_invalid_with_a_warning() {
        let entry = |entry: &str, problem: &str| {
            let text = format!(r#"{{"databases": {{"x": {entry}}}}}"#);
            let line =
                format!(r#"syntax "{entry}": syntax error: Parsing database x failed: {problem}"#);
            (
                text,
                vec![line, "config: failed to parse 'databases'".to_owned()],
            )
        };
        let whole = |text: &str, lines: &[&str]| {
            (
                text.to_owned(),
                lines.iter().map(ToString::to_string).collect::<Vec<_>>(),
            )
        };
        let mut cases = vec![
            whole("[]", &["configuration in a file must be a JSON object"]),
            whole(
                r#"{"remotes": []}"#,
                &[
                    "config: 'remotes' is not a JSON object",
                    "config: failed to parse 'remotes'",
                ],
            ),
            whole(
                r#"{"remotes": {"ptcp:1": 5}}"#,
                &[
                    "ptcp:1: JSON-RPC options are not a JSON object or null",
                    "config: failed to parse 'remotes'",
                ],
            ),
            whole(
                r#"{"databases": 5}"#,
                &[
                    "config: 'databases' is not a JSON object or null",
                    "config: failed to parse 'databases'",
                ],
            ),
            whole(
                r#"{"databases": {"x": 5}}"#,
                &[
                    "syntax error: Parsing database x failed: Object expected.",
                    "config: failed to parse 'databases'",
                ],
            ),
            entry(
                r#"{"service-model":"relay"}"#,
                "Required 'source' member is missing.",
            ),
            entry(
                r#"{"service-model":"active-backup"}"#,
                "Required 'backup' member is missing.",
            ),
            entry(
                r#"{"service-model":"relay","source":{}}"#,
                "'source' should be an object with exactly one element",
            ),
            entry(
                r#"{"source":{"tcp:a:1":{}}}"#,
                "Member 'source' is present but not allowed here.",
            ),
        ];
        let (text, mut lines) = entry(
            r#"{"service-model":"best"}"#,
            "'best' is not a valid service model",
        );
        lines.insert(0, "Unrecognized database service model: 'best'".to_owned());
        cases.push((text, lines));
        for (text, lines) in cases {
            let (config, warnings) = ConfigFile::parse(text.as_bytes());
            assert_eq!((config, texts(warnings)), (None, lines), "{text}");
        }
        let (config, warnings) = ConfigFile::parse(b"{\n\"a\":1,}");
        assert!(config.is_none());
        assert!(
            warnings[0]
                .text
                .starts_with("config: reading JSON failed (line 1, ")
        );
    }
}
