//! Clients over real connections, each on our server and on the reference's where it is installed. [`bed`] starts servers; the other
//! files are one for each driver, and one for the kinds of connections.

mod bed;
mod blocking;
mod cluster;
mod connections;
mod polled;
#[cfg(feature = "tokio")]
mod tokio;
