//! Clients against the real server's state machine, in one thread and virtual time. [`server`] is the server, [`bed`] connects clients to
//! it; the other files are plays by topic.

mod bed;
mod partial;
mod server;
mod transactions;
