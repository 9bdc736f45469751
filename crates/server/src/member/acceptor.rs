//! The socket on which a member listens for other members. It is bound to the passive form of the
//! member's address, and retried every second until binding succeeds
//! (docs/spec/distribution.md 1.1).

use std::sync::Arc;

use corvid_net::listener::Listener;
use corvid_net::logging::{self, Module};
use corvid_net::target::Target;
use corvid_net::tls::Credentials;
use corvid_net::{errno, socket};
use corvid_reactor::listening::Listening;
use mio::{Registry, Token};
use rustix::io::Errno;

/// The pause between two attempts to open the socket, and after a failure to accept, ms.
const RETRY_MS: u64 = 1000;

/// The socket, open or not.
pub(super) struct Acceptor {
    /// The passive form of the address: `ptcp:6643:10.0.0.1`.
    name: String,
    /// `None`: the address has no passive form.
    listening: Option<Listening>,
    /// The missing passive form has been logged.
    is_refusal_told: bool,
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
        let listening = target.map(|target| {
            Listening::new(target, socket::DSCP_DEFAULT, Some(credentials), RETRY_MS)
        });
        Acceptor {
            name,
            listening,
            is_refusal_told: false,
        }
    }

    /// The open socket.
    pub(super) fn listener(&self) -> Option<&Listener> {
        Some(self.listening.as_ref()?.listener()?)
    }

    /// When [`Acceptor::retry`] is due, monotonic ms.
    pub(super) fn deadline_ms(&self) -> Option<u64> {
        self.listening.as_ref()?.retry_ms()
    }

    /// Opens the socket and registers it, or ends a pause, if either is due. Returns true if the
    /// caller should try to accept although no event has arrived.
    pub(super) fn retry(&mut self, now_ms: u64, registry: &Registry, token: Token) -> bool {
        let Some(listening) = &mut self.listening else {
            if !std::mem::replace(&mut self.is_refusal_told, true) {
                self.warn(&errno::text_of(Errno::AFNOSUPPORT.raw_os_error()));
            }
            return false;
        };
        match listening.open(now_ms) {
            Ok(true) => {
                listening.register(registry, token);
                true
            }
            Ok(false) => {
                let is_over = listening.listener().is_some() && listening.is_due(now_ms);
                if is_over {
                    listening.accept_at(None);
                }
                is_over
            }
            Err(error) => {
                error.log();
                self.warn(&errno::text(&error.error));
                false
            }
        }
    }

    /// Pauses accepting after a failure, perhaps because no descriptor is left. No event reports
    /// when accepting would succeed, so a timer ends the pause.
    pub(super) fn pause(&mut self, now_ms: u64) {
        if let Some(listening) = &mut self.listening {
            listening.accept_at(Some(now_ms + RETRY_MS));
        }
    }

    fn warn(&self, reason: &str) {
        let name = &self.name;
        logging::warn(
            Module::Raft,
            format_args!("{name}: listen failed ({reason})"),
        );
    }
}

/// The passive form of an address: `tcp:HOST:PORT` becomes `ptcp:PORT:HOST`, `unix:PATH` becomes
/// `punix:PATH`.
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
