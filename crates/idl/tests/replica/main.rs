//! Clients against the real server's state machine, in one thread and virtual time. [`server`] is
//! the server, and [`fixture`] connects clients to it. The other files are tests by topic, and a
//! random test with checkers.

mod answers;
mod contents;
mod fetching;
mod fixture;
mod heard;
mod identities;
mod idl_loop;
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
mod typed;
