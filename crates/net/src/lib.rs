//! Connections over the network: targets, streams, listeners, TLS, and the clock and random numbers
//! that a client needs.
//!
//! The crate carries bytes and knows nothing of OVSDB. It is all that the client library needs from
//! the system. It starts no thread except one for each name look-up, never ends the process, and
//! logs through the `log` facade ([`logging`]). Programs add `reactor` for many connections, and
//! `shell` for daemons, log files and options.
//!
//! TLS, and waiting as a tokio future, are features.

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
