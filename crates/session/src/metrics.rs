//! A session's counters, which never decrease.

/// Counts of a session since it was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SessionMetrics {
    /// Attempts to connect, or to listen for passive remotes such as `ptcp:`.
    pub attempts: u64,
    /// Attempts that ended without a connection.
    pub failures: u64,
    /// Connections established, including the first.
    pub connects: u64,
    /// Connections established after the first.
    pub reconnects: u64,
    /// Connections that ended, whichever side ended them.
    pub disconnects: u64,
    /// Servers left because they were unsuitable: not the leader, without the database, stale, or
    /// not understood.
    pub servers_left: u64,
    /// Bytes received, including framing and probes, excluding the overhead of TLS.
    pub bytes_received: u64,
    /// Bytes passed on for sending, excluding the overhead of TLS.
    pub bytes_sent: u64,
    /// Messages received.
    pub messages_received: u64,
    /// Replies with full contents: the first of a client, and later ones of servers whose history
    /// does not reach back far enough.
    pub resyncs_full: u64,
    /// Replies with only the changes since the last connection.
    pub resyncs_fast: u64,
    /// Transactions sent again after a lost connection.
    pub transactions_repeated: u64,
}
