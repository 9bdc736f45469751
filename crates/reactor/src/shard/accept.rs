//! Listeners of a shard: accepting, distributing, and retrying a listener that could not be opened.
//!
//! A listener that cannot be opened is never fatal: the shard tries again every [`RETRY_MS`] and
//! logs each new reason once. Only the first shard accepts; it distributes connections over all
//! shards in turn.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use super::ConnInfo;
use super::limits::{Accounts, Permit};
use crate::listening::Listening;
use corvid_net::errno;
use corvid_net::listener::{ListenError, Listener};
use corvid_net::logging::{self, Module, RateLimit};
use corvid_net::stream::Stream;
use corvid_net::target::Passive;
use corvid_net::tls::Credentials;

/// The pause between attempts to open a listener, ms.
pub(super) const RETRY_MS: u64 = 2500;
/// The pause after accepting failed (no descriptor left), ms. Readiness is edge-triggered, so no
/// event would wake the shard.
const ACCEPT_PAUSE_MS: u64 = 250;
/// The number of connections accepted in one wake-up, so that open connections are served in
/// between.
const ACCEPTS_MAX: usize = 64;

/// Identifies a listener; chosen by its owner, unique within a group of shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerId(pub u64);

/// The state of a listener, shared with its owner.
#[derive(Debug, Default)]
pub struct ListenerStatus {
    connections: AtomicUsize,
    /// The socket, once an attempt to open it has succeeded.
    listener: OnceLock<Arc<Listener>>,
}

impl ListenerStatus {
    /// The number of open connections.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// The TCP port, once bound.
    #[must_use]
    pub fn bound_port(&self) -> Option<u16> {
        self.listener.get().and_then(|listener| listener.port())
    }

    /// Whether the socket is open.
    #[must_use]
    pub fn is_listening(&self) -> bool {
        self.listener
            .get()
            .is_some_and(|listener| !listener.is_closed())
    }

    /// Stops listening at once.
    pub(super) fn close(&self) {
        if let Some(listener) = self.listener.get() {
            listener.close();
        }
    }
}

/// Counts one connection of its listener and of all listeners, until it is dropped.
#[derive(Debug)]
pub(super) struct ConnGuard {
    status: Arc<ListenerStatus>,
    _admitted: Permit,
}

impl ConnGuard {
    fn new(status: &Arc<ListenerStatus>, permit: Permit) -> ConnGuard {
        status.connections.fetch_add(1, Ordering::Relaxed);
        ConnGuard {
            status: Arc::clone(status),
            _admitted: permit,
        }
    }
}

impl Drop for ConnGuard {
    fn drop(&mut self) {
        self.status.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection that was accepted and not yet given to a shard.
#[derive(Debug)]
pub(super) struct Accepted {
    pub(super) stream: Stream,
    pub(super) info: ConnInfo,
    pub(super) guard: ConnGuard,
}

/// One listener of the accepting shard, open or waiting to be opened.
#[derive(Debug)]
pub(super) struct Acceptor {
    pub(super) id: ListenerId,
    pub(super) status: Arc<ListenerStatus>,
    pub(super) listening: Listening,
    name: Arc<str>,
    accounts: Arc<Accounts>,
    /// The text of the last failure, so that it is logged once.
    failure: Option<String>,
}

impl Acceptor {
    pub(super) fn new(
        id: ListenerId,
        name: &str,
        target: Passive,
        dscp: u8,
        credentials: Option<Arc<Credentials>>,
    ) -> Acceptor {
        let status = Arc::default();
        Acceptor {
            id,
            status,
            listening: Listening::new(target, dscp, credentials, RETRY_MS),
            name: name.into(),
            accounts: Arc::default(),
            failure: None,
        }
    }

    /// Sets the limits that apply to all listeners together.
    pub(super) fn limit(&mut self, accounts: &Arc<Accounts>) {
        self.accounts = Arc::clone(accounts);
    }

    /// Tries to open the listener, if that is due. Returns true if it has just been opened.
    pub(super) fn open(&mut self, now_ms: u64) -> bool {
        match self.listening.open(now_ms) {
            Ok(is_opened) => {
                if let Some(listener) = self.listening.listener() {
                    self.failure = None;
                    self.status.listener.get_or_init(|| Arc::clone(listener));
                }
                is_opened
            }
            Err(error) => {
                self.failed(&error);
                false
            }
        }
    }

    fn failed(&mut self, error: &ListenError) {
        let text = errno::text(&error.error);
        if self.failure.as_ref() != Some(&text) {
            error.log();
            logging::err(
                Module::OvsdbJsonrpcServer,
                format_args!("{}: listen failed: {text}", self.name),
            );
            self.failure = Some(text);
        }
    }

    /// Accepts pending connections, and closes those beyond the limit at once. If the limit of one
    /// wake-up is reached, the next attempt is due at once.
    pub(super) fn accept(&mut self, now_ms: u64) -> Vec<Accepted> {
        static LIMIT: RateLimit = RateLimit::new(1, 5);
        let mut accepted = Vec::new();
        let Some(listener) = self.listening.listener().cloned() else {
            return accepted;
        };
        self.listening.accept_at(None);
        let mut count = 0;
        while !listener.is_closed() {
            if count == ACCEPTS_MAX {
                self.listening.accept_at(Some(now_ms));
                break;
            }
            match listener.accept() {
                Ok(Some((stream, name))) => {
                    count += 1;
                    let Some(permit) = self.accounts.admit() else {
                        // Dropping the stream closes the connection.
                        log_too_many(&self.name, &name, self.accounts.connections_max());
                        continue;
                    };
                    let info = ConnInfo {
                        name: name.into(),
                        listener: Some(self.id),
                        is_network: stream.is_network(),
                        address: stream.peer_ip(),
                        pid: stream.peer_pid(),
                        identity: None,
                    };
                    accepted.push(Accepted {
                        stream,
                        info,
                        guard: ConnGuard::new(&self.status, permit),
                    });
                }
                Ok(None) => break,
                // For example, a key is missing: this connection was closed, and the next one may
                // succeed.
                Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => {
                    let (name, text) = (listener.shown(&self.name), errno::text(&error));
                    logging::warn_limited(
                        &LIMIT,
                        Module::OvsdbJsonrpcServer,
                        format_args!("{name}: accept failed: {text}"),
                    );
                }
                Err(error) => {
                    let (name, text) = (listener.shown(&self.name), errno::text(&error));
                    logging::err_limited(
                        &LIMIT,
                        Module::OvsdbJsonrpcServer,
                        format_args!("{name}: accept failed: {text}"),
                    );
                    self.listening.accept_at(Some(now_ms + ACCEPT_PAUSE_MS));
                    break;
                }
            }
        }
        accepted
    }
}

fn log_too_many(listener: &str, client: &str, connections_max: usize) {
    static LIMIT: RateLimit = RateLimit::new(1, 5);
    logging::warn_limited(
        &LIMIT,
        Module::OvsdbJsonrpcServer,
        format_args!(
            "{listener}: {client} refused: the limit of {connections_max} sessions is reached"
        ),
    );
}
