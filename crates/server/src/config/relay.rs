//! The settings of a relay (docs/spec/distribution.md 2.1): the argument `relay:NAME:REMOTES`, or
//! an entry of the configuration file.

use crate::config::file::{DatabaseConfig, ServiceModel};
use crate::remotes::options::RemoteOptions;

/// The default probe interval towards a relay's source, ms. It applies to `unix:` sources too.
const PROBE_INTERVAL_MS_DEFAULT: u64 = 5000;

/// A relay: its name, which is also that of its schema, and its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RelaySettings {
    /// The name of the database.
    pub(crate) name: String,
    /// The source.
    pub(crate) source: SourceSettings,
}

/// The source of a relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceSettings {
    /// The servers that the relay may connect to, separated by commas.
    pub(crate) remotes: String,
    /// The options of the connection.
    pub(crate) options: RemoteOptions,
}

impl RelaySettings {
    /// The relay that an argument asks for. Any other argument is a file name.
    #[must_use]
    pub(crate) fn of_argument(argument: &str) -> Option<RelaySettings> {
        let (name, remotes) = argument.strip_prefix("relay:")?.split_once(':')?;
        let source = SourceSettings {
            remotes: remotes.to_owned(),
            options: RemoteOptions::default(),
        };
        (!remotes.is_empty()).then(|| RelaySettings {
            name: name.to_owned(),
            source,
        })
    }

    /// The relay that a configuration file's entry asks for. Other entries are databases with
    /// files.
    #[must_use]
    pub(crate) fn of_entry(entry: &str, config: &DatabaseConfig) -> Option<RelaySettings> {
        let source = config.source.as_ref();
        let source = source.filter(|_| config.model == Some(ServiceModel::Relay))?;
        Some(RelaySettings {
            name: entry.to_owned(),
            source: SourceSettings {
                remotes: source.remote.clone(),
                options: source.options.clone(),
            },
        })
    }
}

impl RelaySettings {
    /// The relay as a command-line argument, without options.
    #[must_use]
    pub(crate) fn argument(&self) -> String {
        format!("relay:{}:{}", self.name, self.source.remotes)
    }
}

impl SourceSettings {
    /// The probe interval in force, ms; 0: no probes.
    #[must_use]
    pub(crate) fn probe_interval_ms(&self) -> u64 {
        let set = self.options.probe_interval;
        set.unwrap_or(PROBE_INTERVAL_MS_DEFAULT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_is_split_at_the_first_two_colons() {
        let relay = RelaySettings::of_argument("relay:V:tcp:127.0.0.1:1,unix:x").unwrap();
        assert_eq!(relay.name, "V");
        assert_eq!(relay.source.remotes, "tcp:127.0.0.1:1,unix:x");
        assert_eq!(relay.source.probe_interval_ms(), 5000);
        assert_eq!(relay.argument(), "relay:V:tcp:127.0.0.1:1,unix:x");
        for file in ["relay:V", "relay:V:", "relay", "V:tcp:127.0.0.1:1", "a.db"] {
            assert_eq!(RelaySettings::of_argument(file), None, "{file}");
        }
    }
}
