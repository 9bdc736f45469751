//! The configuration that the supervisor's restarted server reads after a crash
//! (docs/spec/cli.md 1.2, 1.9).
//!
//! The file has no name and is created before the first fork, so the monitor process and every
//! server that it starts have the same file open. A restarted server reads it instead of its
//! command line, so changes to databases and remotes at run time survive the crash.
//!
//! Invariant: whenever the server dies, the file holds a complete configuration. A new
//! configuration is written next to the current one; then a head of 16 bytes, written with one
//! write, makes the new one current. (A file without a name cannot be replaced by renaming.)
//!
//! ```text
//! | offset: u64 | length: u64 | ... text ... | ... another text ... |       little-endian
//! ```

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use bstr::BString;
use corvid_json::Value;
use corvid_net::errno;
use corvid_shell::anonymous;
use corvid_shell::vlog::{self, Module};

use crate::config::replication::ReplicationSettings;

/// A configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SavedConfig {
    /// The database files, as given by the user.
    pub(crate) databases: Vec<String>,
    /// The remotes, as given by the user.
    pub(crate) remotes: Vec<String>,
    /// The settings of active-backup replication.
    pub(crate) sync: ReplicationSettings,
    /// The probe interval towards the sources of relays, ms, if one was set.
    pub(crate) relay_probe_interval_ms: Option<u64>,
}

/// The file that holds the saved configuration.
#[derive(Debug)]
pub(crate) struct SavedConfigFile {
    file: File,
}

impl SavedConfigFile {
    /// Creates the file with the configuration of the command line.
    ///
    /// # Errors
    /// The file cannot be created or written.
    pub(crate) fn create(configuration: &SavedConfig) -> io::Result<SavedConfigFile> {
        let file = anonymous::file(c"configuration")?;
        let saved = SavedConfigFile { file };
        saved.replace(configuration)?;
        Ok(saved)
    }

    /// Reads the current configuration.
    ///
    /// # Errors
    /// The configuration cannot be read or parsed.
    pub(crate) fn read(&self) -> io::Result<SavedConfig> {
        let current = self.current()?;
        let length = usize::try_from(current.length).map_err(io::Error::other)?;
        let mut text = vec![0; length];
        self.file.read_exact_at(&mut text, current.offset)?;
        let json = Value::parse_text(&text).map_err(io::Error::other)?;
        let list = |name: &str| {
            let items = json.get(name).and_then(Value::as_array).unwrap_or_default();
            let texts = items.iter().filter_map(Value::as_str);
            texts.map(str::to_owned).collect()
        };
        Ok(SavedConfig {
            databases: list("databases"),
            remotes: list("remotes"),
            sync: read_sync(json.get("sync").unwrap_or(&Value::Null)),
            relay_probe_interval_ms: read_ms(json.get("relay-probe")),
        })
    }

    /// Replaces the current configuration. A failure is logged; a restarted server then reads the
    /// previous one.
    pub(crate) fn write(&self, configuration: &SavedConfig) {
        if let Err(error) = self.replace(configuration) {
            let reason = errno::text(&error);
            vlog::err(
                Module::OvsdbServer,
                format_args!("failed to save the configuration: {reason}"),
            );
        }
    }

    fn replace(&self, configuration: &SavedConfig) -> io::Result<()> {
        let list = |texts: &[String]| Value::Array(texts.iter().map(Value::string).collect());
        let mut members = vec![
            ("databases", list(&configuration.databases)),
            ("remotes", list(&configuration.remotes)),
            ("sync", write_sync(&configuration.sync)),
        ];
        let relay_probe = configuration.relay_probe_interval_ms;
        members.extend(relay_probe.map(|ms| ("relay-probe", write_ms(ms))));
        let spare = self.write_beside(&object(members).to_bytes())?;
        self.file.write_all_at(&spare.to_bytes(), 0)?;
        self.file.set_len(spare.end())
    }

    /// Writes a text where it does not overlap the current one.
    fn write_beside(&self, text: &[u8]) -> io::Result<Span> {
        let current = match self.file.metadata()?.len() {
            0 => Span::NONE,
            _ => self.current()?,
        };
        let length = u64::try_from(text.len()).map_err(io::Error::other)?;
        let fits_before = HEAD_BYTES + length <= current.offset;
        let offset = if fits_before {
            HEAD_BYTES
        } else {
            current.end()
        };
        self.file.write_all_at(text, offset)?;
        Ok(Span { offset, length })
    }

