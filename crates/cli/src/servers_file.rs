//! Names of servers: `$XDG_CONFIG_HOME/corvid/servers.toml`, or `~/.config/corvid/servers.toml`.
//!
//! ```toml
//! default = "lab"
//!
//! [lab]
//! address = ["ssl:192.0.2.1:6641", "ssl:192.0.2.2:6641"]
//! database = "OVN_Northbound"
//! private-key = "lab.key"
//! certificate = "lab.crt"
//! ca-cert = "ca.crt"
//! metrics = ["http://192.0.2.1:9641", "http://192.0.2.2:9641"]
//! ```
//!
//! Names of files are relative to the folder of this file. The file is read only when a name is
//! looked for, so a fault in it does not matter to a command that names an address.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use corvid_net::errno;
use corvid_net::tls::{self, Authority};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::failure::Failure;

/// A server with a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NamedServer {
    /// The address, or several ones separated by commas.
    pub address: String,
    /// The database to use if none is named.
    pub database: Option<String>,
    /// `--leader-only`
    pub leader_only: Option<bool>,
    /// The addresses of its pages (`--metrics-listen`).
    pub metrics: Vec<String>,
    private_key: Option<String>,
    certificate: Option<String>,
    ca_cert: Option<String>,
    server_name: Option<String>,
}

impl NamedServer {
    /// Fills in the TLS settings that the command line leaves open.
    pub(crate) fn fill(&self, tls: &mut tls::Settings) {
        let or = |given: &mut Option<String>, own: &Option<String>| {
            if given.is_none() {
                given.clone_from(own);
            }
        };
        or(&mut tls.private_key, &self.private_key);
        or(&mut tls.certificate, &self.certificate);
        or(&mut tls.server_name, &self.server_name);
        if tls.authority.is_none() {
            tls.authority = self.ca_cert.clone().map(|file| Authority {
                file,
                is_bootstrapped: false,
            });
        }
    }
}

/// The servers of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Servers {
    named: BTreeMap<String, NamedServer>,
    /// The server to use if none is named.
    pub default: Option<String>,
}

impl Servers {
    /// Reads the file; no servers if there is none.
    ///
    /// # Errors
    /// The file cannot be read, or is wrong.
    pub(crate) fn load() -> Result<Servers, Failure> {
        let variable = |name: &str| std::env::var_os(name);
        let Some(folder) = folder(variable("XDG_CONFIG_HOME"), variable("HOME")) else {
            return Ok(Servers::default());
        };
        let path = folder.join("servers.toml");
        let shown = path.display();
        match std::fs::read_to_string(&path) {
            Ok(text) => Servers::parse(&text, &folder)
                .map_err(|fault| Failure::usage(format!("{shown}{fault}"))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Servers::default()),
            Err(error) => {
                let reason = errno::text(&error);
                Err(Failure::usage(format!(
                    "{shown}: cannot be read ({reason})"
                )))
            }
        }
    }

    /// The server with this name.
    #[must_use]
    pub(crate) fn get(&self, name: &str) -> Option<&NamedServer> {
        self.named.get(name)
    }

    /// All names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.named.keys().map(String::as_str)
    }

    /// Parses the text of the file. A fault begins with its line: `:3: MESSAGE`.
    fn parse(text: &str, folder: &Path) -> Result<Servers, String> {
        let fault = |at: usize, message: &str| {
            let line = text[..at.min(text.len())].matches('\n').count() + 1;
            format!(":{line}: {message}")
        };
        let table = DeTable::parse(text)
            .map_err(|error| fault(error.span().map_or(0, |span| span.start), error.message()))?;
        let mut servers = Servers::default();
        for (key, value) in table.get_ref() {
            let name: &str = key.get_ref();
            match value.get_ref() {
                DeValue::String(default) if name == "default" => {
                    servers.default = Some(default.to_string());
                }
                DeValue::Table(entries) => {
                    let server = server(entries, folder, &fault)?;
                    if server.address.is_empty() {
                        let message = format!("\"{name}\" has no \"address\"");
                        return Err(fault(key.span().start, &message));
                    }
                    servers.named.insert(name.to_owned(), server);
                }
                _ => {
                    let message = format!("\"{name}\" is not a table");
                    return Err(fault(key.span().start, &message));
                }
            }
        }
        Ok(servers)
    }
}

