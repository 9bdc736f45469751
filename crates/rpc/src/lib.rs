//! JSON-RPC 1.0 as OVSDB speaks it: message envelopes, and the state machines of a connection that involve no socket.
//!
//! Time is an input in milliseconds of any clock that does not go back; what is to be done is an output. This crate knows
//! neither what a method means nor where bytes come from.

pub mod backoff;
pub mod message;
pub mod notice;
pub mod probe;
pub mod reconnect;
pub mod remote;
pub mod session;

pub use backoff::Backoff;
pub use message::{Message, MessageError};
pub use notice::{Level, Notice};
pub use probe::Probe;
pub use reconnect::Reconnect;
pub use session::Session;
