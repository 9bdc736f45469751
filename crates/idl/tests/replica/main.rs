//! Clients against the real server's state machine, in one thread and virtual time. [`server`] is the server, [`bed`] connects clients to
//! it; the other files are plays by topic and a random one with checkers.

mod bed;
mod fetching;
mod indexes;
mod partial;
mod random;
mod resync;
mod server;
mod tracking;
mod transactions;
