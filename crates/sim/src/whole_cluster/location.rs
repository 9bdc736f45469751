//! A place where a server runs: the host of a member, that of a standalone server in place of a
//! cluster, or the host of a relay.

use crate::world::host_faults::HOSTS_MAX;

/// A server, by its kind and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Location {
    Member(usize),
    Standalone,
    Relay(usize),
}

impl Location {
    /// Returns the number that identifies the server's listening sockets in the network for
    /// clients.
    pub(super) fn listener(self) -> usize {
        match self {
            Location::Member(number) => number,
            Location::Standalone => 0,
            Location::Relay(number) => HOSTS_MAX + 2 * number,
        }
    }

    /// Returns the number that identifies the socket of a relay's thread, which dials.
    pub(super) fn caller(relay: usize) -> usize {
        HOSTS_MAX + 2 * relay + 1
    }

    /// Returns all numbers of the host.
    pub(super) fn numbers(self) -> Vec<usize> {
        match self {
            Location::Member(_) | Location::Standalone => vec![self.listener()],
            Location::Relay(number) => vec![self.listener(), Location::caller(number)],
        }
    }

    /// Returns the address for clients.
    pub(super) fn address(self) -> String {
        match self {
            Location::Standalone => Location::Member(0).address(),
            Location::Member(number) => format!("tcp:10.0.0.{}:6640", number + 1),
            Location::Relay(number) => format!("tcp:10.0.1.{}:6640", number + 1),
        }
    }
}

impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Location::Standalone => f.write_str("the source"),
            Location::Member(number) => write!(f, "host {number}"),
            Location::Relay(number) => write!(f, "relay {number}"),
        }
    }
}
