//! Connections over the network: targets, streams, listeners, TLS, and the clock and chance that a client needs.
//!
//! It carries bytes and knows nothing of OVSDB. It is all that the client library needs of the system. It starts no thread except one for each
//! look-up of a name, never ends the process, and logs through the `log` facade ([`logging`]). Programs add `reactor` for many connections
//! and `shell` for daemons, log files and options.
//!
//! TLS and waiting as a future of tokio are features.

pub mod cleanup;
pub mod clock;
pub mod coverage;
pub mod dirs;
pub mod errno;
pub mod fork;
pub mod interrupt;
pub mod listener;
pub mod logging;
pub mod os_name;
pub mod poll;
pub mod random;
pub mod readiness;
pub mod resolve;
pub mod socket;
pub mod stream;
pub mod target;
pub mod tls;
pub mod unix_path;
pub mod waker;