    /// The location of the current text.
    fn current(&self) -> io::Result<Span> {
        let mut head = [[0; 8]; 2];
        self.file.read_exact_at(head.as_flattened_mut(), 0)?;
        let [offset, length] = head.map(u64::from_le_bytes);
        Ok(Span { offset, length })
    }
}

/// The length of the head.
const HEAD_BYTES: u64 = 16;

/// The location of a text in the file.
#[derive(Clone, Copy)]
struct Span {
    offset: u64,
    length: u64,
}

impl Span {
    /// The location before the first text is written.
    const NONE: Span = Span {
        offset: HEAD_BYTES,
        length: 0,
    };

    fn end(self) -> u64 {
        self.offset.saturating_add(self.length)
    }

    fn to_bytes(self) -> [u8; 16] {
        let mut head = [0; 16];
        head[..8].copy_from_slice(&self.offset.to_le_bytes());
        head[8..].copy_from_slice(&self.length.to_le_bytes());
        head
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

fn write_sync(sync: &ReplicationSettings) -> Value {
    let mut members = vec![
        ("on", Value::Bool(sync.is_on)),
        ("backup", Value::Bool(sync.is_backup)),
        ("excluded", Value::string(&sync.excluded)),
    ];
    let source = sync.source.as_ref();
    members.extend(source.map(|source| ("source", Value::string(source))));
    let probe = sync.probe_interval_ms;
    members.extend(probe.map(|ms| ("probe", write_ms(ms))));
    object(members)
}

/// Formats an interval as text, because an integer may exceed JSON's range.
fn write_ms(ms: u64) -> Value {
    Value::string(ms.to_string())
}

fn read_ms(json: Option<&Value>) -> Option<u64> {
    json?.as_str()?.parse().ok()
}

fn read_sync(json: &Value) -> ReplicationSettings {
    let flag = |name: &str| json.get(name).and_then(Value::as_bool).unwrap_or(false);
    let text = |name: &str| json.get(name).and_then(Value::as_str).map(str::to_owned);
    ReplicationSettings {
        is_on: flag("on"),
        is_backup: flag("backup"),
        source: text("source"),
        excluded: text("excluded").unwrap_or_default(),
        probe_interval_ms: read_ms(json.get("probe")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_written_configuration_is_read() {
        let configuration = |databases: &[&str], remotes: &[&str]| SavedConfig {
            databases: databases.iter().map(ToString::to_string).collect(),
            remotes: remotes.iter().map(ToString::to_string).collect(),
            sync: ReplicationSettings::default(),
            relay_probe_interval_ms: None,
        };
        let first = configuration(&["a.db", "/var/b.db"], &["punix:\"x\"", "ptcp:6640"]);
        let saved = SavedConfigFile::create(&first).unwrap();
        assert_eq!(saved.read().unwrap(), first);
        let mut second = configuration(&[], &["db:A,B,C"]);
        second.sync = ReplicationSettings {
            is_on: true,
            is_backup: true,
            source: Some("tcp:192.0.2.1:6641".to_owned()),
            excluded: "A:T,U".to_owned(),
            probe_interval_ms: Some(5000),
        };
        second.relay_probe_interval_ms = Some(0);
        saved.write(&second);
        assert_eq!(saved.read().unwrap(), second);
    }

    #[test]
    fn an_incomplete_write_leaves_the_previous_configuration() {
        let configuration = |count: usize| SavedConfig {
            databases: vec!["a.db".to_owned(); count],
            ..SavedConfig::default()
        };
        let saved = SavedConfigFile::create(&configuration(1)).unwrap();
        for count in [5, 0, 1, 40, 2, 41, 3, 3, 80, 1] {
            let kept = saved.read().unwrap();
            // The server dies after writing a long text, before it writes the head.
            saved.write_beside(&[b'x'; 4096]).unwrap();
            assert_eq!(saved.read().unwrap(), kept);
            saved.write(&configuration(count));
            assert_eq!(saved.read().unwrap(), configuration(count));
        }
        assert!(
            saved.file.metadata().unwrap().len() < 4096,
            "it does not grow for ever"
        );
    }
}
