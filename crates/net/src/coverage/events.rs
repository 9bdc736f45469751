//! The counters of connections.
//!
//! A counter that counts the same events as one of the reference's counters has the same name.

use super::Counter;

/// Attempts to connect.
pub static STREAM_OPEN: Counter = Counter::new("stream_open");
/// Listeners opened.
pub static PSTREAM_OPEN: Counter = Counter::new("pstream_open");

/// All of these counters.
pub static ALL: [&Counter; 2] = [&STREAM_OPEN, &PSTREAM_OPEN];
