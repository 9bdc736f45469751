//! The counters of this crate: what every program does that has a control socket, connections and files.
//!
//! Names are the reference's where it counts the same. Its counters of memory, hash maps and waiting descriptors have no
//! counterpart here.

use super::Counter;

/// Connection attempts of clients that were accepted.
pub(crate) static STREAM_ACCEPT: Counter = Counter::new("stream_accept");
/// Those that were sent away because a limit was reached.
pub(crate) static STREAM_REFUSE: Counter = Counter::new("stream_refuse");
/// Attempts to connect somewhere.
pub(crate) static STREAM_OPEN: Counter = Counter::new("stream_open");
/// Listeners opened.
pub(crate) static PSTREAM_OPEN: Counter = Counter::new("pstream_open");
/// Lock files locked, not locked for a failure, and unlocked.
pub(crate) static LOCKFILE_LOCK: Counter = Counter::new("lockfile_lock");
/// See there.
pub(crate) static LOCKFILE_ERROR: Counter = Counter::new("lockfile_error");
/// See there.
pub(crate) static LOCKFILE_UNLOCK: Counter = Counter::new("lockfile_unlock");
/// Writes to database files, and times that one was forced to disk.
pub(crate) static LOG_WRITE: Counter = Counter::new("log_write");
/// See there.
pub(crate) static LOG_SYNC: Counter = Counter::new("log_sync");
/// Requests on the control socket, and replies to them.
pub(crate) static UNIXCTL_RECEIVED: Counter = Counter::new("unixctl_received");
/// See there.
pub(crate) static UNIXCTL_REPLIED: Counter = Counter::new("unixctl_replied");
/// Times that the main thread looked for events, and that a connection thread did.
pub(crate) static MAIN_WAKEUP: Counter = Counter::new("main_wakeup");
/// See there.
pub(crate) static SHARD_WAKEUP: Counter = Counter::new("shard_wakeup");
/// Those of both that did not wait, because there was work left.
pub(crate) static POLL_ZERO_TIMEOUT: Counter = Counter::new("poll_zero_timeout");

/// All of them.
pub(super) static ALL: [&Counter; 14] = [
    &STREAM_ACCEPT,
    &STREAM_REFUSE,
    &STREAM_OPEN,
    &PSTREAM_OPEN,
    &LOCKFILE_LOCK,
    &LOCKFILE_ERROR,
    &LOCKFILE_UNLOCK,
    &LOG_WRITE,
    &LOG_SYNC,
    &UNIXCTL_RECEIVED,
    &UNIXCTL_REPLIED,
    &MAIN_WAKEUP,
    &SHARD_WAKEUP,
    &POLL_ZERO_TIMEOUT,
];
