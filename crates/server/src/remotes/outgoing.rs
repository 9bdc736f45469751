//! Remotes that the server connects to itself (`tcp:`, `unix:`). Each connection serves one session
//! at a time, and is reopened when it ends.
//!
//! Runs on shard 0. [`ActiveConnection`] connects; this file adds the status that the main thread
//! writes to rows of remotes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use corvid_monitor::SessionId;
use corvid_net::clock::Now;
use corvid_reactor::shard::{CloseReason, ConnId, Io};

use super::connection::ActiveConnection;
use super::options::RemoteOptions;

/// The state machine sends no probes. The session probes an open connection, as it does an accepted
/// one.
const NO_PROBES: u64 = 0;

/// The status of the connection to a remote.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConnectionStatus {
    /// The state machine's state: `ACTIVE`, `BACKOFF`, ...
    pub(crate) state: &'static str,
    /// The session, while the connection is open.
    pub(crate) session: Option<SessionId>,
    /// When the connection was last established, monotonic ms.
    pub(crate) connected_at_ms: Option<u64>,
    /// When an established connection last ended, monotonic ms.
    pub(crate) disconnected_at_ms: Option<u64>,
}

/// The cell in which the connecting shard publishes the status, for the main thread to read.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedStatus(Arc<Mutex<ConnectionStatus>>);

impl SharedStatus {
    /// The current status.
    #[must_use]
    pub(crate) fn read(&self) -> ConnectionStatus {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, ConnectionStatus> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One remote that the server connects to.
pub(crate) struct OutgoingRemote {
    connection: ActiveConnection,
    /// The session is closing the connection because the peer has violated the protocol.
    is_refused: bool,
    status: SharedStatus,
}

impl OutgoingRemote {
    /// A remote whose first attempt is due at once.
    #[must_use]
    pub(crate) fn new(
        now: Now,
        name: String,
        options: RemoteOptions,
        status: SharedStatus,
    ) -> OutgoingRemote {
        // A listener's text gets here only if it cannot be parsed. Its log messages are those of a
        // listener.
        let is_passive = ["ptcp:", "pssl:", "punix:"]
            .iter()
            .any(|scheme| name.starts_with(scheme));
        let mut connection = ActiveConnection::new(now, name, options, NO_PROBES);
        connection.reconnect().set_passive(is_passive);
        OutgoingRemote {
            connection,
            is_refused: false,
            status,
        }
    }

    /// Changes the options, also for an open connection.
    pub(crate) fn set_options(&mut self, options: RemoteOptions) {
        self.connection.set_options(options, NO_PROBES);
    }

    /// The remote's text.
    #[must_use]
    pub(crate) fn name(&self) -> &str {
        self.connection.name()
    }

    /// The options that the session inherits.
    #[must_use]
    pub(crate) fn options(&self) -> &RemoteOptions {
        self.connection.options()
    }

    /// The open connection, or the attempt in progress.
    #[must_use]
    pub(crate) fn conn(&self) -> Option<ConnId> {
        self.connection.conn()
    }

    /// When [`OutgoingRemote::run`] is due, monotonic ms; in the past if it is late.
    #[must_use]
    pub(crate) fn deadline_ms(&self) -> Option<u64> {
        self.connection.deadline_ms()
    }

    /// Connects or disconnects, if either is due.
    pub(crate) fn run(&mut self, now: Now, io: &mut Io) {
        self.connection.run(now, io);
        self.publish(now);
    }

    /// Records that the connection is open and serves this session.
    pub(crate) fn opened(&mut self, now: Now, session: SessionId) {
        self.connection.opened(now);
        self.status.lock().session = Some(session);
        self.publish(now);
    }

    /// Records that the session is about to close the connection because the peer has violated the
    /// protocol.
    pub(crate) fn refuse(&mut self) {
        self.is_refused = true;
    }

    /// Records that the connection or the attempt has ended.
    pub(crate) fn closed(&mut self, now: Now, reason: &CloseReason) {
        let is_refused = std::mem::take(&mut self.is_refused);
        self.connection.closed(now, reason, is_refused);
        self.status.lock().session = None;
        self.publish(now);
    }

    fn publish(&mut self, now: Now) {
        let ago = |since_ms: Option<u64>| since_ms.map(|since_ms| now.mono_ms - since_ms);
        let reconnect = self.connection.reconnect();
        let mut status = self.status.lock();
        status.state = reconnect.state_name();
        status.connected_at_ms = ago(reconnect.since_connect_ms(now.mono_ms));
        status.disconnected_at_ms = ago(reconnect.since_disconnect_ms(now.mono_ms));
    }
}
