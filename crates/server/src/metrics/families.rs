//! All metric families: name, kind, labels and help text. Every exported sample belongs to one of
//! them. `make reference` writes the list into docs/reference/metrics.md.
//!
//! Units are seconds and bytes. Names follow OpenMetrics: a counter's samples add `_total`, those
//! of an info add `_info`.

use Kind::{Counter, Gauge, Histogram, Info};

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A number that only grows.
    Counter,
    /// A number that grows and shrinks.
    Gauge,
    /// A histogram of durations.
    Histogram,
    /// Labels, with the value 1.
    Info,
}

/// One metric, for all values of its labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Family {
    /// The name of the family.
    pub(crate) name: &'static str,
    /// Its kind.
    pub(crate) kind: Kind,
    /// The names of its labels.
    pub(crate) labels: &'static [&'static str],
    /// The help text, one sentence.
    pub(crate) help: &'static str,
}

/// Declares the families, and the list of all of them in this order.
macro_rules! families {
    ($($constant:ident: $kind:ident $name:literal [$($label:literal),*] $help:literal;)*) => {
        $(
            #[doc = $help]
            pub(crate) const $constant: Family = Family {
                name: $name,
                kind: $kind,
                labels: &[$($label),*],
                help: $help,
            };
        )*

        /// All families, in the order in which they are exported.
        pub(crate) const ALL: &[Family] = &[$($constant),*];
    };
}

