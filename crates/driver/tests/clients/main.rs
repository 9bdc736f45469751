//! Clients over real connections. Each test runs on our server, and on the reference's where it is
//! installed. [`fixture`] starts servers. Each driver has a file; the other files test the kinds of
//! connections, failures, the session's state, other servers and clusters.

mod blocking;
mod cluster;
mod connections;
mod failures;
mod fixture;
mod forks;
mod handlers;
mod history;
mod logs;
mod metrics;
mod polled;
mod servers;
mod sessions;
mod shared;
#[cfg(feature = "tokio")]
mod tokio;
