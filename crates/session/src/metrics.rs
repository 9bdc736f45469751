//! A session's counters: plain numbers that only grow.

/// Counts of a session since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SessionMetrics {
    /// Attempts to connect, and to listen for `ptcp:` and its like.
    pub attempts: u64,
    /// Attempts that ended without a connection.
    pub failures: u64,
    /// Connections that were established, the first included.
    pub connects: u64,
    /// Established connections after the first.
    pub reconnects: u64,
    /// Connections that ended, whichever side ended them.
    pub disconnects: u64,
    /// Servers that were left because they would not do: not the leader, without the database, behind, not understood.
    pub servers_left: u64,
    /// Bytes received, framing and probes included, without what TLS adds.
    pub bytes_received: u64,
    /// Bytes handed over for sending, without what TLS adds.
    pub bytes_sent: u64,
    /// Messages received.
    pub messages_received: u64,
    /// Replies that brought all contents: the first of a client, and later ones of servers without the history since.
    pub resyncs_full: u64,
    /// Replies that brought only what was missed since the last connection.
    pub resyncs_fast: u64,
}
