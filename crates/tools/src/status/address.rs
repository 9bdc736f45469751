//! Addresses as texts: which remote of a server an address of clients reaches, and where clients
//! may find a member whose address for members is known.

use std::net::IpAddr;

/// Scheme, host and port of `tcp:HOST:PORT` or `ssl:HOST:PORT`; the host keeps its brackets.
fn split(address: &str) -> Option<(&str, &str, &str)> {
    let (scheme, rest) = address.split_once(':')?;
    let (host, port) = rest.rsplit_once(':')?;
    let is_network = matches!(scheme, "tcp" | "ssl");
    (is_network && !host.is_empty()).then_some((scheme, host, port))
}

/// The host of an address over a network, with its brackets.
#[must_use]
pub fn host(address: &str) -> Option<&str> {
    split(address).map(|(_, host, _)| host)
}

/// The address at which clients probably reach a member: its host, with the scheme and the port by
/// which they reach another one. `None` if that one has no port.
#[must_use]
pub fn of_clients(of_member: &str, other: &str) -> Option<String> {
    let (_, host, _) = split(of_member)?;
    let (scheme, _, port) = split(other)?;
    let guess = format!("{scheme}:{host}:{port}");
    (guess != other).then_some(guess)
}

/// As [`of_clients`], by a remote at which the other one listens.
#[must_use]
pub fn of_clients_by_remote(of_member: &str, remote: &str) -> Option<String> {
    let (_, host, _) = split(of_member)?;
    let (scheme, rest) = remote.strip_prefix('p')?.split_once(':')?;
    let port = rest.split(':').next()?;
    let is_known = port.parse::<u16>().is_ok_and(|port| port != 0);
    (matches!(scheme, "tcp" | "ssl") && is_known).then(|| format!("{scheme}:{host}:{port}"))
}

/// Whether an address is one of this machine.
#[must_use]
pub fn is_loopback(address: &str) -> bool {
    let Some((_, host, _)) = split(address) else {
        return false;
    };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Whether clients that connect to `address` on the server's own machine reach `remote`.
#[must_use]
pub fn is_remote_of(remote: &str, address: &str) -> bool {
    if let Some(path) = address.strip_prefix("unix:") {
        return remote.strip_prefix("punix:") == Some(path);
    }
    let Some((scheme, _, port)) = split(address).filter(|_| is_loopback(address)) else {
        return false;
    };
    let Some(rest) = remote
        .strip_prefix('p')
        .and_then(|rest| rest.strip_prefix(scheme))
    else {
        return false;
    };
    let own = rest
        .strip_prefix(':')
        .and_then(|rest| rest.split(':').next());
    own == Some(port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_clients_has_the_host_of_the_member() {
        let guess = |member, other| of_clients(member, other);
        assert_eq!(
            guess("ssl:192.0.2.2:6644", "tcp:192.0.2.1:6641").as_deref(),
            Some("tcp:192.0.2.2:6641")
        );
        assert_eq!(
            guess("tcp:[2001:db8::2]:6644", "ssl:[2001:db8::1]:6641").as_deref(),
            Some("ssl:[2001:db8::2]:6641")
        );
        // The same address is the server that told about the member.
        assert_eq!(guess("tcp:127.0.0.1:6644", "tcp:127.0.0.1:6641"), None);
        assert_eq!(guess("tcp:192.0.2.2:6644", "unix:/db.sock"), None);
        assert_eq!(guess("unix:/m", "tcp:192.0.2.1:6641"), None);
        let guess = |remote| of_clients_by_remote("ssl:192.0.2.2:6644", remote);
        assert_eq!(guess("pssl:6641").as_deref(), Some("ssl:192.0.2.2:6641"));
        assert_eq!(
            guess("ptcp:6641:192.0.2.1").as_deref(),
            Some("tcp:192.0.2.2:6641")
        );
        for remote in ["ptcp:0", "punix:/a", "tcp:192.0.2.1:1", "db:A,B,c"] {
            assert_eq!(guess(remote), None, "{remote}");
        }
    }

    #[test]
    fn remotes_of_this_machine_are_recognised() {
        for (remote, address, expected) in [
            ("punix:/a", "unix:/a", true),
            ("punix:/a", "unix:/b", false),
            ("ptcp:6641", "tcp:127.0.0.1:6641", true),
            ("ptcp:6641:[::]", "tcp:[::1]:6641", true),
            ("ptcp:6641", "tcp:192.0.2.1:6641", false),
            ("pssl:6641", "tcp:127.0.0.1:6641", false),
            ("ptcp:6642", "tcp:127.0.0.1:6641", false),
        ] {
            assert_eq!(
                is_remote_of(remote, address),
                expected,
                "{remote} {address}"
            );
        }
        assert_eq!(host("ssl:[2001:db8::1]:1"), Some("[2001:db8::1]"));
        assert_eq!(host("unix:/a"), None);
        assert!(is_loopback("ssl:localhost:1"));
        assert!(!is_loopback("unix:/a"));
    }
}
