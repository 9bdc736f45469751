//! The counters of files, the control socket and the main loop.
//!
//! Names are the reference's where it counts the same.

use corvid_net::coverage::Counter;

/// Lock files locked, not locked for a failure, and unlocked.
pub static LOCKFILE_LOCK: Counter = Counter::new("lockfile_lock");
/// See there.
pub static LOCKFILE_ERROR: Counter = Counter::new("lockfile_error");
/// See there.
pub static LOCKFILE_UNLOCK: Counter = Counter::new("lockfile_unlock");
/// Writes to database files, and times that one was forced to disk.
pub static LOG_WRITE: Counter = Counter::new("log_write");
/// See there.
pub static LOG_SYNC: Counter = Counter::new("log_sync");
/// Requests on the control socket, and replies to them.
pub static UNIXCTL_RECEIVED: Counter = Counter::new("unixctl_received");
/// See there.
pub static UNIXCTL_REPLIED: Counter = Counter::new("unixctl_replied");
/// Times that the main thread looked for events, and that a connection thread did.
pub static MAIN_WAKEUP: Counter = Counter::new("main_wakeup");

/// All of them.
pub static ALL: [&Counter; 8] = [
    &LOCKFILE_LOCK,
    &LOCKFILE_ERROR,
    &LOCKFILE_UNLOCK,
    &LOG_WRITE,
    &LOG_SYNC,
    &UNIXCTL_RECEIVED,
    &UNIXCTL_REPLIED,
    &MAIN_WAKEUP,
];
