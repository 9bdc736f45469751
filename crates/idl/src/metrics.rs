//! A client's counters: plain numbers, for any metrics library.

use corvid_session::SessionMetrics;

use crate::txn::Status;

/// Counters of a client since its creation ([`crate::Idl::metrics`]). All of them only grow, except
/// [`Metrics::rows`].
///
/// ```
/// # use corvid_data::{Arc, Schema};
/// # use corvid_idl::{Class, Idl};
/// # use corvid_json::Value;
/// # let schema = br#"{"name":"Zoo","version":"1.0.0","tables":{}}"#;
/// # let class = Class::new(Arc::new(Schema::from_json(&Value::parse(schema).unwrap()).unwrap()));
/// let mut idl = Idl::new(class, 1);
/// idl.begin()?;
/// idl.commit()?;                                  // no server is connected
/// let metrics = idl.metrics();
/// assert_eq!((metrics.transactions_retried, metrics.session.connects), (1, 0));
/// for (name, value) in metrics.named() {
///     println!("corvid_{name} {value}");          // corvid_connects 0, ...
/// }
/// # Ok::<(), corvid_idl::Misuse>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Metrics {
    /// Connections, bytes and resynchronizations.
    pub session: SessionMetrics,
    /// Updates applied, including replies with contents.
    pub updates_applied: u64,
    /// Updates that did not fit the replica, after which all contents were requested again.
    pub updates_refused: u64,
    /// Rows inserted in the replica.
    pub rows_inserted: u64,
    /// Rows changed in the replica.
    pub rows_modified: u64,
    /// Rows deleted from the replica.
    pub rows_deleted: u64,
    /// Rows that the replica currently holds.
    pub rows: u64,
    /// Transactions that the server committed.
    pub transactions_committed: u64,
    /// Transactions that changed nothing, so nothing was sent.
    pub transactions_unchanged: u64,
    /// Transactions that the server refused with an error.
    pub transactions_refused: u64,
    /// Transactions that ended as "try again": lost races, lost connections, and commits without a
    /// connection.
    pub transactions_retried: u64,
    /// Transactions that were not carried out because the client did not hold its lock.
    pub transactions_not_locked: u64,
    /// Transactions that the program aborted before they were sent.
    pub transactions_aborted: u64,
    /// Calls of event handlers.
    pub events: u64,
}

impl Metrics {
    /// The counters with their names, for an exporter.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let session = &self.session;
        [
            ("attempts", session.attempts),
            ("failures", session.failures),
            ("connects", session.connects),
            ("reconnects", session.reconnects),
            ("disconnects", session.disconnects),
            ("servers_left", session.servers_left),
            ("bytes_received", session.bytes_received),
            ("bytes_sent", session.bytes_sent),
            ("messages_received", session.messages_received),
            ("resyncs_full", session.resyncs_full),
            ("resyncs_fast", session.resyncs_fast),
            ("transactions_repeated", session.transactions_repeated),
            ("updates_applied", self.updates_applied),
            ("updates_refused", self.updates_refused),
            ("rows_inserted", self.rows_inserted),
            ("rows_modified", self.rows_modified),
            ("rows_deleted", self.rows_deleted),
            ("rows", self.rows),
            ("transactions_committed", self.transactions_committed),
            ("transactions_unchanged", self.transactions_unchanged),
            ("transactions_refused", self.transactions_refused),
            ("transactions_retried", self.transactions_retried),
            ("transactions_not_locked", self.transactions_not_locked),
            ("transactions_aborted", self.transactions_aborted),
            ("events", self.events),
        ]
        .into_iter()
    }

    /// Counts a transaction by the status with which it ended. Open and outstanding transactions
    /// are not counted.
    pub(crate) fn count(&mut self, status: Status) {
        let counter = match status {
            Status::Uncommitted | Status::Incomplete => return,
            Status::Unchanged => &mut self.transactions_unchanged,
            Status::Aborted => &mut self.transactions_aborted,
            Status::Success => &mut self.transactions_committed,
            Status::TryAgain => &mut self.transactions_retried,
            Status::NotLocked => &mut self.transactions_not_locked,
            Status::Error => &mut self.transactions_refused,
        };
        *counter += 1;
    }
}
