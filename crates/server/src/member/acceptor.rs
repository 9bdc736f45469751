//! The socket on which a member listens for the others: the passive form of its address, opened again every second until that succeeds
//! (docs/spec/distribution.md 1.1).

use std::sync::Arc;

use corvid_net::listener::Listener;
use corvid_net::logging::{self, Module};
use corvid_net::target::{Passive, Target};
use corvid_net::tls::Credentials;
use corvid_net::{errno, socket};
use rustix::io::Errno;

/// Between two attempts to open the socket, and after a failure to accept, ms.
const RETRY_MS: u64 = 1000;
/// Between two checks whether the host's name is resolved, ms.
const RESOLVE_MS: u64 = 100;

/// The socket, open or not.
pub(super) struct Acceptor {
    /// The passive form of the address: `ptcp:6643:10.0.0.1`.
    name: String,
    target: Option<Passive>,
    credentials: Arc<Credentials>,
    listener: Option<Listener>,
    /// When to try again, monotonic ms.
    retry_ms: Option<u64>,
}

impl Acceptor {
    /// A socket for a local address, not opened yet.
    pub(super) fn new(address: &str, credentials: Arc<Credentials>) -> Acceptor {
        let name = passive(address);
        let target = match Target::parse(&name) {
            Ok(Target::Passive(target)) => Some(target),
            Ok(Target::Active(_)) => None,
            Err(error) => {
                error.log(&name);
                None
            }
        };
        Acceptor {
            name,
            target,
            credentials,
            listener: None,
            retry_ms: Some(0),
        }
    }

    /// The open socket.
    pub(super) fn listener(&self) -> Option<&Listener> {
        self.listener.as_ref()
    }

    /// When [`Acceptor::retry`] is due, monotonic ms.
    pub(super) fn deadline_ms(&self) -> Option<u64> {
        self.retry_ms
    }

    /// Tries to open the socket, if it is time. True when it has just been opened, and must be registered.
    pub(super) fn retry(&mut self, now_ms: u64) -> bool {
        if self.listener.is_some() || self.retry_ms.is_none_or(|at_ms| at_ms > now_ms) {
            return false;
        }
        let Some(target) = &self.target else {
            self.retry_ms = None;
            self.warn(&errno::text_of(Errno::AFNOSUPPORT.raw_os_error()));
            return false;
        };
        let Some(target) = target.resolved() else {
            self.retry_ms = Some(now_ms + RESOLVE_MS);
            return false;
        };
        match Listener::open(&target, socket::DSCP_DEFAULT, Some(&self.credentials)) {
            Ok(listener) => {
                self.listener = Some(listener);
                self.retry_ms = None;
                true
            }
            Err(error) => {
                self.retry_ms = Some(now_ms + RETRY_MS);
                error.log();
                self.warn(&errno::text(&error.error));
                false
            }
        }
    }

    /// Accepting has failed, perhaps because no descriptor is left: no event reports when it would succeed.
    pub(super) fn pause(&mut self, now_ms: u64) {
        self.retry_ms = Some(now_ms + RETRY_MS);
    }

    /// Whether a pause is over, so that accepting is to be tried again.
    pub(super) fn end_pause(&mut self, now_ms: u64) -> bool {
        let is_over = self.listener.is_some() && self.retry_ms.is_some_and(|at_ms| at_ms <= now_ms);
        if is_over {
            self.retry_ms = None;
        }
        is_over
    }

    fn warn(&self, reason: &str) {
        let name = &self.name;
        logging::warn(
            Module::Raft,
            format_args!("{name}: listen failed ({reason})"),
        );
    }
}

/// The passive form of an address: `tcp:HOST:PORT` becomes `ptcp:PORT:HOST`, `unix:PATH` becomes `punix:PATH`.
fn passive(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once(':') else {
        return format!("p{address}");
    };
    match rest.rsplit_once(':') {
        Some((host, port)) if scheme != "unix" => format!("p{scheme}:{port}:{host}"),
        _ => format!("p{scheme}:{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_passive_forms() {
        for (address, expected) in [
            ("tcp:127.0.0.1:6643", "ptcp:6643:127.0.0.1"),
            ("ssl:[::1]:6643", "pssl:6643:[::1]"),
            ("unix:a:b.raft", "punix:a:b.raft"),
        ] {
            assert_eq!(passive(address), expected);
            assert!(Target::parse(expected).is_ok(), "{expected}");
        }
    }
}
