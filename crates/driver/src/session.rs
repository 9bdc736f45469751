//! The state of a client's session as one plain value: for status pages, logs and the program's
//! decisions.

use corvid_session::{Client, ServerStatus};

use crate::failure::Failure;

/// The state of a client's session at one moment, as returned by
/// [`crate::polled::Client::session`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionState {
    /// Whether a connection is established.
    pub is_connected: bool,
    /// The remote that is connected, or was tried last; `None` if there are no remotes.
    pub remote: Option<String>,
    /// The server's role: standalone, leader or follower, and whether it is connected to its
    /// cluster. `None` until the server has sent it.
    pub server: Option<ServerStatus>,
    /// Whether the replica is complete and receives the server's changes.
    pub is_synced: bool,
    /// Whether contents have ever arrived, on any connection.
    pub has_contents: bool,
    /// Whether the client is connected or will try to connect; false if no remote is left to try.
    pub is_alive: bool,
    /// The failure that keeps the client from some or all of its contents; `None` if there is none.
    pub last_failure: Option<Failure>,
    /// Incremented whenever a connection is established or ends.
    pub seqno: u64,
    /// The state of the lock.
    pub lock: LockState,
}

impl SessionState {
    /// Whether the server leads its cluster or is standalone; `None` until the server has sent its
    /// role.
    #[must_use]
    pub fn is_leader(&self) -> Option<bool> {
        self.server.as_ref().map(|server| server.is_leader)
    }

    pub(crate) fn new(session: &Client, last_failure: Option<Failure>) -> SessionState {
        SessionState {
            is_connected: session.is_connected(),
            remote: (!session.remotes().is_empty()).then(|| session.remote().to_owned()),
            server: session.server_status(),
            is_synced: session.is_monitoring(),
            has_contents: session.has_ever_had_contents(),
            is_alive: session.is_alive(),
            last_failure,
            seqno: session.session_seqno(),
            lock: LockState::of(session),
        }
    }
}

/// A client's lock, according to the server's last message. Another client may have stolen it
/// since. Transactions are safe nevertheless: while a lock is set, each of them asserts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockState {
    /// The client has not set a lock.
    Unset,
    /// The client has requested the lock, or will on the next connection.
    Requested,
    /// Another client holds it.
    Contended,
    /// This client holds it.
    Held,
    /// The server refused the request; carries its error as JSON. Its lock table may be full. The
    /// client asks again on the next connection.
    Refused(String),
}

impl LockState {
    fn of(session: &Client) -> LockState {
        if let Some(error) = session.lock_refusal() {
            return LockState::Refused(error.to_owned());
        }
        match (session.lock_name(), session.has_lock()) {
            (None, _) => LockState::Unset,
            (Some(_), true) => LockState::Held,
            (Some(_), false) if session.is_lock_contended() => LockState::Contended,
            (Some(_), false) => LockState::Requested,
        }
    }
}
