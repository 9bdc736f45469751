//! The counters of files, the control socket and the main loop.
//!
//! A counter that counts the same events as one of the reference's counters has the same name.

use corvid_net::coverage::Counter;

/// Lock files that were locked.
pub static LOCKFILE_LOCK: Counter = Counter::new("lockfile_lock");
/// Lock files that could not be locked.
pub static LOCKFILE_ERROR: Counter = Counter::new("lockfile_error");
/// Lock files that were unlocked.
pub static LOCKFILE_UNLOCK: Counter = Counter::new("lockfile_unlock");
/// Writes to database files.
pub static LOG_WRITE: Counter = Counter::new("log_write");
/// Syncs of database files.
pub static LOG_SYNC: Counter = Counter::new("log_sync");
/// Requests on the control socket.
pub static UNIXCTL_RECEIVED: Counter = Counter::new("unixctl_received");
/// Replies on the control socket.
pub static UNIXCTL_REPLIED: Counter = Counter::new("unixctl_replied");
/// Wake-ups of the main thread.
pub static MAIN_WAKEUP: Counter = Counter::new("main_wakeup");

/// All of these counters.
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
