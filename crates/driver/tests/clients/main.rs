//! Clients over real connections, each on our server and on the reference's where it is installed. [`fixture`] starts servers; the other
//! files are one for each driver, one for the kinds of connections, one for connections that fail, one for the state of sessions, and one
//! each for other servers and for clusters.

mod blocking;
mod cluster;
mod connections;
mod failures;
mod fixture;
mod forks;
mod handlers;
mod logs;
mod metrics;
mod polled;
mod servers;
mod sessions;
mod shared;
#[cfg(feature = "tokio")]
mod tokio;
