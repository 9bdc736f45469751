//! How much one session may have the server keep for it: locks it asks for, and in each database monitors and waiting transactions.
//!
//! Everything else that a session causes passes. These stay until it ends, so each kind has a number that no known client comes near,
//! and what is kept of their requests has a length. Who wants more is told so (`resources exhausted`, RFC 7047 3.1) and may go on with
//! what it has. Limits, no state: whoever keeps something counts it.

use corvid_data::{Tag, WireError};

/// Locks that a session may have asked for at a time.
pub const LOCKS_MAX: usize = 1024;

/// Length of the name of a lock, bytes.
pub const LOCK_NAME_BYTES_MAX: usize = 4096;

/// Monitors of a session in one database.
pub const MONITORS_MAX: usize = 1024;

/// Waiting transactions of a session in one database.
pub const WAITS_MAX: usize = 1024;

/// Requests behind the monitors, or behind the waiting transactions, of a session in one database: their length together, bytes. The
/// only one is let through whatever its length.
pub const REQUEST_BYTES_MAX: usize = 64 << 20;

/// Whether one more of `bytes` is too much beside `count` others of `kept` bytes together.
#[must_use]
pub fn is_exhausted(count: usize, count_max: usize, kept: usize, bytes: usize) -> bool {
    count >= count_max || (count > 0 && kept.saturating_add(bytes) > REQUEST_BYTES_MAX)
}

/// What a session is told that wants too many `things`.
#[must_use]
pub fn exhausted(things: &str) -> WireError {
    WireError::new(
        Tag::ResourcesExhausted,
        format!("session has too many {things}"),
    )
}
