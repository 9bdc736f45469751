//! Addresses at which members of a cluster reach each other: `tcp:HOST:PORT`, `ssl:HOST:PORT`,
//! `unix:PATH`.
//!
//! Only the form is checked, as leniently as the reference checks it. Names are not resolved; an
//! unreachable host shows up only when a connection is tried.

use corvid_data::{Tag, WireError};
use thiserror::Error;

/// Why a text is not an address.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AddressError {
    /// The method is unknown or missing.
    #[error("{address}: expected \"tcp\" or \"ssl\" address")]
    Method {
        /// The text that was checked.
        address: String,
    },
    /// The part after the method is not a host with a port.
    #[error("{address}: syntax error in address")]
    Syntax {
        /// The text that was checked.
        address: String,
        /// The error for the log, for example `127.0.0.1: port must be specified`.
        reason: Option<String>,
    },
}

/// Checks the form of an address.
///
/// # Errors
/// See [`AddressError`].
///
/// ```
/// use corvid_log::cluster::address::check;
/// assert!(check("tcp:[::1]:6643").is_ok());
/// assert_eq!(check("tcp:10.0.0.1").unwrap_err().to_string(), "tcp:10.0.0.1: syntax error in address");
/// ```
pub fn check(address: &str) -> Result<(), AddressError> {
    if address.starts_with("unix:") {
        return Ok(());
    }
    let peer = ["tcp:", "ssl:"]
        .iter()
        .find_map(|method| address.strip_prefix(method));
    let Some(peer) = peer else {
        return Err(AddressError::Method {
            address: address.to_owned(),
        });
    };
    check_peer(peer).map_err(|problem| AddressError::Syntax {
        address: address.to_owned(),
        reason: problem.map(|problem| format!("{peer}: {problem}")),
    })
}

/// Checks `HOST:PORT` or `[IPV6]:PORT`. A host that contains colons needs the brackets, or its port
/// is not recognised.
fn check_peer(peer: &str) -> Result<(), Option<String>> {
    let port = match peer.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((_, "")) => None,
        Some((_, rest)) => Some(rest.strip_prefix(':').ok_or(None)?),
        None => peer.split_once(':').map(|(_, port)| port),
    };
    match port {
        None => Err(Some("port must be specified".to_owned())),
        Some(port) if port.contains(':') => Err(Some("port must be specified".to_owned())),
        Some("") => Ok(()),
        // As in C, leading white space and a plus sign pass.
        Some(port) => match port.trim_start().parse::<u16>() {
            Ok(_) => Ok(()),
            Err(_) => Err(Some(format!("bad port number \"{port}\""))),
        },
    }
}

impl AddressError {
    /// The text that the reference logs as an error of `socket_util`.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            AddressError::Method { .. } => None,
            AddressError::Syntax { reason, .. } => reason.as_deref(),
        }
    }
}

impl From<AddressError> for WireError {
    fn from(error: AddressError) -> WireError {
        WireError::new(Tag::OvsdbError, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(address: &str) -> Option<String> {
        match check(address) {
            Ok(()) => None,
            Err(error) => Some(error.reason().unwrap_or_default().to_owned()),
        }
    }

    #[test]
    fn valid_addresses_pass() {
        for address in [
            "tcp:127.0.0.1:6643",
            "ssl:[::1]:6643",
            "ssl:[fe80::1%lo]:6643",
            "tcp:db.example:6643",
            "tcp:1.2.3.4:0",
            "tcp:1.2.3.4:+5",
            "tcp:1.2.3.4: 5",
            "tcp:1.2.3.4:",
            "tcp::5",
            "tcp:[::1]:",
            "tcp:[1.2.3.4]:5",
            "unix:",
            "unix:a b",
        ] {
            assert_eq!(problem(address), None, "{address}");
        }
    }

    #[test]
    fn invalid_addresses_are_refused() {
        for (address, reason) in [
            ("tcp:127.0.0.1", "127.0.0.1: port must be specified"),
            ("tcp:", ": port must be specified"),
            ("tcp:::1:3", "::1:3: port must be specified"),
            ("tcp:[::1]", "[::1]: port must be specified"),
            ("tcp:[::1", "[::1: port must be specified"),
            ("tcp:[::1]x:4", ""),
            ("tcp:1.2.3.4:x", "1.2.3.4:x: bad port number \"x\""),
            ("tcp:1.2.3.4:-1", "1.2.3.4:-1: bad port number \"-1\""),
            (
                "tcp:1.2.3.4:65536",
                "1.2.3.4:65536: bad port number \"65536\"",
            ),
            ("tcp:1.2.3.4:5 ", "1.2.3.4:5 : bad port number \"5 \""),
            ("ptcp:5", ""),
            ("tcp", ""),
            ("", ""),
        ] {
            assert_eq!(problem(address).as_deref(), Some(reason), "{address}");
        }
    }
}
