//! Monitors of one database: subscription groups, pending changes and their coalescing, encoders, transaction history.
//!
//! Input: committed deltas and requests. Output: reply results and notification frames as bytes. This crate knows no sockets
//! and no log; a session is a number here.

pub mod frame;
pub mod monitors;

pub use frame::Frame;
pub use monitors::{Monitors, SessionId, Version};