families! {
    BUILD: Info "corvid_build" ["version", "ovs_version"] "Corvid's version, and the Open vSwitch version that the server reports to scripts.";
    READY: Gauge "corvid_ready" [] "1 if every check of /readyz passes, else 0.";
    UNRESPONSIVE: Gauge "corvid_thread_unresponsive_seconds" ["thread"] "Seconds since a liveness check was sent to the thread and not answered; 0 if none is outstanding.";

    SESSIONS: Gauge "corvid_sessions" [] "Open client sessions, accepted and initiated.";
    SESSIONS_OPENED: Counter "corvid_sessions_opened" [] "Client sessions opened.";
    SESSIONS_CLOSED: Counter "corvid_sessions_closed" ["reason"] "Client sessions closed, by reason: client (the client closed it), error (the connection failed), bad_message (invalid JSON-RPC), probe (an inactivity probe was not answered), limit (more unread output or more input than the limits allow), disconnected (the server asked the client to reconnect), remote_removed, shutdown.";
    SESSIONS_REFUSED: Counter "corvid_sessions_refused" [] "Connections closed on arrival because the session limit was reached.";
    SESSIONS_LIMIT: Gauge "corvid_sessions_limit" [] "Session limit (--max-sessions); absent if unlimited.";
    SESSIONS_BACKLOGGED: Gauge "corvid_sessions_backlogged" [] "Sessions with unsent output.";
    BACKLOG: Gauge "corvid_session_backlog_bytes" [] "Unsent output of all sessions.";
    BACKLOG_MAX: Gauge "corvid_session_backlog_max_bytes" [] "Unsent output of the session that has the most.";
    LAG_MAX: Gauge "corvid_session_lag_max_seconds" [] "Age of the oldest update that is queued for a session and not sent.";
    DRAIN: Histogram "corvid_session_drain_seconds" [] "Monitor lag: time from queueing an update for a session until the kernel has taken all of the session's output.";
    PARSE: Histogram "corvid_request_parse_seconds" [] "Time to parse the envelope of one message and route it.";
    REQUESTS_REFUSED: Counter "corvid_requests_refused" [] "Requests answered with `resources exhausted` because clients hold too much of the server's memory.";
    CLIENT_MEMORY: Gauge "corvid_client_memory_bytes" ["kind"] "Memory that clients make the server hold: requests (received, not handled), replies (being composed or unread), monitors_and_waits (monitor conditions, waiting transactions, lock names).";
    CLIENT_MEMORY_LIMIT: Gauge "corvid_client_memory_limit_bytes" ["kind"] "Limit of each kind of corvid_client_memory_bytes (--max-client-memory).";
    RECEIVED: Counter "corvid_session_received_bytes" [] "JSON received from clients.";
    SENT: Counter "corvid_session_sent_bytes" [] "JSON sent to clients.";
    LOCKS_HELD: Gauge "corvid_locks_held" [] "Locks owned by a session.";
    LOCK_WAITERS: Gauge "corvid_lock_waiters" [] "Lock requests queued after another owner.";
    HANDSHAKES: Counter "corvid_tls_handshakes" ["result"] "TLS handshakes on accepted connections: ok or failed.";
    CERTIFICATE: Gauge "corvid_tls_certificate_expiry_timestamp_seconds" [] "Expiry of the server's own certificate, seconds since the Unix epoch.";

    TRANSACTIONS: Counter "corvid_database_transactions" ["database", "outcome"] "Finished transactions, by outcome: committed, unchanged (succeeded without changing anything), failed, storage_error (rolled back because the record could not be written).";
    ERRORS: Counter "corvid_database_transaction_errors" ["database", "error"] "Failed transactions, by the `error` string of their first error.";
    OPERATIONS: Counter "corvid_database_operations" ["database", "operation"] "Operations of finished client transactions.";
    WAITS: Counter "corvid_database_waits" ["database"] "Transactions that a `wait` operation has blocked.";
    UPDATES: Counter "corvid_database_updates" ["database", "method"] "Update notifications to monitoring clients, by method: update, update2, update3.";
    EXECUTE: Histogram "corvid_database_execute_seconds" ["database"] "Time to execute one transaction: parse and run its operations, check constraints, compose its record.";
    TRANSACTION: Histogram "corvid_database_transaction_seconds" ["database"] "Latency of one transaction, from the arrival of its request until its reply is queued, storage included; transactions blocked by a `wait` are left out.";
    WRITE: Histogram "corvid_database_write_seconds" ["database"] "Time to write the records of one batch to the file (write, not sync).";
    SYNC: Histogram "corvid_database_sync_seconds" ["database"] "Time of one fdatasync of the file.";
    DELIVERY: Histogram "corvid_database_fanout_seconds" ["database"] "Time from storing a commit until its updates are queued for every monitoring session.";
    COMPACTION: Histogram "corvid_database_compaction_seconds" ["database"] "Duration of successful compactions.";
    COMPACTIONS_FAILED: Counter "corvid_database_compactions_failed" ["database"] "Compactions that failed.";
    RECORDS: Counter "corvid_database_written_records" ["database"] "Records written to the file.";
    RECORD_BYTES: Counter "corvid_database_written_bytes" ["database"] "Bytes of records written to the file.";
    ROWS: Gauge "corvid_database_rows" ["database", "table"] "Rows, by table.";
    ATOMS: Gauge "corvid_database_atoms" ["database"] "Atoms in all rows.";
    MONITORS: Gauge "corvid_database_monitors" ["database"] "Monitors of all sessions.";
    TRIGGERS: Gauge "corvid_database_waiting_transactions" ["database"] "Transactions that a `wait` operation blocks at present.";
    HISTORY: Gauge "corvid_database_history_commits" ["database"] "Commits kept in memory for clients that reconnect.";
    HISTORY_ATOMS: Gauge "corvid_database_history_atoms" ["database"] "Atoms in the commits kept for clients that reconnect.";
    QUEUE: Gauge "corvid_database_queue_length" ["database"] "Requests and other inputs queued for the database's thread.";
    PENDING_REPLIES: Gauge "corvid_database_pending_replies" ["database"] "Replies withheld until their commits are stored, or until a cluster or relay source has answered.";
    DEFERRED_REQUESTS: Gauge "corvid_database_deferred_requests" ["database"] "Requests deferred until earlier commits are stored or a conversion ends.";
    DISK_QUEUE: Gauge "corvid_database_disk_queue_length" ["database"] "Writes and syncs queued for the disk thread.";
    FREEING: Gauge "corvid_database_pending_free_bytes" ["database"] "Estimated memory queued to be freed in the background.";
    FILE: Gauge "corvid_database_file_bytes" ["database"] "File size.";
    FILE_COMPACTED: Gauge "corvid_database_file_compacted_bytes" ["database"] "File size right after the last compaction; 0 if never compacted.";
    FILE_RECORDS: Gauge "corvid_database_file_appended_records" ["database"] "Records appended to the file since the last compaction.";
    REWRITING: Gauge "corvid_database_file_rewriting" ["database"] "1 while a compaction or conversion writes a new file.";
    CONVERTING: Gauge "corvid_database_converting" ["database"] "1 while a schema conversion is running.";
    STORAGE_FAILED: Gauge "corvid_database_storage_failed" ["database"] "1 if the last commit could not be stored: writes are answered with `I/O error`.";
    STORAGE_POISONED: Gauge "corvid_database_storage_poisoned" ["database"] "1 if a sync has failed: the file takes no writes until ovsdb-server/compact has replaced it. Do not restart the server before that.";
    FILE_DAMAGED: Gauge "corvid_database_file_damaged" ["database"] "1 if the file ended in damage when it was opened. The server serves the contents before the damage and has saved a copy of the file (/readyz?verbose names it).";
    REPLICATION_STATE: Gauge "corvid_database_replication_state" ["database", "state"] "1 for the present state of an active-backup replica: connecting (contents not received yet), replicating, lost (contents received, connection lost), failed (the source cannot be replicated; see the log).";
    REPORT_AGE: Gauge "corvid_database_report_age_seconds" ["database"] "Age of this database's gauges, which it reports between transactions.";
    SEGMENTS: Gauge "corvid_database_history_files" ["database"] "Files of the history on disk (--keep-history): segments, and replaced files that are not compressed yet.";
    SEGMENT_BYTES: Gauge "corvid_database_history_bytes" ["database"] "Size of the history on disk.";
    SEGMENT_FAILURES: Counter "corvid_database_history_failures" ["database"] "Failures to keep, compress or remove files of the history on disk, and removals because the disk was full; the log has a warning for each.";
    SEGMENT_OLDEST: Gauge "corvid_database_history_oldest_timestamp_seconds" ["database"] "Time of the oldest record in the history on disk, seconds since the Unix epoch; absent if there is none.";

    CLUSTER_ROLE: Gauge "corvid_cluster_role" ["database", "role"] "1 for the member's present role: follower, candidate or leader.";
    CLUSTER_CONNECTED: Gauge "corvid_cluster_connected" ["database"] "1 while the member takes part in its cluster and is in contact with a leader.";
    CLUSTER_FILE_STATE: Gauge "corvid_cluster_file_state" ["database", "state"] "1 for the present state of the member's file: intact; failing (writes fail and are retried; check the disk); poisoned (a sync failed or its bytes changed; being rewritten); damaged (a snapshot from the leader will replace it); lost (older than the member's votes and acknowledgements; the member has stopped); diverged (its committed entries differ from the leader's; the member has stopped).";
    CLUSTER_HAS_LEADER: Gauge "corvid_cluster_has_leader" ["database"] "1 while the member knows the leader of its term.";
    CLUSTER_TERM: Gauge "corvid_cluster_term" ["database"] "The member's term.";
    CLUSTER_LAST: Gauge "corvid_cluster_last_log_index" ["database"] "Index of the last entry in the member's log.";
    CLUSTER_COMMIT: Gauge "corvid_cluster_commit_index" ["database"] "Index of the last entry that the member knows to be committed.";
    CLUSTER_APPLIED: Gauge "corvid_cluster_applied_index" ["database"] "Index of the last entry applied to the member's database.";
    CLUSTER_LOG_BYTES: Gauge "corvid_cluster_log_memory_bytes" ["database"] "Log entries in memory.";
    CLUSTER_STALLED: Gauge "corvid_cluster_stalled_seconds" ["database"] "Seconds since the member last applied an entry while committed entries are missing; 0 if it is up to date.";
    CLUSTER_PEER_SILENT: Gauge "corvid_cluster_peer_silent_seconds" ["database", "peer"] "Seconds since the member last heard from a peer. A leader counts messages; other members count an open connection.";
    CLUSTER_PEER_STALLED: Gauge "corvid_cluster_peer_stalled_seconds" ["database", "peer"] "On a leader: seconds since a peer last stored an entry while it lacks committed entries; 0 if it lacks none.";
    CLUSTER_LAG: Gauge "corvid_cluster_peer_lag_entries" ["database", "peer"] "On a leader: entries that a peer has not acknowledged.";
    CLUSTER_SNAPSHOT: Gauge "corvid_cluster_peer_snapshot_ratio" ["database", "peer"] "On a leader: fraction of the snapshot being sent that a peer has received, from 0 to 1.";
    CLUSTER_ELECTIONS: Counter "corvid_cluster_elections" ["database"] "Elections started by this member.";
    CLUSTER_APPENDS: Counter "corvid_cluster_append_requests" ["database"] "Append requests with entries sent to peers.";
    CLUSTER_SENT_ENTRIES: Counter "corvid_cluster_sent_entries" ["database"] "Log entries sent to peers.";
    CLUSTER_QUORUM: Histogram "corvid_cluster_quorum_seconds" ["database"] "On a leader: time from proposing a commit until a quorum has synced it.";
    CLUSTER_CONNECTIONS: Gauge "corvid_cluster_connections" ["database"] "Open connections to and from peers.";
    CLUSTER_BACKLOG: Gauge "corvid_cluster_backlog_bytes" ["database"] "Unsent output to all peers.";

    RELAY_CONNECTED: Gauge "corvid_relay_connected" ["database"] "1 while the relay is up to date with its source and can forward requests to it.";
    RELAY_STATE_AGE: Gauge "corvid_relay_state_age_seconds" ["database"] "Seconds since `corvid_relay_connected` last changed.";
    RELAY_REQUESTS: Gauge "corvid_relay_requests" ["database", "state"] "Client requests for the source: queued (not sent, because no source is connected), in_flight (sent, not answered).";
    RELAY_UPDATES: Counter "corvid_relay_received_updates" ["database"] "Updates received from the source, complete contents included.";
    RELAY_UNAPPLIED: Gauge "corvid_relay_unapplied_bytes" ["database"] "Updates received from the source and not applied yet.";
    RELAY_RECEIVED: Counter "corvid_relay_received_bytes" ["database"] "Bytes received from the source.";
    RELAY_CONNECTIONS: Counter "corvid_relay_connections_opened" ["database"] "Connections to sources established.";

    AUDIT_RECORDS: Counter "corvid_audit_records" [] "Records written to the audit log.";
    AUDIT_DROPPED: Counter "corvid_audit_records_dropped" [] "Records missing from the audit log, because the queue was full or a write failed.";

    ALLOCATOR: Gauge "corvid_allocator_bytes" ["kind"] "The allocator's memory: allocated (by the program), active (pages in use), metadata, resident, mapped, retained (unmapped address space), unused (resident, not allocated).";
    CPU: Counter "process_cpu_seconds" [] "User and system CPU time.";
    STARTED: Gauge "process_start_time_seconds" [] "Start time of the process, seconds since the Unix epoch.";
    RESIDENT: Gauge "process_resident_memory_bytes" [] "Resident memory.";
    VIRTUAL: Gauge "process_virtual_memory_bytes" [] "Virtual memory.";
    THREADS: Gauge "process_threads" [] "Threads.";
    FDS: Gauge "process_open_fds" [] "Open file descriptors.";
    FDS_MAX: Gauge "process_max_fds" [] "Limit of open file descriptors.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_conventions() {
        for (index, family) in ALL.iter().enumerate() {
            let name = family.name;
            let is_plain = name
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
            assert!(is_plain, "{name}");
            assert!(
                name.starts_with("corvid_") || name.starts_with("process_"),
                "{name}"
            );
            let reserved = ["_total", "_info", "_count", "_sum", "_bucket", "_created"];
            assert!(
                !reserved.iter().any(|suffix| name.ends_with(suffix)),
                "{name}"
            );
            assert!(
                !ALL[..index].iter().any(|other| other.name == name),
                "{name} twice"
            );
            assert!(
                family.kind != Histogram || name.ends_with("_seconds"),
                "{name}"
            );
            assert!(
                family.help.ends_with('.') && !family.help.contains('\n'),
                "{name}"
            );
            for unit in ["_ms", "_milliseconds", "_kb", "_us", "_ns"] {
                assert!(!name.contains(unit), "{name}");
            }
        }
    }
}
