//! Clients over real connections, each on our server and on the reference's where it is installed. [`bed`] starts servers; the other
//! files are one for each driver, one for the kinds of connections, and one each for other servers and for clusters.

mod bed;
mod blocking;
mod cluster;
mod connections;
mod polled;
mod servers;
#[cfg(feature = "tokio")]
mod tokio;
