//! The counters of connections.
//!
//! Names are the reference's where it counts the same.

use super::Counter;

/// Attempts to connect.
pub static STREAM_OPEN: Counter = Counter::new("stream_open");
/// Listeners opened.
pub static PSTREAM_OPEN: Counter = Counter::new("pstream_open");

/// All of them.
pub static ALL: [&Counter; 2] = [&STREAM_OPEN, &PSTREAM_OPEN];
