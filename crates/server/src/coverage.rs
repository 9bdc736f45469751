//! The counters of `coverage/show` for databases and sessions; the others are in
//! `corvid_net::coverage`.
//!
//! A database counts its commits and updates itself ([`Counters`]); its driver adds the differences
//! here, once per batch. The names of outcomes are those of the reference's client library.

use corvid_data::Tag;
use corvid_net::coverage::Counter;
use corvid_service::counters::Counters;

/// Transactions that changed something and were stored.
static TXN_SUCCESS: Counter = Counter::new("txn_success");
/// Transactions that succeeded and changed nothing.
static TXN_UNCHANGED: Counter = Counter::new("txn_unchanged");
/// Transactions that an `abort` operation ended.
static TXN_ABORTED: Counter = Counter::new("txn_aborted");
/// Transactions that lacked the lock of an `assert`.
static TXN_NOT_LOCKED: Counter = Counter::new("txn_not_locked");
/// Transactions that failed for another reason.
static TXN_ERROR: Counter = Counter::new("txn_error");
/// Transactions undone because their record could not be written.
static TXN_UNSTORED: Counter = Counter::new("txn_unstored");
/// Transactions that blocked.
static TXN_BLOCKED: Counter = Counter::new("txn_blocked");
/// Records handed to database files.
static LOG_RECORD: Counter = Counter::new("log_record");
/// Compactions that were completed.
pub(crate) static LOG_COMPACT: Counter = Counter::new("log_compact");
/// New files that were abandoned or failed.
pub(crate) static LOG_COMPACT_ERROR: Counter = Counter::new("log_compact_error");
/// `update` notifications.
static MONITOR_UPDATE: Counter = Counter::new("monitor_update");
/// `update2` notifications.
static MONITOR_UPDATE2: Counter = Counter::new("monitor_update2");
/// `update3` notifications.
static MONITOR_UPDATE3: Counter = Counter::new("monitor_update3");
/// Batches that sent updates at their end.
static MONITOR_FLUSH: Counter = Counter::new("monitor_flush");
/// Batches of databases, on their own threads or inline.
static DB_BATCH: Counter = Counter::new("db_batch");
/// Batches that a shard executed itself.
pub(crate) static DB_BATCH_INLINE: Counter = Counter::new("db_batch_inline");
/// Wake-ups of database threads.
pub(crate) static DB_WAKEUP: Counter = Counter::new("db_wakeup");
/// JSON-RPC messages of clients.
pub(crate) static JSONRPC_RECEIVED: Counter = Counter::new("jsonrpc_received");
/// JSON-RPC messages to clients.
pub(crate) static JSONRPC_SENT: Counter = Counter::new("jsonrpc_sent");
/// Sessions that began.
pub(crate) static SESSION_OPEN: Counter = Counter::new("session_open");
/// Sessions that ended.
pub(crate) static SESSION_CLOSE: Counter = Counter::new("session_close");
/// Probes sent to silent clients.
pub(crate) static PROBE_SENT: Counter = Counter::new("probe_sent");
/// Sessions closed because a probe was not answered.
pub(crate) static PROBE_UNANSWERED: Counter = Counter::new("probe_unanswered");
/// Attempts of the server to connect to a remote, or a backup to its source.
pub(crate) static RECONNECT_ATTEMPT: Counter = Counter::new("reconnect_attempt");
/// Attempts to connect that succeeded.
pub(crate) static RECONNECT_CONNECTED: Counter = Counter::new("reconnect_connected");
/// Programs started (`--run`).
pub(crate) static PROCESS_START: Counter = Counter::new("process_start");

const ALL: [&Counter; 26] = [
    &TXN_SUCCESS,
    &TXN_UNCHANGED,
    &TXN_ABORTED,
    &TXN_NOT_LOCKED,
    &TXN_ERROR,
    &TXN_UNSTORED,
    &TXN_BLOCKED,
    &LOG_RECORD,
    &LOG_COMPACT,
    &LOG_COMPACT_ERROR,
    &MONITOR_UPDATE,
    &MONITOR_UPDATE2,
    &MONITOR_UPDATE3,
    &MONITOR_FLUSH,
    &DB_BATCH,
    &DB_BATCH_INLINE,
    &DB_WAKEUP,
    &JSONRPC_RECEIVED,
    &JSONRPC_SENT,
    &SESSION_OPEN,
    &SESSION_CLOSE,
    &PROBE_SENT,
    &PROBE_UNANSWERED,
    &RECONNECT_ATTEMPT,
    &RECONNECT_CONNECTED,
    &PROCESS_START,
];

/// Registers all counters, so that those that are still zero can be shown too.
pub(crate) fn list() {
    for counter in ALL {
        counter.list();
    }
}

/// The counts of one database already added to the counters.
#[derive(Debug, Default)]
pub(crate) struct ReportedCounts {
    plain: [u64; 5],
    updates: [u64; 3],
    /// `txn_aborted`, `txn_not_locked`, `txn_error`.
    failed: [u64; 3],
}

impl ReportedCounts {
    /// Adds the differences since the previous batch.
    pub(crate) fn count_batch(&mut self, counts: &Counters, updates: [u64; 3]) {
        DB_BATCH.bump();
        let plain = [
            counts.committed,
            counts.unchanged,
            counts.store_failures,
            counts.blocked,
            counts.records,
        ];
        let counters = [
            &TXN_SUCCESS,
            &TXN_UNCHANGED,
            &TXN_UNSTORED,
            &TXN_BLOCKED,
            &LOG_RECORD,
        ];
        add(counters, &mut self.plain, plain);
        let counters = [&MONITOR_UPDATE, &MONITOR_UPDATE2, &MONITOR_UPDATE3];
        if self.updates != updates {
            MONITOR_FLUSH.bump();
            add(counters, &mut self.updates, updates);
        }
        let mut failed = [0; 3];
        for (tag, count) in &counts.failed {
            failed[match tag {
                Tag::Aborted => 0,
                Tag::NotOwner => 1,
                _ => 2,
            }] += count;
        }
        add(
            [&TXN_ABORTED, &TXN_NOT_LOCKED, &TXN_ERROR],
            &mut self.failed,
            failed,
        );
    }
}

/// Adds to each counter the growth of its count.
fn add<const N: usize>(counters: [&'static Counter; N], known: &mut [u64; N], now: [u64; N]) {
    for ((counter, known), now) in counters.into_iter().zip(known).zip(now) {
        if now > *known {
            counter.add(now - *known);
            *known = now;
        }
    }
}
