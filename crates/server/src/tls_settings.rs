//! The TLS settings. Database columns may hold their values: `--private-key=db:DB,TABLE,COLUMN` and
//! others (docs/spec/cli.md 1.1, 5.3).
//!
//! The value of a column is its first non-empty string. If a column becomes empty, or its database
//! is removed, the last value stays in force.

use std::collections::BTreeMap;
use std::sync::Arc;

use corvid_net::os_name;
use corvid_net::tls::{Authority, Credentials, Settings};
use corvid_rpc::remote::ColumnRemote;
use corvid_service::remote_rows::RemoteRows;

/// The settings as given, and the values of columns.
#[derive(Debug)]
pub(crate) struct TlsSettings {
    given: Settings,
    /// The values, by the text that names the column; `None`: not read yet.
    columns: BTreeMap<String, Option<String>>,
    credentials: Arc<Credentials>,
}

impl TlsSettings {
    /// Applies the settings that are not in columns.
    #[must_use]
    pub(crate) fn new(given: Settings) -> TlsSettings {
        let columns = texts(&given)
            .filter(|text| ColumnRemote::matches(text))
            .map(|text| (text.clone(), None))
            .collect();
        let settings = TlsSettings {
            given,
            columns,
            credentials: Arc::default(),
        };
        settings.apply();
        settings
    }

    /// The same settings with absolute file names.
    #[must_use]
    pub(crate) fn absolute(settings: &Settings) -> Settings {
        let absolute = |name: &String| match std::path::absolute(os_name::path(name)) {
            Ok(path) if !ColumnRemote::matches(name) => os_name::text(path.as_os_str()),
            _ => name.clone(),
        };
        let authority = settings.authority.as_ref().map(|authority| Authority {
            file: match authority.file.as_str() {
                "none" => authority.file.clone(),
                _ => absolute(&authority.file),
            },
            ..authority.clone()
        });
        Settings {
            private_key: settings.private_key.as_ref().map(absolute),
            certificate: settings.certificate.as_ref().map(absolute),
            peer_authority: settings.peer_authority.as_ref().map(absolute),
            authority,
            ..settings.clone()
        }
    }

    /// The credentials for connections.
    #[must_use]
    pub(crate) fn credentials(&self) -> &Arc<Credentials> {
        &self.credentials
    }

    /// The columns that hold settings, as `db:DB,TABLE,COLUMN`.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &str> {
        self.columns.keys().map(String::as_str)
    }

    /// Whether a column holds a setting.
    #[must_use]
    pub(crate) fn concerns(&self, column: &str) -> bool {
        self.columns.contains_key(column)
    }

    /// Sets the value of a column.
    pub(crate) fn set(&mut self, column: &str, texts: &RemoteRows) {
        let first = texts.keys().find(|text| !text.is_empty());
        if let (Some(known), Some(first)) = (self.columns.get_mut(column), first) {
            *known = Some(first.clone());
            self.apply();
        }
    }

    fn apply(&self) {
        let value = |given: &Option<String>| self.value(given.as_ref()?);
        let given = &self.given;
        let authority = given.authority.as_ref().and_then(|authority| {
            Some(Authority {
                file: self.value(&authority.file)?,
                is_bootstrapped: authority.is_bootstrapped,
            })
        });
        self.credentials.set(&Settings {
            private_key: value(&given.private_key),
            certificate: value(&given.certificate),
            authority,
            peer_authority: given.peer_authority.clone(),
            protocols: value(&given.protocols),
            ciphers: value(&given.ciphers),
            ciphersuites: value(&given.ciphersuites),
            server_name: value(&given.server_name),
        });
    }

    /// The value of a setting, from its column if it names one.
    fn value(&self, given: &str) -> Option<String> {
        match self.columns.get(given) {
            Some(held) => held.clone(),
            None => Some(given.to_owned()),
        }
    }
}

/// The settings whose values may be in columns.
fn texts(settings: &Settings) -> impl Iterator<Item = &String> {
    let authority = settings.authority.as_ref().map(|authority| &authority.file);
    let others = [
        &settings.private_key,
        &settings.certificate,
        &settings.protocols,
        &settings.ciphers,
        &settings.ciphersuites,
        &settings.server_name,
    ];
    others
        .into_iter()
        .filter_map(Option::as_ref)
        .chain(authority)
}
