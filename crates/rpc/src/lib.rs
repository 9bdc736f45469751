//! JSON-RPC 1.0 as OVSDB speaks it: message envelopes, and the state machines of a connection that involve no socket.

pub mod message;
