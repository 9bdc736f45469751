//! Where the pages are served (`--metrics-listen`): one address, an address for each database, or a
//! directory of sockets.
//!
//! Scripts such as `ovn-ctl` start several servers with the same options, and two servers cannot
//! listen at one address. `OVN_Northbound=:9641,OVN_Southbound=:9642` gives each server its own
//! address, and `unix:/run/ovn/` gives each a socket `NAME.metrics.sock`. This file parses the
//! option; it does not listen.

use std::path::Path;

use crate::http::Address;

/// The parsed value of the option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListenAt {
    entries: Vec<Entry>,
}

/// One address, and the database whose server listens there.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    /// `None`: any server.
    database: Option<String>,
    address: String,
}

impl ListenAt {
    /// Parses the option's value: `ADDRESS`, or one or more `DATABASE=ADDRESS`, separated by
    /// commas.
    ///
    /// # Errors
    /// The value is invalid; the text says why. Host names are not resolved yet.
    pub(crate) fn parse(text: &str) -> Result<ListenAt, String> {
        let head = text.split([':', ',', '/']).next().unwrap_or(text);
        if !head.contains('=') {
            let address = text.to_owned();
            let database = None;
            return Ok(ListenAt {
                entries: vec![Entry { database, address }],
            });
        }
        let entry = |part: &str| match part.split_once('=') {
            Some((database, address)) if !database.is_empty() && !address.is_empty() => Ok(Entry {
                database: Some(database.to_owned()),
                address: address.to_owned(),
            }),
            _ => Err(format!("\"{part}\" is not DATABASE=ADDRESS")),
        };
        let entries = text.split(',').map(entry).collect::<Result<_, _>>()?;
        Ok(ListenAt { entries })
    }

    /// The address for a server of these databases: that of the first entry for one of them, or for
    /// any server. `None`: there is no such entry.
    ///
    /// # Errors
    /// The address is invalid; the text says why. Resolving a host name may take a while.
    pub(crate) fn address_of(&self, databases: &[String]) -> Option<Result<Address, String>> {
        let is_ours = |entry: &&Entry| match &entry.database {
            Some(database) => databases.contains(database),
            None => true,
        };
        let entry = self.entries.iter().find(is_ours)?;
        let Some(directory) = directory(&entry.address) else {
            return Some(Address::parse(&entry.address));
        };
        let first = entry.database.as_ref().or(databases.iter().min());
        let Some(name) = first else {
            return Some(Err(format!(
                "{}: a server without a database has no name for its socket",
                entry.address
            )));
        };
        let file = Path::new(directory).join(format!("{name}.metrics.sock"));
        Some(Address::parse(&format!("unix:{}", file.display())))
    }

    /// Whether every address is valid, for any database.
    ///
    /// # Errors
    /// An address is invalid; the text says why.
    pub(crate) fn check(&self) -> Result<(), String> {
        for Entry { address, .. } in &self.entries {
            if directory(address).is_none() {
                Address::parse(address)?;
            }
        }
        Ok(())
    }
}

/// The directory of sockets that an address names; such an address ends with a slash.
fn directory(address: &str) -> Option<&str> {
    let file = address.strip_prefix("unix:")?;
    file.ends_with('/').then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, databases: &[&str]) -> Result<String, String> {
        let databases: Vec<String> = databases.iter().map(|&name| name.to_owned()).collect();
        match ListenAt::parse(text)?.address_of(&databases) {
            Some(address) => address.map(|address| address.to_string()),
            None => Ok("nowhere".to_owned()),
        }
    }

    fn text(text: &str) -> Result<String, String> {
        Ok(text.to_owned())
    }

    #[test]
    fn one_address_is_for_any_server() {
        for address in ["127.0.0.1:9476", "[::1]:1", ":80", "unix:/a=b,c", "unix:x"] {
            assert_eq!(of(address, &["N"]), text(address));
            assert_eq!(of(address, &[]), text(address));
        }
    }

    #[test]
    fn a_server_takes_the_first_entry_of_its_databases() {
        let both = "NB=127.0.0.1:1,SB=[::1]:2";
        assert_eq!(of(both, &["NB"]), text("127.0.0.1:1"));
        assert_eq!(of(both, &["SB"]), text("[::1]:2"));
        assert_eq!(of(both, &["SB", "NB"]), text("127.0.0.1:1"));
        assert_eq!(of(both, &["Other"]), text("nowhere"));
        assert_eq!(
            of("NB=unix:/a/", &["Other", "NB"]),
            text("unix:/a/NB.metrics.sock")
        );
    }

    #[test]
    fn a_directory_has_a_socket_for_each_database() {
        assert_eq!(
            of("unix:/run/m/", &["SB"]),
            text("unix:/run/m/SB.metrics.sock")
        );
        assert_eq!(
            of("unix:/run/m/", &["SB", "NB"]),
            text("unix:/run/m/NB.metrics.sock")
        );
        assert!(of("unix:/run/m/", &[]).is_err());
    }

    #[test]
    fn what_is_no_entry_is_refused() {
        for wrong in ["NB=127.0.0.1:1,SB", "NB=,SB=:1", "=:1", "NB=:1,"] {
            assert!(ListenAt::parse(wrong).is_err(), "{wrong}");
        }
        assert!(ListenAt::parse("NB=nonsense").unwrap().check().is_err());
        assert!(
            ListenAt::parse("NB=:1,SB=unix:/d/")
                .unwrap()
                .check()
                .is_ok()
        );
    }
}
