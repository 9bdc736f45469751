//! The client session against a scripted server, in virtual time. [`play`] carries the messages and
//! keeps the trace; the other files are plays by topic.

mod conditions;
mod errors;
mod handshake;
mod link;
mod locks;
mod once;
mod play;
mod requests;
mod servers;
mod updates;
