//! All metric families: name, kind, labels and help text. Every exported sample belongs to one of
//! them, and docs/reference/metrics.md is this list.
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
        #[cfg(test)]
        pub(crate) const ALL: &[Family] = &[$($constant),*];
    };
}

families! {
    BUILD: Info "corvid_build" ["version", "answers_as"] "Version of the program, and the version of Open vSwitch that it answers with.";
    READY: Gauge "corvid_ready" [] "1 when every check of /readyz passes, else 0.";
    UNRESPONSIVE: Gauge "corvid_thread_unresponsive_seconds" ["thread"] "For how long a thread has not come to look though called; 0 when it has.";

    SESSIONS: Gauge "corvid_sessions" [] "Sessions of clients, accepted and made by us.";
    SESSIONS_OPENED: Counter "corvid_sessions_opened" [] "Sessions that began.";
    SESSIONS_CLOSED: Counter "corvid_sessions_closed" ["reason"] "Sessions that ended: client (it closed), error (of the connection), bad_message, probe (no sign of life), limit (it left too much unread, or sent too much at once), disconnected (the server wanted it to start over), remote_removed, shutdown.";
    SESSIONS_REFUSED: Counter "corvid_sessions_refused" [] "Clients that were sent away because all places were taken.";
    SESSIONS_MAX: Gauge "corvid_sessions_max" [] "Sessions that there may be at a time; nothing without a limit.";
    SESSIONS_BEHIND: Gauge "corvid_sessions_behind" [] "Sessions that have yet to take output.";
    BACKLOG: Gauge "corvid_session_backlog_bytes" [] "Output that waits for clients to take it.";
    BACKLOG_MAX: Gauge "corvid_session_backlog_max_bytes" [] "The most output that waits for one client.";
    LAG_MAX: Gauge "corvid_session_lag_max_seconds" [] "For how long the oldest update that was handed over has not been taken by its client.";
    DRAIN: Histogram "corvid_session_drain_seconds" [] "From handing updates over for a session until the system has taken all its output (monitor lag).";
    READ: Histogram "corvid_request_read_seconds" [] "Reading the envelope of one message and sending it on its way.";
    REPLY_BYTES: Gauge "corvid_reply_bytes" ["kind"] "Memory of replies: held (being written or not read yet) and max (what --max-replies allows).";
    REPLIES_REFUSED: Counter "corvid_replies_refused" [] "Requests refused because replies, conditions or waiting transactions held too much.";
    CLIENT_MEMORY: Gauge "corvid_client_memory_bytes" ["kind"] "Memory that clients make the server hold: requests (not handled yet), replies (not read yet), kept (conditions of monitors and waiting transactions).";
    CLIENT_MEMORY_MAX: Gauge "corvid_client_memory_max_bytes" ["kind"] "The limit of each kind of corvid_client_memory_bytes (--max-memory).";
    RECEIVED: Counter "corvid_received_bytes" [] "JSON received from clients.";
    SENT: Counter "corvid_sent_bytes" [] "JSON sent to clients.";
    LOCKS_HELD: Gauge "corvid_locks_held" [] "Locks that some session owns.";
    LOCKS_WAITING: Gauge "corvid_locks_waiting" [] "Claims that wait for a lock to be free.";
    HANDSHAKES: Counter "corvid_tls_handshakes" ["result"] "TLS connections that clients made: ok or failed.";
    CERTIFICATE: Gauge "corvid_tls_certificate_expiry_timestamp_seconds" [] "When the server's own certificate ends, seconds since the Unix epoch.";

    TRANSACTIONS: Counter "corvid_database_transactions" ["database", "outcome"] "Finished transactions: committed, unchanged (succeeded without changing anything), failed, unstored (undone because the record could not be written).";
    ERRORS: Counter "corvid_database_transaction_errors" ["database", "error"] "Failed transactions by the tag of their first error.";
    OPERATIONS: Counter "corvid_database_operations" ["database", "operation"] "Operations of finished transactions of clients.";
    WAITS: Counter "corvid_database_waits" ["database"] "Transactions that had to wait for the database to change.";
    UPDATES: Counter "corvid_database_updates" ["database", "notification"] "Notifications to monitoring clients: update, update2, update3.";
    EXECUTE: Histogram "corvid_database_execute_seconds" ["database"] "Executing one transaction: reading its operations, doing them, checking the commit, composing its record.";
    TRANSACTION: Histogram "corvid_database_transaction_seconds" ["database"] "One transaction from the arrival of its text until its answer is on its way, storing included; those that wait on purpose are left out.";
    WRITE: Histogram "corvid_database_write_seconds" ["database"] "Handing the records of one batch to the system, by whichever thread.";
    SYNC: Histogram "corvid_database_sync_seconds" ["database"] "Forcing the file to disk once (fdatasync).";
    DELIVERY: Histogram "corvid_database_fanout_seconds" ["database"] "From a stored commit until every update that tells of it has been handed over for its session.";
    COMPACTION: Histogram "corvid_database_compaction_seconds" ["database"] "Compactions that succeeded.";
    COMPACTIONS_FAILED: Counter "corvid_database_compactions_failed" ["database"] "Compactions that failed.";
    RECORDS: Counter "corvid_database_records" ["database"] "Records handed to the file.";
    RECORD_BYTES: Counter "corvid_database_record_bytes" ["database"] "Bytes of these records.";
    ROWS: Gauge "corvid_database_rows" ["database", "table"] "Rows.";
    ATOMS: Gauge "corvid_database_atoms" ["database"] "Atoms in rows.";
    MONITORS: Gauge "corvid_database_monitors" ["database"] "Monitors.";
    TRIGGERS: Gauge "corvid_database_waiting_transactions" ["database"] "Transactions that wait for the database to change.";
    HISTORY: Gauge "corvid_database_history_commits" ["database"] "Commits kept for clients that reconnect.";
    HISTORY_ATOMS: Gauge "corvid_database_history_atoms" ["database"] "Atoms in them.";
    QUEUE: Gauge "corvid_database_queue_inputs" ["database"] "Inputs that nobody has begun to work on.";
    PENDING_ANSWERS: Gauge "corvid_database_parked_answers" ["database"] "Answers that wait for a record to be stored.";
    DEFERRED_INPUTS: Gauge "corvid_database_deferred_inputs" ["database"] "Inputs that wait for everything before them to be stored, or for a conversion.";
    DISK_ORDERS: Gauge "corvid_database_disk_orders" ["database"] "Orders that the disk thread has not begun.";
    FREEING: Gauge "corvid_database_freeing_bytes" ["database"] "Memory that waits to be freed, estimated.";
    FILE: Gauge "corvid_database_file_bytes" ["database"] "Size of the file.";
    FILE_BASE: Gauge "corvid_database_file_base_bytes" ["database"] "What of that was there when the file was last written as a whole; 0 in a file that never was.";
    FILE_RECORDS: Gauge "corvid_database_file_records" ["database"] "Records since then.";
    REWRITING: Gauge "corvid_database_rewriting" ["database"] "1 while a new file is being written.";
    CONVERTING: Gauge "corvid_database_converting" ["database"] "1 while the schema is being converted.";
    STORAGE_FAILED: Gauge "corvid_database_storage_failed" ["database"] "1 when the last commit could not be stored.";
    STORAGE_POISONED: Gauge "corvid_database_storage_poisoned" ["database"] "1 when a sync has failed, so that nothing is written before the file is replaced.";
    FILE_DAMAGED: Gauge "corvid_database_file_damaged" ["database"] "1 if the file ended in damage when this server opened it: the database is served as it was before the damage, and a copy of the file was saved (/readyz?verbose names it).";
    REPLICATION: Gauge "corvid_database_replication" ["database", "state"] "Of backups: 1 for how they stand: connecting (the contents have yet to come), lost (the connection is; they had everything), replicating, failed (the source cannot be replicated).";
    REPORT_AGE: Gauge "corvid_database_report_age_seconds" ["database"] "How old the gauges of this database are: it reports between two pieces of work.";

    CLUSTER_ROLE: Gauge "corvid_cluster_role" ["database", "role"] "Of clustered databases: 1 for the member's role: follower, candidate or leader.";
    CLUSTER_CONNECTED: Gauge "corvid_cluster_connected" ["database"] "1 while the member takes part in its cluster and hears of a leader.";
    CLUSTER_FILE: Gauge "corvid_cluster_file" ["database", "state"] "1 for the state of the member's file: intact; failing: it takes no records, and is tried again; poisoned: a sync has failed, or its bytes have changed on the disk, and it is being written again; damaged: a snapshot of the leader will replace it; lost: it is older than what the member has promised, so the member has stopped; diverged: its committed entries are not those of the leader, so the member has stopped.";
    CLUSTER_HAS_LEADER: Gauge "corvid_cluster_has_leader" ["database"] "1 while the member knows the leader of its term.";
    CLUSTER_TERM: Gauge "corvid_cluster_term" ["database"] "The member's term.";
    CLUSTER_LAST: Gauge "corvid_cluster_last_index" ["database"] "The last entry of the member's log.";
    CLUSTER_COMMIT: Gauge "corvid_cluster_commit_index" ["database"] "The last entry that is known to be committed.";
    CLUSTER_APPLIED: Gauge "corvid_cluster_applied_index" ["database"] "The last entry that the member's database has applied.";
    CLUSTER_LOG_BYTES: Gauge "corvid_cluster_log_bytes" ["database"] "Log entries in memory.";
    CLUSTER_INDEX_AGE: Gauge "corvid_cluster_index_age_seconds" ["database"] "Seconds for which the member's database has applied nothing although the cluster has committed more; 0 when it lacks nothing.";
    CLUSTER_PEER_SILENT: Gauge "corvid_cluster_peer_silent_seconds" ["database", "peer"] "Seconds since a peer was last heard of: on a leader its messages count, elsewhere an open connection does.";
    CLUSTER_PEER_INDEX_AGE: Gauge "corvid_cluster_peer_index_age_seconds" ["database", "peer"] "On a leader: seconds for which a peer has stored nothing although it lacks committed entries; 0 when it lacks none.";
    CLUSTER_LAG: Gauge "corvid_cluster_peer_lag_entries" ["database", "peer"] "On a leader: entries that a peer is not known to have stored.";
    CLUSTER_SNAPSHOT: Gauge "corvid_cluster_peer_snapshot_ratio" ["database", "peer"] "On a leader: how much a peer has of the snapshot that it is being sent, from 0 to 1.";
    CLUSTER_ELECTIONS: Counter "corvid_cluster_elections" ["database"] "Elections that the member has begun.";
    CLUSTER_APPENDS: Counter "corvid_cluster_appends" ["database"] "Messages with entries that were sent to peers.";
    CLUSTER_APPENDED: Counter "corvid_cluster_appended_entries" ["database"] "Entries in these messages.";
    CLUSTER_QUORUM: Histogram "corvid_cluster_quorum_seconds" ["database"] "On a leader: from handing a commit to the member until a quorum has synced it.";
    CLUSTER_CONNECTIONS: Gauge "corvid_cluster_connections" ["database"] "Open connections to and from peers.";
    CLUSTER_BACKLOG: Gauge "corvid_cluster_backlog_bytes" ["database"] "Messages that wait for peers to take them.";

    RELAY_CONNECTED: Gauge "corvid_relay_connected" ["database"] "Of relays: 1 while the relay has what its source has, and can send requests to it.";
    RELAY_STAGE: Gauge "corvid_relay_state_seconds" ["database"] "For how long that has been so.";
    RELAY_REQUESTS: Gauge "corvid_relay_requests" ["database", "state"] "Requests of clients for the source: waiting (not sent, because the source is away), sent (not answered yet).";
    RELAY_CHANGES: Counter "corvid_relay_changes" ["database"] "Changes, and whole contents, that the source has sent.";
    RELAY_UNAPPLIED: Gauge "corvid_relay_unapplied_bytes" ["database"] "What of them the database has not applied.";
    RELAY_RECEIVED: Counter "corvid_relay_received_bytes" ["database"] "Bytes received from the source.";
    RELAY_CONNECTS: Counter "corvid_relay_connects" ["database"] "Connections to sources that were established.";

    AUDIT_RECORDS: Counter "corvid_audit_records" [] "Records written to the audit log.";
    AUDIT_LOST: Counter "corvid_audit_records_lost" [] "Records that the audit log lacks: the queue was full, or the disk refused them.";

    ALLOCATOR: Gauge "corvid_allocator_bytes" ["kind"] "What the allocator holds: allocated (by the program), active (pages in use), metadata, resident, mapped, retained (address space kept), kept (resident and not allocated).";
    CPU: Counter "process_cpu_seconds" [] "CPU time spent, in user and kernel mode.";
    STARTED: Gauge "process_start_time_seconds" [] "When the process began, seconds since the Unix epoch.";
    RESIDENT: Gauge "process_resident_memory_bytes" [] "Resident memory.";
    VIRTUAL: Gauge "process_virtual_memory_bytes" [] "Address space.";
    THREADS: Gauge "process_threads" [] "Threads.";
    FDS: Gauge "process_open_fds" [] "Open descriptors.";
    FDS_MAX: Gauge "process_max_fds" [] "How many there may be.";
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

    /// The family's row in docs/reference/metrics.md.
    fn row(family: &Family) -> String {
        let (kind, suffix) = match family.kind {
            Counter => ("counter", "_total"),
            Gauge => ("gauge", ""),
            Histogram => ("histogram", ""),
            Info => ("info", "_info"),
        };
        let labels: Vec<String> = family
            .labels
            .iter()
            .map(|label| format!("`{label}`"))
            .collect();
        let labels = match labels.is_empty() {
            true => "–".to_owned(),
            false => labels.join(", "),
        };
        format!(
            "| `{}{suffix}` | {kind} | {labels} | {} |\n",
            family.name, family.help
        )
    }

    #[test]
    fn the_document_lists_all_of_them_and_no_others() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/reference/metrics.md"
        );
        let document = std::fs::read_to_string(path).unwrap();
        let listed: String = document
            .lines()
            .filter(|line| line.starts_with("| `corvid_") || line.starts_with("| `process_"))
            .map(|line| format!("{line}\n"))
            .collect();
        let expected: String = ALL.iter().map(row).collect();
        assert!(
            listed == expected,
            "docs/reference/metrics.md should say:\n{expected}"
        );
    }
}
