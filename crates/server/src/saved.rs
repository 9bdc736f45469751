//! What the server serves now, kept where a server that is started again after a crash finds it (cli.md 1.2, 1.9).
//!
//! The file has no name and is made before the first fork, so the supervisor and every server that it starts hold the same one. A
//! restarted server reads it in place of its command line; so databases and remotes that were added or removed at run time stay so.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use bstr::BString;
use corvid_json::Value;
use corvid_os::anonymous;
use corvid_os::vlog::{self, Module};

use crate::sync::Sync;

/// What is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    /// Files, as they were given.
    pub databases: Vec<String>,
    /// Remotes, as they were given.
    pub remotes: Vec<String>,
    /// Whether databases are backups, and of whom.
    pub sync: Sync,
}

/// Where it is kept.
#[derive(Debug)]
pub struct Saved {
    file: File,
}

impl Saved {
    /// Keeps what the command line says.
    ///
    /// # Errors
    /// There is no room for it.
    pub fn create(configuration: &Configuration) -> io::Result<Saved> {
        let file = anonymous::file(c"configuration")?;
        let saved = Saved { file };
        saved.replace(configuration)?;
        Ok(saved)
    }

    /// What was kept last.
    ///
    /// # Errors
    /// It cannot be read, or is not what was written.
    pub fn read(&self) -> io::Result<Configuration> {
        let length = usize::try_from(self.file.metadata()?.len()).map_err(io::Error::other)?;
        let mut text = vec![0; length];
        self.file.read_exact_at(&mut text, 0)?;
        let json = Value::parse_text(&text).map_err(io::Error::other)?;
        let list = |name: &str| {
            let items = json.get(name).and_then(Value::as_array).unwrap_or_default();
            let texts = items.iter().filter_map(Value::as_str);
            texts.map(str::to_owned).collect()
        };
        Ok(Configuration {
            databases: list("databases"),
            remotes: list("remotes"),
            sync: read_sync(json.get("sync").unwrap_or(&Value::Null)),
        })
    }

    /// Keeps this from now on. When that fails a restarted server would serve what was kept before: it is logged.
    pub fn write(&self, configuration: &Configuration) {
        if let Err(error) = self.replace(configuration) {
            vlog::err(
                Module::OvsdbServer,
                format_args!("failed to save the configuration: {error}"),
            );
        }
    }

    fn replace(&self, configuration: &Configuration) -> io::Result<()> {
        let list = |texts: &[String]| Value::Array(texts.iter().map(Value::string).collect());
        let members = [
            ("databases", list(&configuration.databases)),
            ("remotes", list(&configuration.remotes)),
            ("sync", write_sync(&configuration.sync)),
        ];
        let text = object(members).to_bytes();
        self.file.set_len(0)?;
        self.file.write_all_at(&text, 0)
    }
}

fn object(members: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    let members = members.into_iter();
    Value::Object(
        members
            .map(|(name, value)| (BString::from(name), value))
            .collect(),
    )
}

fn write_sync(sync: &Sync) -> Value {
    let mut members = vec![
        ("on", Value::Bool(sync.is_on)),
        ("backup", Value::Bool(sync.is_backup)),
        ("excluded", Value::string(&sync.excluded)),
    ];
    let source = sync.source.as_ref();
    members.extend(source.map(|source| ("source", Value::string(source))));
    let probe = sync
        .probe_interval_ms
        .map(|ms| Value::string(ms.to_string()));
    members.extend(probe.map(|ms| ("probe", ms)));
    object(members)
}

fn read_sync(json: &Value) -> Sync {
    let flag = |name: &str| json.get(name).and_then(Value::as_bool).unwrap_or(false);
    let text = |name: &str| json.get(name).and_then(Value::as_str).map(str::to_owned);
    Sync {
        is_on: flag("on"),
        is_backup: flag("backup"),
        source: text("source"),
        excluded: text("excluded").unwrap_or_default(),
        probe_interval_ms: text("probe").and_then(|ms| ms.parse().ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_last_is_found() {
        let configuration = |databases: &[&str], remotes: &[&str]| Configuration {
            databases: databases.iter().map(ToString::to_string).collect(),
            remotes: remotes.iter().map(ToString::to_string).collect(),
            sync: Sync::default(),
        };
        let first = configuration(&["a.db", "/var/b.db"], &["punix:\"x\"", "ptcp:6640"]);
        let saved = Saved::create(&first).unwrap();
        assert_eq!(saved.read().unwrap(), first);
        let mut second = configuration(&[], &["db:A,B,C"]);
        second.sync = Sync {
            is_on: true,
            is_backup: true,
            source: Some("tcp:192.0.2.1:6641".to_owned()),
            excluded: "A:T,U".to_owned(),
            probe_interval_ms: Some(5000),
        };
        saved.write(&second);
        assert_eq!(saved.read().unwrap(), second);
    }
}
