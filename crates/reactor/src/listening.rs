//! A listening socket of a poll loop. Opening is retried until it succeeds; accepting pauses after
//! a failure, because no event reports when it would succeed.
//!
//! Shards have one for each remote, a cluster member has one. This file logs no failure to open:
//! the owner knows the words.

use std::os::fd::AsRawFd;
use std::sync::Arc;

use corvid_net::errno;
use corvid_net::listener::{ListenError, Listener};
use corvid_net::logging::{self, Module};
use corvid_net::target::Passive;
use corvid_net::tls::Credentials;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};

/// The interval at which the resolution of a host name is checked, ms.
const RESOLVE_MS: u64 = 100;

/// A listening socket, open or not.
#[derive(Debug)]
pub struct Listening {
    target: Passive,
    dscp: u8,
    /// The credentials for TLS.
    credentials: Option<Arc<Credentials>>,
    /// The pause between two attempts to open the socket, ms.
    interval_ms: u64,
    listener: Option<Arc<Listener>>,
    /// When to try again to open or accept, monotonic ms.
    retry_ms: Option<u64>,
}

impl Listening {
    /// A socket that is not open; the first attempt is due at once.
    #[must_use]
    pub fn new(
        target: Passive,
        dscp: u8,
        credentials: Option<Arc<Credentials>>,
        interval_ms: u64,
    ) -> Listening {
        Listening {
            target,
            dscp,
            credentials,
            interval_ms,
            listener: None,
            retry_ms: Some(0),
        }
    }

    /// The open socket.
    #[must_use]
    pub fn listener(&self) -> Option<&Arc<Listener>> {
        self.listener.as_ref()
    }

    /// When to call [`Listening::open`] or to accept again, monotonic ms.
    #[must_use]
    pub fn retry_ms(&self) -> Option<u64> {
        self.retry_ms
    }

    /// Whether that time has been reached.
    #[must_use]
    pub fn is_due(&self, now_ms: u64) -> bool {
        self.retry_ms.is_some_and(|at_ms| at_ms <= now_ms)
    }

    /// Tries to open the socket, if it is closed and an attempt is due. Returns true if the socket
    /// has just been opened and must be registered.
    ///
    /// # Errors
    /// The socket cannot be opened now. The next attempt is scheduled.
    pub fn open(&mut self, now_ms: u64) -> Result<bool, ListenError> {
        if self.listener.is_some() || !self.is_due(now_ms) {
            return Ok(false);
        }
        let Some(target) = self.target.resolved() else {
            // Not an error: the name will be resolved soon, or the resolver has logged its failure.
            self.retry_ms = Some(now_ms + RESOLVE_MS);
            return Ok(false);
        };
        self.retry_ms = Some(now_ms + self.interval_ms);
        let listener = Listener::open(&target, self.dscp, self.credentials.as_ref())?;
        self.listener = Some(Arc::new(listener));
        self.retry_ms = None;
        Ok(true)
    }

    /// Registers the socket with the poll. A failure is logged: no connection can be accepted
    /// there.
    pub fn register(&self, registry: &Registry, token: Token) {
        let Some(listener) = &self.listener else {
            return;
        };
        let fd = listener.as_raw_fd();
        if let Err(error) = registry.register(&mut SourceFd(&fd), token, Interest::READABLE) {
            let reason = errno::text(&error);
            logging::err(Module::PollLoop, format_args!("register: {reason}"));
        }
    }

    /// Removes the socket from the poll and closes it.
    pub fn close(&self, registry: &Registry) {
        if let Some(listener) = &self.listener {
            let _ = registry.deregister(&mut SourceFd(&listener.as_raw_fd()));
            listener.close();
        }
    }

    /// Makes the owner accept at this time even without an event; `None`: only after an event.
    pub fn accept_at(&mut self, at_ms: Option<u64>) {
        self.retry_ms = at_ms;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_opened_again_after_the_interval_and_once() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("later");
        let target = Passive::Unix(folder.join("socket"));
        let mut listening = Listening::new(target, 0, None, 1000);
        assert!(listening.open(5).is_err(), "there is no folder");
        assert_eq!(listening.retry_ms(), Some(1005));
        std::fs::create_dir(&folder).unwrap();
        assert!(!listening.open(1004).unwrap(), "it is not due");
        assert!(listening.open(1005).unwrap());
        assert!(!listening.open(9000).unwrap(), "it is open");
        assert_eq!(listening.retry_ms(), None);
        listening.accept_at(Some(7));
        assert!(!listening.is_due(6) && listening.is_due(7));
    }
}