/// One table of the file.
fn server(
    entries: &DeTable<'_>,
    folder: &Path,
    fault: &dyn Fn(usize, &str) -> String,
) -> Result<NamedServer, String> {
    let mut server = NamedServer::default();
    for (key, value) in entries {
        let wrong = |wanted: &str| {
            let message = format!("\"{}\" is not {wanted}", key.get_ref());
            fault(value.span().start, &message)
        };
        let text = || {
            let text = value.get_ref().as_str().map(str::to_owned);
            text.ok_or_else(|| wrong("a string"))
        };
        let file = || text().map(|name| Some(folder.join(name).display().to_string()));
        match key.get_ref().as_ref() {
            "address" => {
                server.address = texts(value)
                    .ok_or_else(|| wrong("a string or an array of strings"))?
                    .join(",");
            }
            "database" => server.database = Some(text()?),
            "leader-only" => {
                let only = value.get_ref().as_bool();
                server.leader_only = Some(only.ok_or_else(|| wrong("true or false"))?);
            }
            "metrics" => {
                server.metrics =
                    texts(value).ok_or_else(|| wrong("a string or an array of strings"))?;
            }
            "private-key" => server.private_key = file()?,
            "certificate" => server.certificate = file()?,
            "ca-cert" => server.ca_cert = file()?,
            "ssl-server-name" => server.server_name = Some(text()?),
            other => {
                let message = format!("unknown setting \"{other}\"");
                return Err(fault(key.span().start, &message));
            }
        }
    }
    Ok(server)
}

/// One text, or several ones.
fn texts(value: &Spanned<DeValue<'_>>) -> Option<Vec<String>> {
    match value.get_ref() {
        DeValue::String(one) => Some(vec![one.to_string()]),
        DeValue::Array(several) => several
            .iter()
            .map(|each| Some(each.get_ref().as_str()?.to_owned()))
            .collect(),
        _ => None,
    }
}

/// The folder of the file, from the two variables. Relative paths count as unset, as the
/// specification of the base directories asks.
fn folder(config: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let absolute = |value: OsString| Some(PathBuf::from(value)).filter(|path| path.is_absolute());
    let config = config.and_then(absolute);
    let base = config.or_else(|| Some(home.and_then(absolute)?.join(".config")))?;
    Some(base.join("corvid"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Servers, String> {
        Servers::parse(text, Path::new("/c"))
    }

    #[test]
    fn servers_have_addresses_databases_and_files() {
        let servers = parsed(
            "default = 'lab'\n[lab]\naddress = ['ssl:192.0.2.1:1', 'ssl:192.0.2.2:1']\n\
             database = 'Lab'\nprivate-key = 'k'\ncertificate = '/x/c'\nca-cert = 'a'\n\
             leader-only = false\nmetrics = 'http://192.0.2.1:2'\n[\"other one\"]\naddress = 'unix:/s'\n",
        )
        .unwrap();
        assert_eq!(servers.default.as_deref(), Some("lab"));
        assert_eq!(servers.names().collect::<Vec<_>>(), ["lab", "other one"]);
        let lab = servers.get("lab").unwrap();
        assert_eq!(lab.address, "ssl:192.0.2.1:1,ssl:192.0.2.2:1");
        assert_eq!(lab.database.as_deref(), Some("Lab"));
        assert_eq!(lab.leader_only, Some(false));
        assert_eq!(lab.metrics, ["http://192.0.2.1:2"]);
        let mut tls = tls::Settings {
            certificate: Some("given".to_owned()),
            ..tls::Settings::default()
        };
        lab.fill(&mut tls);
        assert_eq!(tls.private_key.as_deref(), Some("/c/k"));
        assert_eq!(tls.certificate.as_deref(), Some("given"));
        assert_eq!(tls.authority.unwrap().file, "/c/a");
    }

    #[test]
    fn faults_tell_their_line() {
        for (text, fault) in [
            ("x = 1", ":1: \"x\" is not a table"),
            ("\n[a]\n", ":2: \"a\" has no \"address\""),
            (
                "[a]\naddress = 3",
                ":2: \"address\" is not a string or an array of strings",
            ),
            (
                "[a]\naddress = [3]",
                ":2: \"address\" is not a string or an array of strings",
            ),
            (
                "[a]\nmetrics = 3",
                ":2: \"metrics\" is not a string or an array of strings",
            ),
            ("[a]\n\nadress = ''", ":3: unknown setting \"adress\""),
            (
                "[a]\nleader-only = 1",
                ":2: \"leader-only\" is not true or false",
            ),
        ] {
            assert_eq!(parsed(text).unwrap_err(), fault);
        }
        assert!(parsed("[a\n").is_err());
    }
}
