//! Limits on what the server keeps for one session: locks, and in each database monitors and
//! blocked transactions.
//!
//! These stay until the session ends, unlike everything else that a session causes. So each kind
//! has a maximum number, far above what any known client needs, and its requests have a maximum
//! length. A request beyond a limit gets `resources exhausted` (RFC 7047 3.1), and the session
//! continues with what it has. Nothing here has state: the owner of each kind counts.

use corvid_data::{Tag, WireError};

/// Locks that a session may have requested at a time.
pub const LOCKS_MAX: usize = 1024;

/// Longest name of a lock, bytes; the same limit as for forwarding between members of a cluster.
pub const LOCK_NAME_BYTES_MAX: usize = corvid_consensus::limits::TEXT_BYTES_MAX;

/// Monitors of a session in one database, at most.
pub const MONITORS_MAX: usize = 1024;

/// Blocked transactions of a session in one database, at most.
pub const WAITS_MAX: usize = 1024;

/// Bytes of the requests of all monitors, or of all blocked transactions, of a session in one
/// database. A single request is accepted at any length.
pub const REQUEST_BYTES_MAX: usize = 64 << 20;

/// Whether a request of `bytes` exceeds a limit, given `count` others of `total` bytes together.
#[must_use]
pub fn is_exhausted(count: usize, count_max: usize, total: usize, bytes: usize) -> bool {
    count >= count_max || (count > 0 && total.saturating_add(bytes) > REQUEST_BYTES_MAX)
}

/// The error of a session that requests too many `things`.
#[must_use]
pub fn exhausted(things: &str) -> WireError {
    WireError::new(
        Tag::ResourcesExhausted,
        format!("session has too many {things}"),
    )
}
