//! The counters of poll loops and of limits on connections.
//!
//! Names are the reference's where it counts the same.

use corvid_net::coverage::Counter;

/// Connection attempts of clients that were accepted.
pub static STREAM_ACCEPT: Counter = Counter::new("stream_accept");
/// Those that were sent away because a limit was reached.
pub static STREAM_REFUSE: Counter = Counter::new("stream_refuse");
/// See there.
pub static SHARD_WAKEUP: Counter = Counter::new("shard_wakeup");
/// Those of both that did not wait, because there was work left.
pub static POLL_ZERO_TIMEOUT: Counter = Counter::new("poll_zero_timeout");

/// All of them.
pub static ALL: [&Counter; 4] = [
    &STREAM_ACCEPT,
    &STREAM_REFUSE,
    &SHARD_WAKEUP,
    &POLL_ZERO_TIMEOUT,
];
