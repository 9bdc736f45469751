//! The counters of connections.
//!
//! A counter that counts the same as one of the reference's has that one's name.

use super::Counter;

/// Attempts to connect.
pub static STREAM_OPEN: Counter = Counter::new("stream_open");
/// Listeners opened.
pub static PSTREAM_OPEN: Counter = Counter::new("pstream_open");

/// All of these counters.
pub static ALL: [&Counter; 2] = [&STREAM_OPEN, &PSTREAM_OPEN];
