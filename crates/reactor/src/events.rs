//! The counters of poll loops and of connection limits.
//!
//! A counter that counts the same events as one of the reference's counters has the same name.

use corvid_net::coverage::Counter;

/// Clients' connections that were accepted.
pub static STREAM_ACCEPT: Counter = Counter::new("stream_accept");
/// Clients' connections that were closed at once because a limit was reached.
pub static STREAM_REFUSE: Counter = Counter::new("stream_refuse");
/// Wake-ups of shards.
pub static SHARD_WAKEUP: Counter = Counter::new("shard_wakeup");
/// Wake-ups that did not wait, because work was left.
pub static POLL_ZERO_TIMEOUT: Counter = Counter::new("poll_zero_timeout");

/// All of these counters.
pub static ALL: [&Counter; 4] = [
    &STREAM_ACCEPT,
    &STREAM_REFUSE,
    &SHARD_WAKEUP,
    &POLL_ZERO_TIMEOUT,
];
