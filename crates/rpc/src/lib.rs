//! JSON-RPC 1.0 as OVSDB uses it: message envelopes, and the state machines of a connection,
//! without sockets.
//!
//! Time is an input, in milliseconds of any clock that never goes back; actions are outputs. This
//! crate knows neither the meaning of methods nor where bytes come from.
//!
//! ```text
//! remote      which remotes there are; a caller connects to one
//! reconnect   when to connect, probe and disconnect: uses `backoff` for waits, `probe` for silence
//! log_event   the log texts of these events
//! message     the envelope of each text that arrives or leaves
//! session     which messages are handled without the connection's user
//! wire_log    messages as the debug log shows them
//! ```

pub mod backoff;
pub mod log_event;
pub mod message;
pub mod probe;
pub mod reconnect;
pub mod remote;
pub mod session;
pub mod wire_log;

pub use backoff::Backoff;
pub use log_event::{Level, LogEvent};
pub use message::{Message, MessageError};
pub use probe::Probe;
pub use reconnect::Reconnect;
pub use session::Session;
