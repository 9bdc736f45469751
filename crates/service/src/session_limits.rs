//! Limits of what the server keeps for one session: locks, and in each database monitors and blocked transactions.
//!
//! These stay until the session ends, unlike everything else that it causes. So each kind has a maximum number that no known client comes
//! near, and its requests have a maximum length. A request beyond a limit gets `resources exhausted` (RFC 7047 3.1), and the session
//! continues with what it has. This file has no state: the owner of each kind counts.

use corvid_data::{Tag, WireError};

/// Locks that a session may have requested at a time.
pub const LOCKS_MAX: usize = 1024;

/// Length of the name of a lock, bytes: as long as members of a cluster forward.
pub const LOCK_NAME_BYTES_MAX: usize = corvid_consensus::limits::TEXT_BYTES_MAX;

/// Monitors of a session in one database.
pub const MONITORS_MAX: usize = 1024;

/// Blocked transactions of a session in one database.
pub const WAITS_MAX: usize = 1024;

/// The length of the requests of all monitors, or of all blocked transactions, of a session in one database, bytes. A single request is
/// accepted at any length.
pub const REQUEST_BYTES_MAX: usize = 64 << 20;

/// Whether a request of `bytes` is too much beside `count` others with `kept` bytes together.
#[must_use]
pub fn is_exhausted(count: usize, count_max: usize, total: usize, bytes: usize) -> bool {
    count >= count_max || (count > 0 && total.saturating_add(bytes) > REQUEST_BYTES_MAX)
}

/// The error of a session that wants too many `things`.
#[must_use]
pub fn exhausted(things: &str) -> WireError {
    WireError::new(
        Tag::ResourcesExhausted,
        format!("session has too many {things}"),
    )
}
