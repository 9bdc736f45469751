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

/// What is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    /// Files, as they were given.
    pub databases: Vec<String>,
    /// Remotes, as they were given.
    pub remotes: Vec<String>,
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
        ];
        let members = members.map(|(name, value)| (BString::from(name), value));
        let text = Value::Object(members.into_iter().collect()).to_bytes();
        self.file.set_len(0)?;
        self.file.write_all_at(&text, 0)
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
        };
        let first = configuration(&["a.db", "/var/b.db"], &["punix:\"x\"", "ptcp:6640"]);
        let saved = Saved::create(&first).unwrap();
        assert_eq!(saved.read().unwrap(), first);
        let second = configuration(&[], &["db:A,B,C"]);
        saved.write(&second);
        assert_eq!(saved.read().unwrap(), second);
    }
}
