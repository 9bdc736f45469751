//! Clients against the real server's state machine, in one thread and virtual time. [`server`] is the server, [`bed`] connects clients to
//! it; the other files are plays by topic and a random one with checkers.

mod answers;
mod bed;
mod contents;
mod fetching;
mod heard;
mod identities;
mod indexes;
mod mistakes;
mod partial;
mod random;
mod references;
mod resync;
mod schemas;
mod server;
mod tracking;
mod transactions;
mod turns;
mod typed;
